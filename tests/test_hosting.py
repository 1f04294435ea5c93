from __future__ import annotations

import pytest

from uag_core.errors import InputError
from uag_core.hosting import Hosting
from uag_core.models import references, sources


@pytest.mark.parametrize(
    ("environment", "hosted"),
    [
        ({}, False),
        ({"UAG_HOSTED": "1"}, True),
        ({"UAG_HOSTED": "0"}, False),
        ({"SPACE_ID": "o/space"}, True),
        ({"SPACE_ID": "o/space", "UAG_HOSTED": "0"}, False),
    ],
)
def test_when_it_is_on(environment, hosted) -> None:
    rules = Hosting.from_environment(environment)
    assert rules.hosted is hosted
    assert rules.local_paths is not hosted
    assert (rules.max_model_bytes is not None) is hosted


@pytest.mark.parametrize(
    "environment", [{"UAG_HOSTED": "maybe"}, {"UAG_MAX_MODEL_GB": "-1"}, {"UAG_MAX_MODEL_GB": "x"}]
)
def test_values_that_cannot_be_meant(environment) -> None:
    with pytest.raises(InputError):
        Hosting.from_environment(environment)


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UAG_HOSTED", "1")


@pytest.mark.parametrize(
    "text", ["/etc", "./x", "../../etc", "~", "~root/x", "a/b/c", "C:\\x", "/tmp/m.gguf", "m.gguf"]
)
def test_local_paths_are_closed_and_the_disk_is_not_looked_at(hosted, monkeypatch, text) -> None:
    def look(*_: object, **__: object) -> bool:
        raise AssertionError("the disk was looked at")

    monkeypatch.setattr(references, "_exists", look)
    with pytest.raises(InputError, match="of the server cannot be used"):
        sources.resolve(text)


def test_a_folder_never_stands_in_for_a_hub_id(hosted, tmp_path, monkeypatch) -> None:
    (tmp_path / "o" / "n").mkdir(parents=True)
    (tmp_path / "o" / "n" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert references.parse("o/n").kind == "hub"


def test_the_allow_list(monkeypatch) -> None:
    monkeypatch.setenv("UAG_ALLOWED_MODELS", "good/*, one/model")
    for name in ("good/any", "good/any@main", "one/model", "good/x:file.gguf", "embedded/target"):
        references.parse(name)
    for name in ("bad/any", "one/models", "bad/x:file.gguf"):
        with pytest.raises(InputError, match="not among the models"):
            references.parse(name)


def test_the_size_cap() -> None:
    rules = Hosting(hosted=True, max_model_bytes=1_000_000_000)
    rules.check_size(1_000_000_000, "o/n")
    with pytest.raises(InputError, match="at most 1 GB"):
        rules.check_size(1_000_000_001, "o/n")


def test_whose_token_is_used() -> None:
    assert Hosting().token_for(None) is None  # the one that is stored on this machine
    assert Hosting(hosted=True).token_for(None) is False  # never the server's own
    assert Hosting(hosted=True).token_for("visitor") == "visitor"
