"""Rows as the runner hands them over, with times that tests choose."""

from __future__ import annotations

from typing import Any


def row(
    method: str,
    prompt: str = "p",
    *,
    tpot: float | None = 0.02,
    category: str = "code",
    repeat: int = 0,
    count: int | None = None,
    width: int | None = None,
    ids: str = "same",
    new: int = 11,
) -> dict[str, Any]:
    """A run of `new` tokens; what an assisted run adds is there for assisted methods."""
    wall = None if tpot is None else 0.1 + (new - 1) * tpot
    data: dict[str, Any] = {
        "method": method,
        "category": category,
        "prompt_id": prompt,
        "repeat": repeat,
        "num_assistant_tokens": count,
        "width": width,
        "num_prompt_tokens_target": 9,
        "num_new_tokens": new,
        "finish_reason": "length",
        "ttft_s": 0.1,
        "tpot_s": tpot,
        "wall_s": wall,
        "tokens_per_second": tpot and 1 / tpot,
        "end_to_end_tokens_per_second": wall and new / wall,
        "token_ids_sha256": ids,
    }
    if method in ("uag", "lookup", "uag+lookup"):
        data |= {
            "num_rounds": 5,
            "num_draft_rounds": 4,
            "num_draft_tokens": 12,
            "num_candidate_tokens": 10,
            "num_accepted_tokens": 5,
            "tokens_per_round": 2.0,
            "mean_acceptance_length": 2.25,
            "acceptance_rate": 0.5,
            "bound_tokens_per_second": tpot and 1.25 / tpot,
        }
    return data
