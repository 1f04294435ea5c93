"""A visitor's own login, where the page has a login button: how its token gets to the Hub.

gradio fills `gr.OAuthToken` arguments from the visitor's session. The token is handed to the one
call that needs it; it is kept nowhere, shown nowhere and never part of a request's values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr

Login = gr.OAuthToken | None


def asking_as(login: Login, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, called with `token=` where there is a login."""
    return function if login is None else partial(function, token=login.token)
