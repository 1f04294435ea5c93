"""The command line with a scripted pair: flags, exit status, and what goes to which stream."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from uag_core import cli
from uag_core.benchmark.compare import CompareDone, CompareStep
from uag_core.cli_text import printable, verdict
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.errors import (
    GatedModelError,
    ModelNotFoundError,
    NetworkError,
    NotBuiltError,
    OutOfMemoryError,
)
from uag_core.events import Finished, Notice, Piece, Started, Verified

TIMES = {
    "text": "a b",
    "token_ids": [5, 6],
    "num_new_tokens": 2,
    "finish_reason": "length",
    "ttft_s": 0.1,
    "tpot_s": 0.02,
    "wall_s": 0.12,
    "tokens_per_second": 50.0,
    "end_to_end_tokens_per_second": 16.7,
}


def make_document(**changes: Any) -> dict[str, Any]:
    model = {"id": "m", "revision": "0" * 40, "dtype": "bfloat16", "device": "cpu"}
    return {
        "schema_version": 1,
        "target": model,
        "assistant": {**model, "id": "a", "revision": None},
        "method": "uag",
        "seed": None,
        "notices": ["a remark"],
        "baseline": TIMES,
        "baseline_unpadded": {"tpot_s": 0.02, "tokens_per_second": 50.0},
        "assisted": {
            **TIMES,
            "mean_acceptance_length": 2.5,
            "acceptance_rate": 0.375,
            "tokens_per_round": 2.0,
            "prefill_s": 0.1,
            "draft_s": 0.02,
            "reencode_s": 0.0,
            "verify_s": 0.06,
            "other_s": 0.02,
        },
        "references": [],
        "decode_speedup": 1.5,
        "decode_speedup_same_shape": 1.6,
        "wall_speedup": 1.2,
        "speedup_bound": 1.7,
        "predicted_speedup": None,
        "identical": True,
        "first_divergence": None,
        **changes,
    }


def started(engine: str) -> Started:
    return Started(engine, 3, 3, 8, None, None, True, None, "text", ("a remark",))


def verified(text: str) -> Verified:
    return Verified(1, (Piece(5, "61"),), ("accepted",), text, 1, 1, 1, 0, 0, 0, 0, 0.1)


class FakePair:
    """Stands in for `ModelPair`; the class attributes say what happens."""

    made: dict[str, Any]
    asked: dict[str, Any]
    closed: bool
    error: BaseException | None = None
    load_error: BaseException | None = None
    document: dict[str, Any] = make_document()
    text = "hello"

    def __init__(self, **options: Any) -> None:
        type(self).made = options
        if self.load_error:
            raise self.load_error
        options["progress"]("Loading m.")
        print("a library prints this")

    def compare_stream(
        self,
        prompt: str,
        settings: GenerationSettings,
        assistant: AssistantConfig,
        **options: Any,
    ) -> Iterator[Any]:
        kind = type(self)
        kind.asked = {"prompt": prompt, "settings": settings, "assistant": assistant, **options}
        kind.closed = False
        try:
            for engine, repeat in (("baseline", -1), ("baseline", 0), ("uag", 0), ("uag", 1)):
                yield CompareStep(engine, repeat, started(engine))
                if self.error:
                    raise self.error
                yield CompareStep(engine, repeat, verified(f"{self.text} {engine} {repeat}"))
            yield CompareStep("uag", 1, Notice("another remark"))
            yield CompareDone(self.document, {})
        finally:
            kind.closed = True


@pytest.fixture
def pair() -> type[FakePair]:
    return type("Scripted", (FakePair,), {})


@pytest.fixture
def run(pair: type[FakePair], capsys: pytest.CaptureFixture[str]):
    """Run the command line; (status, standard output, standard error)."""

    def call(*argv: str) -> tuple[int, str, str]:
        status = cli.main(list(argv), make_pair=pair)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_json_alone_is_on_standard_output(run) -> None:
    status, out, err = run("compare", "--prompt", "x", "--json")
    assert status == 0
    assert json.loads(out) == make_document()
    for line in ("Loading m.", "a library prints this", "note: a remark"):
        assert line in err
    assert "hello" not in err


def test_defaults_are_the_contracts(run, pair) -> None:
    run("compare", "--prompt", "x")
    made = {key: value for key, value in pair.made.items() if key != "progress"}
    assert made == {
        "target": "embedded/target",
        "assistant": "embedded/assistant",
        "dtype": "auto",
        "device": "auto",
    }
    asked = pair.asked
    assert asked["settings"] == GenerationSettings(max_new_tokens=128)
    assert asked["assistant"] == AssistantConfig(assistant="embedded/assistant")
    assert (asked["raw"], asked["system"], asked["exact"], asked["seed"]) == (
        False,
        None,
        True,
        None,
    )
    assert (asked["references"], asked["repeats"]) == ((), 1)


FLAGS = shlex.split("""
--target o/t --assistant o/a --prompt hi --system be --raw --method uag
--dtype float32 --device cuda:1 --no-exact --max-new-tokens 7 --temperature 0.5 --top-k 3
--top-p 0.9 --min-p 0.1 --repetition-penalty 1.1 --no-repeat-ngram-size 2 --seed 4 --stop a
--stop b --num-assistant-tokens 5 --assistant-confidence-threshold 0.3 --target-lookbehind 8
--assistant-lookbehind 9 --repeats 3 --reference transformers --reference transformers_uag
--reference transformers""")


def test_every_flag_arrives(run, pair) -> None:
    status, _, err = run("compare", *FLAGS)
    assert status == 0, err
    made, asked = pair.made, pair.asked
    assert (made["target"], made["assistant"]) == ("o/t", "o/a")
    assert (made["dtype"], made["device"]) == ("float32", "cuda:1")
    assert asked["prompt"] == "hi"
    assert asked["settings"] == GenerationSettings(
        max_new_tokens=7,
        temperature=0.5,
        top_k=3,
        top_p=0.9,
        min_p=0.1,
        repetition_penalty=1.1,
        no_repeat_ngram_size=2,
        stop=("a", "b"),
        seed=4,
    )
    assert asked["assistant"] == AssistantConfig(
        assistant="o/a",
        method="uag",
        num_assistant_tokens=5,
        assistant_confidence_threshold=0.3,
        target_lookbehind=8,
        assistant_lookbehind=9,
    )
    assert asked["raw"] is True
    assert asked["exact"] is False
    assert (asked["system"], asked["seed"], asked["repeats"]) == ("be", 4, 3)
    assert asked["references"] == ("transformers", "transformers_uag")


def test_the_text_report(run) -> None:
    status, out, err = run("compare", "--prompt", "x")
    assert status == 0
    assert out.count("hello") == 2
    assert out.index("hello baseline 0") < out.index("hello uag 0") < out.index("identical, 2")
    for words in (
        "1.50x (faster)",
        "tau) 2.50",
        "acceptance rate 37.5%",
        "50.0",
        "prefill 50%",
        "m@000000000000, bfloat16 on cpu",
    ):
        assert words in out
    assert "None" not in out
    assert err.count("note: a remark") == 1
    assert "note: another remark" in err
    assert "a library prints this" in err


def test_json_is_ascii_where_the_stream_is(pair, monkeypatch) -> None:
    """A stream that cannot carry the text gets escapes that every parser reads."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    pair.document = make_document(notices=["na\xefve \U0001f999"])
    assert cli.main(["compare", "--prompt", "x", "--json"], make_pair=pair) == 0
    sys.stdout.flush()
    assert json.loads(raw.getvalue())["notices"] == ["na\xefve \U0001f999"]


