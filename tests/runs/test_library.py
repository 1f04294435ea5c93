"""Ids, shipped runs, sharing, files, and two runs side by side."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.runs.make import FIXTURE
from uag_core.errors import DiskSpaceError, InputError
from uag_core.runs import difference
from uag_core.runs.document import MAX_BYTES, load_run
from uag_core.runs.files import check_place, file_name, read_run, save_run
from uag_core.runs.library import SHIPPED, RunLibrary, id_in, without_folders
from uag_core.runs.store import RunStore


@pytest.fixture
def run():
    return load_run(FIXTURE.read_bytes())


@pytest.fixture
def library(tmp_path, run) -> RunLibrary:
    folder = tmp_path / "shipped"
    folder.mkdir()
    save_run({**run, "id": "a-run", "title": "A run"}, folder / "a-run.json")
    (folder / "Not An Id.json").write_text("{}")
    return RunLibrary(RunStore(tmp_path / "runs"), folder)


def test_shipped_runs_open_by_their_names(library) -> None:
    assert library.shipped() == {"a-run": "A run"}
    opened = library.open("a-run")
    assert opened.run["id"] == "a-run"
    assert opened.expires is None


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_what_ships_is_a_run_of_that_name(path) -> None:
    assert path.stat().st_size < 1_000_000
    run = load_run(path.read_bytes())
    assert run["id"] == path.stem
    assert set(run["events"]) >= {"baseline", "uag", "transformers"}
    assert run["result"]["target"]["id"] == "embedded/target"


def test_a_code_a_summary_and_a_scripts_run_ship() -> None:
    assert {"code", "summary", "scripts"} <= set(RunLibrary().shipped())


@pytest.mark.parametrize(
    "run_id", ["../shipped/a-run", "a-run.json", "/etc/passwd", "http://x/?run=a-run", "", None, 7]
)
def test_paths_and_addresses_are_no_ids(library, run_id) -> None:
    with pytest.raises(InputError, match="no id of a run"):
        library.open(run_id)


def test_a_shared_run_opens_under_its_new_id(library, run) -> None:
    run_id, expires = library.share(run)
    opened = library.open(run_id)
    assert opened.run == {**run, "id": run_id}
    assert opened.expires == pytest.approx(expires, abs=5)
    with pytest.raises(InputError, match="may have expired"):
        library.open("0" * 32)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/home/somebody/models/tiny", "local/tiny"),
        ("~/models/tiny.gguf", "local/tiny.gguf"),
        ("C:\\Users\\somebody\\tiny", "local/tiny"),
        ("owner/name@main", "owner/name@main"),
        ("embedded/target", "embedded/target"),
    ],
)
def test_a_shared_run_names_no_folder_of_this_machine(run, name, shown) -> None:
    run["request"]["target"] = run["result"]["target"]["id"] = name
    run["request"]["assistant"] = run["result"]["settings"]["assistant"] = name
    run["result"]["notices"] = [f"{name} was decoded plainly."]
    public = without_folders(run)
    assert public["request"]["target"] == public["result"]["target"]["id"] == shown
    assert "somebody" not in json.dumps({**public, "events": {}})
    assert run["request"]["target"] == name


def test_an_id_is_read_off_a_pasted_link() -> None:
    assert id_in(" http://host/path?__theme=dark&run=a-run#x ") == "a-run"
    assert id_in("a-run") == "a-run"


def test_a_saved_file_reads_back(tmp_path, run) -> None:
    save_run(run, tmp_path / "run.json")
    assert read_run(tmp_path / "run.json") == run
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_bad_places_and_files_are_one_line(tmp_path, run) -> None:
    with pytest.raises(InputError, match="is a folder"):
        check_place(str(tmp_path))
    with pytest.raises(InputError, match="no such folder"):
        check_place(str(tmp_path / "none" / "run.json"))
    with pytest.raises(DiskSpaceError, match="could not be saved"):
        save_run(run, tmp_path / "none" / "run.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_run(tmp_path / "none.json")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (MAX_BYTES + 10))
    with pytest.raises(InputError, match="too large"):
        read_run(large)


def test_a_downloads_name_is_plain(run) -> None:
    run["title"] = "../<b>Été</b> 你好"
    assert file_name(run).startswith("uag-run-b-ete-b-20")
    assert Path(file_name(run)).name == file_name(run)
    run["title"] = "你好"
    assert file_name(run).startswith("uag-run-20")


def test_two_runs_show_numbers_and_ratio(run) -> None:
    other = copy.deepcopy(run)
    other["result"]["assisted"]["wall_s"] = run["result"]["assisted"]["wall_s"] * 2
    other["result"]["wall_speedup"] = None
    rows = {row.label: row for row in difference.rows(run, other)}
    assert rows["Wall time"].ratio == pytest.approx(0.5)
    assert rows["Wall speedup"].other is None
    assert rows["Wall speedup"].ratio is None
    assert difference.warnings(run, other) == []


@pytest.mark.parametrize(
    ("part", "key", "value", "line"),
    [
        ("request", "prompt", "another", "prompts differ"),
        ("request", "temperature", 0.7, "settings differ: temperature"),
        ("machine", "processor", "another", "different machines or versions: processor"),
        ("result", "target", {"id": "x", "revision": None, "dtype": "float32"}, "targets differ"),
    ],
)
def test_what_makes_two_runs_hard_to_compare_is_said(run, part, key, value, line) -> None:
    other = copy.deepcopy(run)
    other[part][key] = value
    assert any(line in warning for warning in difference.warnings(run, other))


def test_stopped_runs_can_be_compared(run) -> None:
    other = copy.deepcopy(run)
    other["result"]["assisted"] = other["result"]["baseline"] = None
    assert difference.rows(run, other)
    assert difference.rows(other, other) is not None
