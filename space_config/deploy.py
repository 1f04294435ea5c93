"""Assembles what a Hugging Face Space needs in a folder, checks it, and uploads it if asked to.

    python space_config/deploy.py                       # dry run: assemble, check, list, forget
    python space_config/deploy.py --stage DIR           # the same, and keep the folder
    python space_config/deploy.py --upload OWNER/NAME   # the same, and upload it

`--hardware cpu|gpu|zero` decides about the requirements, the suggested hardware and the models that
are preloaded. Nothing is uploaded that is 10 MB or larger (the Hub wants Git LFS above that), that
looks like a secret, or whose front matter is not valid. Knows files only: it imports neither the
app nor torch, and the token for the upload is the one of `hf auth login`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
INCLUDED = ("app.py", "README.md", "requirements.txt", "LICENSE", "uag_core", "assets")
LEFT_OUT = ("assets/selfplay", "uag_core/recipe")  # for making an assistant, not for running one
MAX_BYTES = 10_000_000
HARDWARE = {"cpu": "cpu-basic", "gpu": "t4-small", "zero": "zero-a10g"}
KEYS = frozenset(
    (
        *("title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "app_file", "license"),
        *("python_version", "suggested_hardware", "models", "datasets", "preload_from_hub"),
        *("tags", "short_description", "hf_oauth", "hf_oauth_scopes", "startup_duration_timeout"),
        *("pinned", "disable_embedding", "header"),
    )
)
SECRETS = (
    re.compile(rb"\bhf_[A-Za-z0-9]{30,}"),
    re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    re.compile(rb"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    re.compile(rb"\bsk-[A-Za-z0-9_-]{32,}"),
    re.compile(rb"\bxox[abprs]-[A-Za-z0-9-]{20,}"),
    re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(
        rb"(?i)\b(?:api_?key|secret|token|password)\b[\"']?\s*[:=]\s*[\"'][A-Za-z0-9/+_-]{24,}[\"']"
    ),
)
SECRET_NAMES = re.compile(r"(?i)^(\.env.*|.*\.pem|id_(rsa|ed25519|ecdsa)|.*\.key|\.netrc|token)$")


class DeployError(Exception):
    """The folder must not go to a Space as it is: one line a reason."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What was assembled: the folder, its files (relative, sorted) and their bytes in all."""

    folder: Path
    files: tuple[str, ...]
    num_bytes: int


def project_files(root: Path = ROOT) -> Iterator[Path]:
    """Files of the project that a Space needs, relative to `root`; only what git knows, if it can
    be asked, so that a file that merely lies about is never uploaded."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--", *INCLUDED],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout.decode()
        names = [Path(name) for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
    if not names:
        for name in INCLUDED:
            path = root / name
            found = [path] if path.is_file() else sorted(path.rglob("*"))
            names += [p.relative_to(root) for p in found if p.is_file() or p.is_symlink()]
    for path in names:
        ignored = "__pycache__" in path.parts or path.suffix == ".pyc"
        left_out = any(path.as_posix().startswith(f"{name}/") for name in LEFT_OUT)
        if not ignored and not left_out and ((root / path).exists() or (root / path).is_symlink()):
            yield path


def split_readme(text: str) -> tuple[dict[str, Any], str]:
    """The front matter as a dictionary, and the text after it. Raises `DeployError`."""
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0]:
        raise DeployError("README.md does not begin with front matter between two lines of ---.")
    try:
        data = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        raise DeployError(f"README.md: the front matter is no YAML: {error}") from None
    if not isinstance(data, dict):
        raise DeployError("README.md: the front matter is no list of keys and values.")
    return data, parts[2]


def preload_list(text: str) -> list[str]:
    """The entries of preload.txt. Raises `DeployError` on a line of another form."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    entries = [line for line in lines if line]
    for entry in entries:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+( [\w./,*-]+)?( [0-9a-f]{7,40})?", entry):
            raise DeployError(f"preload.txt: {entry!r} is not `owner/name [files] [commit]`.")
    return entries


def merge_requirements(base: str, changes: str) -> str:
    """`base` with the lines of `changes` in place of those of the same name, others added."""

    def name_of(line: str) -> str | None:
        bare = line.partition("#")[0].strip()
        return Requirement(bare).name.lower() if bare and not bare.startswith("-") else None

    replaced = {name: line for line in changes.splitlines() if (name := name_of(line))}
    merged = [replaced.pop(name_of(line) or "", line) for line in base.splitlines()]
    return "\n".join([*merged, *replaced.values()]) + "\n"


