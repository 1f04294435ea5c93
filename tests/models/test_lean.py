"""The lean form of a Llama-shaped assistant: the same numbers in fewer operations."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures import tokenizers
from tests.fixtures.models import make_language_model, make_model, tiny
from tests.fixtures.runs import PROMPT, assisted, plain, raw_ids, settings_of
from uag_core.config import AssistantConfig
from uag_core.decoding import drafter
from uag_core.decoding.caches import CachedModel
from uag_core.models import lean, quantize

IDS = [5, 9, 11, 40, 3, 7, 21, 2, 17, 30, 6, 12]
KINDS = ["llama", "mistral", "qwen2", "qwen3"]


def made(kind: str, seed: int = 0, **changes):
    """A model of its own, which a test may change."""
    if kind == "mistral":
        changes = {"sliding_window": None, "layer_types": None} | changes
    tokenizer = tokenizers.KINDS["byte_level_b"]()
    return make_language_model(make_model(kind, len(tokenizer), seed=seed, **changes), tokenizer)


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).norm() / other.norm())


@pytest.fixture(params=KINDS)
def lm(request):
    made_one = made(request.param)
    with torch.no_grad():  # norms that do nothing would hide one that is left out
        for name, weight in made_one.model.named_parameters():
            if "norm" in name:
                weight.copy_(torch.linspace(0.5, 1.5, len(weight)))
    return made_one


def test_many_rows_come_out_as_the_original_says(lm) -> None:
    small = lean.lean_copy(lm)
    assert small is not None
    with torch.inference_mode():
        exact, other = (m.model(torch.tensor([IDS])).logits for m in (lm, small))
    assert distance(other, exact) < 0.05


def test_steps_and_short_reads_come_out_as_a_whole_text_does(lm) -> None:
    small = lean.lean_copy(lm)
    assert small is not None
    with torch.inference_mode():
        exact = lm.model(torch.tensor([IDS])).logits[0]
    with CachedModel(small, 4) as model:  # the cache has to grow
        found = [model.prefill(IDS[:3])]
        found += [model.forward([token]) for token in IDS[3:6]]
        found.append(model.forward(IDS[6:9]))
        model.rollback(2)
        found.append(model.forward(IDS[7:9]))
    rows = [2, 3, 4, 5, 6, 7, 8, 7, 8]
    assert distance(torch.cat(found), exact[rows]) < 0.25


def test_only_the_last_row_is_computed_where_only_that_is_asked_for(lm) -> None:
    small = lean.lean_copy(lm)
    assert small is not None
    with torch.inference_mode():
        rows = small.model(torch.tensor([IDS])).logits
        last = small.model(torch.tensor([IDS]), logits_to_keep=1).logits
    assert last.shape[1] == 1
    assert distance(last[0, 0], rows[0, -1]) < 0.05


def test_it_takes_the_place_of_the_8_bit_copy_and_its_memory_is_counted() -> None:
    assistant = made("llama", seed=3)
    chosen = drafter.choose(assistant, "int8").model
    assert isinstance(chosen.model, lean.LeanModel)
    assert chosen.dtype == "int8"
    assert chosen.embedding_rows == assistant.embedding_rows
    assert assistant.extra_bytes == quantize.extra_bytes(assistant, chosen) > 0


@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "phi3", "mistral"])
def test_models_of_another_shape_have_no_lean_form(kind: str) -> None:
    assert lean.lean_copy(tiny("byte_level_a", kind)) is None


@pytest.mark.parametrize(
    "change",
    [{"sliding_window": 8}, {"hidden_act": "gelu"}, {"layer_types": ["chunked_attention"]}],
)
def test_a_setting_that_it_does_not_compute_is_refused(change: dict[str, object]) -> None:
    other = made("llama")
    for name, value in change.items():
        setattr(other.model.config, name, value)
    assert not lean.fits(other)


def test_a_form_that_says_something_else_is_not_used(monkeypatch) -> None:
    monkeypatch.setattr(lean.LeanModel, "_order", lambda self, rows: torch.arange(rows))
    other = made("llama", seed=12)
    with torch.no_grad():  # attention has to matter
        for layer in other.model.model.layers:
            layer.self_attn.q_proj.weight.mul_(60)
    assert lean.lean_copy(other) is None
    assert drafter.choose(other, "int8").model.dtype == "int8"  # the plain copy drafts


@pytest.mark.parametrize("kind", KINDS)
def test_the_output_is_the_targets_whatever_it_drafts(kind: str) -> None:
    target, assistant = tiny(), made(kind, seed=4)
    config = AssistantConfig(num_assistant_tokens=4, assistant_dtype="int8")
    run = assisted(target, assistant, PROMPT, settings_of(32), config=config)
    assert run.ids == plain(target, raw_ids(target, PROMPT), settings_of(32)).ids
    assert run.drafted
