"""A local server stands in for the Hub: what is tested is what we make of its answers."""

from __future__ import annotations

import errno
import json
import logging
import shutil
import threading
import time
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import constants, errors

from tests.fixtures.hub_server import SHA, HubServer, Repo
from uag_core.errors import (
    DiskSpaceError,
    GatedModelError,
    InputError,
    ModelNotFoundError,
    NetworkError,
    RunCancelled,
    UAGError,
    UnsafeModelError,
    UnsupportedModelError,
)
from uag_core.models import disk, download, hub_errors, loading, registry, sources

TOKEN = "hf_markerMarkerMarker"


def http_error(kind: type[Exception], status: int) -> Exception:
    request = httpx2.Request("GET", "https://hub.example/api", headers={"authorization": TOKEN})
    response = httpx2.Response(status, request=request)
    return kind(f"{status} with {TOKEN}\nand more", response=response)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (http_error(errors.GatedRepoError, 403), GatedModelError, "gated"),
        (http_error(errors.RepositoryNotFoundError, 404), ModelNotFoundError, "no model o/n"),
        (http_error(errors.RevisionNotFoundError, 404), ModelNotFoundError, "revision"),
        (http_error(errors.RemoteEntryNotFoundError, 404), ModelNotFoundError, "holds no model"),
        (http_error(errors.HfHubHTTPError, 401), InputError, "access token"),
        (http_error(errors.HfHubHTTPError, 403), GatedModelError, "not allow"),
        (http_error(errors.HfHubHTTPError, 429), NetworkError, "slow down"),
        (http_error(errors.HfHubHTTPError, 500), NetworkError, "status 500"),
        (errors.LocalEntryNotFoundError(TOKEN), NetworkError, "local cache"),
        (httpx2.ConnectError(TOKEN), NetworkError, "local cache"),
        (httpx2.ReadTimeout(TOKEN), NetworkError, "local cache"),
        (ConnectionResetError(TOKEN), NetworkError, "local cache"),
        (OSError(errno.ENOSPC, TOKEN), DiskSpaceError, "disk is full"),
        (PermissionError(errno.EACCES, TOKEN), InputError, "UAG_HOME"),
        (errors.HFValidationError(TOKEN), InputError, "no model name"),
        (RuntimeError(TOKEN), NetworkError, "download of o/n failed"),
    ],
)
def test_every_error_has_one_fixed_line(
    error: Exception, expected: type[UAGError], words: str, monkeypatch
) -> None:
    monkeypatch.setattr(hub_errors.constants, "is_offline_mode", lambda: False)

    def fail() -> None:
        raise error

    with pytest.raises(expected, match=words) as caught:
        hub_errors.call("o/n", fail)
    assert type(caught.value) is expected
    assert TOKEN not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_offline_mode_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ConnectionError(), errors.OfflineModeIsEnabled("x")):
        monkeypatch.setattr(hub_errors.constants, "is_offline_mode", lambda: True)
        problem = hub_errors.translate(error, "o/n")
        assert isinstance(problem, ModelNotFoundError)
        assert "HF_HUB_OFFLINE" in str(problem)
        monkeypatch.setattr(hub_errors.constants, "is_offline_mode", lambda: False)
        assert isinstance(hub_errors.translate(error, "o/n"), NetworkError)


@pytest.fixture
def publish(hub_server: HubServer, make_folder):
    """`publish(auto_map=...)`: the tiny model as o/n on the server, with a changed config."""

    def make(name: str = "o/n", **changes: object) -> Repo:
        folder = make_folder(name.replace("/", "-"), **changes)
        hub_server.repos[name] = Repo.from_folder(folder)
        return hub_server.repos[name]

    return make


def load(ref: str = "o/n", **options):
    return loading.load(ref, dtype="float32", device="cpu", **options)


def test_a_model_is_pinned_to_its_commit(publish, hub_server, monkeypatch) -> None:
    monkeypatch.setattr(download.Meter, "EVERY_S", 0)
    publish()
    lines: list[str] = []
    model = load("o/n@main", progress=lines.append)
    assert (model.ref, model.id, model.revision) == ("o/n@main", "o/n", SHA)
    assert all(f"/resolve/{SHA}/" in r.path for r in hub_server.asked("/resolve/"))
    assert any(line.startswith("Downloading o/n@main: ") and "MB" in line for line in lines)
    count = len(hub_server.requests)
    assert load("o/n@main").revision == SHA
    assert len(hub_server.requests) == count  # everything is there, and the branch stays pinned


