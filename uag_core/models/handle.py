"""A loaded language model with what the engine needs to know about it.

`LanguageModel` never changes the model or its generation configuration. It knows the shapes and
limits of one model, not how it was found or loaded, and nothing of pairs or runs.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any

import torch

from uag_core.errors import UnsupportedModelError
from uag_core.models.placement import describe_map
from uag_core.tokenization import TokenizerCodec

# Models without learned or rotary positions (ALiBi, recurrent) state no limit.
_NO_LIMIT = 1 << 20
_CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
_STATEFUL_WORDS = ("mamba", "linear", "recurrent", "conv", "rwkv", "hybrid")


class LanguageModel:
    """A causal language model, its tokenizer, and derived facts.

    Attributes:
        ref: the name it was asked for by; `id` and `revision` say what was really loaded.
        model: a `PreTrainedModel` in evaluation mode; never changed.
        tokenizer: its fast tokenizer, used for prompts; `codec` serves the decoding loop.
        context_length: most positions a sequence may have.
        embedding_rows: ids at or above this number cannot be sent to the model.
        eos_token_ids: ids that end a sequence, as in its generation configuration.
        is_stateful: recurrent state that cannot be rolled back by cropping a cache.
    """

    def __init__(
        self, *, ref: str, id: str, revision: str | None, model: Any, tokenizer: Any
    ) -> None:
        self.ref = ref
        self.id = id
        self.revision = revision
        self.model = model
        self.tokenizer = tokenizer
        self.codec = TokenizerCodec(tokenizer)
        config = model.config.get_text_config(decoder=True)
        self.num_layers = int(config.num_hidden_layers)
        self.context_length = self.context_of(config) or _NO_LIMIT
        embeddings = model.get_input_embeddings()
        self.embedding_rows = int(embeddings.weight.shape[0])
        self.input_device = embeddings.weight.device
        self.eos_token_ids = self._eos(model, tokenizer)
        self.is_stateful = self.is_stateful_config(model, config)
        self.uses_alibi = bool(getattr(config, "alibi", False)) and config.model_type == "falcon"
        parameters = inspect.signature(model.forward).parameters
        self.accepts_positions = "position_ids" in parameters
        # "int8" for a quantised copy (quantize.py), "8bit" or "4bit" where it was loaded so.
        self.quantization: str | None = next(
            (kind for kind in ("8bit", "4bit") if getattr(model, f"is_loaded_in_{kind}", False)),
            None,
        )
        self.extra_bytes = 0  # memory of such a copy, which lives and dies with this handle
        self.compiled_bytes = 0  # and of its compiled forms (decoding/compiled.py)
        # What was measured about it here (shape probe, step times); nothing of any run.
        self.measured: dict[Any, Any] = {}
        self.prompt_lock = threading.Lock()  # the tokenizer is shared by all who prompt it
        self.accepts_logits_to_keep = "logits_to_keep" in parameters

    @classmethod
    def build(
        cls, *, ref: str, id: str, revision: str | None, model: Any, tokenizer: Any
    ) -> LanguageModel:
        """Wrap a model that is already in memory.

        Raises `UnsupportedModelError` for encoder-decoders and tokenizers without a fast version.
        """
        if getattr(model.config, "is_encoder_decoder", False):
            raise UnsupportedModelError(
                f"{ref} is an encoder-decoder model.", "Choose a causal (decoder-only) model."
            )
        if "cache" not in inspect.signature(model.forward).parameters:
            # Passed on as a stray keyword it would be swallowed, and every step would be wrong.
            raise UnsupportedModelError(
                f"{ref} ({type(model).__name__}) does not take a KV cache.",
                "Choose a model that does.",
            )
        model.eval()
        return cls(ref=ref, id=id, revision=revision, model=model, tokenizer=tokenizer)

    @property
    def dtype(self) -> str:
        """The type of the weights: how they are quantised, where they are."""
        return self.quantization or str(self.model.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        """The device, or all of them ("cuda:0+cuda:1") where the model is spread."""
        return describe_map(self.model) or str(self.input_device)

    @property
    def is_half_precision(self) -> bool:
        return self.model.dtype in (torch.bfloat16, torch.float16)

    @property
    def end_of_turn_id(self) -> int | None:
        """The id that ends an answer: the tokenizer's EOS where the model stops on it."""
        eos = self.tokenizer.eos_token_id
        if eos in self.eos_token_ids:
            return eos
        return self.eos_token_ids[0] if self.eos_token_ids else eos

    def describe(self) -> dict[str, str | None]:
        """What was loaded, for reports."""
        return {
            "id": self.id,
            "revision": self.revision,
            "dtype": self.dtype,
            "device": self.device,
        }

    @staticmethod
    def context_of(config: Any) -> int | None:
        """Most positions of a sequence as a configuration states them; None: no limit is known."""
        for name in _CONTEXT_NAMES:
            value = getattr(config, name, None)
            if isinstance(value, int) and value > 0:
                return value
        return None

    @staticmethod
    def _eos(model: Any, tokenizer: Any) -> tuple[int, ...]:
        for source in (model.generation_config, model.config, tokenizer):
            eos = getattr(source, "eos_token_id", None)
            if eos is not None:
                return (int(eos),) if isinstance(eos, int) else tuple(int(i) for i in eos)
        return ()

    @staticmethod
    def is_stateful_config(model: Any, config: Any) -> bool:
        """Whether a model (or its class) of this configuration keeps a recurrent state."""
        if getattr(model, "_is_stateful", False):
            return True
        kinds = set(getattr(config, "layer_types", None) or ())
        kinds.update(getattr(config, "layers_block_type", None) or ())
        return any(word in str(kind).lower() for kind in kinds for word in _STATEFUL_WORDS)
