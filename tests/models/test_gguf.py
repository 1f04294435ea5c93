"""GGUF files: by path or inside a repository, judged by their header alone."""

from __future__ import annotations

import contextlib
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.hub_server import Repo
from uag_core.errors import InputError, ModelNotFoundError, RunError, UnsupportedModelError
from uag_core.models import facts, headers, loading, planning
from uag_core.models.references import parse


def make(path: Path, kind: str = "llama") -> Path:
    """A GGUF file with a header of the named architecture and one tensor of 64 x 32."""
    writer = gguf.GGUFWriter(str(path), kind)
    writer.add_block_count(3)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_context_length(256)
    writer.add_token_list([f"token {number}" for number in range(100)])
    writer.add_tensor("token_embd.weight", np.zeros((32, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("text", "repo", "revision", "file"),
    [
        ("o/n:m.gguf", "o/n", None, "m.gguf"),
        ("o/n@main:m.Q4_K_M.gguf", "o/n", "main", "m.Q4_K_M.gguf"),
        ("o/n:folder/m.gguf", "o/n", None, "folder/m.gguf"),
    ],
)
def test_names_in_a_repository(text, repo, revision, file) -> None:
    found = parse(text)
    assert (found.kind, found.id, found.revision, found.file) == ("hub_gguf", repo, revision, file)


@pytest.mark.parametrize(
    "text", ["o/n:../m.gguf", "o/n:/etc/m.gguf", "o/n:.gguf", "o/n:m-00001-of-00003.gguf"]
)
def test_names_that_are_none(text) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_the_header(tmp_path: Path) -> None:
    path = make(tmp_path / "m.gguf")
    header = headers.gguf_header(path, "m")
    assert header.values["general.architecture"] == "llama"
    assert header.values["llama.block_count"] == 3
    assert header.parameters == 64 * 32
    part = headers.gguf_beginning(path.read_bytes()[:600], "m")
    assert part.values["llama.context_length"] == 256
    assert part.parameters is None


@given(st.binary(max_size=400), st.booleans())
def test_a_hostile_header_is_one_error(data: bytes, mark: bool) -> None:
    with contextlib.suppress(RunError):
        headers.gguf_beginning(b"GGUF" + data if mark else data, "x")


def test_the_plan_of_a_local_file(tmp_path: Path) -> None:
    found = planning.plan(str(make(tmp_path / "m.gguf")), dtype="float32", device="cpu", tokens=10)
    assert found["refusal"] is None
    assert found["memory"]["weights"] == 64 * 32 * 4
    assert found["memory"]["kv_cache"] == 2 * 2 * 16 * 3 * 10 * 4
    assert found["context_length"] == 256


def test_the_plan_of_one_on_the_hub_reads_its_beginning_only(hub_server, tmp_path: Path) -> None:
    data = make(tmp_path / "m.gguf").read_bytes()
    hub_server.repos["o/n"] = Repo({"m.gguf": data})
    found = planning.plan("o/n:m.gguf", dtype="float32", device="cpu")
    assert found["refusal"] is None
    assert found["disk"]["download"] == len(data)
    assert [r.range for r in hub_server.asked("m.gguf")] == [f"bytes=0-{(1 << 18) - 1}"]
    missing = planning.plan("o/n:other.gguf")["refusal"]
    assert missing["error"] == "ModelNotFoundError"
    assert "It has m.gguf." in missing["hint"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [("t5", "encoder-decoder"), ("bert", "masked"), ("never-heard-of", "cannot read")],
)
def test_other_kinds_are_refused_before_a_download(hub_server, tmp_path, kind, words) -> None:
    hub_server.repos["o/n"] = Repo({"m.gguf": make(tmp_path / "m.gguf", kind).read_bytes()})
    assert words in planning.plan("o/n:m.gguf")["refusal"]["message"]
    assert len(hub_server.asked("m.gguf")) == 1


def test_the_file_of_a_repository_is_what_is_read(hub_server, tmp_path, monkeypatch) -> None:
    hub_server.repos["o/n"] = Repo({"m.gguf": make(tmp_path / "m.gguf").read_bytes()})
    read: list[Path] = []

    def take(path: Path, **_: object) -> None:
        read.append(path)
        raise RunError("stop here")

    monkeypatch.setattr(loading, "read_gguf", take)
    with pytest.raises(RunError):
        loading.load("o/n:m.gguf", device="cpu")
    assert read[0].read_bytes() == hub_server.repos["o/n"].files["m.gguf"]


def test_a_repository_of_gguf_files_says_how_to_name_one(hub_server, tmp_path) -> None:
    hub_server.repos["o/n"] = Repo({"m.gguf": b"GGUF"})
    with pytest.raises(UnsupportedModelError, match=r"o/n:file\.gguf; it has m\.gguf"):
        loading.load("o/n", device="cpu")


def test_without_the_library(tmp_path, monkeypatch) -> None:
    path = make(tmp_path / "m.gguf")
    monkeypatch.setattr(facts.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedModelError, match="pip install 'gguf"):
        loading.load(str(path), device="cpu")


def test_no_such_file() -> None:
    with pytest.raises(ModelNotFoundError):
        parse("/no/such/m.gguf")
