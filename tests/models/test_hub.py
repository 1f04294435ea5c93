"""The Hub's client is replaced by functions: what is tested is what we make of its answers."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import huggingface_hub
import pytest
from huggingface_hub import errors

from uag_core.errors import (
    DiskSpaceError,
    GatedModelError,
    InputError,
    ModelNotFoundError,
    NetworkError,
    UAGError,
    UnsafeModelError,
    UnsupportedModelError,
)
from uag_core.models import hub, loading, sources

SHA = "0123456789abcdef0123456789abcdef01234567"
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
        (PermissionError(errno.EACCES, TOKEN), InputError, "HF_HOME"),
        (errors.HFValidationError(TOKEN), InputError, "no model name"),
        (RuntimeError(TOKEN), NetworkError, "download of o/n failed"),
    ],
)
def test_every_error_has_one_fixed_line(
    error: Exception, expected: type[UAGError], words: str, monkeypatch
) -> None:
    monkeypatch.setattr(hub.constants, "is_offline_mode", lambda: False)

    def fail() -> None:
        raise error

    with pytest.raises(expected, match=words) as caught:
        hub.call("o/n", fail)
    assert type(caught.value) is expected
    assert TOKEN not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_offline_mode_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ConnectionError(), errors.OfflineModeIsEnabled("x")):
        monkeypatch.setattr(hub.constants, "is_offline_mode", lambda: True)
        problem = hub.translate(error, "o/n")
        assert isinstance(problem, ModelNotFoundError)
        assert "HF_HUB_OFFLINE" in str(problem)
        monkeypatch.setattr(hub.constants, "is_offline_mode", lambda: False)
        assert isinstance(hub.translate(error, "o/n"), NetworkError)


class FakeHub:
    """One repository, kept in a folder; it records what was asked for."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.snapshot = cache / SHA
        self.asked: list[str] = []
        self.error: Exception | None = None

    def model_info(self, repo: str, *, revision: str | None = None, **_: Any) -> Any:
        self.asked.append(f"info {revision}")
        if self.error:
            raise self.error
        files = [p for p in self.folder.rglob("*") if p.is_file()]
        siblings = [SimpleNamespace(rfilename=p.name, size=p.stat().st_size) for p in files]
        return SimpleNamespace(sha=SHA, siblings=siblings)

    def _get(self, name: str) -> None:
        self.asked.append(name)
        self.snapshot.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.folder / name, self.snapshot / name)

    def hf_hub_download(self, repo: str, filename: str, *, revision: str) -> str:
        assert revision == SHA
        if self.error:
            raise self.error
        self._get(filename)
        return str(self.snapshot / filename)

    def snapshot_download(
        self, repo: str, *, revision: str, allow_patterns: list[str], tqdm_class: Any
    ) -> str:
        assert revision == SHA
        with tqdm_class(total=0, unit="B", unit_scale=True, name="x") as bar:
            for path in sorted(self.folder.iterdir()):
                if any(path.match(pattern) for pattern in allow_patterns):
                    self._get(path.name)
                    bar.total += path.stat().st_size
                    bar.update(path.stat().st_size)
        return str(self.snapshot)


@pytest.fixture
def make_hub(make_folder, tmp_path: Path, monkeypatch) -> Callable[..., FakeHub]:
    monkeypatch.setattr(sources, "_commits", {})

    def make(**changes: object) -> FakeHub:
        fake = FakeHub(make_folder("remote", **changes), tmp_path / "cache")
        monkeypatch.setattr(
            huggingface_hub, "HfApi", lambda: SimpleNamespace(model_info=fake.model_info)
        )
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", fake.hf_hub_download)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", fake.snapshot_download)
        return fake

    return make


def test_a_model_is_pinned_to_its_commit(make_hub, monkeypatch) -> None:
    monkeypatch.setattr(hub, "_TELL_EVERY_S", -1)
    fake, lines = make_hub(), []
    model = loading.load("o/n@main", dtype="float32", device="cpu", progress=lines.append)
    assert (model.ref, model.id, model.revision) == ("o/n@main", "o/n", SHA)
    assert fake.asked[0] == "info main"
    assert any(line.startswith("Downloading o/n@main: ") for line in lines)
    count = len(fake.asked)
    again = loading.load("o/n@main", device="cpu")
    assert again.revision == SHA
    assert "model.safetensors" not in fake.asked[count:]
    assert "info main" not in fake.asked[count:]


def test_a_full_commit_needs_no_look_up(make_hub) -> None:
    fake = make_hub()
    fake.error = ConnectionError()
    assert hub.resolve("o/n", SHA, "o/n") == SHA
    assert fake.asked == []


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"auto_map": {"AutoModel": "x.Y"}}, UnsafeModelError),
        ({"model_type": "t5", "architectures": ...}, UnsupportedModelError),
        ({"architectures": ["BertForMaskedLM"], "model_type": "bert"}, UnsupportedModelError),
    ],
)
def test_refused_before_anything_but_the_configuration_is_fetched(make_hub, changes, error) -> None:
    fake = make_hub(**changes)
    with pytest.raises(error):
        loading.load("o/n", device="cpu")
    assert fake.asked == ["info None", "config.json"]


def test_pickles_only(make_hub) -> None:
    fake = make_hub()
    (fake.folder / "model.safetensors").rename(fake.folder / "pytorch_model.bin")
    with pytest.raises(UnsafeModelError):
        loading.load("o/n", device="cpu")
    assert "pytorch_model.bin" not in fake.asked


def test_no_space(make_hub, monkeypatch) -> None:
    fake = make_hub()
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(DiskSpaceError, match=r"needs 0\.0 GB"):
        loading.load("o/n", device="cpu")
    assert "model.safetensors" not in fake.asked


def test_sharded_weights(make_hub) -> None:
    fake = make_hub()
    weights = fake.folder / "model.safetensors"
    weights.rename(fake.folder / "model-00001-of-00001.safetensors")
    (fake.folder / "consolidated.safetensors").write_bytes(b"not wanted")
    names = _tensor_names(fake.folder / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors")}
    (fake.folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert loading.load("o/n", device="cpu")
    assert "consolidated.safetensors" not in fake.asked


def _tensor_names(path: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return list(file.keys())


def test_out_of_reach_the_cached_commit_is_used(make_hub, monkeypatch, tmp_path: Path) -> None:
    fake = make_hub()
    monkeypatch.setattr(hub.constants, "is_offline_mode", lambda: False)
    fake.error = httpx2.ConnectError("no route")
    cached = str(tmp_path / "snapshots" / SHA / "config.json")
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: cached)
    assert hub.resolve("o/n", None, "o/n") == SHA
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: None)
    with pytest.raises(NetworkError, match="local cache"):
        hub.resolve("o/n", None, "o/n")


def test_a_missing_model_is_no_network_error(make_hub, monkeypatch) -> None:
    fake = make_hub()
    fake.error = http_error(errors.RepositoryNotFoundError, 404)
    with pytest.raises(ModelNotFoundError):
        loading.load("o/n", device="cpu")


def test_the_real_client_offline() -> None:
    """HF_HUB_OFFLINE is set for the tests: an unknown model ends in one clear line."""
    with pytest.raises(UAGError, match="not in the local cache"):
        loading.load("nobody-has/this-model-here", device="cpu")
