"""The layers of CONTRIBUTING.md, enforced: by reading every import, and by importing for real."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "uag_core"

# A module may import from its own layer's row and from the rows above it.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("events", "config", "generation_settings", "errors", "validation", "hosting"),
    ("tokenization", "metrics", "serialization", "costs", "advice"),
    ("models", "decoding"),
    ("benchmark", "runs"),
    ("pair", "result", "inspection"),
    (
        "recipe",
        "cli",
        "bench_text",
        "cli_bench",
        "cli_inspect",
        "cli_models",
        "cli_save",
        "cli_text",
        "cluster",
        "ui",
    ),
    ("app",),
)
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}
# Doors without rooms behind them: lazy re-exports, and the hand-over to the command line.
ENTRANCES = {"uag_core", "uag_core.__main__"}
LIGHT = (
    "uag_core",
    "uag_core.config",
    "uag_core.errors",
    "uag_core.events",
    "uag_core.hosting",
    "uag_core.metrics",
    "uag_core.serialization",
    "uag_core.tokenization",
    "uag_core.models.references",
    "uag_core.runs.document",
    "uag_core.advice",
    "uag_core.cli",
    *("uag_core.ui.charts", "uag_core.ui.bench_charts"),
    "uag_core.ui.token_html",
)
CHARTS = ("uag_core.ui.charts", "uag_core.ui.bench_charts")
MAX_LINES = 320  # "about 300"


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(
    path
    for path in (*PACKAGE.rglob("*.py"), *ROOT.glob("app.py"))
    if "__pycache__" not in path.parts
)
MODULES = {module_name(path): path for path in FILES}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(path: Path, *, typing: bool = True) -> Iterator[str]:
    """Every module that a file imports, also inside functions; absolute names."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]

    def visit(node: ast.AST) -> Iterator[str]:
        if not typing and is_type_checking(node):
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package[: len(package) - node.level + 1], base]).rstrip(".")
            yield base
            for alias in node.names:
                if f"{base}.{alias.name}" in MODULES:
                    yield f"{base}.{alias.name}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")))


def layer(module: str) -> str | None:
    """The name in LAYERS that a module belongs to; None for modules that are not ours."""
    parts = module.split(".")
    if parts[0] == "app":
        return "app"
    if parts[0] != "uag_core":
        return None
    return parts[1] if len(parts) > 1 else "uag_core"


@pytest.mark.parametrize("module", [m for m in MODULES if m not in ENTRANCES])
def test_no_module_imports_upwards(module: str) -> None:
    own = layer(module)
    assert own in RANK, f"{module} is in no layer: add it to LAYERS and to CONTRIBUTING.md"
    for name in imports(MODULES[module]):
        other = layer(name)
        if other is None or name == "uag_core":
            continue
        assert other in RANK, f"{module} imports {name}, which is in no layer"
        assert RANK[other] <= RANK[own], f"{module} ({own}) imports {name} ({other})"


@pytest.mark.parametrize("module", MODULES)
def test_only_the_page_knows_gradio_and_only_charts_know_plotly(module: str) -> None:
    roots = {name.split(".")[0] for name in imports(MODULES[module])}
    if layer(module) != "ui":
        assert not roots & {"gradio", "gradio_client"}
    if not module.startswith(CHARTS):
        assert "plotly" not in roots


@pytest.mark.parametrize("module", MODULES)
def test_light_modules_import_neither_torch_nor_gradio(module: str) -> None:
    light = layer(module) in (*LAYERS[1], "events", "errors")
    if light or module.startswith((*CHARTS, "uag_core.ui.token_html")):
        roots = {name.split(".")[0] for name in imports(MODULES[module], typing=False)}
        assert not roots & {"torch", "gradio"}


@pytest.mark.parametrize("module", [name for name in LIGHT if name in MODULES])
def test_importing_a_light_module_stays_light(module: str) -> None:
    code = (
        f"import sys, {module};"
        "print(sorted({'torch', 'gradio', 'transformers'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for_and_stays_short(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{module} has no docstring"
    assert text.count("\n") <= MAX_LINES, f"{module} is too long: divide it"


def test_the_public_names() -> None:
    import uag_core

    for name in uag_core.__all__:
        assert getattr(uag_core, name) is not None
    assert {"ModelPair", "AssistantConfig", "GenerationSettings", "Result"} <= set(dir(uag_core))
    with pytest.raises(AttributeError):
        uag_core.nothing  # noqa: B018
