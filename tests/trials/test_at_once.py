"""Many senders at one moment: the same request from all of them, and the parts of one trace from several."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from sessions_app.core.payload import JsonObject
from tests.api.test_real_server import ask
from tests.builders import make_record, make_tool_step
from tests.otlp_requests import JSON
from tests.traces.captures import CHOICE, Capture
from tests.trials.delivery import Delivery, Parcel, rows, wait_until
from tests.trials.mutations import whole_request

_TRACE = "SELECT batches_received, batches_assembled, span_count, problem FROM sessions_app_trace WHERE trace_id = %s"
CAPTURES = [Capture(CHOICE / name) for name in ("pydantic-ai-v5/order_lookup", "langgraph-langfuse-v3/loop")]


def request_of(capture: Capture, mark: str) -> tuple[str, JsonObject]:
    """Its spans as one request, in a trace of their own whose id begins with the mark."""
    tree = whole_request(capture.requests, "/v1/traces")
    text, trace_id = json.dumps(tree), spans_of(tree)[0]["traceId"]
    fresh = mark + trace_id[len(mark) :]
    return fresh, json.loads(text.replace(trace_id, fresh))


def spans_of(tree) -> list[Any]:
    return [span for block in tree["resourceSpans"] for scope in block["scopeSpans"] for span in scope["spans"]]


def parts_of(tree) -> list[JsonObject]:
    """A request for each span."""
    return [
        {"resourceSpans": [block | {"scopeSpans": [scope | {"spans": [span]}]}]}
        for block in tree["resourceSpans"]
        for scope in block["scopeSpans"]
        for span in scope["spans"]
    ]


def parcel(tree) -> Parcel:
    return Parcel(name="spans", path="/v1/traces", content_type=JSON, body=json.dumps(tree).encode())


def record(instance, trace_id: str) -> str:
    status, body = ask(instance, "GET", f"/api/v1/runs/{trace_id}/record")
    assert status == 200
    return str(body.decode().replace(trace_id, "the trace"))


def test_the_same_request_from_fifty_at_once_is_one_run(running_instance):
    trace_id, tree = request_of(CAPTURES[0], "a9a9a9a9")
    delivery = Delivery(running_instance)

    delivery.send_all([parcel(tree)] * 50, connections=50)

    assert delivery.statuses[200] == 50
    assert record(running_instance, trace_id)
    assert rows(running_instance, _TRACE, trace_id) == [(1, 1, len(spans_of(tree)), None)]
    steps = rows(
        running_instance,
        "SELECT content.step_count FROM sessions_app_run run JOIN sessions_app_runcontent content "
        "ON content.id = run.content_id AND content.step_count = run.step_count WHERE run.run_id = %s",
        trace_id,
    )
    assert len(steps) == 1


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_the_parts_of_a_trace_from_eight_at_once_are_the_same_run(running_instance, capture):
    random, mark = Random(1), f"{CAPTURES.index(capture):02}"
    whole_id, whole = request_of(capture, f"aaaa{mark}")
    parts_id, in_parts = request_of(capture, f"bbbb{mark}")
    parts = [parcel(part) for part in parts_of(in_parts)] * 2
    random.shuffle(parts)
    Delivery(running_instance).send(parcel(whole))

    delivery = Delivery(running_instance)
    delivery.send_all([replace(part, name=str(n)) for n, part in enumerate(parts)], connections=8)

    def is_settled():
        ((received, assembled, _, _),) = rows(running_instance, _TRACE, parts_id)
        return received == assembled

    wait_until(is_settled, 30)
    assert set(delivery.statuses) <= {200, 503}
    assert rows(running_instance, _TRACE, parts_id) == [(len(parts) // 2,) * 2 + (len(parts) // 2, None)]
    assert record(running_instance, parts_id) == record(running_instance, whole_id)


def batch(turn: int, sender: int) -> bytes:
    """Runs whose sessions and texts other batches of the turn have as well, in another order."""
    order = list(range(10))
    Random(turn * 100 + sender).shuffle(order)
    runs = [
        make_record(
            f"turn{turn}-sender{sender}-{n}",
            make_tool_step(result=f"the same long text {turn} {each} " + "word " * 400),
            session_id=f"session {turn} {each}",
        )
        for n, each in enumerate(order)
    ]
    return json.dumps({"runs": runs}).encode()


def test_batches_that_share_sessions_and_texts_do_not_lock_each_other_out(running_instance):
    parcels = [
        Parcel(name=f"{turn} {sender}", path="/api/v1/runs", content_type=JSON, body=batch(turn, sender))
        for turn in range(2)
        for sender in range(8)
    ]
    delivery = Delivery(running_instance)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(delivery.attempt, parcels))

    assert dict(delivery.statuses) == {201: len(parcels)}
