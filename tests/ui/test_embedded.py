"""The endpoint with the real embedded pair behind it."""

from __future__ import annotations

import pytest
from gradio_client import Client

from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def client():
    demo = build_demo()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield Client(url, verbose=False)
    demo.close(verbose=False)


def test_compare_streams_both_engines_and_agrees(client) -> None:
    items = list(client.submit("Name three fruits.", max_new_tokens=12, api_name="/compare"))
    assert {"baseline", "uag"} <= {item.get("engine") for item in items}
    result = items[-1]["result"]
    assert result["identical"] is True
    assert result["baseline"]["token_ids"] == result["assisted"]["token_ids"]
    assert result["path"] == "text"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"prompt": "hello " * 9000}, "context"),
        ({"prompt": "x", "method": "magic"}, "method"),
        ({"prompt": "x", "target": "not a name"}, "name"),
    ],
)
def test_errors_are_one_line_and_the_next_call_works(client, arguments, line) -> None:
    with pytest.raises(Exception, match=line) as caught:
        client.predict(**arguments, api_name="/compare")
    assert "\n" not in str(caught.value)
    answer = client.predict("Hi", max_new_tokens=2, api_name="/compare")
    assert answer["status"] == "done"
