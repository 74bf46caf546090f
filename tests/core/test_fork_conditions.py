import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.core.fork import conditions
from sessions_app.core.fork.conditions import (
    MAX_LENGTH,
    ROOTS,
    Comparison,
    Condition,
    ConditionError,
    read_condition,
)

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5, "", "a", 'say "x" and \\'])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=6
)
SEEN = {
    "tool": "search_docs",
    "result": {"docs": [], "count": 0, "orders": [{"user_id": "u_7710"}, {"user_id": None}], "ok": False},
    "args": {"query": "refund policy", "step": 9},
    "text": 'Please cancel "both" orders',
    "state": {"plan": None, "tags": ["a", 1, [2]]},
    "step": 3,
    "calls": {"search_docs": 2},
    "kind": "tool",
}


def holds(text: str, seen: Any = SEEN, root: str = "result") -> bool:
    return read_condition(text, root=root).holds(seen)


def comparison(text: str) -> Comparison:
    (read,) = read_condition(text, root="result").comparisons
    return read


def refusal(text: object) -> ConditionError:
    with pytest.raises(ConditionError) as caught:
        read_condition(text, root="result")
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "docs is empty",
        "result.docs is empty",
        "count is not empty",
        "orders is not empty",
        "state.plan is empty",
        "state.plan is null",
        "state.plan is not missing",
        "state.budget is missing",
        "ok is false",
        "ok is not true",
        "ok is not null",
        'tool = "search_docs"',
        "tool = search_docs",
        "tool != cancel_order",
        "tool=search_docs and step>=3",
        "step > 2",
        "step < 3.5",
        "step <= 3",
        "calls.search_docs = 2",
        "orders[0].user_id = u_7710",
        "orders[1].user_id is null",
        "orders[2] is missing",
        "orders[2].user_id != u_7710",
        'text contains "CANCEL"',
        'text contains "\\"both\\" orders"',
        "state.tags contains 1",
        "state.tags contains [2]",
        "result contains docs",
        'orders = [{"user_id": "u_7710"}, {"user_id": null}]',
        "  docs\tis   empty\nand  count = 0 ",
        "kind = tool and docs is empty and count = 0 and ok = false",
    ],
)
def test_condition_holds(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "docs is not empty",
        "count is empty",
        "ok is empty",
        "nothing is empty",
        "nothing is not empty",
        "state.plan is missing",
        "nothing is null",
        "ok is null",
        "ok = 0",
        "count = false",
        "count = 0.0",
        'count = "0"',
        "tool = Search_docs",
        "tool != search_docs",
        "step > 3",
        "step < 3",
        "nothing > 0",
        "nothing < 0",
        "tool >= 1",
        "ok >= 0",
        "calls.search_docs > 2",
        "orders[0].user_id is missing",
        "docs[0] is not missing",
        "tool[0] = s",
        "text contains keep",
        "step contains 3",
        "nothing contains a",
        "state.tags contains true",
        "state.tags contains 1.0",
        "state.tags contains [2.0]",
        "orders contains u_7710",
        'orders = [{"user_id": "u_7710"}]',
        "docs is empty and count = 1",
        "count = 1 and docs is empty",
    ],
)
def test_condition_does_not_hold(text):
    assert not holds(text)


@pytest.mark.parametrize("other", [None, False, 0, 0.0, "", "0"])
@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", "0"])
def test_values_that_look_alike_are_told_apart_at_any_depth(value, other):
    is_same = (value, type(value)) == (other, type(other))

    for wrap in (lambda each: each, lambda each: [each], lambda each: {"a": [{"b": each}]}):
        condition = read_condition(f"x = {json.dumps(wrap(value))}", root="result")
        opposite = read_condition(f"x != {json.dumps(wrap(value))}", root="result")
        seen = {"result": {"x": wrap(other)}}
        assert (condition.holds(seen), opposite.holds(seen)) == (is_same, not is_same)


