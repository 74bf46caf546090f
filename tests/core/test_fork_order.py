from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.fork.changes import (
    Answer,
    AskedCall,
    ForkError,
    NewAgent,
    NewClock,
    NewInstructions,
    NewModel,
    NewToolResult,
    ToolFailure,
    read_changes,
)
from sessions_app.core.fork.conditions import read_condition
from sessions_app.core.fork.expectations import Expectation
from sessions_app.core.fork.order import (
    MAX_BREAKPOINTS,
    MAX_SAMPLES,
    NOT_FOUND,
    Breakpoint,
    Course,
    HandAnswer,
    Order,
    ToolPolicy,
    read_breakpoints,
    read_course,
    read_order,
)


def refused_field(value: Any) -> str:
    with pytest.raises(ForkError) as caught:
        read_order(value)
    return caught.value.field


def test_order_of_nothing_is_no_fork():
    nulls = dict.fromkeys(["at_step", "changes", "hypothesis", "expect", "agent", "tools", "breakpoints", "samples"])

    assert read_order({}) == read_order(nulls) == Order()
    assert not Order().is_fork


def test_order_of_everything_is_read():
    order = read_order(
        {
            "at_step": "step_3",
            "changes": [{"kind": "tool_result", "step": 3, "value": []}, {"kind": "instructions", "value": "Check."}],
            "hypothesis": " The empty list. ",
            "expect": "It asks for the number.",
            "agent": "orders",
            "tools": {"live": ["lookup", "search", "lookup"]},
            "breakpoints": [{"step": "step_4"}, {"tool": "cancel"}, {"when": "order_id = 1"}],
            "samples": 5,
        }
    )

    assert order == Order(
        at_step=3,
        changes=(NewToolResult(step=3, value=[]), NewInstructions(value="Check.")),
        hypothesis="The empty list.",
        expect=Expectation(words="It asks for the number."),
        agent="orders",
        tools=ToolPolicy(live=frozenset({"lookup", "search"})),
        breakpoints=(
            Breakpoint(step=4),
            Breakpoint(tool="cancel"),
            Breakpoint(when=read_condition("order_id = 1", root="args")),
        ),
        samples=5,
    )
    assert order.is_fork


@pytest.mark.parametrize("agent", [None, "other"])
def test_change_of_the_agent_decides_whose_code_runs(agent):
    changes = [{"kind": "agent", "value": "v1"}, {"kind": "model", "value": "m"}, {"kind": "agent", "value": "v2"}]

    order = read_order({"at_step": 1, "agent": agent, "changes": changes})

    assert order.agent == "v2"
    assert order.changes == (NewAgent(name="v1"), NewModel(model="m"), NewAgent(name="v2"))
    assert read_order({"agent": "other", "changes": changes[1:2]}).agent == "other"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"at_step": 0}, "at_step"),
        ({"at_step": True}, "at_step"),
        ({"at_step": "three"}, "at_step"),
        ({"at_step": 10**400}, "at_step"),
        ({"changes": {}}, "changes"),
        ({"changes": ""}, "changes"),
        ({"changes": 0}, "changes"),
        ({"changes": [{"kind": "weather"}]}, "changes[0].kind"),
        ({"hypothesis": 3}, "hypothesis"),
        ({"hypothesis": "x" * 2001}, "hypothesis"),
        ({"expect": ""}, "expect"),
        ({"expect": {"contains": 1}}, "expect.contains"),
        ({"agent": ""}, "agent"),
        ({"agent": ["v1"]}, "agent"),
        ({"tools": []}, "tools"),
        ({"tools": "all"}, "tools"),
        ({"tools": {"live": "lookup"}}, "tools.live"),
        ({"tools": {"live": 0}}, "tools.live"),
        ({"tools": {"live": ["a", 1]}}, "tools.live"),
        ({"breakpoints": {}}, "breakpoints"),
        ({"breakpoints": 0}, "breakpoints"),
        ({"breakpoints": [{"step": 1}] * (MAX_BREAKPOINTS + 1)}, "breakpoints"),
        ({"breakpoints": [{"step": 1}, {}]}, "breakpoints[1]"),
        ({"breakpoints": [3]}, "breakpoints[0]"),
        ({"breakpoints": [{"step": 1, "tool": "a"}]}, "breakpoints[0]"),
        ({"breakpoints": [{"tool": ""}]}, "breakpoints[0]"),
        ({"breakpoints": [{"step": True}]}, "breakpoints[0].step"),
        ({"breakpoints": [{"when": "order_id"}]}, "breakpoints[0].when"),
        ({"breakpoints": [{"when": None}]}, "breakpoints[0].when"),
        ({"samples": 0}, "samples"),
        ({"samples": MAX_SAMPLES + 1}, "samples"),
        ({"samples": True}, "samples"),
        ({"samples": "5"}, "samples"),
    ],
    ids=lambda each: str(each)[:50],
)
def test_what_is_no_order_is_refused_with_its_field(value, field):
    assert refused_field(value) == field


