"""Every run that can be opened by an id: those that ship with the app, and those that were shared.

An id is a name, never a path or an address: it is looked up among the shipped files' names and in
the store, and nothing is made of it otherwise. Knows no pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from uag_core.errors import InputError
from uag_core.models.embedded import uag_home
from uag_core.runs.document import RunDocument, dump_run, load_run
from uag_core.runs.schema import ID_PATTERN
from uag_core.runs.store import RunStore

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "runs"
_ID = re.compile(ID_PATTERN)
_LINK = re.compile(r"[?&]run=([a-z0-9-]{1,64})(?:[&#]|$)")
_LOCAL = re.compile(r"^(?:[/~\\.]|[A-Za-z]:)|\\|/.*/")


@dataclass(frozen=True, slots=True)
class Opened:
    """A run, and the Unix time at which its link expires; None for a shipped one."""

    run: RunDocument
    expires: float | None


def default_store() -> RunStore:
    return RunStore(uag_home() / "runs")


@dataclass(frozen=True, slots=True)
class RunLibrary:
    """The shipped runs of a folder, and a store of shared ones."""

    store: RunStore = field(default_factory=default_store)
    folder: Path = SHIPPED

    def shipped(self) -> dict[str, str]:
        """Titles of the shipped runs by id, in alphabetical order of the ids."""
        return dict(_titles(self.folder))

    def open(self, run_id: object) -> Opened:
        """The run of that id. Raises `InputError` with one line when there is none."""
        name = run_id.strip() if isinstance(run_id, str) else ""
        if len(name) > 64 or not _ID.fullmatch(name):
            raise InputError(
                "That is no id of a run.", "An id has small letters, digits and hyphens only."
            )
        if name in self.shipped():
            return Opened(load_run((self.folder / f"{name}.json").read_bytes()), None)
        kept = self.store.get(name)
        if kept is None:
            raise InputError(f"There is no run {name!r}.", "A shared run may have expired.")
        return Opened(load_run(kept.text), kept.expires)

    def share(self, run: RunDocument) -> tuple[str, float]:
        """Keeps a copy for everybody who has its id; returns the id and when it expires.

        The folders of local models are left out of it, since they tell about a machine.
        """
        public = without_folders(run)
        return self.store.put(lambda name: dump_run({**public, "id": name}))


def id_in(text: str) -> str:
    """The id in what somebody typed or pasted: an id, or a link that ends in one."""
    found = _LINK.search(text.strip())
    return found[1] if found else text.strip()


@cache
def _titles(folder: Path) -> tuple[tuple[str, str], ...]:
    found = []
    for path in sorted(folder.glob("*.json")):
        if _ID.fullmatch(path.stem):
            found.append((path.stem, json.loads(path.read_bytes())["title"]))
    return tuple(found)


def _short(name: object) -> object:
    if not isinstance(name, str) or not _LOCAL.search(name):
        return name
    last = PureWindowsPath(name).name if "\\" in name else PurePosixPath(name).name
    return f"local/{last}" if last else "local"


def without_folders(run: RunDocument) -> RunDocument:
    """A copy that names local models by the last part of their path."""
    request, result = dict(run["request"]), dict(run["result"])
    names: list[str] = []

    def shorten(part: Mapping[str, Any], *keys: str) -> dict[str, Any]:
        names.extend(part[key] for key in keys if isinstance(part.get(key), str))
        return {**part, **{key: _short(part[key]) for key in keys if key in part}}

    request = shorten(request, "target", "assistant")
    for role in ("target", "assistant"):
        if result.get(role):
            result[role] = shorten(result[role], "id")
    result["settings"] = shorten(result["settings"], "assistant")
    for name in names:
        if (shown := _short(name)) != name:
            result["notices"] = [item.replace(name, str(shown)) for item in result["notices"]]
    return {**run, "request": request, "result": result}