@pytest.mark.parametrize(
    ("text", "missing", "empty"),
    [("{}", True, False), ('{"x": null}', False, True), ('{"x": 0}', False, False), ('{"x": false}', False, False)]
    + [(f'{{"x": {value}}}', False, True) for value in ('""', "[]", "{}")],
)
def test_missing_and_empty_are_two_things(text, missing, empty):
    seen = {"result": json.loads(text)}

    assert (holds("x is missing", seen), holds("x is not missing", seen)) == (missing, not missing)
    assert holds("x is empty", seen) == empty
    assert holds("x is not empty", seen) == (not empty and not missing)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("docs = 1", ("result", "docs")),
        ("[0] = 1", ("result", 0)),
        ("[0][12].a.b[3] = 1", ("result", 0, 12, "a", "b", 3)),
        ("a-b.ü.0 = 1", ("result", "a-b", "ü", "0")),
        ("steps = 1", ("result", "steps")),
        *((f"{root}.a = 1", (root, "a")) for root in ROOTS),
    ],
)
def test_path_begins_at_a_root(text, path):
    assert comparison(text).path == path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1.5e2", -150.0),
        ("true", True),
        ("null", None),
        ("u_7710", "u_7710"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("2026-11-21", "2026-11-21"),
        ("don't", "don't"),
        ('"two words"', "two words"),
        ('"a and b"', "a and b"),
        ('"\\"and\\" \\\\"', '"and" \\'),
        ('"\\u00fc = >"', "ü = >"),
        ('["x and y", {"and": 1}]', ["x and y", {"and": 1}]),
        ("{}", {}),
    ],
)
def test_value_is_json_or_a_word(text, value):
    assert comparison(f"a = {text}") == Comparison(path=("result", "a"), test="=", value=value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("docs", "docs"),
        ("docs is", "docs is"),
        ("docs is not", "docs is not"),
        ("docs is nothing", "docs is nothing"),
        ("docs is empty yet", "docs is empty yet"),
        ("docsis empty", "docsis empty"),
        ("basis empty", "basis empty"),
        ("docs isempty", "docs isempty"),
        ("docs not empty", "docs not empty"),
        ("= 3", "= 3"),
        ("a =", "a ="),
        ("a =   ", "a ="),
        ("a contains", "a contains"),
        ("acontains 3", "acontains 3"),
        ("a == 3", "= 3"),
        ("a => 3", "> 3"),
        ("a = >3", ">3"),
        ("a = b = c", "b = c"),
        ("a = two words", "two words"),
        ("a = 1 or b = 2", "1 or b = 2"),
        ("a = 1 AND b = 2", "1 AND b = 2"),
        ("a = [1", "[1"),
        ("a = {1}", "{1}"),
        ("a = 1 and", "and"),
        ("and a = 1", "and"),
        ("a = 1 and and b = 2", "and"),
        ('a = "open', 'a = "open'),
        ('a = 5" and b = 2', 'a = 5" and b = 2'),
        ('"a" = 1', '"a" = 1'),
        ("a > b", "b"),
        ('step >= "3"', '"3"'),
        ("step >= true", "true"),
        ("step < 1e999", "1e999"),
        ("a..b = 1", "a..b"),
        (".a = 1", ".a"),
        ("a. = 1", "a."),
        ("a[-1] = 1", "a[-1]"),
        ("a[x] = 1", "a[x]"),
        ("a[0 = 1", "a[0"),
        ("a[1234567890] = 1", "a[1234567890]"),
        ("a[\N{ARABIC-INDIC DIGIT THREE}] = 1", "a[\N{ARABIC-INDIC DIGIT THREE}]"),
        ("", ""),
        (" \n", ""),
        (None, ""),
        (3, ""),
        pytest.param(10**5000, "", id="a number too long to be spelled"),
        ({"a": 1}, ""),
        ("x" * (MAX_LENGTH + 1), "x" * 80),
    ],
)
def test_what_is_no_condition_is_refused_with_its_part(text, part):
    assert refusal(text).part == part


def test_condition_keeps_how_it_was_written():
    condition = read_condition("  docs is empty and  count = 0\n", root="args")

    assert condition == Condition(
        text="docs is empty and  count = 0",
        comparisons=(
            Comparison(path=("args", "docs"), test="empty"),
            Comparison(path=("args", "count"), test="=", value=0),
        ),
    )


@given(VALUES, VALUES)
@example(["a and b"], ["a and b"])
def test_a_value_equals_itself_and_nothing_else(value, other):
    condition = read_condition(f"x = {json.dumps(value)} and step = 1", root="result")

    assert condition.holds({"result": {"x": value}, "step": 1})
    assert condition.holds({"result": {"x": other}, "step": 1}) == (
        json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
    )


PIECES = ["a", "[0]", ".", " ", "\n", "=", "!=", ">=", "<", "contains", "is", "not", "empty", "null", "and", '"', "\\"]


@given(st.text() | st.lists(st.sampled_from([*PIECES, "1", "[", "]", "{", "\u2028", "\ud800"])).map("".join), VALUES)
def test_any_text_is_read_or_refused_and_looks_at_anything(text, seen):
    with suppress(ConditionError):
        assert read_condition(text, root="result").holds({"result": seen}) in (True, False)


MANY = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "a = " + " " * MANY + "b c",
        "a = " + "b " * MANY,
        "a" * MANY + "isempty",
        " " * MANY + "a is",
        "a is" + " not" * MANY,
        "[0" * MANY,
        "a." * MANY,
        "[1]" * MANY + "[",
        '"' * MANY + '"',
        "\\" * MANY,
        "a = " + "[" * MANY,
        'a = "' + "\\" * MANY,
        "and " * MANY,
        "a = 1 and " * MANY + "b",
        "=" * MANY,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_text_is_read_in_one_pass(monkeypatch, text):
    """So far above the limit that reading it twice at each of its characters would take hours."""
    monkeypatch.setattr(conditions, "MAX_LENGTH", 10 * MANY)

    assert len(refusal(text).part) <= 80


def test_longest_conditions_are_read():
    text = " and ".join(["a = 1"] * 190)
    nested = "[" * 900 + "]" * 900

    assert len(read_condition(text, root="result").comparisons) == 190
    assert read_condition(f"a.{'b' * 1900} is missing", root="result").holds({})
    assert not read_condition(f"a = {nested}", root="result").holds({"result": {"a": []}})


def test_deep_and_long_values_are_looked_at_in_one_pass():
    deep: object = 1
    for _ in range(50_000):
        deep = [deep]
    seen = {"result": {"x": deep, "y": ["a"] * 100_000}, "text": "a" * 100_000}

    assert not holds("x = [[1]]", seen)
    assert not holds("y contains [1]", seen)
    assert not holds("text contains b", seen)
    assert holds("x[0][0] is not empty and y[99999] = a", seen)
