import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.compare.json_diff import (
    MISSING,
    SAME_NUMBER,
    SAME_VALUE,
    Difference,
    Tally,
    differences,
    first_difference,
)
from sessions_app.core.compare.strict import Interner, count_leaves, count_leaves_of_text, read_json
from sessions_app.core.compare.volatile import ALL_RULES, VOLATILE_RULES, without
from sessions_app.core.payload import compact_json

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def found(left: Any, right: Any, **options: Any) -> list[Any]:
    return [(d.path, d.left, d.right, d.status, d.note) for d in differences(left, right, **options)]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"args": {"user_id": 1}}, {"args": {"user_id": 2}}, ("args.user_id", 1, 2, "changed", None)),
        ({"args": {}}, {"args": {"user_id": "u"}}, ("args.user_id", MISSING, "u", "only_right", None)),
        ({"a": None}, {}, ("a", None, MISSING, "only_left", None)),
        ({"meta": {"my key": 1}}, {"meta": {"my key": 2}}, ('meta["my key"]', 1, 2, "changed", None)),
        ({'a"b': 1}, {'a"b': 2}, ('["a\\"b"]', 1, 2, "changed", None)),
        ([[{"p": 0}]], [[{"p": 1}]], ("[0][0].p", 0, 1, "changed", None)),
        ([1, 2], [1, 2, 3], ("[2]", MISSING, 3, "only_right", None)),
        ([1, 2, 3], [1, 3], ("[1]", 2, MISSING, "only_left", None)),
        (1, 1.0, ("", 1, 1.0, "changed", SAME_NUMBER)),
        (True, 1, ("", True, 1, "changed", None)),
        (0.0, -0.0, ("", 0.0, -0.0, "changed", SAME_NUMBER)),
        ("1", 1, ("", "1", 1, "changed", None)),
        (None, False, ("", None, False, "changed", None)),
        ([], {}, ("", [], {}, "changed", None)),
        ({"a": {}}, {"a": []}, ("a", {}, [], "changed", None)),
        ({"a": 1}, None, ("", {"a": 1}, None, "changed", None)),
        ('{"a": 1}', '{"a": 2}', ("a", 1, 2, "changed", None)),
        ('{"a": 1}', '{"a":1}', ("", '{"a": 1}', '{"a":1}', "changed", SAME_VALUE)),
        ('{"a":1,"a":1}', '{"a":1}', ("", '{"a":1,"a":1}', '{"a":1}', "changed", None)),
    ],
)
def test_differences_names_the_field(left, right, expected):
    assert found(left, right) == [expected]


def test_differences_sees_every_spelling_of_a_number():
    left, right = (
        read_json("[1e2, 30000000000000000000000000000001, 0.10]"),
        read_json("[100.0, 30000000000000000000000000000002, 0.1]"),
    )

    assert [(d.path, repr(d.left), repr(d.right), d.note) for d in differences(left, right)] == [
        ("[0]", "1e2", "100.0", SAME_NUMBER),
        ("[1]", "30000000000000000000000000000001", "30000000000000000000000000000002", None),
        ("[2]", "0.10", "0.1", SAME_NUMBER),
    ]


@pytest.mark.parametrize("text", ["NaN", "1e999", '{"a":1,"a":2}', "[" * 100_000])
def test_read_json_refuses_what_would_be_lost(text):
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_differences_come_in_reading_order():
    left, right = {"b": 1, "a": {"x": 1}, "gone": 0}, {"new": 0, "a": {"x": 2}, "b": 2}

    assert [d.path for d in differences(left, right)] == ["b", "a.x", "gone", "new"]


def test_differences_of_an_inserted_item_is_that_item():
    left = [{"n": i} for i in range(5)]

    assert found(left, [*left[:2], {"n": 9}, *left[2:]]) == [("[2]", MISSING, {"n": 9}, "only_right", None)]


@pytest.mark.parametrize(
    ("left", "right", "status", "note"),
    [
        ("[email:1a2b3c4d]", "bob@x.org", "not_comparable", "redacted on the left"),
        ("mail bob now", "mail [email:1a2b3c4d] now", "not_comparable", "redacted on the right"),
        ("mail [email:1a2b3c4d] now", "write to bob", "changed", None),
        ("[email:1a2b3c4d]", "[email:99999999]", "changed", None),
        ("[email:1a2b3c4d]", "[phone:1a2b3c4d]", "not_comparable", "redacted differently"),
        ("a [email:1a2b3c4d] b", "c [email:1a2b3c4d] b", "changed", None),
        ("[12:34:56]", "[12:34:57]", "changed", None),
        ({"$truncated": 9}, "long text", "not_comparable", "truncated on the left"),
        ({"$truncated": 9}, {"$truncated": 9}, "not_comparable", "truncated on both sides"),
        ({"a": 1}, {"$truncated": 9}, "not_comparable", "truncated on the right"),
    ],
)
def test_differences_says_what_cannot_be_compared(left, right, status, note):
    assert found({"v": left}, {"v": right}) == [("v", left, right, status, note)]


