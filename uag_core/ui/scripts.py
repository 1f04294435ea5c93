"""The page's own JavaScript: plain files of assets/js, put into the page by the components that use
them.

The files define functions on `window`; a component calls one of them when it is loaded. They reach
the page inside it, not as files of their own, so that they work behind any proxy and in a frame.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "js"


def script(*names: str) -> str:
    """Script elements with the contents of the named files, for a component's `head`."""
    texts = [(FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in names]
    assert not any("</script" in text for text in texts)
    return "".join(f"<script>{text}</script>" for text in texts)


def drawing(function: str, *files: str, elem_id: str, value: str = "") -> gr.HTML:
    """A component that draws its value, a JSON text, with `function(element, value)`.

    The value never becomes markup: the template is empty, the function builds the elements.
    """
    template: dict[str, Any] = {"html_template": '<div class="uag-drawing"></div>'}
    load = (
        "const box = () => element.querySelector('.uag-drawing');"
        f"const draw = () => {function}(box(), props.value);"
        "watch('value', draw); draw();"
    )
    return gr.HTML(
        value,
        **template,
        js_on_load=load,
        head=script(*files),
        elem_id=elem_id,
        apply_default_css=False,
    )
