"""`bench` with a scripted pair: flags, streams, files, and what a Ctrl-C leaves."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark.rows import row
from uag_core import cli
from uag_core.bench_text import duration
from uag_core.benchmark.plan import Plan
from uag_core.benchmark.runner import BenchDone, BenchProgress, BenchRows
from uag_core.benchmark.summary import tables

MODEL = {"id": "m\x1b[31m", "revision": None, "dtype": "bfloat16", "device": "cpu"}
HEADER = {"pair": {"target": MODEL, "assistant": MODEL}, "settings": {"repeats": 1}}


def document(rows: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "machine": {"processor": "P", "threads": 2, "torch": "2", "devices": ["cpu"]},
        "pair": HEADER["pair"],
        "settings": {"max_new_tokens": 8, "repeats": 1, "exact": True},
        "notices": ["a remark"],
        **tables(rows, **options),
    }


class FakePair:
    """Stands in for `ModelPair`; measures each prompt with two engines."""

    made: dict[str, Any]
    plan: Plan
    interrupt_after: int | None = None
    error: Exception | None = None

    def __init__(self, **options: Any) -> None:
        type(self).made = options
        print("a library prints this")

    def bench_stream(self, plan: Plan, *, resume: Any, cancel: Any) -> Iterator[Any]:
        kind = type(self)
        kind.plan = plan
        rows = list(resume(HEADER)) if resume else []
        known = {item["prompt_id"] for item in rows}
        for index, item in enumerate(plan.prompts):
            if item.id in known:
                continue
            if kind.interrupt_after == index:
                signal.raise_signal(signal.SIGINT)
            if cancel.is_set():
                break
            if self.error:
                raise self.error
            yield BenchProgress(2 * index, 2 * len(plan.prompts), "uag", item.id, 60.0)
            group = [
                row("baseline", item.id, category=item.category),
                row("uag", item.id, tpot=0.01, category=item.category),
            ]
            rows += group
            yield BenchRows(tuple(group))
        yield BenchDone(document(rows, sweep=plan.sweep))


@pytest.fixture
def pair() -> type[FakePair]:
    return type("Scripted", (FakePair,), {})


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    lines = [json.dumps({"prompt": f"q{n}", "category": "code\x1b[2J"}) for n in range(4)]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def run(pair: type[FakePair], prompts: str, capsys: pytest.CaptureFixture[str]):
    def call(*argv: str) -> tuple[int, str, str]:
        status = cli.main(["bench", "--prompts", prompts, *argv], make_pair=pair)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_json_alone_is_on_standard_output(run) -> None:
    status, out, err = run("--json")
    found = json.loads(out)
    assert status == 0
    assert len(found["rows"]) == 8
    assert found["summary"]["uag"]["decode_speedup"]["geomean"] == pytest.approx(2.0)
    assert "a library prints this" in err
    assert "Run 3 of 8, 60 s left: uag, 2." in err


def test_the_table_says_speedups_by_category_and_nothing_hostile(run) -> None:
    status, out, _ = run()
    assert status == 0
    assert "2.00x [2.00, 2.00]" in out
    assert "code" in out
    assert "a remark" in out
    assert "\x1b" not in out


def test_flags_become_a_plan(run, pair) -> None:
    argv = "--methods lookup,transformers --repeats 3 --max-new-tokens 9 --limit 2 --no-exact --raw"
    assert run(*argv.split(), "--num-assistant-tokens", "0,4,auto")[0] == 0
    plan = pair.plan
    assert plan.methods == ("baseline", "lookup", "transformers")
    assert plan.sweep == (0, 4, None)
    assert (plan.repeats, plan.settings.max_new_tokens, len(plan.prompts)) == (3, 9, 2)
    assert (plan.exact, plan.raw) == (False, True)
    assert pair.made["assistant"] is None  # none of these has one


def test_defaults_measure_our_methods_on_the_project_s_prompts(pair, capsys) -> None:
    assert cli.main(["bench"], make_pair=pair) == 0
    assert len(pair.plan.prompts) == 100
    assert pair.plan.methods == ("baseline", "uag", "lookup", "uag+lookup")
    assert pair.made["assistant"] == "embedded/assistant"


def test_an_interrupt_reports_what_was_measured(run, pair) -> None:
    pair.interrupt_after = 2
    status, out, err = run("--json")
    assert status == 130
    assert {item["prompt_id"] for item in json.loads(out)["rows"]} == {"1", "2"}
    assert "interrupted" in err


def test_an_interrupt_before_anything_was_measured(run, pair) -> None:
    pair.interrupt_after = 0
    status, out, err = run("--json")
    assert (status, out) == (130, "")
    assert "Nothing was measured" in err


def test_an_interrupted_benchmark_goes_on_from_its_file(run, pair, tmp_path) -> None:
    out = str(tmp_path / "rows.jsonl")
    pair.interrupt_after = 2
    assert run("--out", out)[0] == 130
    pair.interrupt_after = None
    status, text, err = run("--out", out, "--json")
    assert status == 0
    assert len(json.loads(text)["rows"]) == 8
    assert "4 rows from before" in err
    assert len(Path(out).read_text().splitlines()) == 9


def test_a_failed_run_is_one_line(run, pair, monkeypatch) -> None:
    monkeypatch.delenv("UAG_DEBUG", raising=False)
    pair.error = ValueError("inside")
    status, out, err = run()
    assert (status, out) == (1, "")
    assert "error: the run failed: ValueError: inside" in err
    assert "Traceback" not in err


def test_times_to_wait() -> None:
    assert [duration(s) for s in (3.4, 89, 200, 7200)] == ["3 s", "89 s", "3 min", "2.0 h"]
