import copy
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.fork.changes import (
    MAX_CHANGES,
    Answer,
    AskedCall,
    ForkError,
    NewAgent,
    NewClock,
    NewInstructions,
    NewMessage,
    NewModel,
    NewModelAnswer,
    NewState,
    NewToolResult,
    Rule,
    ToolFailure,
    read_answer,
    read_changes,
    read_step,
)
from sessions_app.core.fork.conditions import read_condition

ASKED = {"tool_calls": [{"name": "lookup", "arguments": {"id": 1}}]}
LOOKUP = AskedCall(name="lookup", arguments={"id": 1})


@pytest.mark.parametrize(
    ("item", "change"),
    [
        ({"kind": "instructions", "value": " Always check. "}, NewInstructions(value=" Always check. ")),
        ({"kind": "message", "step": 4, "index": 0, "value": ""}, NewMessage(step=4, index=0, value="")),
        (
            {"kind": "message", "step": "step_4", "index": 2, "value": {"kind": "request", "parts": []}},
            NewMessage(step=4, index=2, value={"kind": "request", "parts": []}),
        ),
        ({"kind": "tool_result", "step": 3, "value": []}, NewToolResult(step=3, value=[])),
        ({"kind": "tool_result", "step": "3", "value": None}, NewToolResult(step=3)),
        ({"kind": "tool_result", "step": 3, "value": 0, "error": None}, NewToolResult(step=3, value=0)),
        (
            {"kind": "tool_result", "step": 3, "error": "late"},
            NewToolResult(step=3, failure=ToolFailure(message="late")),
        ),
        (
            {"kind": "tool_result", "step": 3, "error": {"type": "Timeout", "message": "late", "crashes": True}},
            NewToolResult(step=3, failure=ToolFailure(message="late", type="Timeout", crashes=True)),
        ),
        ({"kind": "model_answer", "step": 2, "value": "Hi"}, NewModelAnswer(step=2, answer=Answer(text="Hi"))),
        (
            {"kind": "model_answer", "step": 2, "value": ASKED},
            NewModelAnswer(step=2, answer=Answer(tool_calls=(LOOKUP,))),
        ),
        (
            {"kind": "model_answer", "step": 2, "value": {"text": "Hi", "tool_calls": [{"name": "now"}]}},
            NewModelAnswer(step=2, answer=Answer(text="Hi", tool_calls=(AskedCall(name="now", arguments={}),))),
        ),
        (
            {"kind": "state", "step": 2, "patch": [{"op": "remove", "path": "/plan"}]},
            NewState(step=2, patch=({"op": "remove", "path": "/plan"},)),
        ),
        ({"kind": "model", "value": "gpt-5"}, NewModel(model="gpt-5")),
        ({"kind": "model", "value": {"settings": {"temperature": 0}}}, NewModel(settings={"temperature": 0})),
        ({"kind": "model", "value": {"model": "a", "settings": {}}}, NewModel(model="a", settings={})),
        ({"kind": "clock", "value": -3600}, NewClock(shift=timedelta(hours=-1))),
        ({"kind": "clock", "value": 0.5}, NewClock(shift=timedelta(milliseconds=500))),
        ({"kind": "clock", "value": "2026-11-21T10:00:00Z"}, NewClock(at=datetime(2026, 11, 21, 10, tzinfo=UTC))),
        (
            {"kind": "clock", "value": "2026-11-21 10:00+02:00"},
            NewClock(at=datetime(2026, 11, 21, 10, tzinfo=timezone(timedelta(hours=2)))),
        ),
        ({"kind": "agent", "value": "v2_with_empty_check"}, NewAgent(name="v2_with_empty_check")),
        (
            {"kind": "rule", "when": "docs is empty", "answer": "I don't know."},
            Rule(when=read_condition("docs is empty", root="result"), answer=Answer(text="I don't know.")),
        ),
    ],
)
def test_change_is_read_as_it_was_written(item, change):
    untouched = copy.deepcopy(item)

    assert read_changes([item]) == (change,)
    assert item == untouched


def test_changes_keep_their_order():
    items = [{"kind": "instructions", "value": str(number)} for number in range(MAX_CHANGES)]

    assert read_changes(items) == tuple(NewInstructions(value=str(number)) for number in range(MAX_CHANGES))
    assert read_changes([]) == ()


