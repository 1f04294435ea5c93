"""Assembling a Space: what goes in, what is refused, what is uploaded, and that it starts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from huggingface_hub import SpaceCardData, metadata_load
from packaging.requirements import Requirement

from space_config import deploy

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> deploy.Staged:
    return deploy.stage(tmp_path_factory.mktemp("space") / "cpu")


def needed(folder: Path) -> dict[str, Requirement]:
    text = (folder / "requirements.txt").read_text()
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {Requirement(line).name: Requirement(line) for line in lines if line}


def test_the_readme_on_the_hub_is_a_valid_space_card() -> None:
    data = metadata_load(ROOT / "README.md")
    card = SpaceCardData(**data, ignore_metadata_errors=False)
    assert card.sdk == "gradio"
    assert needed(ROOT)["gradio"].specifier.contains(card.sdk_version)


def test_what_runs_is_staged_and_nothing_else(staged) -> None:
    names = set(staged.files)
    assert {"app.py", "README.md", "requirements.txt", "uag_core/pair.py"} <= names
    assert any(name.startswith("assets/assistant/model-") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"app.py", "README.md", "requirements.txt", "LICENSE", "uag_core", "assets"}
    assert not any(name.startswith(("assets/selfplay", "uag_core/recipe")) for name in names)
    assert not any("__pycache__" in name for name in names)
    assert deploy.problems(staged.folder) == []


@pytest.mark.parametrize("hardware", ["gpu", "zero"])
def test_gpu_hardware_preloads_and_has_its_own_requirements(tmp_path, hardware) -> None:
    staged = deploy.stage(tmp_path / "space", hardware=hardware)
    data = metadata_load(staged.folder / "README.md")
    assert data["suggested_hardware"] == deploy.HARDWARE[hardware]
    assert data["preload_from_hub"]
    assert deploy.problems(staged.folder) == []
    requirements = needed(staged.folder)
    assert ("spaces" in requirements) == (hardware == "zero")
    assert requirements["torch"].specifier.contains("2.13.0") == (hardware == "gpu")
    assert requirements["torch"].specifier.contains("2.9.1")
    assert set(needed(ROOT)) <= set(requirements)


def test_the_project_ships_no_requirement_twice(tmp_path) -> None:
    staged = deploy.stage(tmp_path / "space", hardware="zero")
    lines = (staged.folder / "requirements.txt").read_text().splitlines()
    names = [Requirement(line.partition("#")[0]).name for line in lines if line[0] != "#"]
    assert len(names) == len(set(names))


MARKER = "hf_" + "Ab1" * 12


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("notes.txt", f"my token is {MARKER}", "notes.txt, line 1, looks like a secret"),
        ("a.py", "\n\nTOKEN = '" + "Zz9" * 10 + "'", "a.py, line 3"),
        ("key.txt", "-----BEGIN RSA PRIVATE " + "KEY-----", "key.txt"),
        (".env", "HELLO=1", "name of a file of secrets"),
        ("assets/large.bin", "x" * deploy.MAX_BYTES, "is the limit"),
    ],
)
def test_secrets_and_large_files_are_refused(tmp_path, staged, name, text, reason) -> None:
    folder = tmp_path / "space"
    folder.mkdir()
    for kept in ("README.md", "requirements.txt", "app.py"):
        shutil.copy(staged.folder / kept, folder)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    (line,) = deploy.problems(folder)
    assert reason in line
    assert MARKER not in line


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("sdk_version: 6.31.0", "sdk_version: 5.0.0", "outside of gradio"),
        ("sdk: gradio", "sdk: docker", "not gradio"),
        ("app_file: app.py", "app_file: missing.py", "which is missing"),
        ("emoji:", "colour:", "knows no colour"),
        ("---\n", "", "does not begin with front matter"),
    ],
)
def test_bad_front_matter_is_refused(tmp_path, staged, old, new, reason) -> None:
    for kept in ("README.md", "requirements.txt", "app.py"):
        shutil.copy(staged.folder / kept, tmp_path)
    readme = tmp_path / "README.md"
    text = readme.read_text(encoding="utf-8")
    assert old in text
    readme.write_text(text.replace(old, new), encoding="utf-8")
    assert any(reason in line for line in deploy.problems(tmp_path))


def test_a_folder_with_something_in_it_is_left_alone(tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(deploy.DeployError, match="not an empty folder"):
        deploy.stage(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


class Recorder:
    """Stands in for `HfApi` and keeps what it was asked to do."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict]] = []

    def create_repo(self, repo_id, **options) -> None:
        self.calls.append(("create", {"repo_id": repo_id, **options}))

    def upload_folder(self, **options) -> None:
        self.calls.append(("upload", options))


def test_upload_makes_a_private_space_and_sends_the_folder(staged) -> None:
    api = Recorder()
    address = deploy.upload(staged, "somebody/studio", api=api)
    assert address.endswith("/spaces/somebody/studio")
    (created, first), (uploaded, second) = api.calls
    assert (created, uploaded) == ("create", "upload")
    assert first["repo_type"] == second["repo_type"] == "space"
    assert first["private"] is True
    assert second["folder_path"] == str(staged.folder)


def test_without_upload_nothing_is_sent(monkeypatch, capsys) -> None:
    monkeypatch.setattr(deploy, "upload", lambda *a, **k: pytest.fail("uploaded"))
    assert deploy.main([]) == 0
    assert "Dry run" in capsys.readouterr().out


def test_nonsense_for_a_space_is_one_line(capsys, monkeypatch) -> None:
    assert deploy.main(["--upload", "not a name"]) == 2
    assert "give OWNER/NAME" in capsys.readouterr().err


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.embedded
def test_the_staged_folder_starts_elsewhere_and_answers(tmp_path) -> None:
    from gradio_client import Client

    staged = deploy.stage(tmp_path / "space")
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["GRADIO_SERVER_PORT"] = str(port)
    with subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=staged.folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            deadline = time.monotonic() + 120
            client = None
            while client is None:
                assert process.poll() is None, "the app has ended"
                assert time.monotonic() < deadline, "the app does not answer"
                try:
                    client = Client(f"http://127.0.0.1:{port}", verbose=False)
                except Exception:  # the server is not up yet, whatever the client calls that
                    time.sleep(0.3)
            answer = client.predict("Hi", max_new_tokens=2, api_name="/compare")
            assert answer["result"]["identical"] is True
            client.close()
        finally:
            process.terminate()
            process.wait(20)
