"""Records the runs that ship with the app, with the embedded pair, on this machine.

    python -m benchmarks.record_runs [--max-new-tokens 128] [--repeats 3] [NAME ...]

Writes `assets/runs/NAME.json` for every name (all of them when none is given). The numbers in
them are measurements of the machine they were recorded on: run it on an idle one.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from uag_core import AssistantConfig, GenerationSettings, ModelPair
from uag_core.benchmark.compare import CompareDone
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.runs.document import build_run, load_run, request_of
from uag_core.runs.files import save_run
from uag_core.runs.library import SHIPPED

EXAMPLES = Path(__file__).parent.parent / "assets" / "examples.json"
REFERENCES = ("transformers", "transformers_uag")
SCRIPTS = (
    "Continue this list with more lines of the same kind, keeping every symbol as it is:\n\n"
    '1. 你好，世界 👋🏽 means "hello, world"\n'
    "2. 東京タワー 🗼 is in Tokyo\n"
    "3. e\u0301 (two code points) and \u00e9 (one) look the same\n"
    "4. 👩‍👩‍👧‍👦 is one family, 🇫🇷 is one flag\n"
    '5. <script>alert("shown, never run")</script> & <b>bold?</b>\n'
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run to ship: its id, its title, and what is asked."""

    name: str
    title: str
    prompt: str


def recordings() -> list[Recording]:
    """The runs that ship, in the order of the chooser."""
    prompts = {item["kind"]: item["prompt"] for item in json.loads(EXAMPLES.read_text("utf-8"))}
    return [
        Recording("code", "Code: a Fibonacci function", prompts["Code"]),
        Recording("scripts", "Scripts: emoji, CJK, HTML", SCRIPTS),
        Recording("story", "Story: a clock that runs backwards", prompts["Story"]),
        Recording("summary", "Summary of a passage", prompts["Summary"]),
    ]


def record(pair: ModelPair, asked: Recording, max_new_tokens: int, repeats: int) -> Path:
    """Runs one comparison and writes its document; returns the file."""
    settings = GenerationSettings(max_new_tokens=max_new_tokens)
    drafting = AssistantConfig(assistant=DEFAULT_ASSISTANT)
    *_, done = pair.compare_stream(
        asked.prompt, settings, drafting, references=REFERENCES, repeats=repeats
    )
    assert isinstance(done, CompareDone)
    request = request_of(
        prompt=asked.prompt,
        target=DEFAULT_TARGET,
        assistant=DEFAULT_ASSISTANT,
        settings=settings,
        drafting=drafting,
        raw=False,
        system=None,
        dtype="auto",
        device="auto",
        exact=True,
        references=REFERENCES,
        repeats=repeats,
    )
    run = build_run(done, request, id=asked.name, title=asked.title)
    path = SHIPPED / f"{asked.name}.json"
    save_run(load_run(run), path)
    return path


def main() -> None:
    known = {item.name: item for item in recordings()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    for name in args.names:
        if name not in known:
            parser.error(f"there is no recording {name!r}; known: {', '.join(known)}")
    SHIPPED.mkdir(exist_ok=True)
    pair = ModelPair()
    for name in args.names or known:
        path = record(pair, known[name], args.max_new_tokens, args.repeats)
        result = load_run(path.read_bytes())["result"]
        print(f"{path.name}: {path.stat().st_size:,} bytes, speedup {result['decode_speedup']:.2f}")


if __name__ == "__main__":
    main()
