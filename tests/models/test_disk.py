"""Our own cache on disk: what is removed when, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.hub_server import SHA, Repo
from uag_core.errors import DiskSpaceError, InputError
from uag_core.models import disk, loading


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`cache("o/a", size, used)` puts a model into our own cache."""
    monkeypatch.setenv("UAG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(disk.constants, "HF_HUB_CACHE", str(tmp_path / "shared"))

    def put(repo: str, size: int, used: float) -> Path:
        folder = disk.repo_folder(disk.own_root(), repo) / "snapshots" / SHA
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(bytes(size))
        (folder / ".uag-used").write_text(str(used))
        return folder

    return put


def names() -> list[str]:
    return [item.repo for item in disk.stored()]


def test_the_least_recently_used_goes_first(cache, monkeypatch) -> None:
    monkeypatch.setattr(disk, "limit_bytes", lambda: 2500)
    cache("o/new", 1000, used=3)
    cache("o/old", 1000, used=1)
    keep = cache("o/kept", 100, used=0)
    assert names() == ["o/kept", "o/old", "o/new"]
    disk.make_room(1000, keep, "o/next")
    assert names() == ["o/kept", "o/new"]
    disk.touch(keep)
    assert names() == ["o/new", "o/kept"]


def test_what_is_in_use_stays(cache, monkeypatch) -> None:
    monkeypatch.setattr(disk, "limit_bytes", lambda: 1500)
    cache("o/old", 1000, used=1)
    cache("o/new", 400, used=2)
    with disk.in_use("o/old", SHA):
        disk.make_room(500, Path("x"), "o/next")
        assert names() == ["o/old"]
    disk.make_room(1000, Path("x"), "o/next")
    assert names() == []


def test_the_shared_cache_is_never_cleaned(cache, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(disk, "limit_bytes", lambda: 10)
    shared = disk.repo_folder(disk.shared_root(), "o/theirs") / "snapshots" / SHA
    shared.mkdir(parents=True)
    (shared / "model.safetensors").write_bytes(bytes(1000))
    disk.make_room(5, Path("x"), "o/next")
    disk.touch(shared)
    assert sorted(p.name for p in shared.iterdir()) == ["model.safetensors"]
    assert names() == []
    monkeypatch.setenv("UAG_SHARED_CACHE", "1")
    assert disk.root() == disk.shared_root()


def test_no_room_even_after_cleaning(cache, monkeypatch) -> None:
    cache("o/old", 1000, used=1)
    monkeypatch.setattr(disk, "free_bytes", lambda: disk.SPARE_BYTES)
    with pytest.raises(DiskSpaceError, match=r"o/next needs 5\.0 GB"):
        disk.check_room(5 * 10**9, "o/next")
    monkeypatch.setattr(disk, "free_bytes", lambda: 10**13)
    monkeypatch.setenv("UAG_DISK_LIMIT_GB", "1")
    with pytest.raises(DiskSpaceError, match="cache may hold 1 GB"):
        disk.check_room(5 * 10**9, "o/next")
    monkeypatch.setenv("UAG_DISK_LIMIT_GB", "much")
    with pytest.raises(InputError):
        disk.limit_bytes()


def test_three_models_in_a_cache_for_two(hub_server, make_folder, monkeypatch) -> None:
    folder = make_folder()
    size = sum(p.stat().st_size for p in folder.iterdir())
    monkeypatch.setattr(disk, "limit_bytes", lambda: int(size * 2.5))
    for name in ("o/a", "o/b", "o/a", "o/c"):
        hub_server.repos[name] = Repo.from_folder(folder)
        assert loading.load(name, dtype="float32", device="cpu")
    assert sorted(names()) == ["o/a", "o/c"]


def test_an_interrupted_download_leaves_nothing_that_looks_whole(hub_server, make_folder) -> None:
    repo = hub_server.repos["o/n"] = Repo.from_folder(make_folder())
    repo.cut_after, repo.cuts = 0, 99
    with pytest.raises(Exception, match="reach"):
        loading.load("o/n", device="cpu")
    (item,) = disk.stored()
    assert not disk.is_whole(item.folder)
