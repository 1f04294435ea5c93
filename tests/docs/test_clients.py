"""The examples of docs/clients as somebody would run them, and the page about the endpoints."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gradio_client import Client

from docs import make_api
from docs.clients.compare import compare
from tests.ui.fake_pair import FakePair
from uag_core.errors import InputError
from uag_core.ui import theme
from uag_core.ui.build import build_demo

CLIENTS = Path(make_api.__file__).parent / "clients"
CONTRACT = {"compare", "tokenize", "inspect_pair", "list_models", "get_run", "benchmark"}
JAVASCRIPT_CLIENT = "@gradio/client@2.7.0"


def test_the_page_about_the_endpoints_is_up_to_date() -> None:
    assert make_api.PAGE.read_text(encoding="utf-8") == make_api.page()


def test_clients_see_the_documented_endpoints_and_nothing_else(url) -> None:
    listed = Client(url, verbose=False).view_api(return_format="dict")
    names = {name.removeprefix("/") for name in listed["named_endpoints"]}
    documented = {fn.api_name for fn in make_api.public(build_demo(FakePair))}
    assert names == documented
    assert names <= CONTRACT
    assert "compare" in names
    assert not listed["unnamed_endpoints"]


def test_every_endpoint_and_argument_has_its_words() -> None:
    for fn in make_api.public(build_demo(FakePair)):
        text = make_api.section(fn)
        assert fn.fn.__doc__, fn.api_name
        assert "_empty" not in text


def test_the_python_example(url, capsys) -> None:
    result = compare(url, "Hello", target="fake/paced", max_new_tokens=30)
    assert result["assisted"]["num_new_tokens"] == 30
    assert "tokens" in capsys.readouterr().err
    with pytest.raises(Exception, match="There is no model named"):
        compare(url, "Hello", target="fake/unknown")


def node(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("node")
    if program is None:
        pytest.skip("no node on this machine")
    command = [program, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_javascript_example_without_a_package(url) -> None:
    script = CLIENTS / "compare_fetch.mjs"
    done = node(script, url, "fake/fast")
    assert done.returncode == 0, done.stderr
    assert "identical: true" in done.stdout
    assert "tokens" in done.stderr
    failed = node(script, url, "fake/unknown")
    assert failed.returncode == 1
    assert "There is no model named" in failed.stderr


@pytest.fixture(scope="session")
def javascript_client(tmp_path_factory) -> Path:
    """The example beside an installed @gradio/client; skipped where npm cannot get it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    folder = tmp_path_factory.mktemp("javascript")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", folder, JAVASCRIPT_CLIENT]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=folder)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("npm cannot install @gradio/client here")
    return Path(shutil.copy(CLIENTS / "compare.mjs", folder))


def test_the_javascript_example_with_the_client(url, javascript_client) -> None:
    done = node(javascript_client, url, "fake/fast")
    assert done.returncode == 0, done.stderr
    assert "identical: true" in done.stdout
    failed = node(javascript_client, url, "fake/unknown")
    assert failed.returncode == 1
    assert "There is no model named" in failed.stderr


def test_tools_for_language_models_are_off_unless_asked_for(monkeypatch) -> None:
    assert theme.mcp_server(None) is False
    assert theme.mcp_server("0") is False
    monkeypatch.setattr(theme.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="gradio\\[mcp\\]"):
        theme.mcp_server("1")


def test_the_command_checks_the_page() -> None:
    command = [sys.executable, "-m", "docs.make_api", "--check"]
    assert subprocess.run(command, cwd=CLIENTS.parents[1], check=False).returncode == 0
