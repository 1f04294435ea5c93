"""From rows to speedups: which baseline divides, medians, worst cases, sweeps."""

from __future__ import annotations

import json

import pytest

from tests.benchmark.rows import row
from uag_core.benchmark.summary import tables
from uag_core.serialization import dumps


def test_the_faster_of_the_two_plain_runs_divides() -> None:
    rows = [
        row("baseline", tpot=0.030, width=5),
        row("baseline_unpadded", tpot=0.020),
        row("uag", tpot=0.016, width=5),
    ]
    found = tables(rows)
    ours = next(item for item in found["rows"] if item["method"] == "uag")
    assert ours["decode_speedup"] == pytest.approx(0.020 / 0.016)
    assert ours["decode_speedup_same_shape"] == pytest.approx(0.030 / 0.016)
    assert ours["speedup_bound"] == pytest.approx(1.25 * 0.020 / 0.016)
    assert found["summary"]["uag"]["share_of_bound"] == pytest.approx(0.8)


def test_plain_without_padding_is_part_of_the_baseline_s_row() -> None:
    found = tables([row("baseline", tpot=0.03, width=5), row("baseline_unpadded", tpot=0.02)])
    assert [item["method"] for item in found["rows"]] == ["baseline"]
    assert found["rows"][0]["unpadded"]["tpot_s"] == 0.02
    assert found["rows"][0]["decode_speedup"] == pytest.approx(2 / 3)
    alone = tables([row("baseline", tpot=0.03)])["rows"][0]
    assert alone["unpadded"]["tpot_s"] == 0.03
    assert alone["decode_speedup"] == pytest.approx(1.0)


def test_reference_engines_are_compared_end_to_end() -> None:
    rows = [
        row("baseline", tpot=0.02),
        row("uag", tpot=0.01),
        row("transformers_uag", tpot=0.04),
    ]
    entry = tables(rows)["summary"]["uag"]
    assert entry["against"]["transformers_uag"]["geomean"] == pytest.approx(0.5 / 0.2)
    assert "transformers" not in entry["against"]
    reference = tables(rows)["summary"]["transformers_uag"]
    assert reference["against"] == {}
    assert reference["decode_speedup_same_shape"]["geomean"] is None


def test_of_a_reference_s_draft_lengths_the_best_is_beaten() -> None:
    rows = [
        row("baseline"),
        row("uag", tpot=0.01),
        row("transformers_uag", tpot=0.04),
        row("transformers_uag", tpot=0.02, count=4),
    ]
    against = tables(rows, sweep=(None, 4))["summary"]["uag"]["against"]
    assert against["transformers_uag"]["geomean"] == pytest.approx(0.3 / 0.2)


def test_medians_over_repeats_and_the_worst_prompt() -> None:
    rows = []
    for repeat, ours in enumerate((0.010, 0.011, 0.900)):  # one outlier
        rows += [row("baseline", "a", repeat=repeat), row("uag", "a", tpot=ours, repeat=repeat)]
    rows += [row("baseline", "b"), row("uag", "b", tpot=0.025)]
    entry = tables(rows)["summary"]["uag"]
    assert entry["decode_speedup"]["geomean"] == pytest.approx((0.02 / 0.011 * 0.8) ** 0.5)
    assert (entry["worst"], entry["worst_prompt_id"]) == (pytest.approx(0.8), "b")
    assert entry["num_prompts"] == 2


def test_counts_are_summed_before_they_divide() -> None:
    entry = tables([row("baseline"), row("uag")])["summary"]["uag"]
    assert entry["tokens_per_round"] == pytest.approx(2.0)
    assert entry["mean_acceptance_length"] == pytest.approx(2.25)
    assert entry["acceptance_rate"] == pytest.approx(0.5)
    plain = tables([row("baseline")])["summary"]["baseline"]
    assert plain["tokens_per_round"] is None
    assert plain["acceptance_rate"] is None


def test_identity_is_judged_against_plain_decoding_of_the_same_shape() -> None:
    rows = [
        row("baseline", width=5, ids="x"),
        row("baseline_unpadded", ids="y"),
        row("uag", width=5, ids="x"),
        row("lookup", width=5, ids="z"),
        row("transformers", ids="y"),
    ]
    found = {item["method"]: item["identical"] for item in tables(rows)["rows"]}
    assert found == {"baseline": True, "uag": True, "lookup": False, "transformers": False}
    sampled = tables(rows, sampled=True)["rows"]
    assert [r["identical"] for r in sampled if r["method"] == "transformers"] == [None]
    assert tables(rows)["summary"]["lookup"]["different"] == 1


def test_categories_are_summed_up_for_themselves() -> None:
    rows = [row("baseline", "a"), row("uag", "a", tpot=0.01)]
    rows += [row("baseline", "b", category="list"), row("uag", "b", tpot=0.04, category="list")]
    found = tables(rows)["categories"]
    assert found["code"]["uag"]["decode_speedup"]["geomean"] == pytest.approx(2.0)
    assert found["list"]["uag"]["decode_speedup"]["geomean"] == pytest.approx(0.5)


def test_a_sweep_has_a_measured_zero_and_the_engine_s_choice_last() -> None:
    rows = [
        row("baseline", width=5),
        row("baseline", width=9),
        row("baseline_unpadded", tpot=0.018),
    ]
    rows += [row("uag", tpot=0.01, count=8, width=9), row("uag", tpot=0.012, count=2, width=5)]
    rows += [row("uag", tpot=0.009, width=5)]
    found = tables(rows, sweep=(0, 2, 8, None))
    points = found["sweep"]["uag"]
    assert [point["num_assistant_tokens"] for point in points] == [0, 2, 8, None]
    assert points[0]["decode_speedup"]["geomean"] == pytest.approx(0.9)
    assert found["summary"]["uag"]["decode_speedup"]["geomean"] == pytest.approx(2.0)
    assert list(found["sweep"]) == ["uag"]


def test_without_the_engine_s_choice_the_fastest_point_stands_for_the_method() -> None:
    rows = [row("baseline"), row("uag", tpot=0.01, count=4), row("uag", tpot=0.03, count=1)]
    entry = tables(rows, sweep=(1, 4))["summary"]["uag"]
    assert entry["num_assistant_tokens"] == 4


def test_runs_of_one_token_have_no_speed_and_no_nan() -> None:
    rows = [row("baseline", tpot=None, new=1), row("uag", tpot=None, new=1)]
    document = json.loads(dumps(tables(rows)))
    assert document["summary"]["uag"]["decode_speedup"]["geomean"] is None
    assert document["summary"]["uag"]["worst"] is None
    assert tables([]) == {"rows": [], "summary": {}, "categories": {}, "sweep": {}}
