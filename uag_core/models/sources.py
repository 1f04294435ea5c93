"""Which files, in which version, a model's name means right now.

Fetches the embedded target when it is missing and asks the Hub which commit a branch is at; reads
no weights. Knows nothing of tensors, devices or of what is in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from uag_core import hosting
from uag_core.errors import ModelNotFoundError
from uag_core.models import embedded, hub
from uag_core.models.references import Reference, parse

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where exactly a model comes from.

    `id` and `revision` are for reports. `fingerprint` changes when the files do: the commit of a
    Hub model, a digest of names, sizes and times of local files. `file` is the GGUF file inside a
    Hub repository; `token` belongs to whoever asked, and is never shown or compared.
    """

    ref: str
    id: str
    revision: str | None
    path: Path
    fingerprint: str
    kind: str
    file: str | None = None
    token: str | bool | None = field(default=None, repr=False, compare=False)

    @property
    def is_remote(self) -> bool:
        return self.kind in ("hub", "hub_gguf")


def resolve(
    ref: str, *, progress: Progress | None = None, token: str | bool | None = None
) -> Source:
    """Find out which files `ref` means, fetching the embedded target's when they are missing.

    Of Hub models only the commit is looked up, with the caller's `token` where it has one; where
    the app is hosted, also whether that caller may have a gated one. Raises as `loading.load`.
    """
    reference = parse(ref)
    if reference.kind == "embedded":
        return _embedded(reference, progress)
    if reference.kind in ("hub", "hub_gguf"):
        return _hub(reference, token)
    assert reference.path is not None
    fingerprint = f"{reference.path}:{_digest(reference.path)}"
    return Source(ref, reference.id, None, reference.path, fingerprint, reference.kind)


def _embedded(reference: Reference, progress: Progress | None) -> Source:
    if reference.id == "embedded/target":
        folder, revision = embedded.ensure_target(progress), embedded.TARGET_REVISION
        return Source(reference.id, reference.id, revision, folder, revision, "folder")
    folder = embedded.assistant_folder()
    if not (folder / "config.json").is_file():
        raise ModelNotFoundError("This copy of the project lacks the embedded assistant's files.")
    revision = _digest(folder, contents=True)
    return Source(reference.id, reference.id, revision, folder, revision, "folder")


# What a branch meant when it was first asked for, by whom.
_commits: dict[tuple[str, str | None, str], str] = {}
_MAX_COMMITS = 10_000


def _hub(reference: Reference, token: str | bool | None) -> Source:
    repo, revision, file = reference.id, reference.revision, reference.file
    rules = hosting.current()
    token = rules.token_for(token)
    name = repo if revision is None else f"{repo}@{revision}"
    key = (repo, revision, hub.identity(token))
    if key not in _commits:
        while len(_commits) > _MAX_COMMITS:
            _commits.pop(next(iter(_commits)))
        _commits[key] = hub.resolve(repo, revision, name, token)
    commit = _commits[key]
    if rules.hosted:
        hub.check_access(repo, commit, name, token)
    fingerprint = commit
    if file:
        name, fingerprint = f"{name}:{file}", f"{commit}:{file}"
    return Source(name, repo, commit, Path(), fingerprint, reference.kind, file, token)


def _digest(path: Path, *, contents: bool = False) -> str:
    """Twelve hex digits that change with the files of `path`: their times, or their contents."""
    digest = hashlib.sha256()
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    for file in files:
        digest.update(file.name.encode())
        if contents:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        else:
            stat = file.stat()
            digest.update(f"{stat.st_size}:{stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:12]
