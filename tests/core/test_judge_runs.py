"""Builders of runs for the judges' tests, and the judges on recordings of real runs."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.history import History, extend
from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.story import story
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import (
    Call,
    Chunk,
    CodeInfo,
    HttpExchange,
    ModelCall,
    OtherCall,
    Retrieval,
    Run,
    Step,
    ToolCall,
)
from tests.growth import LINEAR, growth

RECORDS = Path(__file__).parents[1] / "records"
NOON = datetime(2026, 2, 17, 12, tzinfo=UTC)
SCHEMAS = (Payload.of_json({"name": "lookup_order", "parameters_json_schema": {"type": "object"}}),)
EXCHANGE = HttpExchange(method="GET", url="https://orders.example.com", response_body=Payload.of_json([]))
SETTINGS = Payload.of_json({"temperature": 0.7, "top_p": 1, "seed": 42})


def read(name: str) -> Run:
    return parse_document((RECORDS / name).read_bytes())


def payload(value: Any) -> Payload:
    return Payload.of_text(value) if isinstance(value, str) else Payload.of_json(value)


def model(answer: str | list[JsonObject] | None = "It is on its way.", **fields: Any) -> Step:
    """A model step; `answer` is a text, parts, or None for a missing one. Call fields and step fields mixed."""
    response = None if answer is None else Payload.of_json(response_message(answer))
    return make_step("model", ModelCall(history=None, response=response), fields)


def tool(name: str = "lookup_order", arguments: Any = None, result: Any = "found", **fields: Any) -> Step:
    """A tool step; `result` None for a missing answer, else its value."""
    call = ToolCall(
        tool_name=name,
        arguments=None if arguments is None else payload(arguments),
        result=None if result is None else payload(result),
    )
    return make_step(name, call, fields)


def retrieval(*chunks: tuple[str | None, float | None, str | None], **fields: Any) -> Step:
    found = tuple(Chunk(chunk_id=i, score=s, content=payload(c) if c else None) for i, s, c in chunks)
    return make_step("retrieval", Retrieval(query=payload("q"), chunks=found), fields)


def other(name: str = "prompt.build", **fields: Any) -> Step:
    return make_step(name, OtherCall(), fields)


def make_step(name: str, call: Call, fields: dict[str, Any]) -> Step:
    own = {key: value for key, value in fields.items() if key in type(call).__dataclass_fields__}
    rest = {key: value for key, value in fields.items() if key not in own}
    return Step(index=1, name=name, call=replace(call, **own), **rest)


def make_run(*steps: Step, **fields: Any) -> Run:
    """Steps numbered and tool steps put under the model step before them."""
    numbered: list[Step] = []
    parent: int | None = None
    for index, step in enumerate(steps, start=1):
        is_child = isinstance(step.call, ToolCall) and step.parent is None
        numbered.append(replace(step, index=index, parent=parent if is_child else step.parent))
        parent = index if isinstance(step.call, ModelCall) else parent
    defaults: dict[str, Any] = {"run_id": "r_1", "session_id": "s_1", "status": "ok"}
    texts = {"input": payload("where is my order?"), "output": payload("It is on its way.")}
    return Run(**{**defaults, **texts, "steps": tuple(numbered), **fields})


def response_message(answer: str | list[JsonObject]) -> JsonObject:
    parts = [{"part_kind": "text", "content": answer}] if isinstance(answer, str) else answer
    return {"kind": "response", "parts": parts}


def request_message(*parts: JsonObject, **fields: Any) -> JsonObject:
    return {"kind": "request", "parts": list(parts), **fields}


def prompt(text: str = "where is my order?") -> JsonObject:
    return {"part_kind": "user-prompt", "content": text}


def tool_return(content: Any, call_id: str = "call_1", **fields: Any) -> JsonObject:
    part = {"part_kind": "tool-return", "tool_name": "lookup_order", "tool_call_id": call_id}
    return {**part, "content": content, **fields}


def history(*messages: JsonObject, after: History | None = None) -> History | None:
    return extend(after, (Payload.of_json(message) for message in messages))


def make_whole_run(**fields: Any) -> Run:
    """A run of which everything is captured."""
    times: JsonObject = {"started_at": NOON, "duration_ms": 900.0}
    facts = {"model": "sonnet-4-2511", "provider": "mistral", "region": "eu"}
    call: JsonObject = {**facts, "settings": SETTINGS, "tools": SCHEMAS}
    token: JsonObject = {"first_token_at": NOON + timedelta(milliseconds=300)}
    who: JsonObject = {"user_id": "u_7710", "tenant_id": "t_12"}
    asked = history(request_message(prompt(), instructions="You help."))
    steps = (
        model(**call, **times, **token, history=asked),
        tool(arguments={"query": "my order"}, result=["#1", "#2"], http=EXCHANGE, **times, **who),
        model(**call, **times, **token),
    )
    defaults: JsonObject = {
        **facts,
        **who,
        "instructions": "You help.",
        "code": CodeInfo(commit="9f2c1e7", dirty=False),
        "flags": {"new_flow": True},
        "started_at": NOON,
    }
    return make_run(*steps, **{**defaults, **fields})


def make_incident() -> Run:
    """The order of somebody else: three candidates came back because nobody said for whom."""
    candidates = [{"order": "#4421"}, {"order": "#4430"}, {"order": "#4502"}]
    return make_run(
        other(duration_ms=180.0),
        model(duration_ms=1420.0),
        tool(arguments={"query": "my order"}, result=candidates, duration_ms=240.0),
        model("Order #4421 is shipped.", duration_ms=900.0),
        run_id="r_8821",
        user_id="u_7710",
        tenant_id="t_12",
        output=payload("Order #4421 is shipped."),
    )


def codes(anomalies: list[Anomaly]) -> list[str]:
    return [anomaly.code for anomaly in anomalies]


def test_incident_shows_that_nobody_said_for_whom():
    run = make_incident()
    found = find_anomalies(run)

    assert [(a.message, a.steps) for a in found] == [("lookup_order was called without user_id", (3,))]
    assert audit_kit(run).line("identity").detail == (
        "user_id and tenant_id are on the run; step 3 (lookup_order) carries no user_id and no tenant_id."
    )
    assert judge(run).verdict == "replayable"
    assert story(run, found) == "3 steps · 1 tool call · answered · first anomaly at step 3"


NOT_PROVABLE = {"approval-run-1.messages": "tool_answer_missing", "tool-crash.messages": "error_missing"}
"""Messages alone do not tell a call that waits from one that was cut off, nor what an error said."""


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_real_recordings_are_replayable(path):
    found = judge(parse_document(path.read_bytes()))
    codes = [NOT_PROVABLE[path.stem]] if path.stem in NOT_PROVABLE else []

    assert [reason.code for reason in found.reasons] == codes
    assert found.verdict == ("replayable_to_step" if codes else "replayable")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("session_abc123.json", []),
        ("parallel-tools.messages.json", []),
        ("retries.messages.json", []),
        ("structured-output.messages.json", []),
        ("approval-run-1.messages.json", ["no_answer"]),
        ("tool-crash.messages.json", ["no_answer"]),
    ],
)
def test_real_recordings_have_few_anomalies(name, found):
    assert codes(find_anomalies(read(name))) == found


def test_kit_of_a_session_file_says_what_it_lacks():
    kit = audit_kit(read("session_abc123.json"))

    assert {line.key: line.status for line in kit.lines} == {
        "ids": "captured",
        "identity": "missing",
        "input": "captured",
        "instructions": "captured",
        "tool_schemas": "missing",
        "retrieval": "captured",
        "model": "partial",
        "sampling": "missing",
        "tool_io": "partial",
        "timestamps": "partial",
        "commit": "missing",
        "flags": "missing",
    }


def test_judges_take_a_long_loop_in_linear_time():
    def judged(run: Run) -> None:
        assert len(find_anomalies(run)) == len(run.steps) / 2 + 2
        assert judge(run).verdict == "replayable"
        assert audit_kit(run).to_json()

    assert growth(judged, _searches(1000), _searches(4000)) < LINEAR


def _searches(times: int) -> Run:
    steps = (model(), tool("search_docs", {"query": "refund policy"}, {"docs": [], "count": 0}))
    return make_run(*(step for _ in range(times) for step in steps))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KINDS = st.sampled_from(["request", "response", "tool-return", "tool-call", "user-prompt"]) | ANY
PARTS = st.lists(st.fixed_dictionaries({"part_kind": KINDS, "content": ANY, "tool_call_id": ANY}) | ANY)
MESSAGES = st.lists(st.fixed_dictionaries({"kind": KINDS, "parts": PARTS | ANY, "instructions": ANY}))
CALLS = st.builds(tool, arguments=ANY, result=ANY, call_id=st.none() | st.just("call_1"))
MODELS = st.builds(
    lambda messages, settings, tools: model(
        history=history(*messages), settings=payload(settings), tools=(payload(tools),)
    ),
    MESSAGES,
    ANY,
    ANY,
)


@given(st.lists(CALLS | MODELS, max_size=5), ANY, MESSAGES)
def test_judges_read_whatever_was_recorded(steps, value, prior):
    run = make_run(*steps, output=payload(value), prior=history(*prior), user_id="u", flags={"x": value})

    found = find_anomalies(run)

    assert judge(run).verdict in ("replayable", "replayable_to_step", "cold")
    assert json.dumps(audit_kit(run).to_json())
    assert story(run, found)
