"""The plain facts about this machine that timings depend on.

Names no host, user or folder. Reads what libraries are installed from their metadata and asks
torch only where it is already loaded, so that it stays light.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

_CPUINFO = Path("/proc/cpuinfo")
_MODEL = re.compile(r"^(?:model name|Model)\s*:\s*(.+)$", re.MULTILINE)


def _processor() -> str | None:
    try:
        found = _MODEL.search(_CPUINFO.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        found = None
    name = found.group(1) if found else platform.processor() or platform.machine()
    return " ".join(name.split())[:200] or None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cores() -> int | None:
    """The processors that this process may use, which on shared machines are not all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count()


def _devices(used: tuple[str, ...]) -> list[str]:
    torch = sys.modules.get("torch")
    names = []
    for device in used:
        name = device
        if device.startswith("cuda") and torch is not None:
            name = f"{device}: {torch.cuda.get_device_name(device)}"
        if name not in names:
            names.append(name)
    return names


def facts(used: tuple[str, ...] = ()) -> dict[str, Any]:
    """Processor, cores, threads, versions and the names of the devices in `used`."""
    torch = sys.modules.get("torch")
    return {
        "processor": _processor(),
        "cores": _cores(),
        "threads": torch.get_num_threads() if torch is not None else None,
        "python": platform.python_version(),
        "torch": _version("torch"),
        "transformers": _version("transformers"),
        "devices": _devices(used),
    }
