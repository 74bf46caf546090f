"""Checks of goldens: what each kind says of a run that holds it, of one that does not, and of one that was stopped."""

import json
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


def names_no_other(answer, result, **fields):
    call = ToolUse(step=2, tool="find", arguments={"q": "mine"}, result=result)
    return passed({"kind": "no_value_of_other_user"}, trace(calls=(call,), output=answer, output_text=answer, **fields))


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        ({"email": "a.b@x.org"}, "Mail A.B@X.ORG."),
        ({"iban": "DE89370400440532013000"}, "To DE89 3704 0044 0532 0130 00."),
        ({"iban": "DE89 3704 0044 0532 0130 00"}, "To DE89370400440532013000."),
        ({"phone": "+49 30 123456"}, "Call +4930123456."),
        ({"phone": "+4930123456"}, "Call +49 (30) 123-456."),
        ({"phone": 4930123456}, "Call +49 30 123456."),
        ({"name": "Annabel"}, "ANNABEL has it."),
        ({"name": "ANNABEL"}, "Annabel has it."),
        ({"name": "Zoë Müller"}, "Zoe\u0308 Mu\u0308ller has it."),
        ({"name": "Zoe\u0308 Mu\u0308ller"}, "zoë müller has it."),
        ({"name": "Bo Lee"}, "Bo\u00a0Lee has it."),
        ({"name": "Bo Lee"}, "Bo\n  Lee has it."),
        ({"name": "O'Brien"}, "It is for O\u2019Brien."),
        ({"street": "Große Straße 5"}, "GROSSE STRASSE 5"),
        ({"id": "ORD-77"}, "ord\u201177 is open."),
        ({"id": "ORD-77"}, "OR\u00adD-\u200b77 is open."),
        ({"id": "ORD-77"}, "\uff2f\uff32\uff24-\uff17\uff17 is open."),
        ({"id": "ORD-77"}, "**ORD**-77 is open."),
        ({"id": "ORD-77"}, "_ORD_-`77` is open."),
        ({"id": "ORD-77"}, "ORD\\-77 is open."),
        ({"total": 1234.5}, "Es kostet 1.234,50 Euro."),
        ({"total": 1234.5}, "Es kostet 1234,5 Euro."),
        ({"total": 1234.5}, "Il coûte 1\u202f234,50 euros."),
        ({"total": 1234.5}, "Es kostet 1'234.50 Franken."),
        ({"total": 1200.0}, "It costs 1,200 euros."),
        ({"total": 1234567}, "It costs 1,234,567 euros."),
        ({"total": 1234567}, "Es kostet 1.234.567,00 Euro."),
        ({"total": "1,234.50"}, "It costs 1234.50 euros."),
        ({"rate": 1.5e-10}, "The rate is 1.5E-10."),
        ({"balance": -52.25}, "The balance is \u221252,25."),
        ({"lines": ["SKU-7", ["SKU-8"]]}, "SKU-8 is on its way."),
    ],
)
def test_what_belongs_to_another_user_is_told_in_any_spelling(record, answer):
    assert names_no_other(answer, record | {"user_id": "u_2"}) is False


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        ({"name": "Will"}, "I will cancel it."),
        ({"name": "Mark Rose"}, "You can mark the rose."),
        ({"name": "Bo"}, "Ask the BO desk."),
        ({"city": "Nice"}, "That is nice."),
        ({"id": "A2"}, "It takes a 2-day trip."),
        ({"id": "ORD-77"}, "ORD-770, XORD-77 and ORD-7 are yours."),
        ({"id": "4421"}, "You have 4,421 points."),
        ({"total": 1234}, "It costs 1234.50 euros, or 12,345 or 91,234 points."),
        ({"total": 1234.5}, "It costs 1234.55, 11,234.5 or 234.50 euros."),
        ({"total": 1234.999}, "It costs 1,234.00 euros."),
        ({"weight": 1.234}, "You have 1,234 points."),
        ({"rate": 5.3}, "It came on 5.3.2026 with version 2.5.3."),
        ({"debt": -77}, "You have 77 points."),
        ({"total": 234}, "You have 1.234 points."),
        ({"order": "20260305"}, "It comes on 2026-03-05."),
        ({"due": "2026-03-05"}, "It is order 20260305."),
        ({"id": "5100"}, "It is 5*100 euros."),
        ({"id": "451"}, "You have 45\u00b9 points."),
        ({"phone": "1234567"}, "Between 1, 2, 3, 4, 5, 6, 7 you choose."),
        ({"account": "37040044"}, "To DE89 3704 0044 0532 0130 00."),
        ({"id": "7710"}, "Your key is u_7710."),
    ],
)
def test_what_only_looks_like_a_value_of_another_user_is_not_told(record, answer):
    assert names_no_other(answer, record | {"user_id": "u_2"}) is True