def test_a_full_commit_needs_no_look_up(publish, hub_server) -> None:
    publish()
    load("o/n")
    count = len(hub_server.requests)
    assert load(f"o/n@{SHA}").revision == SHA
    assert len(hub_server.requests) == count


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"auto_map": {"AutoModel": "x.Y"}}, UnsafeModelError, "auto_map"),
        ({"model_type": "t5", "architectures": ...}, UnsupportedModelError, "encoder-decoder"),
        (
            {"architectures": ["BertForMaskedLM"], "model_type": "bert"},
            UnsupportedModelError,
            "mas",
        ),
        ({"architectures": ["BertModel"], "model_type": "bert"}, UnsupportedModelError, "masked"),
        ({"vision_config": {}, "model_type": "gemma3"}, UnsupportedModelError, "vision"),
    ],
)
def test_refused_before_anything_but_the_configuration_is_fetched(
    publish, hub_server, changes, error, words
) -> None:
    publish(**changes)
    with pytest.raises(error, match=words):
        load()
    assert [r.path.rpartition("/")[2] for r in hub_server.asked("/resolve/")] == ["config.json"]


def test_code_that_transformers_has_itself_is_not_needed(publish, hub_server) -> None:
    repo = publish(
        auto_map={
            "AutoConfig": "configuration_llama.LlamaConfig",
            "AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM",
        }
    )
    repo.files["modeling_llama.py"] = b"raise SystemExit"
    assert type(load().model).__module__.startswith("transformers.")
    assert not hub_server.asked(".py")


@pytest.mark.parametrize(
    ("change", "ref", "error", "words"),
    [
        ({}, "o/missing", ModelNotFoundError, "no model o/missing"),
        ({}, "o/n@nothing", ModelNotFoundError, "no such revision"),
        ({"private": True}, "o/n", ModelNotFoundError, "or it is private"),
        ({"gated": "manual"}, "o/n", GatedModelError, "is gated"),
        ({"status": 500}, "o/n", NetworkError, "status 500"),
        ({"status": 429}, "o/n", NetworkError, "slow down"),
    ],
)
def test_what_the_hub_says_no_to(publish, change, ref, error, words) -> None:
    repo = publish()
    for name, value in change.items():
        setattr(repo, name, value)
    with pytest.raises(error, match=words):
        load(ref)


def test_a_gated_model_opens_for_whoever_may_read_it(publish, hub_server, monkeypatch) -> None:
    repo = publish()
    repo.gated, repo.readers = "auto", (TOKEN,)
    hub_server.tokens = {TOKEN, "hf_other"}
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(GatedModelError):
        load()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    sources._commits.clear()
    assert load()


def test_pickles_only(publish, hub_server) -> None:
    repo = publish()
    repo.files["pytorch_model.bin"] = repo.files.pop("model.safetensors")
    with pytest.raises(UnsafeModelError, match="pickle"):
        load()
    assert not hub_server.asked(".bin")


def test_no_space(publish, hub_server, monkeypatch) -> None:
    publish()
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(DiskSpaceError, match="needs 0"):
        load()
    assert not hub_server.asked("model.safetensors")


def test_sharded_weights(publish, hub_server) -> None:
    repo = publish()
    repo.files["model-00001-of-00001.safetensors"] = repo.files.pop("model.safetensors")
    repo.files["consolidated.safetensors"] = b"not wanted"
    shard = "model-00001-of-00001.safetensors"
    index = {"metadata": {}, "weight_map": {"lm_head.weight": shard, "a": shard}}
    repo.files["model.safetensors.index.json"] = json.dumps(index).encode()
    assert load()
    assert not hub_server.asked("consolidated")
    del repo.files[shard]
    hub_server.repos["o/two"] = repo
    with pytest.raises(ModelNotFoundError, match="lacks the weight file"):
        load("o/two")


class TestCutOff:
    def test_a_download_goes_on_where_it_was_cut_off(self, publish, hub_server) -> None:
        repo = publish()
        repo.cut_after, repo.cuts, repo.piece = 3000, 2, 1000
        assert load()
        ranges = [r.range for r in hub_server.asked("model.safetensors")]
        assert ranges == [None, "bytes=3000-", "bytes=6000-"]

    def test_and_so_does_the_next_attempt(self, publish, hub_server) -> None:
        repo = publish()
        repo.cut_after, repo.cuts, repo.piece = 0, 99, 1000
        with pytest.raises(NetworkError, match="out of reach"):
            load()
        repo.cut_after, repo.cuts = 2000, 1
        hub_server.requests.clear()
        assert load()
        assert [r.range for r in hub_server.asked("model.safetensors")] == [None, "bytes=2000-"]

    def test_a_damaged_file_is_not_kept(self, publish, hub_server, tmp_path: Path) -> None:
        repo = publish()
        repo.damaged = ("model.safetensors",)
        with pytest.raises(NetworkError, match="checksum is wrong"):
            load()
        assert not [p for p in (tmp_path / "home").rglob("*") if "safetensors" in p.name]
        repo.damaged = ()
        assert load()

    @pytest.mark.parametrize("claimed", [100, 10_000_000])
    def test_a_file_of_another_size(self, publish, hub_server, claimed: int) -> None:
        repo = publish()
        repo.sizes["model.safetensors"] = claimed
        with pytest.raises(NetworkError):
            load()

    def test_small_files_are_checked_as_well(self, publish) -> None:
        repo = publish()
        repo.damaged = ("tokenizer.json",)
        with pytest.raises(NetworkError, match=r"tokenizer\.json is damaged"):
            load()