def stage(folder: Path, *, hardware: str = "cpu", root: Path = ROOT) -> Staged:
    """Copy the project's files into `folder` (new or empty) and fit them to the hardware."""
    if hardware not in HARDWARE:
        raise DeployError(f"hardware must be one of {', '.join(HARDWARE)}, not {hardware!r}.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DeployError(f"{folder} exists and is not an empty folder: name another one.")
    for path in project_files(root):
        if (root / path).is_symlink():
            raise DeployError(f"{path} is a symbolic link: a Space needs the file itself.")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, folder / path)
    here = root / "space_config"
    readme = folder / "README.md"
    if not readme.is_file():
        raise DeployError("There is no README.md: is this the top of a checkout?")
    data, body = split_readme(readme.read_text(encoding="utf-8"))
    data["suggested_hardware"] = HARDWARE[hardware]
    if hardware != "cpu":
        data["preload_from_hub"] = preload_list((here / "preload.txt").read_text(encoding="utf-8"))
    front = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    readme.write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    if hardware == "zero":
        needed = folder / "requirements.txt"
        changes = (here / "requirements-zerogpu.txt").read_text(encoding="utf-8")
        needed.write_text(merge_requirements(needed.read_text(encoding="utf-8"), changes))
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    return Staged(folder, tuple(files), sum((folder / name).stat().st_size for name in files))


def problems(folder: Path) -> list[str]:
    """Everything that speaks against uploading `folder`, one line each. Shows no secret."""
    found = [*_front_matter_problems(folder)]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found.append(f"{name} is a symbolic link.")
        if not path.is_file() or path.is_symlink():
            continue
        if SECRET_NAMES.match(path.name):
            found.append(f"{name} has the name of a file of secrets.")
        if path.stat().st_size >= MAX_BYTES:
            found.append(f"{name} has {path.stat().st_size:,} bytes; {MAX_BYTES:,} is the limit.")
            continue
        data = path.read_bytes()
        for pattern in SECRETS:
            if match := pattern.search(data):
                line = data.count(b"\n", 0, match.start()) + 1
                found.append(f"{name}, line {line}, looks like a secret.")
    return found


def _front_matter_problems(folder: Path) -> Iterator[str]:
    from huggingface_hub import SpaceCardData

    try:
        data, _ = split_readme((folder / "README.md").read_text(encoding="utf-8"))
        card = SpaceCardData(**data, ignore_metadata_errors=False)
    except (DeployError, OSError, TypeError, ValueError) as error:
        yield str(error)
        return
    if unknown := set(data) - KEYS:
        yield f"README.md: a Space knows no {', '.join(sorted(unknown))}."
    for key in ("title", "emoji", "sdk", "sdk_version", "app_file", "license"):
        if not data.get(key):
            yield f"README.md: the front matter has no {key}."
    if card.sdk != "gradio":
        yield f"README.md: sdk is {card.sdk!r}, not gradio."
    if len(str(data.get("short_description") or "")) > 60:
        yield "README.md: short_description has more than 60 characters."
    if not (folder / str(card.app_file or "app.py")).is_file():
        yield f"README.md names {card.app_file} as app_file, which is missing."
    needed = folder / "requirements.txt"
    for line in needed.read_text().splitlines() if needed.is_file() else ():
        bare = line.partition("#")[0].strip()
        if bare.startswith("gradio") and Requirement(bare).name == "gradio":
            if not Requirement(bare).specifier.contains(str(card.sdk_version)):
                yield f"sdk_version {card.sdk_version} is outside of {bare} in requirements.txt."
            return
    yield "requirements.txt names no gradio."


def upload(staged: Staged, repo: str, *, private: bool = True, api: Any = None) -> str:
    """Create the Space if it is not there and make its files those of the folder; its address."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise DeployError(f"{repo!r} is no Space: give OWNER/NAME.")
    if api is None:
        from huggingface_hub import HfApi

        api = HfApi()
    api.create_repo(repo, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
    api.upload_folder(
        repo_id=repo,
        repo_type="space",
        folder_path=str(staged.folder),
        commit_message="Update UAG Studio",
        delete_patterns="*",
    )
    return f"https://huggingface.co/spaces/{repo}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Assemble, check and upload a Space.")
    parser.add_argument("--stage", type=Path, metavar="DIR", help="keep the folder here")
    parser.add_argument("--hardware", choices=HARDWARE, default="cpu")
    parser.add_argument("--upload", metavar="OWNER/NAME", help="upload it (otherwise a dry run)")
    parser.add_argument("--public", action="store_true", help="make a new Space a public one")
    arguments = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = arguments.stage or Path(temporary) / "space"
            staged = stage(folder, hardware=arguments.hardware)
            if wrong := problems(folder):
                raise DeployError("\n".join(wrong))
            print("\n".join(staged.files))
            print(f"{len(staged.files)} files, {staged.num_bytes / 1e6:.1f} MB: ready.")
            if arguments.upload:
                print(upload(staged, arguments.upload, private=not arguments.public))
            else:
                print("Dry run: nothing was uploaded.")
    except DeployError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:  # includes every failure of the Hub's client
        print(f"{type(error).__name__}: {str(error).splitlines()[0][:300]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
