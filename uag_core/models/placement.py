"""On which device a model goes: one GPU, several, or the CPU.

The division over several GPUs is accelerate's (`infer_auto_device_map`), from an empty model that
takes no memory. Knows devices and configurations; loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from uag_core.models import memory

CUSHION = 0.05  # of a device's free memory, left for what nobody counts


def candidates(device: str) -> list[str]:
    """The devices to try for a resolved `device`, best first.

    "auto" tries every GPU, then all of them together, then the CPU.
    """
    if device != "auto":
        return [device]
    names = memory.gpu_names()
    together = [memory.GPUS] if len(names) > 1 else []
    return [*names, *together, "cpu"]


def budgets(taken: Mapping[str, int] | None = None) -> dict[int | str, int]:
    """Bytes that a model may take on every GPU, by number; `taken` is promised to others."""
    taken = taken or {}
    return {
        int(name.partition(":")[2]): max(
            0, int(memory.free_memory(name) * (1 - CUSHION)) - taken.get(name, 0)
        )
        for name in memory.gpu_names()
    }


def device_map(
    config: Any, dtype: str, limits: Mapping[int | str, int], reserve: int = 0
) -> dict[str, int | str] | None:
    """Which module goes on which GPU, or None where the model does not fit on them.

    Args:
        config: the `PretrainedConfig` of a causal model.
        dtype: the type that the weights will have.
        limits: bytes by GPU number.
        reserve: bytes for cache and activations, taken off evenly.
    """
    from accelerate import infer_auto_device_map, init_empty_weights
    from transformers import AutoModelForCausalLM

    share = reserve // max(1, len(limits))
    room: dict[int | str, int | str] = {
        name: max(0, limit - share) for name, limit in limits.items()
    }
    room["cpu"] = 0  # nothing may fall off the GPUs
    room["disk"] = 1 << 60
    width = getattr(torch, dtype if hasattr(torch, dtype) else "bfloat16")
    with init_empty_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=width, trust_remote_code=False)
    model.tie_weights()
    whole = getattr(model, "_no_split_modules", None) or []
    found = infer_auto_device_map(
        model, max_memory=room, no_split_module_classes=list(whole), dtype=width
    )
    if any(place in ("cpu", "disk") for place in found.values()):
        return None
    return {str(key): value for key, value in found.items()}


def describe_map(model: Any) -> str | None:
    """ "cuda:0+cuda:1" for a model that lies on several devices, else None."""
    places = {
        f"cuda:{place}" if isinstance(place, int) else str(place)
        for place in (getattr(model, "hf_device_map", None) or {}).values()
    }
    return "+".join(sorted(places)) if len(places) > 1 else None
