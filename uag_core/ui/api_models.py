"""The public endpoint `/list_models`. Annotations stay real objects: gradio reads them."""

import gradio as gr

from uag_core.errors import UAGError
from uag_core.ui.logins import asking_as


def list_models(query: str = "", limit: int = 12, login: gr.OAuthToken | None = None) -> dict:
    """Finds models on the Hub, or in the local cache where the Hub is out of reach.

    Returns {"query", "source", "notice", "models": [{"id", "parameters", "bytes", "likes",
    "downloads", "licence", "gated", "fits", "cached"}], "presets": [{"target", "assistant", ...}]}.
    """
    from uag_core.models import catalogue

    try:
        return dict(asking_as(login, catalogue.search)(query, limit))
    except UAGError as error:
        raise gr.Error(str(error), print_exception=False) from None
