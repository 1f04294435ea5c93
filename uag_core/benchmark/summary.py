"""From the rows of a benchmark to the `bench --json` object: speedups, intervals, worst cases.

Speedups divide medians over repeats, prompt by prompt; a set of prompts is summed up by geometric
means with bootstrap intervals over prompts. Knows rows and the contract; runs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from uag_core.benchmark.plan import BASELINE, UNPADDED, Plan
from uag_core.benchmark.statistics import geometric_mean, known, middle, spread
from uag_core.config import METHODS, REFERENCES
from uag_core.decoding.engines import Engines
from uag_core.metrics import ratio
from uag_core.runs import machine
from uag_core.serialization import SCHEMA_VERSION, clean

Row = dict[str, Any]
Key = tuple[str, int | None]  # a method and its number of draft tokens
# Added to a baseline row from the run without padding.
_PLAIN_KEYS = (
    "ttft_s",
    "tpot_s",
    "wall_s",
    "tokens_per_second",
    "end_to_end_tokens_per_second",
)


def machine_of(engines: Engines) -> dict[str, Any]:
    """What it was measured on: hardware and versions."""
    used = [lm.device for lm in (engines.target, engines.assistant) if lm is not None]
    return machine.facts(tuple(used))


def pair_of(engines: Engines) -> dict[str, Any]:
    """Which models were measured."""
    helper = engines.assistant
    return {
        "target": engines.target.describe(),
        "assistant": helper.describe() if helper else None,
        "path": engines.path if helper else None,
    }


def build(
    engines: Engines,
    plan: Plan,
    rows: Sequence[Row],
    notices: Iterable[str] = (),
    compile_s: float | None = None,
) -> dict[str, Any]:
    """The `bench --json` object of rows as the runner hands them over.

    `compile_s`: seconds that compiling took, in no other figure; None for eager runs.
    """
    exact = any(row["width"] for row in rows) or not engines.target.is_half_precision
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine_of(engines),
        "pair": pair_of(engines),
        "settings": {**plan.to_dict(), "exact": plan.exact and exact},
        "notices": list(dict.fromkeys(notices)),
        "compiled": compile_s is not None,
        "compile_s": compile_s,
        **tables(rows, sampled=plan.settings.do_sample, sweep=plan.sweep),
    }
    result = clean(document)
    assert isinstance(result, dict)
    return result


def tables(
    rows: Sequence[Row], *, sampled: bool = False, sweep: Sequence[int | None] = (None,)
) -> dict[str, Any]:
    """ "rows", "summary", "categories" and "sweep" of the object, from the measured rows."""
    judged = _judged(rows, sampled)
    methods = list(dict.fromkeys(row["method"] for row in judged))
    points: dict[Key, list[Row]] = defaultdict(list)
    for row in judged:
        points[row["method"], row["num_assistant_tokens"]].append(row)
    best = {name: _best([key for key in points if key[0] == name], points) for name in methods}
    categories = list(dict.fromkeys(row["category"] for row in judged))
    return {
        "rows": judged,
        "summary": {name: _summary(points[best[name]], judged, best[name]) for name in methods},
        "categories": {
            category: {
                name: _summary(
                    [row for row in points[best[name]] if row["category"] == category],
                    [row for row in judged if row["category"] == category],
                    best[name],
                )
                for name in methods
            }
            for category in categories
        },
        "sweep": {
            name: _points(name, points, judged, zero=0 in sweep and name in METHODS)
            for name in methods
            if len(sweep) > 1 and any(row[0] == name and row[1] is not None for row in points)
        },
    }


def _points(
    method: str, points: dict[Key, list[Row]], judged: list[Row], *, zero: bool
) -> list[dict[str, Any]]:
    """One summary for each draft length; 0 is plain decoding as it was measured."""
    keys = sorted(
        (key for key in points if key[0] == method), key=lambda key: (key[1] is None, key[1] or 0)
    )
    found = [_summary(points[key], judged, key) for key in keys]
    plain = points.get((BASELINE, None))
    return [_summary(plain, judged, (BASELINE, 0)), *found] if zero and plain else found


def _best(keys: list[Key], points: dict[Key, list[Row]]) -> Key:
    """The engine's own choice where it was measured, else the fastest point of the sweep."""
    for key in keys:
        if key[1] is None:
            return key
    return max(
        keys, key=lambda key: spread(_over_prompts(points[key], "decode_speedup"))["geomean"] or 0.0
    )


