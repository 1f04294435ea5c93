"""Tokenizers by name, without weights."""

from __future__ import annotations

import pytest

from tests.fixtures.models import make_model
from tests.fixtures.tokenizers import KINDS
from uag_core.errors import InputError, ModelNotFoundError, UnsafeModelError, UnsupportedModelError
from uag_core.models import tokenizers
from uag_core.models.tokenizers import load_tokenizer


@pytest.fixture
def folder(tmp_path):
    """A model's folder without any weights."""
    tokenizer = KINDS["byte_level_a"]()
    tokenizer.save_pretrained(tmp_path)
    make_model("llama", 600).config.save_pretrained(tmp_path)
    return tmp_path


def test_no_weights_are_needed(folder) -> None:
    found = load_tokenizer(str(folder))
    assert found.codec.encode("Hello") == KINDS["byte_level_a"]().encode(
        "Hello", add_special_tokens=False
    )
    assert load_tokenizer(str(folder)) is found


def test_changed_files_are_read_again(folder) -> None:
    found = load_tokenizer(str(folder))
    KINDS["byte_level_b"]().save_pretrained(folder)
    assert load_tokenizer(str(folder)).codec.fingerprint != found.codec.fingerprint


def test_only_a_few_are_kept(folder, monkeypatch) -> None:
    monkeypatch.setattr(tokenizers, "_KEPT", 1)
    found = load_tokenizer(str(folder))
    load_tokenizer("embedded/assistant")
    assert load_tokenizer(str(folder)) is not found


def test_the_embedded_assistant_needs_no_download() -> None:
    assert load_tokenizer("embedded/assistant").codec.is_exact


def test_a_repository_with_code_of_its_own_is_refused(folder) -> None:
    text = (folder / "config.json").read_text().rstrip().rstrip("}")
    (folder / "config.json").write_text(text + ', "auto_map": {"AutoConfig": "evil.Config"}}')
    with pytest.raises(UnsafeModelError):
        load_tokenizer(str(folder))


def test_a_folder_without_a_tokenizer_is_refused_in_one_line(folder) -> None:
    for path in folder.iterdir():
        if path.name != "config.json":
            path.unlink()
    with pytest.raises(UnsupportedModelError) as caught:
        load_tokenizer(str(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "error"),
    [("", InputError), ("a b", InputError), ("./nowhere", ModelNotFoundError)],
)
def test_names_are_checked_as_for_models(name, error) -> None:
    with pytest.raises(error):
        load_tokenizer(name)
