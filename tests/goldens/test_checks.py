"""Checks of goldens: what each kind says of a run that holds it, of one that does not, and of one that was stopped."""

from typing import Any

import pytest

from replay_goldens.checks import KINDS, all_passed, judge, read_checks
from replay_goldens.reading import CheckError
from replay_goldens.trace import ToolUse, Trace

STATES = [{"docs": 0}, {"docs": 5}, {"docs": 5, "plan": ["find", "answer"]}]


def trace(**fields):
    calls = (
        ToolUse(step=2, tool="find", arguments={"q": "lamp", "n": 1}, result=[{"id": "A-1"}], is_write=False),
        ToolUse(step=4, tool="cancel", arguments={"id": "A-1"}, result="cancelled", is_write=True),
    )
    return Trace(
        **{
            "run_id": "r1",
            "has_ended": True,
            "calls": calls,
            "steps": 5,
            "output": {"status": "done", "n": 1},
            "output_text": '{"status": "done", "n": 1}',
            "user_id": "u_1",
            "cost_usd": 0.02,
            "state_after": lambda step: STATES[-1 if step is None else step],
            **fields,
        }
    )


def passed(check, of):
    [judged] = judge(read_checks([check]), of)
    return judged.seen.passed


HOLD_AND_FAIL = [
    ({"kind": "at_most_calls", "tool": "find", "n": 1}, {"kind": "at_most_calls", "tool": "find", "n": 0}),
    ({"kind": "tool_order", "tools": ["find", "cancel"]}, {"kind": "tool_order", "tools": ["cancel", "find"]}),
    (
        {"kind": "arguments", "tool": "find", "path": "/q", "equals": "lamp"},
        {"kind": "arguments", "tool": "find", "path": "/user_id", "equals": "u_1"},
    ),
    (
        {"kind": "arguments", "tool": "find", "path": "n", "equals": 1},
        {"kind": "arguments", "tool": "find", "path": "n", "equals": 1.0},
    ),
    (
        {"kind": "result", "tool": "cancel", "contains": "CANCEL"},
        {"kind": "result", "tool": "cancel", "contains": "refused"},
    ),
    (
        {"kind": "result", "tool": "find", "path": "[0].id", "equals": "A-1"},
        {"kind": "result", "tool": "find", "path": "[1].id", "equals": "A-1"},
    ),
    (
        {"kind": "state", "step": 1, "path": "docs", "equals": 5},
        {"kind": "state", "step": 1, "path": "docs", "equals": 0},
    ),
    (
        {"kind": "state", "step": "end", "path": "/plan/1", "equals": "answer"},
        {"kind": "state", "step": "end", "path": "/plan/2", "equals": "answer"},
    ),
    (
        {"kind": "state", "path": "docs", "more_than": 4},
        {"kind": "state", "path": "docs", "more_than": 5},
    ),
    (
        {"kind": "output", "path": "n", "less_than": 2},
        {"kind": "output", "path": "status", "less_than": 2},
    ),
    ({"kind": "ends_within", "n": 5}, {"kind": "ends_within", "n": 4}),
    ({"kind": "output", "contains": "Done"}, {"kind": "output", "contains": "sorry"}),
    ({"kind": "output", "not_contains": "sorry"}, {"kind": "output", "not_contains": "Done"}),
    (
        {"kind": "output", "contains_any": ["sorry", "done"]},
        {"kind": "output", "contains_any": ["sorry", "never"]},
    ),
    ({"kind": "output", "matches": r'"n": \d'}, {"kind": "output", "matches": r'"n": \d\d'}),
    (
        {"kind": "output", "equals": {"n": 1, "status": "done"}},
        {"kind": "output", "equals": {"n": 1.0, "status": "done"}},
    ),
    (
        {"kind": "output", "path": "$.status", "equals": "done"},
        {"kind": "output", "path": "$.state", "equals": "done"},
    ),
    ({"kind": "cost_below", "usd": 0.03}, {"kind": "cost_below", "usd": 0.02}),
    ({"kind": "no_write", "tools": ["refund"]}, {"kind": "no_write", "tools": ["find"]}),
]


@pytest.mark.parametrize(("holds", "fails"), HOLD_AND_FAIL, ids=lambda check: str(sorted(check.values(), key=str)))
def test_a_check_holds_and_can_fail(holds, fails):
    of = trace(calls=trace().calls[:1]) if holds["kind"] == "no_write" else trace()

    assert (passed(holds, of), passed(fails, of)) == (True, False)


def test_every_kind_is_tried():
    tried = {holds["kind"] for holds, _ in HOLD_AND_FAIL} | {"no_value_of_other_user"}

    assert tried == set(KINDS)


