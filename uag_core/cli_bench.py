"""`python -m uag_core bench`: a pair over a set of prompts, as a table or as JSON.

Flags, progress on standard error, what is kept when somebody presses Ctrl-C. Knows the keys of
the `bench --json` object and the pair's stream; imports torch only through the pair.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import Any, TextIO

from uag_core.bench_text import duration, report
from uag_core.benchmark.plan import ALL_METHODS, DEFAULT_METHODS, Plan
from uag_core.benchmark.rowfile import RowFile
from uag_core.benchmark.suites import DEFAULT_PROMPTS, load
from uag_core.cli_text import printable
from uag_core.config import (
    DEFAULT_ASSISTANT,
    DEFAULT_MAX_NEW_TOKENS,
    DEFAULT_TARGET,
    DTYPES,
    MAX_CANDIDATES,
    GenerationSettings,
)
from uag_core.errors import InputError
from uag_core.events import COMPILING

INTERRUPTED = 130


def add_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--target", default=DEFAULT_TARGET, metavar="MODEL", help="default: %(default)s")
    add("--assistant", default=DEFAULT_ASSISTANT, metavar="MODEL", help="default: %(default)s")
    add(
        "--prompts",
        default=str(DEFAULT_PROMPTS),
        metavar="FILE",
        help='JSON Lines with "prompt" (and "category"), Spec-Bench\'s "turns" or HumanEval, or '
        "one prompt a line; default: the project's own hundred",
    )
    add("--limit", type=int, metavar="N", help="that many prompts, evenly from every category")
    add(
        "--methods",
        default=",".join(DEFAULT_METHODS),
        metavar="A,B",
        help=f"among {', '.join(ALL_METHODS)}; default: %(default)s",
    )
    add("--repeats", type=int, default=1, metavar="N", help="runs to take medians of; default 1")
    add("--max-new-tokens", type=int, default=DEFAULT_MAX_NEW_TOKENS, metavar="N")
    add(
        "--num-assistant-tokens",
        metavar="LIST",
        help="draft lengths to sweep over, as 0,1,2,4,8,auto; 0 is plain decoding",
    )
    add("--dtype", choices=DTYPES, default="auto", help="default: %(default)s")
    add("--device", default="auto", metavar="auto|cpu|cuda[:n]", help="default: %(default)s")
    add(
        "--exact",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fixed shapes in half precision, so that all texts are the same (default)",
    )
    add("--compile", action="store_true", help="compile the models, for plain decoding as well")
    add("--system", metavar="TEXT", help="a system message, for chat templates that take one")
    add("--raw", action="store_true", help="the prompts as plain text, without a chat template")
    add("--temperature", type=float, metavar="X", help="absent or 0: greedy")
    add("--top-k", type=int, metavar="N")
    add("--top-p", type=float, metavar="X")
    add("--seed", type=int, metavar="N", help="for sampling; default 0")
    add("--out", metavar="FILE", help="keep the rows in FILE and go on from what it holds")
    add("--ray", metavar="ADDRESS", help="spread over a Ray cluster: local, auto or host:port")
    add("--workers", type=int, metavar="N", help="of the cluster; default one for each GPU")
    add("--json", action="store_true", help="print the result as JSON, and nothing else")


def sweep(text: str | None) -> tuple[int | None, ...]:
    """Draft lengths as typed: whole numbers from 0, and "auto" for the engine's own choice."""
    if text is None:
        return (None,)
    found: list[int | None] = []
    for word in text.split(","):
        word = word.strip().lower()
        if word == "auto":
            found.append(None)
        elif word.isdecimal() and int(word) <= MAX_CANDIDATES:
            found.append(int(word))
        else:
            raise InputError(
                f"num-assistant-tokens must be numbers from 0 to {MAX_CANDIDATES} or auto, "
                f"with commas, not {word[:40]!r}."
            )
    return tuple(found)


def plan_of(args: argparse.Namespace) -> Plan:
    """The plan that the flags ask for. Raises `InputError`."""
    methods = tuple(name for name in (part.strip() for part in args.methods.split(",")) if name)
    return Plan(
        prompts=tuple(load(args.prompts, args.limit)),
        methods=methods or DEFAULT_METHODS,
        settings=GenerationSettings(
            max_new_tokens=args.max_new_tokens,
            temperature=args.temperature,
            top_k=args.top_k,
            top_p=args.top_p,
            seed=args.seed,
        ),
        sweep=sweep(args.num_assistant_tokens),
        repeats=args.repeats,
        exact=args.exact,
        raw=args.raw,
        system=args.system,
        compile=args.compile,
    )


