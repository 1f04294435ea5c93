"""The run document: what is made, what is let in, what the published schema says of both."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs import make
from uag_core import metrics
from uag_core.errors import InputError
from uag_core.events import from_json
from uag_core.runs.document import MAX_BYTES, build_run, dump_run, load_run, title_of
from uag_core.runs.schema import json_schema

SCHEMA_FILE = Path(__file__).parents[2] / "assets" / "schema" / "run-1.schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FIXTURE = make.FIXTURE.read_text(encoding="utf-8")


def changed(path: str, value: Any) -> dict[str, Any]:
    run = json.loads(FIXTURE)
    *parents, last = path.split(".")
    node = run
    for name in parents:
        node = node[int(name) if isinstance(node, list) else name]
    node[int(last) if isinstance(node, list) else last] = value
    return run


def test_a_version_1_file_loads_for_ever() -> None:
    run = load_run(FIXTURE)
    assert run["request"]["prompt"] == make.PROMPT
    assert load_run(dump_run(run)) == run


def test_what_is_made_loads_and_follows_the_schema() -> None:
    run = load_run(make.made())
    VALIDATOR.validate(run)
    VALIDATOR.validate(json.loads(FIXTURE))
    assert set(run["events"]) == {"baseline", "uag", "transformers"}
    assert run["machine"]["cores"] >= 1


def test_the_published_schema_is_that_of_the_code() -> None:
    VALIDATOR.check_schema(SCHEMA)
    ours = json_schema()
    assert set(ours["properties"]) == set(SCHEMA["properties"])
    assert set(ours["$defs"]) == set(SCHEMA["$defs"])
    for name, part in ours["$defs"].items():
        assert set(part["properties"]) == set(SCHEMA["$defs"][name]["properties"])
        assert part.get("required") == SCHEMA["$defs"][name].get("required")


def test_the_kept_events_are_those_the_numbers_are_from() -> None:
    run = load_run(make.made())
    for part, engine in (("baseline", "baseline"), ("assisted", "uag")):
        events = [from_json(event) for event in run["events"][engine]]
        again = metrics.summarize(events) if part == "assisted" else metrics.timing(events)
        assert again == run["result"][part]


def test_a_stopped_comparison_makes_a_document_too() -> None:
    class Flag:
        asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 150

    done, request = make.compared(cancel=Flag(), max_new_tokens=60)
    assert done.profile is None
    VALIDATOR.validate(load_run(build_run(done, request)))


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("kind", "result", 'kind" is not "run"'),
        ("schema_version", 2, "version 2"),
        ("schema_version", True, "version True"),
        ("id", "../../etc/passwd", "id"),
        ("title", "x" * 201, "title"),
        ("created", "yesterday", "created"),
        ("result.decode_speedup", "1.7", "result.decode_speedup"),
        ("result.assisted.wall_s", -1.0, "result.assisted.wall_s"),
        ("result.method", None, "result.method"),
        ("events.uag.0.type", "Exploded", "events.uag.0"),
        ("events.uag.1.tokens.0.data", "<script>", "data"),
        ("events.uag.1.origins", [], "without an origin"),
        ("events.uag.1.round", 10**6, "out of order"),
        ("events.baseline", [], "begin with Started"),
        ("request.raw", 1, "request.raw"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(path, value, line) -> None:
    with pytest.raises(InputError, match=line) as caught:
        load_run(changed(path, value))
    assert "\n" not in str(caught.value)
    assert "<script>" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "empty"),
        (b" \n", "empty"),
        ("{", "broken"),
        ("[1]", "kind"),
        ('{"kind": NaN}', "NaN"),
        ('{"kind": 1e999}', "out of range"),
        ("[" * 200_000, "nested|broken"),
        ('{"decode_speedup": 1}', "compare --save"),
        (b"\xff\xfe{}", "UTF-8"),
        ('{"kind": "run", "title": "\\ud800"}', "UTF-8"),
        (b" " * (MAX_BYTES + 1), "at most"),
    ],
)
def test_broken_files_are_refused_in_one_line(text, line) -> None:
    with pytest.raises(InputError, match=line) as caught:
        load_run(text)
    assert "\n" not in str(caught.value)


def test_a_file_with_a_byte_order_mark_loads() -> None:
    assert load_run(b"\xef\xbb\xbf" + FIXTURE.encode())["kind"] == "run"


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(node, dict):
        children: list[tuple[Any, Any]] = list(node.items())
    else:
        children = list(enumerate(node[:2])) if isinstance(node, list) else []
    for key, child in children:
        if key != "settings":  # free form
            found += places(child, (*path, key))
    return found


ORIGINAL = json.loads(FIXTURE)
PLACES = places(ORIGINAL)
VALUES = st.sampled_from(
    [None, True, -1, 0, 3, 1.5, -0.5, "", "zz", "00", [], ["x"], {}, "9" * 300]
)


@given(st.sampled_from(PLACES), st.one_of(st.just("delete"), VALUES))
def test_the_schema_and_the_loader_agree(path, value) -> None:
    """What the loader takes, the schema takes; the loader also looks at events as a whole."""
    run = copy.deepcopy(ORIGINAL)
    node = run
    for key in path[:-1]:
        node = node[key]
    if value == "delete":
        del node[path[-1]]
    else:
        node[path[-1]] = value
    try:
        load_run(run)
    except InputError as error:
        if "the events of" not in str(error):
            assert not VALIDATOR.is_valid(run)
    else:
        VALIDATOR.validate(run)


def test_a_title_is_one_short_line() -> None:
    assert title_of("  two\n lines ") == "two lines"
    assert len(title_of("word " * 100)) <= 80
