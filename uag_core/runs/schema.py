"""The form of a run document, version 1: what each key holds and what may stand there.

One description for two uses: `Run` checks documents at run time, and `python -m
uag_core.runs.schema` prints the same as JSON Schema (draft 2020-12), kept in
`assets/schema/run-1.schema.json`. Keys may be added to a version, never renamed or removed, so
unknown keys are let through everywhere. Knows nothing of files, sizes or pages.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
SCHEMA_ID = "urn:uag-studio:schema:run-1"
MAX_EVENTS = 100_000  # of one engine
MAX_TEXT = 2_000_000  # characters of a prompt or an answer
MAX_IDS = 200_000
ID_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"

Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0, le=2**53)]
TokenId = Annotated[int, Field(ge=0, le=2**31)]
Rate = Annotated[float, Field(ge=0, le=1)]
Factor = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(max_length=2048)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Finish = Literal["eos", "stop_string", "length", "context", "cancelled"]


class _Part(BaseModel):
    """Strict: "1" is no number, true is no count, NaN is nothing at all."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class Piece(_Part):
    """One token: its id and its bytes in hexadecimal, which may be a part of a character."""

    id: TokenId
    data: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$", max_length=4096)]
    control: bool = False


Pieces = Annotated[list[Piece], Field(max_length=MAX_IDS)]


class Started(_Part):
    type: Literal["Started"]
    engine: Name
    num_prompt_tokens_target: Count
    num_prompt_tokens_assistant: Count | None
    max_new_tokens: Count
    width: Count | None
    cache_length: Count | None
    exact: bool
    seed: int | None
    path: Literal["text", "ids"] | None = None
    notices: Annotated[list[Text], Field(max_length=100)] = []


class Drafted(_Part):
    """A proposal: `draft` in the assistant's vocabulary, `candidates` in the target's."""

    type: Literal["Drafted"]
    round: Count
    draft: Pieces
    confidences: Annotated[list[float], Field(max_length=MAX_IDS)]
    candidates: Pieces
    source: Name
    draft_s: Seconds
    reencode_s: Seconds
    t: Seconds


class Verified(_Part):
    """Committed tokens. Round 0 is the prefill. `origins[i]` says where `tokens[i]` is from."""

    type: Literal["Verified"]
    round: Count
    tokens: Pieces
    origins: Annotated[
        list[Literal["prefill", "accepted", "bonus", "corrected", "plain"]],
        Field(max_length=MAX_IDS),
    ]
    text: Text
    num_draft_tokens: Count
    num_candidates: Count
    num_accepted: Count
    draft_s: Seconds
    reencode_s: Seconds
    verify_s: Seconds
    other_s: float
    t: Seconds


class Notice(_Part):
    type: Literal["Notice"]
    message: Text
    t: Seconds = 0.0


class Finished(_Part):
    type: Literal["Finished"]
    finish_reason: Finish
    token_ids: Annotated[list[TokenId], Field(max_length=MAX_IDS)]
    text: Text
    num_target_forwards: Count
    prefill_s: Seconds
    draft_s: Seconds
    reencode_s: Seconds
    verify_s: Seconds
    other_s: float
    wall_s: Seconds
    ttft_s: Seconds | None
    t: Seconds
    top2_gap: float | None = None


Event = Annotated[
    Started | Drafted | Verified | Notice | Finished,
    Field(discriminator="type", description="Times are seconds on the run's own clock."),
]


class Model(_Part):
    id: Name
    revision: Name | None
    dtype: Name
    device: Name


class Timing(_Part):
    """What every engine reports. None where nothing was measured."""

    text: Text | None
    token_ids: Annotated[list[TokenId], Field(max_length=MAX_IDS)] | None
    num_new_tokens: Count | None
    finish_reason: Finish | None
    ttft_s: Seconds | None
    tpot_s: Seconds | None
    wall_s: Seconds | None
    tokens_per_second: Factor | None
    end_to_end_tokens_per_second: Factor | None


