"""What surrounds the code: front matter, requirements, the file tree, sizes, stray paths."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from huggingface_hub import SpaceCardData
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_BYTES = 10_000_000  # a Space wants Git LFS above that
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def front_matter() -> dict:
    assert README.startswith("---\n")
    return yaml.safe_load(README.split("---\n", 2)[1])


def requirements(name: str = "requirements.txt") -> dict[str, Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    found = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {requirement.name: requirement for requirement in found}


def tracked_files() -> list[Path]:
    """Files that git knows or would add; every file where this is no git checkout."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def commands() -> list[str]:
    """The lines of the README's shell blocks."""
    blocks = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def test_the_front_matter_is_a_valid_space_card() -> None:
    data = front_matter()
    card = SpaceCardData(**data, ignore_metadata_errors=False)
    assert card.sdk == "gradio"
    assert card.license == "apache-2.0"
    assert (ROOT / card.app_file).name == "app.py"
    assert card.python_version == "3.12"
    assert len(data["short_description"]) <= 60
    assert {data["colorFrom"], data["colorTo"]} <= COLOURS
    allowed = """title emoji colorFrom colorTo sdk sdk_version app_file python_version license
    suggested_hardware models preload_from_hub tags short_description hf_oauth
    startup_duration_timeout disable_embedding header pinned hf_oauth_scopes"""
    assert set(data) <= set(allowed.split())


def test_the_gradio_versions_agree() -> None:
    version = str(front_matter()["sdk_version"])
    gradio = requirements()["gradio"]
    assert gradio.specifier.contains(version)
    lowest = min(Version(s.version) for s in gradio.specifier if s.operator == ">=")
    assert Version(version).release[:2] >= lowest.release[:2]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirements_are_bounded(name: str) -> None:
    for requirement in requirements(name).values():
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators & {">=", "=="}, requirement
        assert operators & {"<", "=="}, requirement
        assert requirement.url is None
    if name == "requirements-dev.txt":
        assert "-r requirements.txt" in (ROOT / name).read_text().splitlines()


def test_what_is_installed_fits_the_requirements() -> None:
    from importlib.metadata import version

    for name, requirement in requirements().items():
        assert requirement.specifier.contains(version(name), prereleases=True), name


def test_the_readme_has_its_two_commands_and_ci_runs_the_second() -> None:
    first = (
        "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt "
        "&& .venv/bin/python app.py"
    )
    second = (
        "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt "
        "&& .venv/bin/python -m pytest"
    )
    assert first in commands()
    assert second in commands()
    script = ROOT / ".ci" / "run"
    assert second in script.read_text().splitlines()
    assert script.stat().st_mode & 0o111


def tree_paths() -> list[str]:
    """Paths in the README's file tree: two spaces of indentation a level, a comment per line."""
    block = re.search(r"## What is where\n+```text\n(.*?)```", README, re.DOTALL)
    assert block, "the README has no file tree"
    parents: list[str] = []
    paths = []
    for line in block[1].splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [name.rstrip("/")]
        paths.append("/".join(parents) + ("/" if name.endswith("/") else ""))
        assert len(line.split(maxsplit=1)) == 2, f"{name} has no comment"
    return paths


def test_the_file_tree_of_the_readme_exists() -> None:
    missing = [path for path in tree_paths() if not (ROOT / path).exists()]
    assert missing == []


def test_the_file_tree_of_the_readme_is_complete() -> None:
    listed = {path.rstrip("/") for path in tree_paths()}
    top = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    hidden = {".gitattributes", ".gitignore"}
    assert top - listed - hidden == set()
    packages = {
        f"uag_core/{path.relative_to(ROOT).parts[1]}"
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] == "uag_core" and path.suffix == ".py"
    }
    assert packages - listed - {"uag_core/__init__.py", "uag_core/__main__.py"} == set()


def test_relative_links_of_the_documents_exist() -> None:
    for path in (path for path in tracked_files() if path.suffix == ".md"):
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if "://" not in link and not link.startswith("mailto:"):
                assert (path.parent / link).exists(), f"{path.name} links to {link}"


def test_no_file_is_too_large() -> None:
    large = {p.name: p.stat().st_size for p in tracked_files() if p.stat().st_size >= MAX_BYTES}
    assert large == {}


def test_no_file_names_somebodys_home_or_machine() -> None:
    pattern = re.compile(
        rb"/(?:root|home/(?!somebody|user|me\b)[a-z]\w*|Users/(?!somebody)[A-Za-z]\w*|work/main)/[\w.]"
    )
    for path in tracked_files():
        data = path.read_bytes()
        if path == Path(__file__) or b"\0" in data[:8192]:
            continue
        found = pattern.search(data)
        assert not found, f"{path.relative_to(ROOT)} holds {found[0]!r}"


def test_the_licence_and_the_version() -> None:
    import uag_core

    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert "TERMS AND CONDITIONS" in (ROOT / "LICENSE").read_text()
    Version(uag_core.__version__)
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_markers_that_are_used_are_declared() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    declared = {line.split(":")[0] for line in settings["ini_options"]["markers"]}
    assert declared == {"embedded", "browser"}