class TestCancel:
    def cancel_when(self, word: str):
        """A progress callback that cancels at the first line holding `word`."""

        def progress(line: str) -> None:
            if word in line:
                raise RunCancelled("enough")

        return progress

    def test_in_the_middle_of_a_slow_download(
        self, publish, hub_server, monkeypatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(download.Meter, "EVERY_S", 0.02)
        repo = publish()
        repo.pause_s, repo.piece = 0.05, 500

        def progress(line: str) -> None:
            if any(p.stat().st_size > 1000 for p in tmp_path.rglob(".model.safetensors.partial")):
                raise RunCancelled("enough")

        with pytest.raises(RunCancelled):
            registry.get("o/n", "float32", "cpu", progress)
        repo.pause_s = 0
        assert registry.get("o/n", "float32", "cpu", lambda line: None)
        assert hub_server.asked("model.safetensors")[-1].range  # went on, did not start again

    def test_while_the_server_says_nothing(self, publish, hub_server) -> None:
        repo = publish()
        repo.pause_s = 3.0
        calls = 0

        def progress(line: str) -> None:
            nonlocal calls
            calls += 1
            if calls > 4:  # the same line again: nothing arrives
                raise RunCancelled("enough")

        started = time.monotonic()
        with pytest.raises(RunCancelled):
            registry.get("o/n", "float32", "cpu", progress)
        assert time.monotonic() - started < 3.0
        assert registry._registry._loading.acquire(timeout=10)  # let go by the abandoned thread
        registry._registry._loading.release()

    def test_while_the_weights_are_read(self, make_folder, monkeypatch) -> None:
        from uag_core.models import watching

        monkeypatch.setattr(watching, "_EVERY_S", 0)
        with pytest.raises(RunCancelled):
            load(str(make_folder()), progress=self.cancel_when("%"))
        assert load(str(make_folder("again")))


def test_two_downloads_of_one_model_share_the_work(publish, hub_server) -> None:
    repo = publish()
    repo.pause_s, repo.piece = 0.01, 2000
    models = []
    threads = [threading.Thread(target=lambda: models.append(load())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(models) == 3
    assert len(hub_server.asked("model.safetensors")) == 1


def test_out_of_reach_the_cached_commit_is_used(publish, hub_server, monkeypatch) -> None:
    publish()
    load("o/n@main")
    sources._commits.clear()
    from uag_core.models import hub

    hub._infos.clear()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert load("o/n@main").revision == SHA
    with pytest.raises(NetworkError, match="local cache"):
        load("o/never-seen")


def test_a_model_in_the_shared_cache_is_used_from_there(publish, hub_server, make_folder) -> None:
    publish()
    shared = disk.repo_folder(disk.shared_root(), "o/n") / "snapshots" / SHA
    shutil.copytree(make_folder("copy"), shared)
    assert load("o/n")
    assert not hub_server.asked("/resolve/")
    assert not list(disk.own_root().glob("models--*/snapshots"))


def test_the_marker_token_goes_to_the_hub_and_nowhere_else(
    publish, hub_server, monkeypatch, caplog, capfd, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    repo = publish()
    repo.gated = "manual"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    shown: list[str] = []
    for known in ((), (TOKEN,)):
        hub_server.tokens = set(known)
        sources._commits.clear()
        for give in ({}, {"token": TOKEN}):
            with pytest.raises(UAGError) as caught:
                registry.get("o/n", "float32", "cpu", shown.append, **give)
            shown.append(f"{caught.value!r} {caught.value.__dict__}")
            assert caught.value.__context__ is None
    repo.readers = (TOKEN,)
    model = registry.get("o/n", "float32", "cpu", shown.append, token=TOKEN)
    source = sources.resolve("o/n", token=TOKEN)
    shown += [repr(source), str(model.describe()), str(registry.loaded()), caplog.text]
    shown += list(capfd.readouterr())
    registry.evict_all()
    assert any(request.token == TOKEN for request in hub_server.requests)
    assert not [text for text in shown if TOKEN in text]
    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert written
    assert not [p for p in written if TOKEN.encode() in p.read_bytes()]


def test_the_real_client_offline() -> None:
    """HF_HUB_OFFLINE is set for the tests: an unknown model ends in one clear line."""
    with pytest.raises(UAGError, match="not in the local cache"):
        loading.load("nobody-has/this-model-here", device="cpu")