WRONG: list[tuple[Any, str]] = [
    ({}, ".kind"),
    ({"kind": None}, ".kind"),
    ({"kind": []}, ".kind"),
    ({"kind": "weather"}, ".kind"),
    ("instructions", ".kind"),
    (None, ".kind"),
    ({"kind": "instructions"}, ".value"),
    ({"kind": "instructions", "value": " \n"}, ".value"),
    ({"kind": "instructions", "value": 3}, ".value"),
    ({"kind": "message", "step": 1, "index": 0}, ".value"),
    ({"kind": "message", "step": 1, "index": 0, "value": ["a"]}, ".value"),
    ({"kind": "message", "step": 1, "value": "a"}, ".index"),
    ({"kind": "message", "step": 1, "index": -1, "value": "a"}, ".index"),
    ({"kind": "message", "step": 1, "index": "0", "value": "a"}, ".index"),
    ({"kind": "message", "step": 1, "index": False, "value": "a"}, ".index"),
    ({"kind": "message", "step": 1, "index": 10**9, "value": "a"}, ".index"),
    ({"kind": "message", "index": 0, "value": "a"}, ".step"),
    ({"kind": "tool_result", "value": 1}, ".step"),
    ({"kind": "tool_result", "step": 1}, ".value"),
    ({"kind": "tool_result", "step": 1, "error": None}, ".value"),
    ({"kind": "tool_result", "step": 1, "value": 1, "error": "late"}, ".value"),
    ({"kind": "tool_result", "step": 1, "error": ""}, ".error"),
    ({"kind": "tool_result", "step": 1, "error": False}, ".error"),
    ({"kind": "tool_result", "step": 1, "error": {}}, ".error"),
    ({"kind": "tool_result", "step": 1, "error": {"message": 1}}, ".error"),
    ({"kind": "tool_result", "step": 1, "error": {"message": "a", "type": 1}}, ".error"),
    ({"kind": "tool_result", "step": 1, "error": {"message": "a", "crashes": "no"}}, ".error"),
    ({"kind": "model_answer", "value": "a"}, ".step"),
    ({"kind": "model_answer", "step": 1}, ".value"),
    ({"kind": "model_answer", "step": 1, "value": ""}, ".value"),
    ({"kind": "model_answer", "step": 1, "value": {"text": "", "tool_calls": []}}, ".value"),
    ({"kind": "model_answer", "step": 1, "value": {"text": 1}}, ".value.text"),
    ({"kind": "model_answer", "step": 1, "value": {"text": "a", "tool_calls": 0}}, ".value.tool_calls"),
    ({"kind": "model_answer", "step": 1, "value": {"text": "a", "tool_calls": {}}}, ".value.tool_calls"),
    ({"kind": "model_answer", "step": 1, "value": {"text": "a", "tool_call": []}}, ".value.tool_call"),
    (
        {"kind": "model_answer", "step": 1, "value": {"tool_calls": [{"name": "a", "args": {"id": 1}}]}},
        ".value.tool_calls[0].args",
    ),
    ({"kind": "model_answer", "step": 1, "value": {"tool_calls": ["a"]}}, ".value.tool_calls[0].name"),
    ({"kind": "model_answer", "step": 1, "value": {"tool_calls": [{"name": ""}]}}, ".value.tool_calls[0].name"),
    (
        {"kind": "model_answer", "step": 1, "value": {"tool_calls": [{"name": "a"}, {"name": "a", "arguments": "{}"}]}},
        ".value.tool_calls[1].arguments",
    ),
    ({"kind": "state", "step": 1}, ".patch"),
    ({"kind": "state", "step": 1, "patch": []}, ".patch"),
    ({"kind": "state", "step": 1, "patch": [[]]}, ".patch"),
    ({"kind": "state", "step": 1, "patch": {"op": "remove"}}, ".patch"),
    ({"kind": "state", "patch": [{}]}, ".step"),
    ({"kind": "model"}, ".value"),
    ({"kind": "model", "value": {}}, ".value"),
    ({"kind": "model", "value": 7}, ".value"),
    ({"kind": "model", "value": ""}, ".value.model"),
    ({"kind": "model", "value": {"model": 1}}, ".value.model"),
    ({"kind": "model", "value": {"model": "a", "settings": []}}, ".value.settings"),
    ({"kind": "model", "value": {"model": "a", "temperature": 0}}, ".value.temperature"),
    ({"kind": "clock", "value": 60, "step": 2}, ".step"),
    ({"kind": "clock"}, ".value"),
    ({"kind": "clock", "value": True}, ".value"),
    ({"kind": "clock", "value": "2026-11-21T10:00:00"}, ".value"),
    ({"kind": "clock", "value": "2026-11-21"}, ".value"),
    ({"kind": "clock", "value": "tomorrow"}, ".value"),
    ({"kind": "clock", "value": "0001-01-01T00:00:00+14:00"}, ".value"),
    ({"kind": "clock", "value": 10**12}, ".value"),
    ({"kind": "clock", "value": -(10**400)}, ".value"),
    ({"kind": "clock", "value": float("nan")}, ".value"),
    ({"kind": "clock", "value": float("inf")}, ".value"),
    ({"kind": "clock", "value": [0]}, ".value"),
    ({"kind": "agent", "value": ""}, ".value"),
    ({"kind": "rule", "answer": "a"}, ".when"),
    ({"kind": "rule", "when": "docs", "answer": "a"}, ".when"),
    ({"kind": "rule", "when": "a is empty"}, ".answer"),
    ({"kind": "rule", "when": "a is empty", "answer": {"tool_calls": [{}]}}, ".answer.tool_calls[0].name"),
]


