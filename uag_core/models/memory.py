"""How much memory models take and what is left, and what running out of it looks like.

Knows tensors and devices; knows nothing of names, downloads or decoding.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from uag_core import hosting
from uag_core.errors import OutOfMemoryError

if TYPE_CHECKING:
    from torch import nn

LIMIT_VARIABLE = "UAG_MODEL_MEMORY_GB"
GPUS = "gpus"  # a model spread over every GPU
_SHARE = {
    "cpu": 0.6,
    "cuda": 0.8,
    GPUS: 0.8,
}  # of a device's memory that idle models may fill together
_CPU_MESSAGES = ("can't allocate memory", "not enough memory", "cannot allocate memory")


def model_bytes(model: nn.Module) -> int:
    """Bytes of the model's parameters and buffers; tied tensors count once."""
    storages = {}
    for tensor in (*model.parameters(), *model.buffers()):
        storage = tensor.untyped_storage()
        storages[(str(tensor.device), storage.data_ptr())] = storage.nbytes()
    return sum(storages.values())


def total_memory(device: str) -> int:
    """Bytes of memory that `device` ("cpu", "cuda:0", "gpus") has in all.

    A container's limit counts where it is below the machine's memory.
    """
    if device == GPUS:
        return sum(total_memory(name) for name in gpu_names())
    if device.startswith("cuda"):
        return int(torch.cuda.get_device_properties(torch.device(device)).total_memory)
    import psutil

    limit, _ = _container()
    total = int(psutil.virtual_memory().total)
    return min(total, limit) if limit else total


def free_memory(device: str) -> int:
    """Bytes of memory that can be had on `device` now; of "gpus", on all of them together."""
    if device == GPUS:
        return sum(free_memory(name) for name in gpu_names())
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    import psutil

    available = int(psutil.virtual_memory().available)
    limit, used = _container()
    return max(0, min(available, limit - used)) if limit else available


def gpu_names() -> list[str]:
    """ "cuda:0", "cuda:1", ...: every GPU that can be used."""
    if not torch.cuda.is_available():
        return []
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def _container() -> tuple[int, int]:
    """Memory limit and use of a control group (version 2) in bytes; zeros where there is none."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        if not limit.isdecimal():
            return 0, 0
        used = int((folder / "memory.current").read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").open())
        return int(limit), max(0, used - int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0, 0


def default_limit(device: str) -> int:
    """Bytes that the models kept on `device` may take together.

    The environment variable UAG_MODEL_MEMORY_GB (gigabytes of 10^9 bytes) wins over the default,
    60 % of a machine's memory or 80 % of a GPU's. Raises `InputError` when it is no number.
    """
    gigabytes = hosting.gigabytes_of(os.environ, LIMIT_VARIABLE)
    if gigabytes is not None:
        return int(gigabytes * 1e9)
    return int(total_memory(device) * _SHARE[device.partition(":")[0]])


def release_unused() -> None:
    """Give memory that nothing refers to any more back to the system or the GPU."""
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` means that a device or the machine ran out of memory."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, (RuntimeError, OSError)) and any(m in text for m in _CPU_MESSAGES)


def out_of_memory(what: str, device: str) -> OutOfMemoryError:
    """The error to raise, outside of the except block that caught the original one."""
    place = "memory" if device == "cpu" else "the GPU's memory"
    return OutOfMemoryError(
        f"{what} did not fit into {place}.",
        "Try a smaller model, a shorter text or bfloat16.",
    )
