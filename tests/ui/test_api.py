"""`/compare` as a client uses it, against a running app with the scripted pair."""

from __future__ import annotations

import time

import httpx
import pytest
from gradio_client import Client

from tests.runs.make import made
from tests.ui.fake_pair import FakePair
from uag_core.runs.document import load_run

ARGUMENTS = [
    "prompt",
    "target",
    "assistant",
    "method",
    "raw",
    "system",
    "max_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "stop",
    "seed",
    "dtype",
    "device",
    "exact",
    "num_assistant_tokens",
    "assistant_confidence_threshold",
    "references",
    "compile",
]


@pytest.fixture(scope="module")
def client(url):
    return Client(url, verbose=False)


def test_the_listed_endpoints_and_the_arguments_of_compare(client) -> None:
    listed = client.view_api(return_format="dict")
    assert {"/compare", "/list_models", "/get_run", "/benchmark"} <= set(listed["named_endpoints"])
    assert not listed["unnamed_endpoints"]
    parameters = listed["named_endpoints"]["/compare"]["parameters"]
    assert [item["parameter_name"] for item in parameters] == ARGUMENTS
    defaults = {item["parameter_name"]: item["parameter_default"] for item in parameters[1:]}
    assert all(item["parameter_has_default"] for item in parameters[1:])
    assert defaults["target"] == "embedded/target"
    assert defaults["assistant"] == "embedded/assistant"
    assert defaults["method"] == "uag"
    assert defaults["max_new_tokens"] == 128
    assert defaults["exact"] is True
    assert defaults["temperature"] is None
    assert listed["named_endpoints"]["/compare"]["returns"][0]["type"]["type"] == "object"


def test_streamed_items_end_with_a_complete_result(client) -> None:
    job = client.submit("Hello", target="fake/fast", max_new_tokens=60, api_name="/compare")
    items = list(job)
    assert all(item["status"] == "running" for item in items[:-1])
    assert {item["engine"] for item in items[:-1]} & {"baseline", "uag"}
    assert items[-1]["status"] == "done"
    assert items[-1]["result"]["schema_version"] == 1
    assert items[-1]["result"]["path"] == "text"  # not taken for a file


def test_not_streamed_gives_the_last_item(client) -> None:
    answer = client.predict("Hello", target="fake/fast", max_new_tokens=8, api_name="/compare")
    assert answer["status"] == "done"
    assert answer["result"]["assisted"]["num_new_tokens"] == 8


@pytest.mark.parametrize("method", ["lookup", "uag+lookup"])
def test_every_method_is_open_to_clients(client, method: str) -> None:
    answer = client.predict(
        "Hi", target="fake/fast", method=method, max_new_tokens=4, api_name="/compare"
    )
    assert answer["result"]["method"] == method


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": "x", "target": "fake/unknown"}, "There is no model named"),
        ({"prompt": "x", "target": "fake/fails"}, "failed inside the engine"),
        ({"prompt": "x", "max_new_tokens": -3}, "max_new_tokens"),
        ({"prompt": "x", "temperature": "nan"}, "temperature must be a number"),
        ({"prompt": "x", "method": "magic"}, "method must be one of"),
        ({"prompt": "x", "references": ["nobody"]}, "references"),
        ({"prompt": "x" * 30_000, "target": "fake/fast"}, "context holds"),
    ],
)
def test_errors_are_one_line_and_the_next_call_works(client, arguments, line) -> None:
    with pytest.raises(Exception, match=line) as caught:
        client.predict(**arguments, api_name="/compare")
    assert "Traceback" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    answer = client.predict("Hi", target="fake/fast", max_new_tokens=4, api_name="/compare")
    assert answer["status"] == "done"


def test_cancel_frees_the_engine(client) -> None:
    job = client.submit("x", target="fake/long", max_new_tokens=500, api_name="/compare")
    deadline = time.monotonic() + 10
    while not job.outputs() and time.monotonic() < deadline:
        time.sleep(0.02)
    job.cancel()
    while FakePair.active and time.monotonic() < deadline:
        time.sleep(0.02)
    assert FakePair.active == 0


def test_two_callers_never_run_at_once(client) -> None:
    FakePair.most_active = 0
    jobs = [
        client.submit("x", target="fake/fast", max_new_tokens=30, api_name="/compare")
        for _ in range(3)
    ]
    assert all(job.result(timeout=30)["status"] == "done" for job in jobs)
    assert FakePair.most_active == 1


def test_the_queue_cannot_be_bypassed(url) -> None:
    for path in ("run/compare", "api/compare"):
        reply = httpx.post(f"{url}gradio_api/{path}", json={"data": ["x", "fake/fast"]})
        assert reply.status_code == 404


def test_raw_post_to_a_private_handler_that_uses_models_is_refused(url) -> None:
    config = httpx.get(f"{url}config").json()
    queued = [item["id"] for item in config["dependencies"] if item.get("queue") is not False]
    for index in queued:
        body = {"data": [], "fn_index": index, "session_hash": "raw"}
        reply = httpx.post(f"{url}gradio_api/run/predict", json=body)
        assert reply.status_code == 404


def test_get_run_gives_the_document_of_a_shared_run(client, library) -> None:
    run = load_run(made())
    run_id, _ = library.share(run)
    assert client.predict(run_id, api_name="/get_run") == {**run, "id": run_id}


def test_get_run_gives_the_shipped_runs(client, library) -> None:
    for run_id in library.shipped():
        answer = client.predict(run_id, api_name="/get_run")
        assert answer["id"] == run_id
        assert answer["result"]["path"] in ("text", "ids")


@pytest.mark.parametrize(
    "run_id",
    ["../../../etc/passwd", "https://example.org/run.json", "code.json", "f" * 32, "", "a" * 99],
)
def test_get_run_of_what_is_no_id_is_one_line(client, run_id) -> None:
    with pytest.raises(Exception, match=r"no id of a run|no run") as caught:
        client.predict(run_id, api_name="/get_run")
    assert "\n" not in str(caught.value)