def test_slowdowns_and_differences_are_said(run, pair) -> None:
    pair.document = make_document(
        decode_speedup=0.8,
        identical=False,
        first_divergence={"position": 17, "top2_gap": 0.03},
        seed=9,
    )
    _, out, _ = run("compare", "--prompt", "x")
    assert "0.80x (slower)" in out
    assert "different from token 17 on" in out
    assert "0.03 apart" in out
    assert "seed 9" in out


def test_a_cancelled_document_can_be_shown(run, pair) -> None:
    empty = dict.fromkeys(make_document())
    pair.document = {**empty, "method": "uag"}
    status, out, _ = run("compare", "--prompt", "x")
    assert status == 0
    assert "not compared" in out
    assert "None" not in out
    assert verdict({"identical": False, "first_divergence": {"position": 3, "top2_gap": None}})


def test_control_characters_do_not_reach_the_terminal(run, pair) -> None:
    pair.text = "\x1b[31mred\x07\x9b5n\x7f\r\ttab\nline\u202e"
    _, out, _ = run("compare", "--prompt", "x")
    assert not set(out) & {chr(c) for c in (*range(9), *range(11, 32), *range(127, 160))}
    assert "\\x1b[31mred\\x07\\x9b5n\\x7f\\x0d\ttab\nline" in out
    assert printable("a\nb\x1b", one_line=True) == "a b\\x1b"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["compare"],
        ["nonsense"],
        ["compare", "--prompt", ""],
        ["compare", "--prompt", " \n"],
        ["compare", "--prompt", "", "--raw"],
        ["compare", "--prompt", "x", "--prompt-file", "y"],
        ["compare", "--prompt-file", "/no/such/file"],
        ["compare", "--prompt-file", "/"],
        ["compare", "--prompt", "x", "--unknown"],
        ["compare", "--prompt", "x", "--max-new-tokens", "-1"],
        ["compare", "--prompt", "x", "--max-new-tokens", "many"],
        ["compare", "--prompt", "x", "--temperature", "nan"],
        ["compare", "--prompt", "x", "--temperature", "-0.5"],
        ["compare", "--prompt", "x", "--temperature", "inf"],
        ["compare", "--prompt", "x", "--top-p", "1.5"],
        ["compare", "--prompt", "x", "--repeats", "0"],
        ["compare", "--prompt", "x", "--seed", "-1"],
        ["compare", "--prompt", "x", "--num-assistant-tokens", "0"],
        ["compare", "--prompt", "x", "--dtype", "int4"],
        ["compare", "--prompt", "x", "--method", "magic"],
        ["compare", "--prompt", "x", "--reference", "vllm"],
        ["compare", "--prompt", "\udc80"],
        ["compare", "--prompt", "x", "--stop", "\udc80"],
        ["compare", "--prompt", "x", "--temp", "1"],
        ["bench", "--prompts", "missing.jsonl"],
        ["bench", "--methods", "uag,magic"],
        ["bench", "--repeats", "0"],
        ["bench", "--limit", "0"],
        ["bench", "--num-assistant-tokens", "1,x"],
        ["bench", "--temperature", "nan"],
        ["bench", "--out", "."],
        ["inspect", "--target", "embedded/nothing"],
        ["models", "--limit", "0"],
    ],
)
def test_wrong_usage_is_one_line_and_status_2(run, pair, argv: list[str]) -> None:
    status, out, err = run(*argv)
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not hasattr(pair, "made")


