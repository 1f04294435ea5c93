"""Geometric means of ratios with intervals that say how far a set of prompts can be trusted.

Pure arithmetic over plain numbers: no torch, no clocks. Undefined values are None, never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, median

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95
_SEED = 20240229  # the same numbers give the same interval


def known(values: Iterable[float | None]) -> list[float]:
    """The values that are there, finite and above zero: what a ratio has to be."""
    return [value for value in values if value and value > 0 and math.isfinite(value)]


def middle(values: Iterable[float | None]) -> float | None:
    """The median of the known values; None where there is none."""
    found = known(values)
    return median(found) if found else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """None without a known value."""
    found = known(values)
    return math.exp(fmean(map(math.log, found))) if found else None


def interval(
    values: Sequence[float | None],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of the geometric mean, over the given values (one a prompt).

    (None, None) for fewer than two values: one prompt says nothing about others. Efron,
    "Bootstrap methods" (1979).
    """
    logs = [math.log(value) for value in known(values)]
    if len(logs) < 2:
        return None, None
    picks = np.random.default_rng(_SEED).integers(len(logs), size=(resamples, len(logs)))
    means = np.asarray(logs)[picks].mean(axis=1)
    edge = (1 - confidence) / 2
    low, high = np.quantile(means, (edge, 1 - edge))
    return math.exp(low), math.exp(high)


def spread(values: Sequence[float | None]) -> dict[str, float | None]:
    """{"geomean", "low", "high"} of one ratio over prompts."""
    low, high = interval(values)
    return {"geomean": geometric_mean(values), "low": low, "high": high}
