"""What strangers may do where the app is hosted: a frozen value, read from the environment.

Hosted mode is on with UAG_HOSTED=1, and by itself on a Space (SPACE_ID is set). It closes local
paths, caps the size of models, may name the only models that are allowed, and never lends the
server's own access token to a visitor. Knows names and numbers; no model, no page.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping
from dataclasses import dataclass

from uag_core.errors import InputError

HOSTED_VARIABLE = "UAG_HOSTED"
ALLOWED_VARIABLE = "UAG_ALLOWED_MODELS"
SIZE_VARIABLE = "UAG_MAX_MODEL_GB"
DEFAULT_HOSTED_GB = 10.0
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Hosting:
    """The rules of this process.

    `allowed` holds Hub ids or patterns such as "owner/*"; empty means any. `max_model_bytes` caps
    the weight files of one model. `login` says that visitors can log in with accounts of their
    own (a Space with `hf_oauth`).
    """

    hosted: bool = False
    allowed: tuple[str, ...] = ()
    max_model_bytes: int | None = None
    login: bool = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Hosting:
        """The rules that environment variables ask for.

        UAG_HOSTED (1 or 0), UAG_ALLOWED_MODELS (ids or patterns, by commas or spaces),
        UAG_MAX_MODEL_GB (10^9 bytes; 10 when hosted, else none), and what a Space sets itself.
        Raises `InputError` for values that cannot be meant.
        """
        environ = os.environ if environ is None else environ
        hosted = is_hosted(environ)
        names = environ.get(ALLOWED_VARIABLE, "").replace(",", " ").split()
        gigabytes = gigabytes_of(environ, SIZE_VARIABLE)
        if gigabytes is None and hosted:
            gigabytes = DEFAULT_HOSTED_GB
        return cls(
            hosted=hosted,
            allowed=tuple(names),
            max_model_bytes=None if gigabytes is None else int(gigabytes * 1e9),
            login=hosted and bool(environ.get("OAUTH_CLIENT_ID")) and bool(environ.get("SPACE_ID")),
        )

    @property
    def local_paths(self) -> bool:
        """Whether folders and files of this machine may be named."""
        return not self.hosted

    def check_id(self, repo: str) -> None:
        """Raise `InputError` for a Hub id that is not allowed here."""
        if self.allowed and not any(fnmatch.fnmatchcase(repo, name) for name in self.allowed):
            some = ", ".join(self.allowed[:6])
            more = " and others" if len(self.allowed) > 6 else ""
            raise InputError(
                f"{repo} is not among the models that may be used here.",
                f"Allowed are the embedded ones, {some}{more}.",
            )

    def check_size(self, weight_bytes: int, name: str) -> None:
        """Raise `InputError` for weights that are larger than what is allowed here."""
        if self.max_model_bytes is not None and weight_bytes > self.max_model_bytes:
            raise InputError(
                f"The weights of {name} are {weight_bytes / 1e9:.1f} GB; here at most "
                f"{self.max_model_bytes / 1e9:g} GB are allowed.",
                "Choose a smaller model.",
            )

    def token_for(self, token: str | bool | None) -> str | bool | None:
        """The access token to use for a request to the Hub.

        A visitor's own where there is one. Else the one that this machine's user has stored
        (`None`), but none at all (`False`) where the app is hosted.
        """
        if token is None and self.hosted:
            return False
        return token


def is_hosted(environ: Mapping[str, str]) -> bool:
    """Whether strangers use this process: UAG_HOSTED where it is set, else whether it is a Space.

    Raises `InputError` for a value that is neither yes nor no.
    """
    text = environ.get(HOSTED_VARIABLE, "").strip().lower()
    if text and text not in (*_TRUE, *_FALSE):
        raise InputError(f"{HOSTED_VARIABLE} must be 1 or 0, not {text[:20]!r}.")
    return text in _TRUE or (not text and bool(environ.get("SPACE_ID")))


def gigabytes_of(environ: Mapping[str, str], name: str) -> float | None:
    """The positive number in an environment variable, or None where it is not set."""
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise InputError(f"{name} must be a positive number of gigabytes.")
    return value


def current() -> Hosting:
    """The rules as the environment stands now."""
    return Hosting.from_environment()
