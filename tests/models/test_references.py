from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from uag_core.errors import InputError, ModelNotFoundError
from uag_core.models.references import parse


@pytest.mark.parametrize(
    ("text", "repo", "revision"),
    [
        ("gpt2", "gpt2", None),
        ("owner/name", "owner/name", None),
        (" owner/name ", "owner/name", None),
        ("owner/name@main", "owner/name", "main"),
        ("owner/name@refs/pr/3", "owner/name", "refs/pr/3"),
        ("o_1/n.a-m_e@" + "a" * 40, "o_1/n.a-m_e", "a" * 40),
        ("gpt2@v1.0", "gpt2", "v1.0"),
        ("embedded-owner/name", "embedded-owner/name", None),
    ],
)
def test_hub_ids(text: str, repo: str, revision: str | None) -> None:
    reference = parse(text)
    assert (reference.kind, reference.id, reference.revision) == ("hub", repo, revision)
    assert reference.path is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        None,
        7,
        "https://hub.example/owner/name",
        "owner/name@",
        "@main",
        "owner/name@a@b",
        "owner/name@../../x",
        "owner/name@-rf",
        "owner/na--me",
        "owner/.name",
        "owner/name.",
        "-owner/name",
        "owner/",
        "owner name/x",
        "näme/x",
        "owner/name.git",
        "a" * 97,
        "x" * 5000,
        "owner/name\nmore",
        "owner/\x00name",
        "owner/name;rm -rf",
        "$(id)/x",
        "owner/..",
    ],
)
def test_nonsense_is_refused_in_one_line(text: object) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize("text", ["embedded", "embedded/", "embedded/x", "embedded/target/x"])
def test_unknown_embedded_names_list_what_exists(text: str) -> None:
    with pytest.raises(ModelNotFoundError, match=r"embedded/target and embedded/assistant"):
        parse(text)


def test_embedded_names() -> None:
    assert parse("embedded/target").kind == parse("embedded/assistant").kind == "embedded"


def test_local_folders(make_folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder("owner")
    monkeypatch.chdir(tmp_path)
    assert parse(str(folder)).path == folder
    for text in ("./owner", "owner", f"../{tmp_path.name}/owner"):
        reference = parse(text)
        assert (reference.kind, reference.id, reference.path) == ("folder", text, folder)
    assert parse("owner/name").kind == "hub"


@pytest.mark.parametrize("text", ["/no/such/folder", "./nothing", "~nobody-at-all/x", "a/b/c"])
def test_missing_folders(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no config\.json"):
        parse(str(tmp_path))
    with pytest.raises(ModelNotFoundError):
        parse("../../etc")


def test_gguf_files(tmp_path: Path) -> None:
    path = tmp_path / "model.GGUF"
    with pytest.raises(ModelNotFoundError, match="no GGUF file"):
        parse(str(path))
    path.write_bytes(b"GGUF")
    assert (parse(str(path)).kind, parse(str(path)).path) == ("gguf", path)


def test_parsing_needs_no_torch() -> None:
    code = "import sys, uag_core.models.references; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
