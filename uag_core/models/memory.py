"""How much memory models take and what is left, and what running out of it looks like.

Knows tensors and devices; knows nothing of names, downloads or decoding.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import torch

from uag_core.errors import InputError, OutOfMemoryError

if TYPE_CHECKING:
    from torch import nn

LIMIT_VARIABLE = "UAG_MODEL_MEMORY_GB"
_SHARE = {"cpu": 0.6, "cuda": 0.8}  # of a device's memory that idle models may fill together
_CPU_MESSAGES = ("can't allocate memory", "not enough memory", "cannot allocate memory")


def model_bytes(model: nn.Module) -> int:
    """Bytes of the model's parameters and buffers; tied tensors count once."""
    storages = {}
    for tensor in (*model.parameters(), *model.buffers()):
        storage = tensor.untyped_storage()
        storages[(str(tensor.device), storage.data_ptr())] = storage.nbytes()
    return sum(storages.values())


def total_memory(device: str) -> int:
    """Bytes of memory that `device` ("cpu" or "cuda:0") has in all."""
    if device.startswith("cuda"):
        return int(torch.cuda.get_device_properties(torch.device(device)).total_memory)
    import psutil

    return int(psutil.virtual_memory().total)


def default_limit(device: str) -> int:
    """Bytes that the models kept on `device` may take together.

    The environment variable UAG_MODEL_MEMORY_GB (gigabytes of 10^9 bytes) wins over the default,
    60 % of a machine's memory or 80 % of a GPU's. Raises `InputError` when it is no number.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if text:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value < 1e9:
            raise InputError(f"{LIMIT_VARIABLE} must be a positive number of gigabytes.")
        return int(value * 1e9)
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
    place = "the GPU's memory" if device.startswith("cuda") else "memory"
    return OutOfMemoryError(
        f"{what} did not fit into {place}.",
        "Try a smaller model, a shorter text or bfloat16.",
    )