def test_limits_themselves_are_allowed():
    order = read_order(
        {"breakpoints": [{"step": 1}] * MAX_BREAKPOINTS, "samples": MAX_SAMPLES, "hypothesis": "x" * 2000}
    )

    assert (len(order.breakpoints), order.samples, len(order.hypothesis)) == (MAX_BREAKPOINTS, MAX_SAMPLES, 2000)


def test_breakpoint_says_where_it_is():
    read = read_breakpoints([{"step": 4}, {"tool": "cancel"}, {"when": " text contains a "}])

    assert [each.words for each in read] == ["step 4", "tool cancel", "text contains a"]


def test_condition_of_a_breakpoint_looks_at_the_arguments():
    (read,) = read_breakpoints([{"when": "order_id = 1"}])

    assert read.when is not None
    assert read.when.holds({"args": {"order_id": 1}})
    assert not read.when.holds({"args": {}, "result": {"order_id": 1}, "order_id": 1})


def test_course_is_read_as_it_was_stored():
    course = read_course(
        {
            "answers": [
                {"at": 1, "asked": "aa", "value": None},
                {"at": 2, "asked": "bb", "value": {"docs": []}},
                {"at": 3, "asked": "cc", "error": {"type": "Timeout", "message": "late", "crashes": True}},
                {"at": 4, "asked": "dd", "error": "late"},
                {"at": 5, "asked": "ee", "not_found": True},
                {"at": 6, "asked": "ff", "twin": {"run_id": "r2", "step": 3}},
                {"at": 7, "asked": "gg", "answer": {"text": "Hi", "tool_calls": [{"name": "now"}]}},
            ],
            "passed": 7,
            "is_stepping": True,
        }
    )

    assert course == Course(
        answers=(
            HandAnswer(at=1, asked="aa"),
            HandAnswer(at=2, asked="bb", value={"docs": []}),
            HandAnswer(at=3, asked="cc", failure=ToolFailure(message="late", type="Timeout", crashes=True)),
            HandAnswer(at=4, asked="dd", failure=ToolFailure(message="late")),
            HandAnswer(at=5, asked="ee", failure=NOT_FOUND),
            HandAnswer(at=6, asked="ff", twin={"run_id": "r2", "step": 3}),
            HandAnswer(at=7, asked="gg", answer=Answer(text="Hi", tool_calls=(AskedCall(name="now", arguments={}),))),
        ),
        passed=7,
        is_stepping=True,
    )


def test_course_that_has_not_begun():
    assert read_course({}) == Course()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("a is empty"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["step", "tool", "when", "live", "write", "contains"]), inner)
    ),
    max_leaves=6,
)
FIELDS = ["at_step", "changes", "hypothesis", "expect", "agent", "tools", "breakpoints", "samples"]


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), VALUES))
def test_any_object_is_read_or_refused(value):
    with suppress(ForkError):
        order = read_order(value)
        assert order.is_fork == (value.get("at_step") is not None)


@given(st.integers(1, 99), st.integers(-9, 9))
def test_order_reads_what_its_parts_read(step, shift):
    changes = [{"kind": "tool_result", "step": step, "value": shift}, {"kind": "clock", "value": shift}]

    order = read_order({"at_step": step, "changes": changes})

    assert order.changes == read_changes(changes)
    assert isinstance(order.changes[1], NewClock)
