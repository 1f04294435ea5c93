"""Will this model work here? The answer before gigabytes are downloaded, or the nearest that would.

A plan is a plain dictionary: parameters, memory for weights, key-value cache and activations at a
chosen length, where the model would go, disk space, and a `refusal` in one line where it would
not work. Knows facts, sizes and devices; loads nothing.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from uag_core import errors, hosting
from uag_core.errors import OutOfMemoryError, UAGError
from uag_core.models import disk, facts, families, loading, memory, placement, sizes
from uag_core.models.facts import Facts

DEFAULT_TOKENS = 2048
CHECK_VARIABLE = "UAG_MEMORY_CHECK"
Plan = dict[str, Any]
Taken = Mapping[str, int]


def plan(
    ref: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    tokens: int = DEFAULT_TOKENS,
    token: str | bool | None = None,
    taken: Taken | None = None,
    spare: Taken | None = None,
) -> Plan:
    """What loading `ref` would take. Never raises for a model: see "refusal".

    Args:
        tokens: positions (prompt and answer) to have room for.
        token: the caller's own access token for the Hub.
        taken: bytes by device that are promised to others.
        spare: bytes by device that would be given back if needed (idle models).
    """
    try:
        where = device if device == "auto" else loading.resolve_device(device)
        source = loading.resolve(ref, token=token)
        return plan_source(
            source, dtype=dtype, device=where, tokens=tokens, taken=taken, spare=spare
        )
    except UAGError as error:
        return {**_EMPTY, "ref": str(ref)[:200], "tokens": tokens, "refusal": refusal_of(error)}


def plan_source(
    source: loading.Source,
    *,
    dtype: str,
    device: str,
    tokens: int = DEFAULT_TOKENS,
    taken: Taken | None = None,
    spare: Taken | None = None,
) -> Plan:
    """As `plan`, for a resolved source and device ("auto" stands for the best that fits).

    Raises the errors of `facts.gather` and of a dtype or device that cannot be.
    """
    known = facts.gather(source)
    length = min(tokens, known.shape.context_length or tokens)
    best: Plan | None = None
    for name in placement.candidates(device):
        there = _on_device(known, name, dtype, length, taken or {}, spare or {})
        best = best or there
        if there["fits"]:
            best = there
            break
    assert best is not None
    best["refusal"] = _refuse(known, best, length, taken or {}, spare or {})
    return best


_EMPTY: Plan = {
    "id": None,
    "revision": None,
    "kind": None,
    "model_type": None,
    "architecture": None,
    "parameters": None,
    "stored": {},
    "dtype": None,
    "device": None,
    "context_length": None,
    "memory": None,
    "placement": [],
    "disk": None,
    "gated": None,
    "licence": None,
    "fits": False,
}


def _on_device(
    known: Facts, device: str, dtype: str, tokens: int, taken: Taken, spare: Taken
) -> Plan:
    kind = loading.resolve_dtype(dtype, device)
    need = _need(known, kind, tokens)
    available = _available(device, taken, spare)
    total = sum(need.values())
    places: list[dict[str, Any]] | None = [{"device": device, "modules": None}]
    if device == memory.GPUS and total <= available:
        places = _divide(known, kind, taken, total - need["weights"])
    return {
        **_EMPTY,
        "ref": known.source.ref,
        "id": known.source.id,
        "revision": known.source.revision,
        "kind": known.source.kind,
        "model_type": known.model_type,
        "architecture": known.architecture,
        "parameters": known.parameters,
        "stored": dict(known.stored),
        "dtype": kind,
        "device": device,
        "tokens": tokens,
        "context_length": known.shape.context_length,
        "memory": {**need, "total": total, "available": available},
        "placement": places or [],
        "disk": {
            "download": known.download_bytes,
            "free": disk.free_bytes(),
            "weight_files": known.weight_file_bytes,
        },
        "gated": known.gated,
        "licence": known.licence,
        "fits": total <= available and places is not None,
    }


def _divide(known: Facts, dtype: str, taken: Taken, reserve: int) -> list[dict[str, Any]] | None:
    """How many modules go on which GPU, or None where they cannot be divided so that they fit."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if known.config is None:  # a GGUF file: divided when it is read
        return [{"device": memory.GPUS, "modules": None}]
    config = CONFIG_MAPPING[known.model_type].from_dict(dict(known.config))
    found = placement.device_map(config, dtype, placement.budgets(taken), reserve)
    if found is None:
        return None
    counts = Counter(found.values())
    return [{"device": f"cuda:{number}", "modules": counts[number]} for number in sorted(counts)]


def _need(known: Facts, dtype: str, tokens: int) -> dict[str, int]:
    return {
        "weights": sizes.weight_bytes(known.parameters or 0, dtype, known.shape),
        "kv_cache": sizes.cache_bytes(known.shape, tokens, dtype),
        "activations": sizes.activation_bytes(known.shape, tokens, dtype),
    }