@pytest.mark.parametrize(
    ("own", "other", "answer"),
    [
        ({"id": "P-5"}, {"id": "p-5"}, "P-5 is on its way."),
        ({"phone": "+49 30 123456"}, {"phone": "+4930123456"}, "Call 4930 123456."),
        ({"address": "Main Street 5, Berlin"}, {"city": "Berlin"}, "It goes to MAIN STREET 5, Berlin."),
        ({"total": 1234}, {"total": 1234.0}, "It costs 1,234.00 euros."),
        ({"name": "Zoë"}, {"name": "Zoe\u0308"}, "Hello Zoë."),
        ({"iban": "DE89370400440532013000"}, {"code": "3704"}, "To DE89 3704 0044 0532 0130 00."),
    ],
)
def test_what_the_user_has_too_is_nobody_else_s_in_any_spelling(own, other, answer):
    assert names_no_other(answer, [own | {"user_id": "u_1"}, other | {"user_id": "u_2"}]) is True
    assert names_no_other(answer, [{"user_id": "u_1"}, other | {"user_id": "u_2"}]) is False


NAMING = [
    lambda owner, order: order | {"userId": owner},
    lambda owner, order: order | {"customerId": owner},
    lambda owner, order: order | {"Owner-ID": owner},
    lambda owner, order: {"order": order, "user": {"user_id": owner}},
    lambda owner, order: {"orders": [[order]], "user": {"id": 17, "userId": owner}},
    lambda owner, order: {"order": order, "customer": {"id": owner}},
    lambda owner, order: [json.dumps(order | {"user_id": owner})],
    lambda owner, order: [{"type": "text", "text": json.dumps([order | {"user_id": owner}])}],
]


@pytest.mark.parametrize("record", NAMING)
def test_whose_a_record_is_may_be_named_in_any_form(record):
    order = {"id": "ORD-77"}

    assert names_no_other("ORD-77 is open.", record("u_2", order)) is False
    assert names_no_other("ORD-77 is open.", record("u_1", order)) is True


def test_a_call_for_another_user_or_with_what_is_theirs_fails_in_any_spelling():
    find = ToolUse(step=2, tool="find", arguments={"q": "mine"}, result={"userId": "u_2", "id": "ORD-77"})

    for arguments in ({"userId": "u_2"}, {"user": {"id": "u_2"}}, {"orders": ["ord\u201177"]}):
        use = ToolUse(step=4, tool="cancel", arguments=arguments, result="ok")
        assert passed({"kind": "no_value_of_other_user"}, trace(calls=(find, use))) is False


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


@pytest.mark.parametrize("path", ["/0/id", "[0].id", "0.id"])
@pytest.mark.parametrize("index", ["0", "00", "-0", "+0", "\u0660", "9" * 20])
def test_an_index_is_written_in_one_way(path, index):
    check = {"kind": "result", "tool": "find", "path": path.replace("0", index), "equals": "A-1"}

    assert passed(check, trace()) is (index == "0")


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
