"""Tokenizers of Hub models without their weights; a local server stands in for the Hub."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.gguf_files import write_gguf
from tests.fixtures.hub_server import SHA, Repo
from tests.models.conftest import tiny_tokenizer
from tests.models.test_gguf import make as make_gguf
from uag_core.errors import (
    GatedModelError,
    InputError,
    ModelNotFoundError,
    NetworkError,
    RunError,
    UnsafeModelError,
    UnsupportedModelError,
)
from uag_core.inspection import inspect_pair
from uag_core.models import disk, headers, hub, loading, small_files, sources, tokenizers
from uag_core.models.tokenizers import load_tokenizer

TOKEN = "hf_markerMarkerMarker"


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(tokenizers, "_loaded", type(tokenizers._loaded)())


@pytest.fixture
def publish(hub_server, make_folder):
    def make(name: str = "o/n", **changes: object) -> Repo:
        folder = make_folder(name.replace("/", "-"), **changes)
        hub_server.repos[name] = Repo.from_folder(folder)
        return hub_server.repos[name]

    return make


def as_a_new_process(monkeypatch) -> None:
    """Forget everything that is not on the disk."""
    for module, name in ((tokenizers, "_loaded"), (hub, "_infos"), (hub, "_allowed")):
        monkeypatch.setattr(module, name, type(getattr(module, name))())
    monkeypatch.setattr(sources, "_commits", {})


def fetched(hub_server) -> set[str]:
    return {request.path.rpartition("/")[2] for request in hub_server.asked("/resolve/")}


def test_a_tokenizer_comes_without_weights(publish, hub_server, monkeypatch) -> None:
    publish()
    found = load_tokenizer("o/n")
    assert (found.id, found.revision) == ("o/n", SHA)
    assert found.codec.encode("the cat")
    assert {"config.json", "tokenizer.json"} <= fetched(hub_server)
    assert not [name for name in fetched(hub_server) if "safetensors" in name]
    as_a_new_process(monkeypatch)
    hub_server.requests.clear()
    assert load_tokenizer("o/n").codec.fingerprint == found.codec.fingerprint
    assert not fetched(hub_server)


def test_a_whole_model_needs_nothing_more(publish, hub_server) -> None:
    publish()
    loading.load("o/n", dtype="float32", device="cpu")
    hub_server.requests.clear()
    assert load_tokenizer("o/n")
    assert not hub_server.requests


@pytest.mark.parametrize("mode", ["out of reach", "offline mode"])
def test_what_is_there_serves_without_the_hub(publish, hub_server, monkeypatch, mode) -> None:
    publish()
    found = load_tokenizer("o/n")
    as_a_new_process(monkeypatch)
    if mode == "offline mode":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert load_tokenizer("o/n").codec.fingerprint == found.codec.fingerprint
    assert inspect_pair("o/n", "embedded/assistant")["target"]["id"] == "o/n"
    with pytest.raises((NetworkError, ModelNotFoundError), match="not in the local cache"):
        load_tokenizer("o/never-seen")


def test_tokenizers_of_the_shared_cache_serve_as_well(publish, hub_server, monkeypatch) -> None:
    """As transformers leaves them behind: without weights, so that the model is not whole."""
    repo = publish()
    folder = disk.repo_folder(disk.shared_root(), "o/n")
    (folder / "snapshots" / SHA).mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(SHA)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / "snapshots" / SHA / name).write_bytes(repo.files[name])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_tokenizer("o/n").codec.encode("the cat")
    assert not hub_server.requests


def test_a_gated_one_needs_a_login(publish, hub_server, tmp_path: Path) -> None:
    repo = publish()
    repo.gated, repo.readers = "manual", (TOKEN,)
    hub_server.tokens = {TOKEN}
    with pytest.raises(GatedModelError, match="o/n is gated") as caught:
        load_tokenizer("o/n")
    assert caught.value.__context__ is None
    assert not fetched(hub_server)
    assert load_tokenizer("o/n", token=TOKEN).codec.encode("the cat")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("change", "ref", "token", "error", "words"),
    [
        ({}, "o/missing", None, ModelNotFoundError, "no model o/missing"),
        ({}, "o/n@nothing", None, ModelNotFoundError, "no such revision"),
        ({"private": True}, "o/n", None, ModelNotFoundError, "or it is private"),
        ({"gated": "auto"}, "o/n", TOKEN, GatedModelError, "o/n is gated"),
        ({}, "o/n", "hf_notKnownMarker", InputError, "does not accept the stored access token"),
        ({"status": 500}, "o/n", None, NetworkError, "status 500"),
        ({"status": 429}, "o/n", None, NetworkError, "slow down"),
    ],
)
def test_what_the_hub_says_no_to_is_one_line(
    publish, hub_server, change, ref, token, error, words
) -> None:
    repo = publish()
    hub_server.tokens = {TOKEN}
    for name, value in change.items():
        setattr(repo, name, value)
    for action in (
        load_tokenizer,
        lambda r, token: inspect_pair(r, "embedded/target", token=token),
    ):
        with pytest.raises(error, match=words) as caught:
            action(ref, token=token)
        assert "\n" not in str(caught.value)
        assert "Marker" not in str(caught.value)
    assert not fetched(hub_server)


def test_of_pickles_only_the_tokenizer_is_read(publish, hub_server) -> None:
    repo = publish()
    repo.files["pytorch_model.bin"] = repo.files.pop("model.safetensors")
    assert load_tokenizer("o/n").codec.encode("the cat")
    for pair in (("o/n", "embedded/assistant"), ("embedded/assistant", "o/n")):
        with pytest.raises(UnsafeModelError, match="pickle"):
            inspect_pair(*pair)
    assert not hub_server.asked(".bin")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"auto_map": {"AutoModel": "x.Y"}}, UnsafeModelError, "auto_map"),
        ({"model_type": "t5", "architectures": ...}, UnsupportedModelError, "encoder-decoder"),
    ],
)
def test_refused_by_the_configuration_alone(publish, hub_server, changes, error, words) -> None:
    publish(**changes)
    with pytest.raises(error, match=words):
        load_tokenizer("o/n")
    assert fetched(hub_server) == {"config.json"}


def test_without_a_tokenizer_it_is_one_line(publish) -> None:
    repo = publish()
    for name in [name for name in repo.files if name.startswith("tokenizer")]:
        del repo.files[name]
    with pytest.raises(UnsupportedModelError, match="tokenizer") as caught:
        load_tokenizer("o/n")
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_not_kept(publish, tmp_path: Path) -> None:
    repo = publish()
    repo.damaged = ("tokenizer.json",)
    with pytest.raises(NetworkError, match=r"tokenizer\.json is damaged"):
        load_tokenizer("o/n")
    assert not list((tmp_path / "home").rglob("*tokenizer.json*"))
    repo.damaged = ()
    assert load_tokenizer("o/n")


def test_several_at_once_beside_a_load_disturb_nobody(publish, tmp_path: Path) -> None:
    repo = publish()
    repo.pause_s, repo.piece = 0.01, 2000
    results: list[object] = []

    def note(action) -> None:
        try:
            results.append(action())
        except Exception as error:
            results.append(error)

    actions = [lambda: load_tokenizer("o/n")] * 6
    actions.append(lambda: loading.load("o/n", dtype="float32", device="cpu"))
    threads = [threading.Thread(target=note, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 7
    assert not [result for result in results if isinstance(result, Exception)]
    assert not list((tmp_path / "home").rglob("*.partial"))


def test_a_slow_server_holds_up_nobody_else(publish, monkeypatch) -> None:
    publish()
    waiting, go_on = threading.Event(), threading.Event()
    real = hub.download_files

    def slow(*arguments, **options):
        waiting.set()
        assert go_on.wait(30)
        return real(*arguments, **options)

    monkeypatch.setattr(hub, "download_files", slow)
    thread = threading.Thread(target=load_tokenizer, args=("o/n",))
    thread.start()
    try:
        assert waiting.wait(30)
        assert load_tokenizer("embedded/assistant")
    finally:
        go_on.set()
        thread.join(30)


# GGUF files inside of a repository


@pytest.mark.parametrize("tied", [True, False])
def test_its_tokenizer_comes_without_its_weights(
    hub_server, tmp_path: Path, monkeypatch, tied: bool
) -> None:
    path = tmp_path / "local.gguf"
    data = write_gguf(path, tiny_tokenizer(), tied=tied)
    hub_server.repos["o/g"] = Repo({"folder/m.gguf": data})
    monkeypatch.setattr(small_files, "_GGUF_STEPS", (100, 1000, 20_000))
    found, local = load_tokenizer("o/g:folder/m.gguf"), load_tokenizer(str(path))
    assert found.codec.fingerprint == local.codec.fingerprint
    told = [{**one.config.to_dict(), "_name_or_path": None} for one in (found, local)]
    assert told[0] == told[1]
    assert found.config.tie_word_embeddings is tied
    assert [r.range for r in hub_server.asked("/resolve/")] == [
        "bytes=0-99",
        "bytes=0-999",
        "bytes=0-19999",
    ]
    as_a_new_process(monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_tokenizer("o/g:folder/m.gguf").codec.fingerprint == local.codec.fingerprint


def test_a_report_on_gguf_files(hub_server, tmp_path: Path) -> None:
    path = tmp_path / "local.gguf"
    hub_server.repos["o/g"] = Repo({"m.gguf": write_gguf(path, tiny_tokenizer())})
    report = inspect_pair("o/g:m.gguf", str(path))
    assert report["same_tokenizer"]
    assert report["target"]["id"] == "o/g"
    for side in ("target", "assistant"):  # as the file's header counts them
        assert report[side]["parameters"] == 2 * 64 * len(tiny_tokenizer())


@pytest.mark.parametrize(
    ("ref", "error", "words"),
    [
        ("o/g:other.gguf", ModelNotFoundError, "not in its repository"),
        ("o/g:broken.gguf", RunError, "damaged or cannot be read"),
        ("o/g:short.gguf", RunError, "damaged or cannot be read"),
        ("o/g:t5.gguf", UnsupportedModelError, "encoder-decoder"),
        ("o/g", UnsupportedModelError, "Name one of its files, as o/g:file.gguf"),
    ],
)
def test_what_is_wrong_with_a_gguf_file_is_one_line(
    hub_server, tmp_path: Path, ref, error, words
) -> None:
    data = write_gguf(tmp_path / "local.gguf", tiny_tokenizer())
    t5 = make_gguf(tmp_path / "t5.gguf", "t5").read_bytes()
    files = {"m.gguf": data, "broken.gguf": b"x" * 999, "short.gguf": data[:999], "t5.gguf": t5}
    hub_server.repos["o/g"] = Repo(files)
    with pytest.raises(error, match=words) as caught:
        load_tokenizer(ref)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_the_metadata_of_hostile_files(data: bytes, cut: int) -> None:
    headers.gguf_without_weights(b"GGUF" + data)
    headers.gguf_without_weights(b"GGUF\3\0\0\0" + data[:cut])
