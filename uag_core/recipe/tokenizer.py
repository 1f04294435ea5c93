"""Stage ``tokenizer``: the assistant's own vocabulary, learnt from the training text.

Two ways. ``prune`` keeps the entries of the target's byte-level BPE that the text uses most,
with the merges that build them, under new ids: the assistant's tokens are then nearly as long as
the target's and end where the target's end. ``bpe`` learns a byte-level BPE from nothing and
works for any target. Either way every string can be encoded and decoded back exactly, and the
chat template is the assistant's own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

BEGIN, USER, ASSISTANT, END = "<s>", "<|user|>", "<|assistant|>", "<|end|>"
CONTROL = [BEGIN, USER, ASSISTANT, END]

# A system text goes before the first user message: the assistant has no system turn.
CHAT_TEMPLATE = (
    "{{ '<s>' }}{% set ns = namespace(system='') %}{% for message in messages %}"
    "{% if message['role'] == 'system' %}{% set ns.system = message['content'] + '\n\n' %}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ '<|assistant|>' + message['content'] + '<|end|>' }}"
    "{% else %}{{ '<|user|>' + ns.system + message['content'] }}{% set ns.system = '' %}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


class UnsupportedTokenizerError(ValueError):
    """The target's tokenizer is not a byte-level BPE, so its vocabulary cannot be pruned."""


def train_bpe(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE of ``size`` entries, control tokens included, learnt from ``texts``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _finish(tokenizer)


def prune_target(
    target: PreTrainedTokenizerBase, texts: Iterable[str], size: int
) -> PreTrainedTokenizerFast:
    """The ``size`` entries of the target's BPE most used in ``texts``, control tokens included.

    An entry brings the entries it is merged from. Raises UnsupportedTokenizerError when
    the target's tokenizer is of another kind.
    """
    data = json.loads(target.backend_tokenizer.to_str())
    model, alphabet = data["model"], sorted(pre_tokenizers.ByteLevel.alphabet())
    # A target may lack bytes that no text has (0xF5 and above); most are there if byte-level.
    if model.get("type") != "BPE" or len(set(alphabet) & set(model["vocab"])) < 200:
        raise UnsupportedTokenizerError("pruning needs a byte-level BPE; use 'bpe'")
    if data.get("normalizer"):
        raise UnsupportedTokenizerError("pruning needs no normaliser; use 'bpe'")
    vocabulary: dict[str, int] = model["vocab"]
    names = {index: token for token, index in vocabulary.items()}
    merges = [tuple(m.split(" ") if isinstance(m, str) else m) for m in model["merges"]]
    parents: dict[str, tuple[str, str]] = {}
    for left, right in merges:
        parents.setdefault(left + right, (left, right))
    counts: Counter[int] = Counter()
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == 512:
            _count(target, batch, counts)
            batch = []
    _count(target, batch, counts)

    kept = set(alphabet)
    room = size - len(CONTROL)
    for index, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        family, queue = set(), [names.get(index, "")]
        while queue:
            token = queue.pop()
            if token in kept or token in family or not (token in parents or len(token) == 1):
                continue  # already there, or an added token that no merge makes
            family.add(token)
            queue.extend(parents.get(token, ()))
        if len(kept) + len(family) <= room:
            kept |= family
    ordered = CONTROL + sorted(kept, key=lambda token: (vocabulary.get(token, -1), token))
    # A merge goes in when its result was chosen: one that has no use here must not fire.
    chosen = [[a, b] for a, b in merges if a in kept and b in kept and a + b in kept]
    data["model"]["vocab"] = {token: index for index, token in enumerate(ordered)}
    data["model"]["merges"] = chosen
    data["model"]["unk_token"] = None
    data["added_tokens"] = []
    data["post_processor"] = data["padding"] = data["truncation"] = None
    return _finish(Tokenizer.from_str(json.dumps(data)))


def _count(target: PreTrainedTokenizerBase, texts: list[str], counts: Counter[int]) -> None:
    if texts:
        for ids in target(texts, add_special_tokens=False)["input_ids"]:
            counts.update(ids)


def _finish(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Mark the control tokens and put on the chat template."""
    tokenizer.add_special_tokens(CONTROL)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
