"""What goes wrong with the Hub, in one fixed line each.

Every error that the Hub's client, its HTTP library or the disk can raise becomes one of ours, so
that no token, address or traceback of theirs reaches a user. Knows no files and no models.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from huggingface_hub import constants, errors

from uag_core import hosting
from uag_core.errors import (
    DiskSpaceError,
    GatedModelError,
    InputError,
    ModelNotFoundError,
    NetworkError,
    UAGError,
)

T = TypeVar("T")


def call(name: str, action: Callable[[], T]) -> T:
    """The result of `action`, with the Hub client's errors turned into ours.

    The error is raised outside of the except block, so that it carries nothing of the original.
    """
    try:
        return action()
    except UAGError:
        raise
    except Exception as error:  # noqa: BLE001 - the client's own and its HTTP library's
        problem = translate(error, name)
    raise problem


def translate(error: Exception, name: str) -> UAGError:
    """The error to show for one of `huggingface_hub`, of its HTTP client or of the disk."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    login = "log in with `hf auth login`"
    if hosting.current().hosted:
        login = "log in with the button on this page" if hosting.current().login else "log in"
    if isinstance(error, errors.GatedRepoError):
        return GatedModelError(
            f"{name} is gated.", f"Accept its terms on its page, {login}, then try again."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelNotFoundError(f"{name} has no such revision.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelNotFoundError(
            f"There is no model {name} on the Hub, or it is private.",
            f"Check the spelling, or {login}.",
        )
    if isinstance(error, (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError)):
        return out_of_reach(name)
    if isinstance(error, errors.EntryNotFoundError):
        return ModelNotFoundError(f"{name} holds no model that transformers can load.")
    if isinstance(error, (errors.HFValidationError, errors.RevisionResolutionError)):
        return InputError(f"{name} is no model name.", "Use owner/name or owner/name@revision.")
    if status == 401:
        if hosting.current().hosted:  # the visitor's own
            return InputError("The Hub does not accept your access token.", "Log in once more.")
        return InputError(
            "The Hub does not accept the stored access token.",
            "Log in again with `hf auth login`, or log out with `hf auth logout`.",
        )
    if status == 403:
        return GatedModelError(f"The Hub does not allow access to {name}.")
    if status == 429:
        return NetworkError("The Hub asks to slow down.", "Try again in some minutes.")
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return DiskSpaceError(f"The disk is full: {name} could not be stored.")
    if getattr(error, "errno", None) in (errno.EACCES, errno.EROFS):
        return InputError("The cache folder cannot be written.", "Set UAG_HOME to another.")
    if status is not None:
        return NetworkError(f"The Hub could not deliver {name} (status {status}).")
    if isinstance(error, (ConnectionError, TimeoutError, errors.HTTPError)):
        return out_of_reach(name)
    return NetworkError(f"The download of {name} failed.", "Try again: it goes on where it was.")


def out_of_reach(name: str) -> UAGError:
    hint = "The embedded pair works without the Hub."
    if constants.is_offline_mode():
        return ModelNotFoundError(
            f"{name} is not in the local cache, and offline mode (HF_HUB_OFFLINE) is on.", hint
        )
    return NetworkError(f"{name} is not in the local cache, and the Hub is out of reach.", hint)