def test_lookup_loads_no_assistant(run, pair) -> None:
    argv = shlex.split("compare --prompt x --method lookup --prompt-lookup-num-tokens 6")
    assert run(*argv, "--max-matching-ngram-size", "3")[0] == 0
    assert pair.made["assistant"] is None
    assert pair.asked["assistant"] == AssistantConfig(
        method="lookup", prompt_lookup_num_tokens=6, max_matching_ngram_size=3
    )
    run("compare", "--prompt", "x", "--method", "uag+lookup", "--assistant", "o/a")
    assert pair.made["assistant"] == "o/a"


def test_help_is_status_0(run) -> None:
    status, out, _ = run("compare", "--help")
    assert status == 0
    for flag in ("--assistant-confidence-threshold", "--no-exact", "--prompt-file"):
        assert flag in out
    listed = run("--help")[1]
    assert all(name in listed for name in ("compare", "bench", "inspect", "models"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelNotFoundError("There is no model x."), 2),
        (GatedModelError("x is gated."), 2),
        (NotBuiltError("The command models is not in this version."), 2),
        (NetworkError("no network"), 1),
        (OutOfMemoryError("too big"), 1),
        (ValueError("inside\nof a library"), 1),
    ],
)
@pytest.mark.parametrize("when", ["load_error", "error"])
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_errors_are_one_line(run, pair, monkeypatch, error, status, when, extra) -> None:
    monkeypatch.delenv("UAG_DEBUG", raising=False)
    setattr(pair, when, error)
    got, out, err = run("compare", "--prompt", "x", *extra)
    assert got == status
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert "Traceback" not in err
    if isinstance(error, ValueError):
        assert lines[0] == "error: the run failed: ValueError: inside of a library"
    if extra:
        assert out == ""
    if when == "error":
        assert pair.closed