class Assisted(Timing):
    num_draft_tokens: Count | None
    num_candidate_tokens: Count | None
    num_accepted_tokens: Count | None
    num_rounds: Count | None
    num_draft_rounds: Count | None
    num_target_forwards: Count | None
    tokens_per_round: Factor | None
    mean_acceptance_length: Factor | None
    acceptance_rate: Rate | None
    acceptance_per_position: Annotated[list[Rate], Field(max_length=4096)] | None
    acceptance_histogram: Annotated[list[Count], Field(max_length=4096)] | None
    prefill_s: Seconds | None
    draft_s: Seconds | None
    reencode_s: Seconds | None
    verify_s: Seconds | None
    other_s: float | None


class Reference(Timing):
    engine: Name


class Unpadded(_Part):
    tpot_s: Seconds | None
    tokens_per_second: Factor | None


class PromptSize(_Part):
    num_prompt_tokens_target: Count
    num_prompt_tokens_assistant: Count | None


class Divergence(_Part):
    position: Count
    top2_gap: float | None


class Result(_Part):
    """The object that `compare --json` prints."""

    schema_version: Literal[1]
    target: Model
    assistant: Model | None
    method: Name
    path: Literal["text", "ids"]
    exact: bool
    compiled: bool = False
    compile_s: Seconds | None = None
    seed: int | None
    settings: Annotated[dict[str, Any], Field(max_length=200)]
    notices: Annotated[list[Text], Field(max_length=100)]
    prompt: PromptSize
    baseline: Timing | None
    baseline_unpadded: Unpadded | None
    assisted: Assisted | None
    references: Annotated[list[Reference], Field(max_length=20)]
    decode_speedup: Factor | None
    decode_speedup_same_shape: Factor | None
    wall_speedup: Factor | None
    speedup_bound: Factor | None
    predicted_speedup: Factor | None
    identical: bool | None
    first_divergence: Divergence | None


class App(_Part):
    name: Name
    version: Name


class Machine(_Part):
    """Plain facts that timings depend on; neither a host's nor a person's name."""

    processor: Name | None
    cores: Count | None
    threads: Count | None
    python: Name | None
    torch: Name | None
    transformers: Name | None
    devices: Annotated[list[Name], Field(max_length=64)]


class Request(_Part):
    """What was asked for, in the names and units of `compare`: enough to run it again."""

    prompt: Text
    system: Text | None
    raw: bool
    target: Name
    assistant: Name | None
    method: Name
    dtype: Name
    device: Name
    exact: bool
    max_new_tokens: Count
    temperature: float | None = None
    top_k: Count | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: Count | None = None
    stop: Annotated[list[Text], Field(max_length=100)] = []
    seed: int | None = None
    num_assistant_tokens: Count | None = None
    assistant_confidence_threshold: float | None = None
    prompt_lookup_num_tokens: Count | None = None
    max_matching_ngram_size: Count | None = None
    target_lookbehind: Count | None = None
    assistant_lookbehind: Count | None = None
    compile: bool = False
    references: Annotated[list[Name], Field(max_length=20)] = []
    repeats: Count = 1


class Run(_Part):
    """One comparison, recorded: what was asked, what came out, and every event on the way."""

    schema_version: Literal[1]
    kind: Literal["run"]
    id: Annotated[str, Field(pattern=ID_PATTERN, max_length=64)] | None = Field(
        description="The name under which a shipped or shared run is opened; else null."
    )
    title: Annotated[str, Field(max_length=200)]
    created: Annotated[
        str,
        Field(
            pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)$",
            description="ISO 8601, in UTC",
        ),
    ]
    app: App
    machine: Machine
    request: Request
    result: Result
    events: Annotated[
        dict[Name, Annotated[list[Event], Field(max_length=MAX_EVENTS)]],
        Field(
            max_length=20,
            description="By engine, the events of the run with the median time per token.",
        ),
    ]
    profile: Annotated[dict[str, Any], Field(max_length=200)] | None = Field(
        description="The pair's cost profile in seconds, where one was measured."
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a run document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **_untitled(Run.model_json_schema()),
    }


def _untitled(node: Any) -> Any:
    """Without the titles that pydantic makes from names; a property named "title" stays."""
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _untitled(item)
        for key, item in node.items()
        if not (key == "title" and isinstance(item, str))
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n")