def test_differences_takes_equal_placeholders_and_equal_digests_as_equal():
    cut = {"$truncated": {"sha256": "ab", "bytes": 9}}

    assert found({"a": "[email:1a2b3c4d]", "b": cut}, {"a": "[email:1a2b3c4d]", "b": cut}) == []


def test_truncated_items_of_lists_are_never_the_same():
    left, right = [{"$truncated": 9}], [{"$truncated": 9}, 1]

    assert [d.status for d in differences(left, right)] == ["not_comparable", "only_right"]


@given(VALUES)
def test_a_value_does_not_differ_from_its_copy(value):
    assert found(value, json.loads(json.dumps(value))) == []


@given(VALUES, VALUES)
def test_first_difference_is_none_only_for_values_spelled_alike(left, right):
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)

    assert (first_difference(left, right) is None) == same
    assert Interner().same(left, right) == same


@given(VALUES, VALUES)
def test_differences_seen_from_the_other_side_are_as_many(left, right):
    assert len(found(left, right)) == len(found(right, left))


@given(VALUES)
def test_leaves_are_counted_alike_from_values_and_from_text(value):
    text = compact_json(value)

    assert count_leaves_of_text(text) == count_leaves(value) == Interner().leaves(value)
    assert count_leaves_of_text(json.dumps(value, indent=1).encode()) == count_leaves(value)


@given(VALUES)
def test_tally_counts_the_leaves_of_equal_values(value):
    tally = Tally()

    assert found(value, json.loads(json.dumps(value)), tally=tally) == []
    assert tally.compared == count_leaves(value)


def test_first_difference_stops_early():
    tally = Tally()

    found_first = next(differences({"a": 1, "b": [1] * 1000}, {"a": 2, "b": [2] * 1000}, tally=tally))
    assert found_first.path == "a"
    assert tally.compared == 1


def test_depth_and_length_are_no_matter():
    left: Any = 1
    right: Any = 2
    for level in range(2000):
        left, right = [left, level], [right, level, 0]

    first = first_difference(left, right)
    assert first is not None
    assert first.path == "[0]" * 2000
    assert len(found(left, right)) == 2001
    assert found([0] * 200_000, [0] * 200_001) == [("[200000]", MISSING, 0, "only_right", None)]


# --- volatile fields ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("messages[3].timestamp", "message-time"),
        ("[0].parts[1].timestamp", "message-time"),
        ("response.parts[0].timestamp", "message-time"),
        ("response.failed_attempts[0].timestamp", "attempt-time"),
        ("response.failed_attempts[1].duration", "attempt-time"),
        ("request.messages[2].run_id", "message-run-id"),
        ("response.conversation_id", "conversation-id"),
        ("response.provider_details.timestamp", "provider-time"),
        ("response.provider_response_id", "provider-response-id"),
        ("duration_ms", "step-time"),
    ],
)
def test_volatile_fields_are_counted_and_not_shown(path, rule):
    tally = Tally()

    assert found("a", "b", path=path, ignore=VOLATILE_RULES, tally=tally) == []
    assert (tally.compared, dict(tally.ignored)) == (0, {rule: 1})
    assert [d[0] for d in found("a", "b", path=path, ignore=without([rule]))] == [path]


@pytest.mark.parametrize(
    "path",
    [
        "args.timestamp",
        "result.run_id",
        "result.messages[0].timestamp",
        "response.parts[0].args.timestamp",
        "response.parts[0].content.timestamp",
        "response.failed_attempts[0].error",
        "response.provider_details.duration",
        "response.parts[0].tool_call_id",
        "timestamp",
        "args.capability_id",
    ],
)
def test_fields_of_the_same_name_elsewhere_are_compared(path):
    assert len(found("<toolset:a>", "<toolset:b>", path=path, ignore=VOLATILE_RULES)) == 1


def test_toolset_ids_are_volatile_and_named_ones_are_not():
    path = "parameters.function_tools[0].capability_id"

    assert found("<toolset:a>", "<toolset:b>", path=path, ignore=VOLATILE_RULES) == []
    assert len(found("<toolset:a>", "orders", path=path, ignore=VOLATILE_RULES)) == 1


def test_rules_have_keys_of_their_own_and_say_why():
    assert len({rule.key for rule in ALL_RULES}) == len(ALL_RULES)
    assert all(rule.name and rule.why for rule in ALL_RULES)


def test_difference_is_a_plain_value():
    assert first_difference(1, 2) == Difference(path="", left=1, right=2, status="changed")
