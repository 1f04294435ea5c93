"""`compare --save FILE`: the run document of a comparison that the command line made.

Knows the flags' names and the run document; everything heavy is imported when a run is saved.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from uag_core.config import AssistantConfig, GenerationSettings


def prepare(
    args: argparse.Namespace, prompt: str, settings: GenerationSettings, assistant: AssistantConfig
) -> Callable[[Any], None] | None:
    """What to call with the finished comparison; None without `--save`.

    Looks at the place at once: raises `InputError` before anything has been computed.
    """
    if args.save is None:
        return None
    from uag_core.runs.document import build_run, request_of
    from uag_core.runs.files import check_place, save_run

    place = check_place(args.save)

    def save(done: Any) -> None:
        request = request_of(
            prompt=prompt,
            target=args.target,
            assistant=assistant.assistant,
            settings=settings,
            drafting=assistant,
            raw=args.raw,
            system=args.system,
            dtype=args.dtype,
            device=args.device,
            exact=args.exact,
            references=tuple(dict.fromkeys(args.reference)),
            repeats=args.repeats,
        )
        save_run(build_run(done, request), place)

    return save
