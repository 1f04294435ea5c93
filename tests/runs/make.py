"""Run documents for tests: a real comparison of tiny models, and the command that keeps one.

`python -m tests.runs.make` writes `tests/fixtures/run-v1.json`. That file stands for every run that
is out there: it is not made again when the code changes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tests.fixtures.models import tiny
from uag_core.benchmark.compare import CompareDone
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.pair import ModelPair
from uag_core.runs.document import build_run, dump_run, request_of

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run-v1.json"
PROMPT = "Say <script>alert('你好 👩‍👩‍👧 é')</script>\r\nand count: "


def compared(**changes: Any) -> tuple[CompareDone, dict[str, Any]]:
    """The end of a comparison of two tiny models with different tokenizers, and its request."""
    pair = ModelPair.from_models(tiny("byte_level_a"), tiny("byte_level_b", seed=1))
    settings = GenerationSettings(max_new_tokens=changes.pop("max_new_tokens", 24))
    drafting = AssistantConfig(num_assistant_tokens=4)
    options: dict[str, Any] = {"references": ("transformers",), "repeats": 2, **changes}
    *_, done = pair.compare_stream(PROMPT, settings, drafting, raw=True, **options)
    assert isinstance(done, CompareDone)
    request = request_of(
        prompt=PROMPT,
        target="tiny/target",
        assistant="tiny/assistant",
        settings=settings,
        drafting=drafting,
        raw=True,
        system=None,
        dtype="float32",
        device="cpu",
        exact=True,
        references=options["references"],
        repeats=options["repeats"],
    )
    return done, request


@cache
def made() -> str:
    """A run document of that comparison, as JSON."""
    return dump_run(build_run(*compared()))


if __name__ == "__main__":
    FIXTURE.write_text(dump_run(build_run(*compared())) + "\n", encoding="utf-8")
