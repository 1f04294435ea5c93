"""The command line: `python -m uag_core compare|bench|inspect|models`.

Turns flags into settings, runs the comparison and keeps standard output clean: with --json it
carries the JSON alone, everything else goes to standard error. Exit status 0: done; 2: wrong
usage or input that cannot be used; 1: network, memory, disk or a failed run; 130: interrupted.
Does not know how anything is computed; torch is imported only after the flags have been checked.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from uag_core import cli_bench, cli_inspect, cli_models, cli_save
from uag_core.cli_text import TextReport, printable
from uag_core.config import (
    ASSISTANT_DTYPES,
    DEFAULT_ASSISTANT,
    DEFAULT_MAX_NEW_TOKENS,
    DEFAULT_TARGET,
    DTYPES,
    METHODS,
    REFERENCES,
    AssistantConfig,
    GenerationSettings,
)
from uag_core.errors import InputError, UAGError

INTERRUPTED = 130
DEBUG_VARIABLE = "UAG_DEBUG"


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {printable(message, one_line=True)} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all four commands."""
    parser = _Parser(
        prog="python -m uag_core",
        description="Is this assistant worth it for this target, here, on these prompts?",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    compare = commands.add_parser(
        "compare",
        help="run the plain target and the assisted one on a prompt, and compare them",
        allow_abbrev=False,
    )
    _add_compare_flags(compare)
    bench = commands.add_parser(
        "bench",
        help="measure a pair over a set of prompts, against plain decoding and transformers",
        allow_abbrev=False,
    )
    cli_bench.add_flags(bench)
    inspect = commands.add_parser(
        "inspect",
        help="report how two models and their tokenizers fit together, without their weights",
        allow_abbrev=False,
    )
    cli_inspect.add_flags(inspect)
    models = commands.add_parser(
        "models",
        help="find models on the Hub, or say what one would need here",
        allow_abbrev=False,
    )
    cli_models.add_flags(models)
    return parser


def _add_compare_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--target", default=DEFAULT_TARGET, metavar="MODEL", help="default: %(default)s")
    add("--assistant", default=DEFAULT_ASSISTANT, metavar="MODEL", help="default: %(default)s")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", help="the user's message, or the text itself with --raw")
    prompt.add_argument("--prompt-file", metavar="FILE", help="read it from FILE; - is stdin")
    add("--system", metavar="TEXT", help="a system message, for chat templates that take one")
    add("--raw", action="store_true", help="the prompt as plain text, without a chat template")
    add(
        "--method",
        choices=METHODS,
        default="uag",
        help="what drafts: the assistant, the text so far (no assistant is loaded), or both; "
        "default: %(default)s",
    )
    add("--dtype", choices=DTYPES, default="auto", help="default: %(default)s")
    add("--device", default="auto", metavar="auto|cpu|cuda[:n]|gpus", help="default: %(default)s")
    add("--assistant-device", metavar="DEVICE", help="the assistant's, where it is another one")
    add(
        "--exact",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fixed shapes in half precision, so that both texts are the same (default)",
    )
    add("--compile", action="store_true", help="compile the models, for plain decoding as well")
    add("--max-new-tokens", type=int, default=DEFAULT_MAX_NEW_TOKENS, metavar="N")
    add("--temperature", type=float, metavar="X", help="absent or 0: greedy")
    add("--top-k", type=int, metavar="N")
    add("--top-p", type=float, metavar="X")
    add("--min-p", type=float, metavar="X")
    add("--repetition-penalty", type=float, metavar="X")
    add("--no-repeat-ngram-size", type=int, metavar="N")
    add("--seed", type=int, metavar="N", help="drawn and reported when sampling without one")
    add("--stop", action="append", default=[], metavar="TEXT", help="may be given several times")
    add("--num-assistant-tokens", type=int, metavar="N", help="absent: as many as pay")
    add("--assistant-confidence-threshold", type=float, metavar="X")
    add(
        "--assistant-dtype",
        choices=ASSISTANT_DTYPES,
        default="auto",
        help="int8: draft with 8-bit weights on a CPU (never changes the output); default: auto",
    )
    add("--prompt-lookup-num-tokens", type=int, metavar="N", help="absent: as many as pay")
    add("--max-matching-ngram-size", type=int, metavar="N", help="absent: as long as it matches")
    add("--target-lookbehind", type=int, default=10, metavar="N", help="default: %(default)s")
    add("--assistant-lookbehind", type=int, default=10, metavar="N", help="default: %(default)s")
    add("--repeats", type=int, default=1, metavar="N", help="runs to take medians of; default 1")
    add(
        "--reference",
        action="append",
        default=[],
        choices=REFERENCES,
        help="also run this engine of transformers; may be given several times",
    )
    add("--json", action="store_true", help="print the result as JSON, and nothing else")
    add("--save", metavar="FILE", help="also write the run to FILE, for the page to open")


def main(argv: Sequence[str] | None = None, *, make_pair: Callable[..., Any] | None = None) -> int:
    """Run the command in `argv` (default: the process's own) and return the exit status.

    `make_pair` stands in for `uag_core.pair.ModelPair`.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            status = _run(argv, make_pair)
        finally:
            sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help, wrong usage
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away. Python would complain again when it closes the stream at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UAGError as error:
        _complain(f"error: {error}")
        return error.exit_status
    except Exception as error:  # noqa: BLE001 - the last resort: a line instead of a traceback
        _complain(f"error: the run failed: {type(error).__name__}: {error}")
        return 1
    return status


def _complain(line: str) -> None:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exc()
    with contextlib.suppress(OSError):
        print(printable(line, one_line=True), file=sys.stderr, flush=True)


def _run(argv: Sequence[str] | None, make_pair: Callable[..., Any] | None) -> int:
    parser = build_parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if args.command == "models":
        return cli_models.run(args)
    if args.command == "bench":
        return cli_bench.run(args, make_pair or _model_pair, _Progress(sys.stderr))
    if args.command == "inspect":
        return cli_inspect.run(args, _read, _Progress(sys.stderr))
    return _compare(args, make_pair)


def _compare(args: argparse.Namespace, make_pair: Callable[..., Any] | None) -> int:
    settings, assistant = _settings(args)
    prompt = _prompt(args)
    save = cli_save.prepare(args, prompt, settings, assistant)
    output, last = sys.stdout, None
    # Whatever a library prints belongs to standard error.
    with contextlib.redirect_stdout(sys.stderr):
        progress = _Progress(sys.stderr)
        pair = (make_pair or _model_pair)(
            target=args.target,
            assistant=assistant.assistant,
            dtype=args.dtype,
            device=args.device,
            progress=progress,
            **_given(assistant_device=args.assistant_device),
        )
        steps = pair.compare_stream(
            prompt,
            settings,
            assistant,
            raw=args.raw,
            system=args.system,
            exact=args.exact,
            seed=args.seed,
            references=tuple(dict.fromkeys(args.reference)),
            repeats=args.repeats,
        )
        report = TextReport(None if args.json else output, progress, args.method)
        with contextlib.closing(steps):
            for step in steps:
                report.step(step)
                last = step
    document = report.document
    if document is None:
        raise RuntimeError("no result")
    if args.json:
        output.write(cli_models.as_json(document, output))
    else:
        report.summary()
    if save is not None:
        save(last)
    return 0


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _model_pair(**options: Any) -> Any:
    from uag_core.pair import ModelPair

    return ModelPair(**options)


def _settings(args: argparse.Namespace) -> tuple[GenerationSettings, AssistantConfig]:
    if args.repeats < 1:
        raise InputError(f"repeats must be at least 1, not {args.repeats}.")
    settings = GenerationSettings(
        max_new_tokens=args.max_new_tokens,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        min_p=args.min_p,
        repetition_penalty=args.repetition_penalty,
        no_repeat_ngram_size=args.no_repeat_ngram_size,
        stop=tuple(_text(stop, "A stop string") for stop in args.stop),
        seed=args.seed,
    )
    assistant = AssistantConfig(
        assistant=None if args.method == "lookup" else args.assistant,
        method=args.method,
        num_assistant_tokens=args.num_assistant_tokens,
        assistant_confidence_threshold=args.assistant_confidence_threshold,
        prompt_lookup_num_tokens=args.prompt_lookup_num_tokens,
        max_matching_ngram_size=args.max_matching_ngram_size,
        assistant_dtype=args.assistant_dtype,
        compile=args.compile,
        target_lookbehind=args.target_lookbehind,
        assistant_lookbehind=args.assistant_lookbehind,
    )
    return settings, assistant


def _prompt(args: argparse.Namespace) -> str:
    if args.system is not None:
        _text(args.system, "The system message")
    prompt = args.prompt if args.prompt_file is None else _read(args.prompt_file)
    if not prompt or (not args.raw and not prompt.strip()):
        raise InputError("The prompt is empty.")
    return _text(prompt, "The prompt")


def _read(name: str) -> str:
    """The text of a file exactly as it is, line ends included."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be read"
        raise InputError(f"The prompt file {name!r} cannot be used: {reason}.") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"The prompt file {name!r} is not UTF-8 text.") from None


def _text(value: str, what: str) -> str:
    """`value`, unless it holds what no tokenizer takes: halves of a surrogate pair."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} is not valid UTF-8 text.") from None
    return value


class _Progress:
    """Lines on standard error, each only once in a row."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: str | None = None

    def __call__(self, line: str) -> None:
        line = printable(line, one_line=True)
        if line != self._last:
            self._last = line
            print(line, file=self._stream, flush=True)
