"""Shared runs on disk: found by their id alone, bounded in number, bytes and time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from uag_core.errors import DiskSpaceError
from uag_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        self.time += 1
        return self.time


def put(store: RunStore, text: str = "{}") -> str:
    return store.put(lambda name: text)[0]


def test_what_was_put_comes_back_under_an_id_nobody_guesses(tmp_path) -> None:
    store = RunStore(tmp_path / "runs")
    seen = []
    name, expires = store.put(lambda name: seen.append(name) or '{"é": "你"}')
    assert seen == [name]
    assert len(name) == 32
    kept = store.get(name)
    assert kept is not None
    assert kept.text.decode() == '{"é": "你"}'
    assert abs(kept.expires - expires) < 5
    assert put(store) != name


@pytest.mark.parametrize("name", ["", "..", "../secret", "a" * 32 + "/..", "A" * 32, "g" * 32])
def test_only_an_id_is_looked_up(tmp_path, name) -> None:
    (tmp_path / "secret.json.gz").write_bytes(b"x")
    assert RunStore(tmp_path / "runs").get(name) is None


def test_a_run_is_gone_when_its_time_is_over(tmp_path) -> None:
    clock = Clock()
    store = RunStore(tmp_path, life_s=100, now=clock)
    name = put(store)
    assert store.get(name) is not None
    clock.time += 101
    assert store.get(name) is None
    assert list(tmp_path.glob("*.gz")) == []


def test_the_oldest_make_room_when_there_are_too_many(tmp_path) -> None:
    store = RunStore(tmp_path, max_runs=3, now=Clock())
    names = [put(store) for _ in range(5)]
    assert [store.get(name) is not None for name in names] == [False, False, True, True, True]


def test_the_oldest_make_room_when_they_are_too_large(tmp_path) -> None:
    store = RunStore(tmp_path, max_bytes=2500, now=Clock())
    names = [put(store, os.urandom(400).hex()) for _ in range(8)]
    kept = [name for name in names if store.get(name)]
    assert kept == names[-len(kept) :]
    assert 0 < sum(path.stat().st_size for path in tmp_path.glob("*.gz")) <= 2500


def test_leftovers_of_a_broken_write_are_cleared(tmp_path) -> None:
    (tmp_path / ".new-left").write_bytes(b"half a run")
    put(RunStore(tmp_path))
    assert not (tmp_path / ".new-left").exists()


def test_a_damaged_file_is_no_run(tmp_path) -> None:
    store = RunStore(tmp_path)
    name = put(store)
    (tmp_path / f"{name}.json.gz").write_bytes(b"not gzip at all")
    assert store.get(name) is None


def test_a_disk_that_refuses_is_one_line(tmp_path) -> None:
    (tmp_path / "runs").write_text("a file in the way")
    with pytest.raises(DiskSpaceError, match="could not be kept") as caught:
        put(RunStore(tmp_path / "runs"))
    assert str(tmp_path) not in str(caught.value)


def test_several_processes_share_one_folder(tmp_path) -> None:
    code = (
        "import sys; from pathlib import Path; from uag_core.runs.store import RunStore\n"
        "store = RunStore(Path(sys.argv[1]), max_runs=12)\n"
        "for _ in range(8): print(store.put(lambda name: name)[0])"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    names = [line for worker in workers for line in worker.communicate()[0].split()]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(set(names)) == 24
    store = RunStore(tmp_path)
    kept = {name: found.text.decode() for name in names if (found := store.get(name))}
    assert len(kept) == 12
    assert all(name == text for name, text in kept.items())