@pytest.mark.parametrize(("holds", "fails"), HOLD_AND_FAIL, ids=lambda check: check["kind"])
def test_a_check_is_written_as_it_is_read(holds, fails):
    for check in (holds, fails):
        [read] = read_checks([check])
        assert read_checks([read.to_json()]) == (read,) or read_checks([read.to_json()])[0].words == read.words


# --- runs that were stopped --------------------------------------------------------------------


def test_what_must_not_happen_is_not_known_of_a_run_that_was_stopped():
    stopped = trace(has_ended=False, calls=trace().calls[:1], output=None, output_text=None, why_not_ended="it stopped")

    for check in (
        {"kind": "at_most_calls", "tool": "find", "n": 1},
        {"kind": "ends_within", "n": 9},
        {"kind": "no_write"},
        {"kind": "no_value_of_other_user"},
        {"kind": "output", "contains": "done"},
        {"kind": "tool_order", "tools": ["find", "cancel"]},
        {"kind": "result", "tool": "cancel", "contains": "x"},
        {"kind": "state", "step": "end", "path": "docs", "equals": 5},
    ):
        assert passed(check, stopped) is None, check


def test_what_has_happened_in_a_run_that_was_stopped_is_known():
    stopped = trace(has_ended=False, output=None, output_text=None)

    assert passed({"kind": "at_most_calls", "tool": "find", "n": 0}, stopped) is False
    assert passed({"kind": "no_write"}, stopped) is False
    assert passed({"kind": "result", "tool": "cancel", "contains": "cancelled"}, stopped) is True


def test_what_cannot_be_judged_is_no_success():
    checks = read_checks([{"kind": "ends_within", "n": 5}, {"kind": "cost_below", "usd": 1}])
    judged = judge(checks, trace(cost_usd=None))

    assert [each.seen.passed for each in judged] == [True, None]
    assert all_passed(judged) is None
    assert all_passed(judged[:1]) is True


def test_a_tool_of_which_nobody_says_that_it_reads_cannot_be_judged():
    unknown = trace(calls=(ToolUse(step=1, tool="do", arguments={}, result=None),))

    assert passed({"kind": "no_write"}, unknown) is None
    assert passed({"kind": "no_write", "tools": ["pay"]}, unknown) is True


# --- values of other users ---------------------------------------------------------------------

ORDERS = [
    {"order": "#4421", "user_id": "u_2", "status": "shipped"},
    {"order": "#4398", "user_id": "u_1", "status": "processing"},
    {"order": "#44", "user_id": "u_2", "status": "processing"},
]


def told(answer, **fields):
    calls = (ToolUse(step=2, tool="find", arguments={"q": "mine"}, result=ORDERS),)
    return trace(calls=calls, output=answer, output_text=answer, **fields)


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("Order #4421 is shipped.", False),
        ("Order 4421 is shipped.", False),
        ("Order #4398 is processing.", True),
        ("Order 44210 is not known.", True),
        ("You have one order; it is shipped.", True),
    ],
)
def test_what_belongs_to_another_user_is_not_told(answer, holds):
    assert passed({"kind": "no_value_of_other_user"}, told(answer)) is holds


def test_a_call_for_another_user_fails_and_an_unknown_user_cannot_be_judged():
    other = (ToolUse(step=3, tool="find", arguments={"filter": {"user_id": "u_9"}}, result=[]),)

    assert passed({"kind": "no_value_of_other_user"}, trace(calls=other)) is False
    assert passed({"kind": "no_value_of_other_user"}, told("#4421", user_id=None)) is None


@pytest.mark.parametrize(("field", "own"), [("user_id", "u_7"), ("tenant_id", "t_7")])
def test_a_call_that_reached_its_tool_for_another_user_fails(field, own):
    for reached, holds in ((own, True), ("other", False), (None, True)):
        ran_for: dict[str, Any] = {field: reached}
        call = ToolUse(step=2, tool="find", arguments={"q": "mine"}, result=[], **ran_for)
        assert passed({"kind": "no_value_of_other_user"}, trace(calls=(call,), **{field: own})) is holds


@pytest.mark.parametrize(
    ("record", "answer", "holds"),
    [
        ({"total": 1234.5}, "It costs 1234.5.", False),
        ({"total": 1234.5}, "It costs 1,234.50 euros.", False),
        ({"balance": -52.25}, "The balance is -52.25.", False),
        ({"name": "Annabel"}, "Annabel has it.", False),
        ({"name": "Bo"}, "Bo has it.", False),
        ({"id": "A2"}, "A2 is open.", False),
        ({}, "Ask u_2.", False),
        ({"total": 7, "status": "open", "name": "B"}, "7 are open, plan B.", True),
        ({"name": "Annabel", "total": 1234.5}, "Nothing is known of Anna, 234.5 or 12,345.", True),
    ],
)
def test_short_and_broken_values_of_another_user_are_told_too(record, answer, holds):
    call = ToolUse(step=2, tool="find", arguments={"q": "mine"}, result=record | {"user_id": "u_2"})

    assert passed({"kind": "no_value_of_other_user"}, trace(calls=(call,), output=answer, output_text=answer)) is holds


