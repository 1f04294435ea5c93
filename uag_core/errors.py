"""Errors that are meant to be shown.

Each message is one line that says what is wrong and what to do. The command line maps
`exit_status` to its own; the page and the API show `str(error)`. Knows nothing of models,
tensors or user interfaces.
"""

from __future__ import annotations


class UAGError(Exception):
    """Base of every error that this package raises on purpose.

    `exit_status` is 1 for a failure of the world (network, memory, disk, a failed run) and 2 for
    something the caller can put right by changing the input.
    """

    exit_status = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = " ".join(str(message).split())
        self.hint = " ".join(hint.split()) if hint else None
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InputError(UAGError):
    """A prompt, a setting or an argument that cannot be used as given."""

    exit_status = 2


class ModelNotFoundError(InputError):
    """No such model, revision or folder."""


class GatedModelError(InputError):
    """The model exists, but its owner asks for a login or an agreement first."""


class UnsupportedModelError(InputError):
    """Not a causal language model, or of a kind the engine cannot decode."""


class UnsafeModelError(InputError):
    """The repository would need pickle files or its own code to load."""


class NotBuiltError(InputError):
    """The feature is named by the contract but does not exist in this version."""


class NetworkError(UAGError):
    """A download failed or no network was in reach."""


class DiskSpaceError(UAGError):
    """Not enough disk space for a model."""


class OutOfMemoryError(UAGError):
    """A model or a run did not fit into memory."""


class RunError(UAGError):
    """A run failed for a reason inside a model or a tokenizer."""


class RunCancelled(UAGError):  # noqa: N818 - no error, the caller asked for it
    """The run was cancelled before it produced anything to report."""
