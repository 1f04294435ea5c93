"""Universal Assisted Generation: any target, any assistant, measured honestly.

The public names are imported when they are first used, so that `import uag_core.metrics` (or any
other light module) never pulls in torch. Knows only where each name lives.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uag_core.config import AssistantConfig, GenerationSettings
    from uag_core.errors import (
        DiskSpaceError,
        GatedModelError,
        InputError,
        ModelNotFoundError,
        NetworkError,
        NotBuiltError,
        OutOfMemoryError,
        RunCancelled,
        RunError,
        UAGError,
        UnsafeModelError,
        UnsupportedModelError,
    )
    from uag_core.pair import ModelPair, Result

__version__ = "0.1.0"

__all__ = [
    "AssistantConfig",
    "DiskSpaceError",
    "GatedModelError",
    "GenerationSettings",
    "InputError",
    "ModelNotFoundError",
    "ModelPair",
    "NetworkError",
    "NotBuiltError",
    "OutOfMemoryError",
    "Result",
    "RunCancelled",
    "RunError",
    "UAGError",
    "UnsafeModelError",
    "UnsupportedModelError",
    "__version__",
]

_HOMES = {
    "AssistantConfig": "uag_core.config",
    "GenerationSettings": "uag_core.config",
    "ModelPair": "uag_core.pair",
    "Result": "uag_core.pair",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "uag_core.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