@pytest.mark.parametrize(
    ("named", "tool", "holds"),
    [("#4421", "cancel", False), ("#4398", "cancel", True), ("#4421", "find", True)],
)
def test_a_call_with_what_belongs_to_another_user_fails(named, tool, holds):
    calls = (
        ToolUse(step=2, tool="find", arguments={"q": "mine"}, result=ORDERS),
        ToolUse(step=4, tool=tool, arguments={"order": named}, result={"ok": True}),
    )

    assert passed({"kind": "no_value_of_other_user"}, trace(calls=calls)) is holds


# --- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checks", "field"),
    [
        (None, "checks"),
        ([], "checks"),
        (["x"], "checks[0]"),
        ([{"kind": "no_write"}, {"kind": "nothing"}], "checks[1].kind"),
        ([{"kind": ["no_write"]}], "checks[0].kind"),
        ([{"kind": "at_most_calls", "tool": "t"}], "checks[0].n"),
        ([{"kind": "at_most_calls", "tool": "t", "n": True}], "checks[0].n"),
        ([{"kind": "at_most_calls", "tool": "t", "n": 1, "m": 2}], "checks[0].m"),
        ([{"kind": "at_most_calls", "tool": 3, "n": 1}], "checks[0].tool"),
        ([{"kind": "tool_order", "tools": ["a", ""]}], "checks[0].tools[1]"),
        ([{"kind": "output"}], "checks[0].contains"),
        ([{"kind": "output", "contains": "a", "equals": "b"}], "checks[0].equals"),
        ([{"kind": "output", "matches": "("}], "checks[0].matches"),
        ([{"kind": "output", "matches": "(?<=a)b"}], "checks[0].matches"),
        ([{"kind": "state", "step": 0, "path": "", "equals": 1}], "checks[0].step"),
        ([{"kind": "state", "step": "end", "equals": 1}], "checks[0].path"),
        ([{"kind": "cost_below", "usd": 0}], "checks[0].usd"),
    ],
)
def test_what_is_no_check_is_refused_by_its_place(checks, field):
    with pytest.raises(CheckError) as refused:
        read_checks(checks)

    assert refused.value.field == field


def test_what_an_error_ended_has_not_come_to_its_end():
    broken = trace(has_ended=False, has_failed=True, error="RuntimeError: down", output=None, output_text=None)

    assert passed({"kind": "ends_within", "n": 9}, broken) is None
    assert passed({"kind": "at_most_calls", "tool": "find", "n": 3}, broken) is None
    assert passed({"kind": "output", "contains": "done"}, broken) is False


def test_whose_values_are_is_known_from_the_scene_too():
    """A tool that no longer says whose an order is, or gives none, hides nothing."""
    for answer in ([{"order": "#4421"}], []):
        calls = (ToolUse(step=2, tool="find", arguments={}, result=answer),)
        of = trace(calls=calls, output="#4421 is shipped.", output_text="#4421 is shipped.", known_answers=(ORDERS,))
        assert passed({"kind": "no_value_of_other_user"}, of) is False


def test_a_record_inside_of_another_has_its_owner():
    mine = {"user_id": "u_1", "lines": [{"sku": "SKU-1"}]}
    theirs = {"user_id": "u_2", "lines": [{"sku": "SKU-1"}, {"sku": "SKU-2"}]}
    calls = (ToolUse(step=1, tool="find", arguments={}, result=[mine, theirs]),)

    for answer, holds in (("SKU-1 is on its way.", True), ("SKU-2 is on its way.", False)):
        of = trace(calls=calls, output=answer, output_text=answer)
        assert passed({"kind": "no_value_of_other_user"}, of) is holds


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"path": "/order_id", "equals": "ORD-5521"}, "cancel_order is called with order_id “ORD-5521”"),
        ({"path": "order_id", "contains": "55"}, "cancel_order is called with order_id that contains “55”"),
        ({"equals": 1}, "cancel_order is called with arguments 1"),
    ],
)
def test_arguments_are_told_as_a_sentence(check, words):
    [read] = read_checks([{"kind": "arguments", "tool": "cancel_order", **check}])

    assert read.words == words
