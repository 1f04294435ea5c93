"""The report on a pair before it is loaded: folders with tokenizers and configurations alone."""

from __future__ import annotations

import json

import pytest
import torch

from tests.fixtures.architectures import LONG_ROPE, WINDOW
from tests.fixtures.folders import outline_folder
from tests.fixtures.models import make_model
from tests.fixtures.tokenizers import byte_level_a
from uag_core.cli import main
from uag_core.errors import InputError, ModelNotFoundError, UnsupportedModelError
from uag_core.inspection import inspect_pair
from uag_core.models.tokenizers import load_tokenizer


@pytest.fixture
def folder(tmp_path):
    """folder(kind, architecture, **changes) writes a model without weights and names it."""
    count = iter(range(100))
    return lambda *args, **kwargs: outline_folder(tmp_path / f"m{next(count)}", *args, **kwargs)


def test_a_pair_with_different_tokenizers_works_through_text(folder) -> None:
    report = inspect_pair(folder("byte_level_a", hidden_size=128), folder("gemma_style"))
    assert report["method"]["path"] == "text"
    assert report["method"]["drafts"]
    assert report["verdict"]["level"] == "works"
    assert "through text" in report["verdict"]["headline"]
    assert report["differences"]


def test_padded_vocabularies_of_one_tokenizer_take_the_id_path(folder) -> None:
    left = folder("byte_level_a", hidden_size=128, vocab_size=640)
    report = inspect_pair(left, folder("byte_level_a", vocab_size=576))
    assert report["same_tokenizer"]
    assert report["method"]["path"] == "ids"
    assert report["target"]["embedding_rows"] != report["assistant"]["embedding_rows"]


def test_parameters_are_counted_without_weights(folder) -> None:
    report = inspect_pair(folder("byte_level_a"), folder("byte_level_a", "mixtral"))
    model = make_model("llama", len(byte_level_a()) + 12)
    assert report["target"]["parameters"] == model.num_parameters()
    assert report["assistant"]["experts"]
    assert torch.get_default_dtype() == torch.float32


def test_an_assistant_of_the_targets_size_is_unlikely_to_pay(folder) -> None:
    report = inspect_pair(folder("byte_level_a"), folder("byte_level_b"))
    assert report["size_ratio"] < 2
    assert report["verdict"]["level"] == "unlikely"


@pytest.mark.parametrize("architecture", ["mamba", "jamba", "lfm2", "deepseek_v32"])
@pytest.mark.parametrize("role", ["target", "assistant"])
def test_what_cannot_be_rolled_back_is_foretold(folder, architecture: str, role: str) -> None:
    this, other = folder("byte_level_a", architecture), folder("byte_level_b")
    report = inspect_pair(*((this, other) if role == "target" else (other, this)))
    assert not report[role]["rolls_back"]
    assert not report["method"]["drafts"]
    assert report["verdict"]["level"] == "plain"
    assert any("decoded plainly" in line for line in report["method"]["why"])


def test_kinds_of_cache_layers_and_windows(folder) -> None:
    report = inspect_pair(folder("byte_level_a", "gemma3"), folder("byte_level_a", "mistral"))
    assert report["target"]["cache"] == {"sliding window": 1, "full": 1}
    assert report["target"]["window"] == report["assistant"]["window"] == WINDOW
    assert report["assistant"]["cache"] == {"sliding window": 2}


def test_a_shorter_context_of_the_assistant_is_to_be_watched(folder) -> None:
    report = inspect_pair(folder("byte_level_a"), folder("byte_level_b", "gpt2"))
    assert any("context (64 tokens)" in line for line in report["verdict"]["watch"])
    report = inspect_pair(folder("byte_level_a"), folder("byte_level_b"))
    assert not any("context" in line for line in report["verdict"]["watch"])


def test_a_switch_of_positions_is_to_be_watched(folder) -> None:
    report = inspect_pair(folder("byte_level_a", "phi3_longrope"), folder("byte_level_b"))
    assert report["target"]["position_switch"] == LONG_ROPE
    assert any(f"at {LONG_ROPE} tokens" in line for line in report["verdict"]["watch"])


def test_lost_text_is_to_be_watched(folder) -> None:
    report = inspect_pair(folder("byte_level_a"), folder("wordpiece"))
    assert any("assistant's tokenizer loses text" in line for line in report["verdict"]["watch"])


def test_tokenizers_are_kept_while_their_files_stay_the_same(folder) -> None:
    name = folder("byte_level_a")
    assert load_tokenizer(name) is load_tokenizer(name)


def test_names_and_models_that_cannot_be_used(folder, tmp_path) -> None:
    good = folder("byte_level_a")
    with pytest.raises(ModelNotFoundError):
        inspect_pair(good, "embedded/nothing")
    with pytest.raises(InputError):
        inspect_pair(good, "")
    broken = tmp_path / "t5"
    broken.mkdir()
    (broken / "config.json").write_text('{"model_type": "t5", "is_encoder_decoder": true}')
    with pytest.raises(UnsupportedModelError, match="encoder-decoder"):
        inspect_pair(str(broken), good)
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.json").write_text((tmp_path / "m0" / "config.json").read_text())
    with pytest.raises(UnsupportedModelError, match="tokenizer"):
        inspect_pair(good, str(empty))


# The command line


def test_inspect_prints_json_alone(folder, capsys) -> None:
    left, right = folder("byte_level_a"), folder("gemma_style")
    status = main(
        ["inspect", "--target", left, "--assistant", right, "--text", "naïve 歪", "--json"]
    )
    report = json.loads(capsys.readouterr().out)
    assert status == 0
    assert report["text"] == {"given": True, "characters": 7, "shortened": False}


def test_inspect_prints_the_verdict_first(folder, capsys, tmp_path) -> None:
    left, right = folder("byte_level_a"), folder("gemma_style")
    (tmp_path / "text.txt").write_text("The river runs.\n", encoding="utf-8")
    file = str(tmp_path / "text.txt")
    status = main(["inspect", "--target", left, "--assistant", right, "--text-file", file])
    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0].startswith("Works")
    assert any(line.startswith("tokens/word") for line in lines)
    assert any("the text given" in line for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--target", "embedded/nothing"],
        ["--text-file", "no/such/file"],
        ["--text", "a", "--text-file", "b"],
        ["--nonsense"],
    ],
)
def test_inspect_says_in_a_line_what_is_wrong(arguments, capsys) -> None:
    assert main(["inspect", *arguments]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert len(streams.err.splitlines()) == 1