@pytest.mark.parametrize(("item", "field"), WRONG, ids=lambda each: str(each)[:60])
def test_what_is_no_change_is_refused_with_its_field(item, field):
    fine = {"kind": "agent", "value": "a"}

    with pytest.raises(ForkError) as caught:
        read_changes([fine, item], field="fork.changes")

    assert caught.value.field == f"fork.changes[1]{field}"
    assert field == ".when" or caught.value.message.startswith("fork.changes[1]")


@pytest.mark.parametrize("items", [None, {}, "", 0, [{"kind": "agent", "value": "a"}] * (MAX_CHANGES + 1)])
def test_what_is_no_list_of_changes_is_refused(items):
    with pytest.raises(ForkError) as caught:
        read_changes(items)

    assert caught.value.field == "changes"


@pytest.mark.parametrize(
    ("value", "step"), [(1, 1), ("step_3", 3), ("12", 12), ("step_007", 7), (999_999_999, 999_999_999)]
)
def test_step_is_a_number_or_an_id(value, step):
    assert read_step(value, "at_step") == step


@pytest.mark.parametrize(
    "value",
    [
        *[0, -1, True, 1.0, None, "", "step_", "step_0", "step_step_3", "Step_3", " 3", "-3", "3.0", [1]],
        *["step_\N{ARABIC-INDIC DIGIT THREE}", "\N{SUPERSCRIPT TWO}", "1234567890"],
    ],
)
def test_what_is_no_step_is_refused(value):
    with pytest.raises(ForkError) as caught:
        read_step(value, "at_step")

    assert caught.value.field == "at_step"


def test_step_too_large_to_be_spelled_is_refused():
    with pytest.raises(ForkError):
        read_step(10**5000, "at_step")


def test_null_stands_for_what_an_answer_does_not_have():
    assert read_answer({"text": None, **ASKED}, "a") == Answer(tool_calls=(LOOKUP,))
    assert read_answer({"text": "Hi", "tool_calls": None}, "a") == Answer(text="Hi")


KEYS = ["kind", "step", "index", "value", "error", "patch", "when", "answer", "text", "tool_calls", "name", "arguments"]
KINDS = ["instructions", "message", "tool_result", "model_answer", "state", "model", "clock", "agent", "rule"]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([1, 10**400, "step_3", "a is empty", "2026-11-21T10:00:00Z"])
    | st.floats()
    | st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=8,
)
ITEMS = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS) | VALUES}, optional={key: VALUES for key in KEYS if key != "kind"}
)


@given(VALUES | st.lists(ITEMS | VALUES, max_size=2))
def test_any_json_is_read_or_refused(value):
    with suppress(ForkError):
        assert len(read_changes(value)) == len(value)


def test_refusal_of_deep_and_long_values_stays_short():
    deep: Any = "end"
    for _ in range(50_000):
        deep = [deep]

    for value in (deep, "x" * 1_000_000):
        with pytest.raises(ForkError) as caught:
            read_changes([{"kind": "clock", "value": value}])
        assert len(caught.value.message) < 200