def _available(device: str, taken: Taken, spare: Taken) -> int:
    promised = sum(taken.values()) if device == memory.GPUS else taken.get(device, 0)
    free = int(memory.free_memory(device) * (1 - placement.CUSHION))
    return max(0, free + spare.get(device, 0) - promised)


def _refuse(
    known: Facts, best: Plan, tokens: int, taken: Taken, spare: Taken
) -> dict[str, str | None] | None:
    name = known.source.ref
    try:
        if known.source.is_remote:
            hosting.current().check_size(known.weight_file_bytes, name)
        if known.download_bytes:
            disk.check_room(known.download_bytes, name)
        if not best["fits"] and os.environ.get(CHECK_VARIABLE, "1").strip() != "0":
            raise _too_big(known, best, tokens, taken, spare)
    except UAGError as error:
        return refusal_of(error)
    return None


def _too_big(known: Facts, best: Plan, tokens: int, taken: Taken, spare: Taken) -> OutOfMemoryError:
    where = best["device"]
    place = {"cpu": "memory", memory.GPUS: "the GPUs"}.get(where, f"GPU {where[5:]}")
    need, have = best["memory"]["total"], best["memory"]["available"]
    return OutOfMemoryError(
        f"{known.source.ref} needs about {gigabytes(need)} in {best['dtype']}, and "
        f"{gigabytes(have)} of {place} are free.",
        nearest(known, best, tokens, taken, spare),
    )


def nearest(known: Facts, best: Plan, tokens: int, taken: Taken, spare: Taken) -> str:
    """The closest thing that would work, as an advice in one sentence."""
    have, device = best["memory"]["available"], best["device"]

    def fits(dtype: str, length: int = tokens, parameters: int | None = None) -> bool:
        need = _need(known, dtype, length)
        if parameters is not None and known.parameters:
            need = {k: int(v * parameters / known.parameters) for k, v in need.items()}
        return sum(need.values()) <= have

    lighter = [] if best["dtype"] != "float32" else ["bfloat16"]
    if device != "cpu" and importlib.util.find_spec("bitsandbytes"):
        lighter += [kind for kind in sizes.QUANTISED if kind != best["dtype"]]
    for kind in lighter:
        if fits(kind):
            return f"In {kind} it would fit."
    for length in (1024, 512, 256):
        if length < tokens and fits(best["dtype"], length):
            return f"With {length} tokens instead of {tokens} it would fit."
    if device != "cpu":
        there = _on_device(known, "cpu", "auto", tokens, taken, spare)
        if there["fits"]:
            return "On the CPU it would fit."
    sibling = families.smaller(known.source.id, lambda count: fits("bfloat16", tokens, count))
    if sibling:
        return f"Its smaller sibling {sibling} would fit in bfloat16."
    largest = int(have / 2.4e9 * 10) / 10
    return f"Models of up to about {largest:g} B parameters fit here in bfloat16."


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 5e7 else f"{count / 1e6:.0f} MB"


def refusal_of(error: UAGError) -> dict[str, str | None]:
    """An error as plain values: its kind, message and hint."""
    return {"error": type(error).__name__, "message": error.message, "hint": error.hint}


def require(found: Plan) -> None:
    """Raise the error that a plan's refusal stands for, where it has one."""
    refusal = found.get("refusal")
    if refusal:
        kind: Callable[..., UAGError] = getattr(errors, str(refusal["error"]), UAGError)
        raise kind(refusal["message"], refusal["hint"])


def plan_pair(
    target: str,
    assistant: str | None,
    *,
    dtype: str = "auto",
    device: str = "auto",
    assistant_device: str | None = None,
    tokens: int = DEFAULT_TOKENS,
    token: str | bool | None = None,
    spare: Taken | None = None,
) -> dict[str, Plan | None]:
    """Plans of both models, the assistant's beside what the target takes. Arguments as `plan`."""
    first = plan(target, dtype=dtype, device=device, tokens=tokens, token=token, spare=spare)
    if assistant is None:
        return {"target": first, "assistant": None}
    taken = {first["device"]: first["memory"]["total"]} if first["memory"] else {}
    second = plan(
        assistant,
        dtype=dtype,
        device=assistant_device or device,
        tokens=tokens,
        token=token,
        taken=taken,
        spare=spare,
    )
    return {"target": first, "assistant": second}


def line(found: Plan) -> str:
    """A plan in one line for people."""
    if found.get("refusal"):
        refusal = found["refusal"]
        return " ".join(part for part in (refusal["message"], refusal["hint"]) if part)
    need, count = found["memory"], found["parameters"]
    parts = [f"{families.count_text(count)} parameters" if count else "unknown size"]
    parts.append(f"{gigabytes(need['weights'])} in {found['dtype']} on {found['device']}")
    parts.append(
        f"{gigabytes(need['kv_cache'] + need['activations'])} more for {found['tokens']:,} tokens"
    )
    if found["disk"]["download"]:
        parts.append(f"{gigabytes(found['disk']['download'])} to download")
    if found["gated"]:
        parts.append("gated")
    return ", ".join(parts)
