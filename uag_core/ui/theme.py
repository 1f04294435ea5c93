"""How the page looks and how the app is launched: theme, style sheet, safe launch options.

System fonts only, so that the page is the same without a network. Knows no component.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import gradio as gr

from uag_core.errors import InputError
from uag_core.ui import security

EMBED = Path(__file__).resolve().parents[2] / "assets" / "embed"
MCP_VARIABLE = "UAG_MCP"

CSS = sorted((Path(__file__).resolve().parents[2] / "assets" / "css").glob("*.css"))

MAX_UPLOAD = "64mb"  # the page refuses a run far below, with a line that says so

FONT = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
MONO = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"]


def _fonts(names: list[str]) -> list[gr.themes.Font]:
    return [gr.themes.Font(name) for name in names]


def theme() -> gr.themes.Base:
    """A quiet theme: neutral surfaces, one petrol accent, small radii, no shadows."""
    accent = gr.themes.colors.teal
    base = gr.themes.Base(
        primary_hue=accent,
        secondary_hue=accent,
        neutral_hue=gr.themes.colors.zinc,
        font=_fonts(FONT),
        font_mono=_fonts(MONO),
        text_size=gr.themes.sizes.text_md,
        spacing_size=gr.themes.sizes.spacing_md,
        radius_size=gr.themes.sizes.radius_sm,
    )
    return base.set(
        body_background_fill="#fafaf9",
        body_background_fill_dark="#131416",
        body_text_color="#1c1d20",
        body_text_color_dark="#e8e8e6",
        body_text_color_subdued="#5c5f66",
        body_text_color_subdued_dark="#a3a6ad",
        block_background_fill="#ffffff",
        block_background_fill_dark="#1b1d20",
        block_border_color="#dcdcd9",
        block_border_color_dark="#34373c",
        block_shadow="none",
        checkbox_background_color_selected="#0f766e",
        checkbox_background_color_selected_dark="#14b8a6",
        checkbox_border_color_selected="#0f766e",
        checkbox_border_color_selected_dark="#14b8a6",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_title_text_weight="600",
        block_title_text_color="#1c1d20",
        block_title_text_color_dark="#e8e8e6",
        block_info_text_color="#5c5f66",
        block_info_text_color_dark="#a3a6ad",
        input_background_fill="#ffffff",
        input_background_fill_dark="#131416",
        input_border_width="1px",
        input_border_color="#b9bab6",
        input_border_color_dark="#4a4e55",
        input_border_color_focus="#0f766e",
        input_border_color_focus_dark="#2dd4bf",
        input_placeholder_color="#6b6e75",
        input_placeholder_color_dark="#94979e",
        button_primary_background_fill="#0f766e",
        button_primary_background_fill_dark="#0f766e",
        button_primary_background_fill_hover="#115e59",
        button_primary_background_fill_hover_dark="#0d9488",
        button_primary_text_color="#ffffff",
        button_secondary_background_fill="#ececea",
        button_secondary_background_fill_dark="#2a2d31",
        button_secondary_text_color="#1c1d20",
        button_secondary_text_color_dark="#e8e8e6",
    )


def launch_options() -> dict[str, Any]:
    """Options that every way of starting the app shares: `launch` and `mount_gradio_app`.

    Nothing is recorded or monitored, and no exception text reaches a visitor except the errors
    that are raised to be shown. Raises `InputError` on an environment that cannot be meant.
    """
    return {
        "theme": theme(),
        "css_paths": CSS,
        "head": embed_head(),
        "footer_links": ["settings"],
        "run_history": False,
        "enable_monitoring": False,
        "ssr_mode": False,
        "max_file_size": MAX_UPLOAD,
        "show_error": False,
        "app_kwargs": {"middleware": security.middleware()},
        "mcp_server": mcp_server(os.environ.get(MCP_VARIABLE)),
    }


def embed_head() -> str:
    """The style and the script of compact views, for the page's head: they act before it is drawn.

    Not among the style sheets, which gradio confines to its own container.
    """
    style = (EMBED / "embed.css").read_text(encoding="utf-8")
    script = (EMBED / "embed.js").read_text(encoding="utf-8")
    return f"<style>{style}</style><script>{script}</script>"


def mcp_server(text: str | None) -> bool:
    """Whether UAG_MCP asks for the endpoints as tools. Raises `InputError` where it cannot be."""
    if (text or "").strip().lower() not in ("1", "true", "yes", "on"):
        return False
    if importlib.util.find_spec("mcp") is None:
        raise InputError(f"{MCP_VARIABLE} needs a package: pip install 'gradio[mcp]'.")
    return True
