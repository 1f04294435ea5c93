"""What to expect of a pair before anything is loaded: the report of `inspect` and `/inspect_pair`.

Reads two tokenizers and two configurations, no weights, and says in plain words whether the pair
works, how, and what to watch. Knows no pages and no command line. What a report predicts is what
can be read off; how fast a pair is has to be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.decoding.positions import switch_length_of
from uag_core.errors import InputError
from uag_core.models import facts
from uag_core.models.outline import outline
from uag_core.models.small_files import check_weights
from uag_core.models.tokenizers import LoadedTokenizer, load_tokenizer
from uag_core.tokenization.pair_report import pair_report

SCHEMA_VERSION = 1
_SMALL_RATIO = 2.0  # a target less than this many times as large as its assistant
_FEW_SHARED = 0.5
_MANY_PER_CANDIDATE = 0.6
_ALIKE = 0.95


def inspect_pair(
    target: str = DEFAULT_TARGET,
    assistant: str = DEFAULT_ASSISTANT,
    text: str | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    token: str | None = None,
) -> dict[str, Any]:
    """The report on a pair of models by name, as plain values (JSON).

    `text` is what lengths and shares are counted on; a sample of ours when absent. `token` is the
    caller's own access token for the Hub. Raises the errors of `uag_core.errors` for names and
    models that cannot be used.
    """
    if text is not None:
        if not isinstance(text, str):
            raise InputError("text must be a text.")
        text = text.encode("utf-8", "replace").decode("utf-8")
    opened = [_open(ref, progress, token) for ref in (target, assistant)]
    tokens = pair_report(opened[0].tokenizer, opened[1].tokenizer, text)
    sides = {
        side: {**_model(one), "tokenizer": tokens["tokenizer"][side]}
        for side, one in zip(("target", "assistant"), opened, strict=True)
    }
    counts = [side["parameters"] for side in sides.values()]
    report = {
        "schema_version": SCHEMA_VERSION,
        **sides,
        "size_ratio": counts[0] / counts[1] if all(counts) else None,
        **{key: value for key, value in tokens.items() if key != "tokenizer"},
    }
    report["method"] = method(report)
    report["verdict"] = verdict(report)
    return report


def _open(ref: str, progress: Callable[[str], None] | None, token: str | None) -> LoadedTokenizer:
    opened = load_tokenizer(ref, progress, token=token)
    source = opened.source
    if source.kind == "hub" and source.revision is not None:
        check_weights(source.id, source.revision, source.ref, source.token)
    return opened


def _model(opened: LoadedTokenizer) -> dict[str, Any]:
    known = outline(opened.config, opened.source.ref)
    if opened.source.kind in ("gguf", "hub_gguf"):  # its header has the true number
        known = replace(known, parameters=facts.gather(opened.source).parameters)
    return {
        "id": opened.source.id,
        "revision": opened.source.revision,
        **known.to_dict(),
        "position_switch": switch_length_of(opened.config, known.context),
    }


def method(report: dict[str, Any]) -> dict[str, Any]:
    """How the pair would be run, and why: path, whether anything is drafted, exactness."""
    target, assistant = report["target"], report["assistant"]
    same = report["same_tokenizer"]
    why = [
        "Both tokenizers turn every text into the same ids, so draft tokens are candidates as they "
        "are, whatever the padding of the vocabularies."
        if same
        else "The tokenizers differ, so drafts go through text: decoded, encoded again with the "
        "target's tokenizer beside the last committed tokens, and then verified."
    ]
    stuck = next((m for m in (target, assistant) if not m["rolls_back"]), None)
    if stuck is not None:
        kinds = ", ".join(stuck["cache"]) or "its own"
        why.append(
            f"{stuck['id']} keeps a cache ({kinds}) that cannot take rejected tokens back, so "
            "nothing is drafted and the target is decoded plainly, with a notice."
        )
    exact = [
        "In float32 the output is that of plain decoding, token for token, greedy or with a seed."
    ]
    if not target["rolls_back"]:
        exact.append("In half precision it is plain decoding as well, without fixed shapes.")
    else:
        doubt = " Mixtures of experts sometimes fail it." if target["experts"] else ""
        exact.append(
            "In half precision it is the same where both runs use one fixed shape, which a probe "
            f"at loading allows or turns off with a notice.{doubt}"
        )
    return {
        "path": "ids" if same else "text",
        "drafts": stuck is None,
        "why": why,
        "exact": exact,
    }


def verdict(report: dict[str, Any]) -> dict[str, Any]:
    """`level` ("works", "unlikely" or "plain"), a headline, what to expect, what to watch."""
    ratio = report["size_ratio"]
    if not report["method"]["drafts"]:
        level, headline = "plain", "Runs, but without drafts: the target is decoded plainly."
    elif ratio is not None and ratio < _SMALL_RATIO:
        level = "unlikely"
        headline = "Works, but a speedup is unlikely: the assistant is too large."
    elif report["method"]["path"] == "ids":
        level, headline = "works", "Works on token ids: the tokenizers are the same."
    else:
        level, headline = "works", "Works through text: the tokenizers differ."
    return {
        "level": level,
        "headline": headline,
        "expect": _expectations(report),
        "watch": _warnings(report),
    }


def _expectations(report: dict[str, Any]) -> list[str]:
    found: list[str] = []
    ratio = report["size_ratio"]
    if ratio is None:
        found.append("How much larger the target is cannot be told from the configurations.")
    elif ratio >= 1:
        found.append(f"The target has {ratio:.1f} times the assistant's parameters.")
    else:
        found.append(f"The assistant is larger than the target ({1 / ratio:.1f} times).")
    per_draft = report["fertility"]["target_per_assistant"]
    if report["method"]["path"] == "text" and per_draft:
        found.append(
            f"On this text one draft token is about {per_draft:.2f} target tokens: "
            + (
                "many draft tokens are needed for a few candidates."
                if per_draft < _MANY_PER_CANDIDATE
                else "a draft turns into somewhat fewer candidates."
                if per_draft < _ALIKE
                else "a draft turns into as many candidates, or more."
            )
        )
        shared = report["vocabulary"]["weighted_target"]
        if shared is not None:
            found.append(
                f"{shared:.0%} of the target's tokens of this text are pieces that the assistant "
                "has too."
            )
    found.append("How often drafts are accepted depends on the models: run a comparison to see.")
    return found


def _warnings(report: dict[str, Any]) -> list[str]:
    found: list[str] = []
    target, assistant = report["target"], report["assistant"]
    for side in ("target", "assistant"):
        lost = [h["what"] for h in report["hazards"][side] if h["level"] == "loss"]
        if lost and report["method"]["path"] == "text":
            found.append(f"The {side}'s tokenizer loses text: {'; '.join(lost)}.")
    shared = report["vocabulary"]["weighted_target"]
    if report["method"]["path"] == "text" and shared is not None and shared < _FEW_SHARED:
        found.append(
            "The vocabularies have little in common on this text: the last candidate of a draft "
            "is often cut in the middle of a target token and refused."
        )
    if assistant["context"] and (not target["context"] or assistant["context"] < target["context"]):
        found.append(
            f"The assistant's context ({assistant['context']:,} tokens) is shorter than the "
            "target's: past it, it drafts from the last part of the text."
        )
    if target["position_switch"]:
        found.append(
            f"The target's positions change at {target['position_switch']:,} tokens: there the "
            "text is read once more, and no round reaches across."
        )
    controls = report["control_tokens"]
    if controls["target"]["chat_template"] and not controls["assistant"]["chat_template"]:
        found.append(
            "The assistant has no chat template: it reads the messages as plain text, and may "
            "draft less well what a chat model answers."
        )
    for side, model in (("target", target), ("assistant", assistant)):
        rows = model["embedding_rows"]
        if rows and model["tokenizer"]["size"] > rows:
            found.append(
                f"The {side}'s tokenizer has {model['tokenizer']['size']:,} ids, its model only "
                f"{rows:,}: ids past that are never sent to it."
            )
    return found