class _Medians:
    """Medians over repeats of a prompt's runs with one engine."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in rows:
            self._rows[_engine(row)].append(row)

    def __call__(self, key: str, *engine: Any) -> float | None:
        return middle(row.get(key) for row in self._rows.get(engine, ()))

    def first(self, *engine: Any) -> Row | None:
        return next(iter(self._rows.get(engine, ())), None)

    def widths(self) -> list[int | None]:
        return [key[2] for key in self._rows if key[1] == BASELINE]


def _engine(row: Row) -> tuple[Any, ...]:
    return row["prompt_id"], row["method"], row["width"]


def _judged(rows: Sequence[Row], sampled: bool) -> list[Row]:
    """The rows with their ratios, unpadded plain decoding folded into the baseline's rows."""
    medians = _Medians(rows)
    widths = {row["width"] for row in rows if row["method"] == BASELINE}
    unpadded = {(row["prompt_id"], row["repeat"]): row for row in rows if row["method"] == UNPADDED}
    judged = []
    for row in rows:
        if row["method"] == UNPADDED:
            continue
        prompt = row["prompt_id"]
        # A reference engine has no shapes of ours: any plain decoding will do, the fastest does.
        shapes = [row["width"]] if row["method"] not in REFERENCES else list(widths)
        plain = [(BASELINE, width) for width in shapes] + [(UNPADDED, None)]
        tpot = min(known(medians("tpot_s", prompt, *one) for one in plain), default=None)
        rates = known(medians("end_to_end_tokens_per_second", prompt, *one) for one in plain)
        same = medians("tpot_s", prompt, BASELINE, row["width"])
        reference = medians.first(prompt, BASELINE, shapes[0] if shapes else None)
        judged.append(
            {
                **row,
                "decode_speedup": ratio(tpot, row["tpot_s"]),
                "decode_speedup_same_shape": (
                    None if row["method"] in REFERENCES else ratio(same, row["tpot_s"])
                ),
                "speedup_bound": _times(row.get("bound_tokens_per_second"), tpot),
                "end_to_end_speedup": ratio(
                    row["end_to_end_tokens_per_second"], max(rates, default=None)
                ),
                "identical": _identical(row, reference, sampled),
            }
        )
        if row["method"] == BASELINE:
            other = unpadded.get((prompt, row["repeat"]), row)
            judged[-1]["unpadded"] = {key: other[key] for key in _PLAIN_KEYS}
    return judged


def _times(rate: float | None, tpot: float | None) -> float | None:
    return None if rate is None or tpot is None else rate * tpot


def _identical(row: Row, reference: Row | None, sampled: bool) -> bool | None:
    """Whether a run gave plain decoding's ids; None where that is not to be expected."""
    if reference is None or (sampled and row["method"] in REFERENCES):
        return None
    return bool(row["token_ids_sha256"] == reference["token_ids_sha256"])


def _over_prompts(rows: Iterable[Row], key: str) -> list[float | None]:
    """The median over repeats for each prompt."""
    values: dict[str, list[float | None]] = defaultdict(list)
    for row in rows:
        values[row["prompt_id"]].append(row.get(key))
    return [middle(each) for each in values.values()]


def _ratios(rows: Iterable[Row], others: Iterable[Row], key: str) -> list[float | None]:
    """Prompt by prompt, the median of `key` in `rows` over that in `others`."""
    groups: list[dict[str, list[float | None]]] = [defaultdict(list), defaultdict(list)]
    for group, members in zip(groups, (rows, others), strict=True):
        for row in members:
            group[row["prompt_id"]].append(row.get(key))
    ours, theirs = groups
    return [ratio(middle(ours[name]), middle(theirs[name])) for name in ours if name in theirs]


def _total(rows: Iterable[Row], key: str) -> float:
    return sum(row.get(key) or 0 for row in rows)


def _summary(rows: list[Row], everything: list[Row], key: Key) -> dict[str, Any]:
    """One engine over a set of prompts. Counts are summed over all runs before they divide."""
    speedups = {row["prompt_id"]: [] for row in rows}  # type: dict[str, list[float | None]]
    for row in rows:
        speedups[row["prompt_id"]].append(row["decode_speedup"])
    per_prompt = {name: value for name, each in speedups.items() if (value := middle(each))}
    worst = min(per_prompt, key=lambda name: per_prompt[name], default=None)
    method, count = key
    ours = method in METHODS
    rounds, drafted = _total(rows, "num_rounds"), _total(rows, "num_draft_rounds")
    new = sum(max(0, row["num_new_tokens"] - 1) for row in rows)
    accepted = _total(rows, "num_accepted_tokens")
    shares = [
        ratio(row["decode_speedup"], row["speedup_bound"]) for row in rows if row["speedup_bound"]
    ]
    return {
        "num_assistant_tokens": count,
        "num_prompts": len(speedups),
        "decode_speedup": spread(_over_prompts(rows, "decode_speedup")),
        "decode_speedup_same_shape": spread(_over_prompts(rows, "decode_speedup_same_shape")),
        "end_to_end_speedup": spread(_over_prompts(rows, "end_to_end_speedup")),
        "tokens_per_second": middle(_over_prompts(rows, "tokens_per_second")),
        "end_to_end_tokens_per_second": middle(_over_prompts(rows, "end_to_end_tokens_per_second")),
        "tokens_per_round": ratio(new, rounds) if ours else None,
        "mean_acceptance_length": 1 + accepted / drafted if drafted else None,
        "acceptance_rate": ratio(accepted, _total(rows, "num_candidate_tokens")),
        "share_of_bound": middle(shares),
        "worst": per_prompt[worst] if worst is not None else None,
        "worst_prompt_id": worst,
        "identical": _count(rows, lambda row: row["identical"] is True),
        "different": _count(rows, lambda row: row["identical"] is False),
        "against": {
            name: spread(_ratios(rows, theirs, "end_to_end_tokens_per_second"))
            for name in REFERENCES
            if (theirs := _fastest_reference(everything, name)) and ours
        },
    }


def _fastest_reference(rows: Iterable[Row], name: str) -> list[Row]:
    """A reference engine's rows; of several draft lengths, those of the best one."""
    groups: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        if row["method"] == name:
            groups[row["num_assistant_tokens"]].append(row)

    def pace(members: list[Row]) -> float:
        return geometric_mean(_over_prompts(members, "end_to_end_tokens_per_second")) or 0.0

    return max(groups.values(), key=pace, default=[])


def _count(rows: Iterable[Row], holds: Callable[[Row], bool]) -> int:
    return sum(1 for row in rows if holds(row))
