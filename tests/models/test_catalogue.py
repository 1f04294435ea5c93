"""The search over the Hub, and what is offered without it."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import constants

from tests.fixtures.hub_server import Repo
from uag_core.cli import main
from uag_core.errors import InputError
from uag_core.models import catalogue, hub, loading
from uag_core.models.presets import PRESETS


@pytest.fixture
def shelf(hub_server, make_folder):
    folder = make_folder()
    for name, options in {
        "o/small": {"parameters": {"BF16": 1_000_000}, "likes": 1234},
        "o/huge": {"parameters": {"BF16": 10**13}, "licence": None},
        "o/gated-small": {"gated": "manual"},
    }.items():
        hub_server.repos[name] = Repo.from_folder(folder, **options)
    return hub_server


def entries(found):
    return {entry["id"]: entry for entry in found["models"]}


def test_what_the_hub_finds(shelf) -> None:
    found = catalogue.search("small")
    assert found["source"] == "hub"
    assert found["notice"] is None
    models = entries(found)
    assert set(models) == {"o/small", "o/gated-small"}
    assert models["o/small"]["parameters"] == 1_000_000
    assert models["o/small"]["fits"] is True
    assert models["o/small"]["licence"] == "apache-2.0"
    assert models["o/gated-small"]["gated"] is True
    assert "1.2k" in catalogue.label(models["o/small"])
    huge = entries(catalogue.search("huge"))["o/huge"]
    assert huge["fits"] is False
    assert "too big here" in catalogue.label(huge)
    json.dumps(found)


def test_a_blank_query_offers_the_embedded_pair_and_the_limit_holds(shelf) -> None:
    assert set(entries(catalogue.search(""))) >= {"embedded/target", "embedded/assistant", "o/huge"}
    assert len(catalogue.search("", limit=1)["models"]) == 1


@pytest.mark.parametrize("bad", [{"limit": 0}, {"limit": 999}, {"query": "x" * 500}, {"query": 3}])
def test_what_cannot_be_meant(bad) -> None:
    with pytest.raises(InputError):
        catalogue.search(**bad)


def test_out_of_reach_the_cache_is_offered(shelf, monkeypatch) -> None:
    loading.load("o/small", dtype="float32", device="cpu")
    hub._infos.clear()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    found = catalogue.search("")
    assert found["source"] == "cache"
    assert "out of reach" in found["notice"]
    models = entries(found)
    assert {"o/small", "embedded/target", "embedded/assistant"} <= set(models)
    assert models["o/small"]["cached"]
    assert models["o/small"]["parameters"] < 100_000  # read from the file's own header
    assert set(entries(catalogue.search("embedded"))) == {"embedded/target", "embedded/assistant"}


def test_offline_mode_is_the_same(monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert catalogue.search("embedded")["source"] == "cache"


def test_an_allow_list_holds_for_the_picker(shelf, monkeypatch) -> None:
    monkeypatch.setenv("UAG_ALLOWED_MODELS", "o/small")
    found = catalogue.search("")
    assert set(entries(found)) == {"embedded/target", "embedded/assistant", "o/small"}
    assert [preset["target"] for preset in found["presets"]] == ["embedded/target"]


def test_the_presets_hold_the_three_of_the_original_work() -> None:
    original = {(preset.target, preset.assistant) for preset in PRESETS if preset.original}
    assert original == {
        ("codellama/CodeLlama-13b-Instruct-hf", "bigcode/tiny_starcoder_py"),
        ("microsoft/Phi-3-medium-128k-instruct", "Qwen/Qwen2-0.5B-Instruct"),
        ("google/gemma-2-9b", "double7/vicuna-68m"),
    }
    assert {preset.target for preset in PRESETS if preset.gated} >= {"google/gemma-2-9b"}


def test_the_command(shelf, capsys, monkeypatch) -> None:
    assert main(["models", "small", "--json"]) == 0
    assert set(entries(json.loads(capsys.readouterr().out))) == {"o/small", "o/gated-small"}
    assert main(["models"]) == 0
    text = capsys.readouterr().out
    assert "embedded/target" in text
    assert "codellama/CodeLlama-13b-Instruct-hf" in text
    assert main(["models", "--plan", "o/small", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refusal"] is None
    assert main(["models", "--plan", "o/missing"]) == 0
    assert "no model o/missing" in capsys.readouterr().out
    hub._infos.clear()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert main(["models", "--plan", "o/other"]) == 0
    assert capsys.readouterr().out.startswith("o/other is not in the local cache")