def run(
    args: argparse.Namespace, make_pair: Callable[..., Any], progress: Callable[[str], None]
) -> int:
    """The command; returns its exit status. What a Ctrl-C leaves is reported all the same."""
    plan = plan_of(args)
    file = RowFile(args.out) if args.out else None
    output, status = sys.stdout, 0
    models = {
        "target": args.target,
        "assistant": args.assistant if plan.uses_assistant else None,
        "dtype": args.dtype,
        "device": args.device,
    }
    if args.workers is not None and (args.workers < 1 or not args.ray):
        raise InputError("workers must be at least 1, and needs --ray.")
    if args.ray and file is not None:
        raise InputError("--out goes with one process: leave it out, or --ray.")
    document: dict[str, Any] | None
    with contextlib.redirect_stdout(sys.stderr):
        if args.ray:
            document = _on_cluster(plan, models, args, progress)
        else:
            pair = make_pair(**models, progress=progress)
            document, status = _measure(pair, plan, file, progress)
    if document is None:
        progress("Nothing was measured.")
        return status
    _write(document, output, as_json=args.json)
    return status


def _on_cluster(
    plan: Plan, models: dict[str, Any], args: argparse.Namespace, progress: Callable[[str], None]
) -> dict[str, Any]:
    from uag_core import cluster

    def line(step: cluster.ClusterProgress) -> None:
        died = f", {step.deaths} workers died" if step.deaths else ""
        progress(f"{step.done} of {step.total} prompts, {len(step.workers)} workers{died}.")

    where = cluster.Cluster(address=args.ray, workers=args.workers)
    return cluster.bench(plan, models, where, progress=line)


def _measure(
    pair: Any, plan: Plan, file: RowFile | None, progress: Callable[[str], None]
) -> tuple[dict[str, Any] | None, int]:
    """The result and the exit status; after a Ctrl-C the prompts that were finished."""
    stop = _Flag()
    stream = pair.bench_stream(plan, resume=file.resume if file else None, cancel=stop)
    document: dict[str, Any] | None = None
    last: tuple[str, str] | None = None
    with contextlib.closing(stream), stop.on_interrupt():
        for step in stream:
            if hasattr(step, "document"):
                document = step.document
            elif hasattr(step, "rows"):
                if file is not None:
                    file.add(step.rows)
            elif not stop.raised and (
                step.method == COMPILING or (step.method, step.prompt_id) != last
            ):
                last = (step.method, step.prompt_id)
                progress(_line(step, file))
    if stop.raised:
        progress("interrupted: this is what was measured until then")
    if document is not None and not document["rows"]:
        document = None
    return document, INTERRUPTED if stop.raised else 0


def _line(step: Any, file: RowFile | None) -> str:
    if step.method == COMPILING:
        return f"{getattr(step.event, 'message', 'Compiling')}."
    if step.warmup:
        return f"Warming up: {step.method}."
    left = "" if step.remaining_s is None else f", {duration(step.remaining_s)} left"
    taken = f", {file.resumed} rows from before" if file is not None and file.resumed else ""
    name = printable(step.prompt_id, one_line=True)
    return f"Run {step.done + 1} of {step.total}{left}{taken}: {step.method}, {name}."


def _write(document: dict[str, Any], output: TextIO, *, as_json: bool) -> None:
    if as_json:
        from uag_core.serialization import dumps

        unicode = (output.encoding or "").lower().replace("-", "") == "utf8"
        output.write(dumps(document, ascii_only=not unicode) + "\n")
    else:
        output.write("\n".join(report(document)) + "\n")
    output.flush()


class _Flag:
    """Raised by the first Ctrl-C, so that the engine ends its run; the second one interrupts."""

    def __init__(self) -> None:
        self.raised = False

    def is_set(self) -> bool:
        return self.raised

    @contextlib.contextmanager
    def on_interrupt(self) -> Any:
        import signal
        import threading

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def first(*_: object) -> None:
            self.raised = True
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, first)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
