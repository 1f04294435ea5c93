"""Writes docs/api.md from the app's own endpoints: their names, arguments, defaults and docstrings.

    python -m docs.make_api            # write it
    python -m docs.make_api --check    # say whether it is up to date (exit status 1 if not)

Knows nothing of what the endpoints do; what stands in the page is what the code says.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE / "api.md"

HEAD = """# The endpoints of the app

<!-- Made by `python -m docs.make_api` from the code: change the docstrings, not this page. -->

Every endpoint has a name, typed arguments and plain JSON results. The names and defaults are those
of the command line. All go through one queue, in which visitors take turns: a client sees its
position and the expected wait (`job.status()`), may cancel (`job.cancel()`), and an endpoint that
streams gives its last item as the whole result. An error is one line that says what to do. A
request is at most 16 MB; a shared machine limits more (see [the Space's notes](../{space})).

From Python ([compare.py](clients/compare.py), with the package `gradio_client`):

```python
{python}```

From JavaScript, [compare.mjs](clients/compare.mjs) uses the package `@gradio/client` and
[compare_fetch.mjs](clients/compare_fetch.mjs) nothing but `fetch`, in a browser or in node. As a
pair of plain requests:

```bash
curl -s URL/gradio_api/call/v2/compare -H "content-type: application/json" \\
  -d '{{"prompt": "Name three colours of the sea.", "max_new_tokens": 32}}'   # {{"event_id": ID}}
curl -sN URL/gradio_api/call/compare/ID
```

With `UAG_MCP=1` and `pip install "gradio[mcp]"` the same endpoints are tools for language models,
at `URL/gradio_api/mcp/`; off by default.
"""


def public(demo: Any) -> list[Any]:
    """The functions behind the endpoints that `view_api` lists, in the order of the page."""
    return [fn for fn in demo.fns.values() if fn.api_visibility == "public"]


def section(fn: Any) -> str:
    """One endpoint: its docstring and its arguments."""
    function = inspect.unwrap(fn.fn)
    lines = [f"## `/{fn.api_name}`", "", inspect.getdoc(function) or "", ""]
    lines += ["| argument | type | default |", "| --- | --- | --- |"]
    for parameter in inspect.signature(function).parameters.values():
        if "Request" in str(parameter.annotation) or "OAuth" in str(parameter.annotation):
            continue  # filled in by the server
        kind = parameter.annotation
        kind = kind.__name__ if isinstance(kind, type) and "[" not in str(kind) else str(kind)
        default = "required"
        if parameter.default is not parameter.empty:
            default = f"`{parameter.default!r}`"
        lines.append(
            f"| `{parameter.name}` | `{kind}` | {default} |".replace(" | None", " or None")
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    """The text of docs/api.md."""
    from uag_core.ui.build import build_demo

    python = (HERE / "clients" / "compare.py").read_text(encoding="utf-8")
    python = python.split("from gradio_client", 1)[1]
    head = HEAD.format(python="import sys\n\nfrom gradio_client" + python, space="space_config/")
    return "\n".join([head, *(section(fn) for fn in public(build_demo()))])


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/api.md from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it differs")
    arguments = parser.parse_args()
    text = page()
    if arguments.check:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            print("docs/api.md is out of date: python -m docs.make_api", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