def test_the_traceback_is_there_for_those_who_ask(run, pair, monkeypatch) -> None:
    monkeypatch.setenv("UAG_DEBUG", "1")
    pair.error = ValueError("x")
    assert "Traceback" in run("compare", "--prompt", "x")[2]


def test_an_interrupt_releases_and_is_status_130(run, pair) -> None:
    pair.error = KeyboardInterrupt()
    status, out, err = run("compare", "--prompt", "x", "--json")
    assert status == 130
    assert out == ""
    assert "interrupted" in err
    assert pair.closed


def test_an_interrupt_between_steps_closes_the_stream(run, pair, monkeypatch) -> None:
    def interrupt(self: object, step: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.TextReport, "step", interrupt)
    assert run("compare", "--prompt", "x")[0] == 130
    assert pair.closed


def test_prompt_files_are_taken_as_they_are(run, pair, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes("žluť\r\n 🦙\n".encode())
    run("compare", "--prompt-file", str(path))
    assert pair.asked["prompt"] == "žluť\r\n 🦙\n"
    path.write_bytes(b"\xff\xfe")
    assert run("compare", "--prompt-file", str(path))[0] == 2


def test_a_closed_pipe_ends_quietly() -> None:
    code = (
        "import sys; sys.path.insert(0, '.');"
        "from tests.test_cli import FakePair; from uag_core import cli;"
        "FakePair.text = 'x' * 200_000;"
        "sys.exit(cli.main(['compare', '--prompt', 'x'], make_pair=FakePair))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 1
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def run_module(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uag_core", *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
        env={**os.environ, **environment},
        timeout=120,
    )


def test_as_a_module_with_an_unknown_model() -> None:
    result = run_module("compare", "--prompt", "x", "--target", "embedded/nothing")
    assert (result.returncode, result.stdout) == (2, "")
    *progress, error = result.stderr.splitlines()
    assert error.startswith("error: There is no embedded model")
    assert all(line.startswith("Looking up ") for line in progress)  # said when it takes long


def test_flags_are_checked_before_torch_is_imported() -> None:
    code = (
        "import sys; from uag_core import cli;"
        "status = cli.main(['compare', '--prompt', 'x', '--temperature', 'nan']);"
        "sys.exit(status if 'torch' not in sys.modules else 99)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 2


@pytest.mark.embedded
@pytest.mark.timeout(600)
def test_the_real_pair() -> None:
    result = run_module(
        "compare", "--prompt", "Name three colours.", "--max-new-tokens", "8", "--json"
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["identical"] is True
    assert document["baseline"]["num_new_tokens"] == document["assisted"]["num_new_tokens"]
    parts = ("prefill_s", "draft_s", "reencode_s", "verify_s", "other_s")
    total = sum(document["assisted"][part] for part in parts)
    assert total == pytest.approx(document["assisted"]["wall_s"], rel=0.01)


def test_the_finished_event_needs_no_special_care(run, pair) -> None:
    original = FakePair.compare_stream

    def stream(self: FakePair, *args: Any, **options: Any) -> Iterator[Any]:
        for step in original(self, *args, **options):
            if isinstance(step, CompareDone):
                end = Finished("length", (5,), "a", 1, 0, 0, 0, 0, 0, 0, None, 0)
                yield CompareStep("uag", 1, end)
            yield step

    pair.compare_stream = stream
    assert run("compare", "--prompt", "x")[0] == 0
