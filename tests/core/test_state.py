import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.run import Run, StateChange, Step, ToolCall
from sessions_app.core.state import (
    PatchError,
    apply_patch,
    broken_links,
    changed_keys,
    diff_state,
    input_state,
    state_after,
)

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "a", "~/"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["a", "b/", "~1", ""]), inner),
    max_leaves=15,
)


def spelled(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(VALUES, VALUES)
def test_applying_a_difference_gives_the_later_state(before, after):
    untouched = copy.deepcopy((before, after))

    operations = diff_state(before, after)
    result = apply_patch(before, operations)

    assert spelled(result) == spelled(after)
    assert spelled((before, after)) == spelled(untouched)
    assert (operations == []) == (spelled(before) == spelled(after))


@given(VALUES, VALUES)
def test_applying_leaves_the_operations_alone(before, after):
    operations = diff_state(before, after)
    untouched = copy.deepcopy(operations)

    apply_patch(apply_patch(before, operations), diff_state(after, {"a": 1}))

    assert operations == untouched


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"plan": 1}, {}, [{"op": "remove", "path": "/plan"}]),
        ({}, {"a/b~": 1}, [{"op": "add", "path": "/a~1b~0", "value": 1}]),
        ({"n": 1}, {"n": 1.0}, [{"op": "replace", "path": "/n", "value": 1.0}]),
        ([1, 2, 3], [1, 9, 3], [{"op": "replace", "path": "/1", "value": 9}]),
        ([1, 2, 3, 4], [1, 4], [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}]),
        ([1, 4], [1, 2, 4], [{"op": "add", "path": "/1", "value": 2}]),
        ([{"a": 1}, 2], [{"a": 2}, 2], [{"op": "replace", "path": "/0/a", "value": 2}]),
        (1, {"a": 1}, [{"op": "replace", "path": "", "value": {"a": 1}}]),
    ],
)
def test_diff_state_is_small(before, after, operations):
    assert diff_state(before, after) == operations


@pytest.mark.parametrize(
    ("state", "operation", "expected"),
    [
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1]}, {"op": "add", "path": "/a/0", "value": 0}, {"a": [0, 1]}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}),
        ({"a": [1, 2]}, {"op": "move", "from": "/a/0", "path": "/a/1"}, {"a": [2, 1]}),
        ({"a": {"x": 1}}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": 1}, {"op": "replace", "path": "", "value": 2}, 2),
        ({"": 1}, {"op": "remove", "path": "/"}, {}),
    ],
)
def test_apply_patch_knows_every_operation(state, operation, expected):
    untouched = copy.deepcopy(state)

    assert apply_patch(state, [operation]) == expected
    assert state == untouched


@pytest.mark.parametrize(
    ("state", "operation", "words"),
    [
        ({}, {"op": "remove", "path": "/a"}, "there is no 'a'"),
        ({}, {"op": "replace", "path": "/a", "value": 1}, "there is no 'a'"),
        ({}, {"op": "add", "path": "/a/b", "value": 1}, "there is no 'a'"),
        ({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}, "no object or list"),
        ([1], {"op": "remove", "path": "/1"}, "no index 1"),
        ([1], {"op": "add", "path": "/2", "value": 1}, "no index 2"),
        ([1], {"op": "remove", "path": "/-"}, "no index"),
        ([1], {"op": "remove", "path": "/00"}, "no index"),
        ([1], {"op": "remove", "path": "/-1"}, "no index"),
        ({}, {"op": "remove", "path": ""}, "whole state"),
        ({}, {"op": "add", "path": "a", "value": 1}, "no JSON Pointer"),
        ({}, {"op": "add", "path": "/~2", "value": 1}, "no JSON Pointer"),
        ({}, {"op": "add", "path": "/a"}, "value is missing"),
        ({}, {"op": "merge", "path": "/a"}, "op must be one of"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "another one"),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}, "into itself"),
        ({}, "add", "an operation is an object"),
    ],
)
def test_apply_patch_names_the_operation_that_fails(state, operation, words):
    fine = {"op": "test", "path": "", "value": state}

    with pytest.raises(PatchError, match=words) as caught:
        apply_patch(state, [fine, operation])

    assert (caught.value.position, caught.value.operation) == (1, operation)
    assert "Operation 1" in str(caught.value)


def test_deep_states_are_no_matter():
    before: Any = 1
    after: Any = 2
    for _ in range(200):
        before, after = {"a": [before]}, {"a": [after]}

    operations = diff_state(before, after)

    assert [operation["path"] for operation in operations] == ["/a/0" * 200]
    assert spelled(apply_patch(before, operations)) == spelled(after)


# --- the state of a run ------------------------------------------------------------------------


def make_run(*changes: StateChange | None, initial: Any = None) -> Run:
    return Run(
        run_id="r",
        session_id="r",
        status="ok",
        initial_state=None if initial is None else Payload.of_json(initial),
        steps=tuple(make_step(index, change) for index, change in enumerate(changes, start=1)),
    )


def make_step(index: int, change: StateChange | None) -> Step:
    return Step(index=index, name="t", call=ToolCall(tool_name="t"), state=change)


def change(before: Any, after: Any, *, link: tuple[JsonObject, ...] = ()) -> StateChange:
    return StateChange(before=link, after=tuple(diff_state(before, after)))


def test_state_after_follows_the_changes():
    states: list[JsonObject] = [{"count": 0}, {"count": 1, "docs": ["a"]}, {"docs": ["b"]}]
    run = make_run(change(states[0], states[1]), None, change(states[1], states[2]), initial=states[0])

    assert [state_after(run, step) for step in range(4)] == [states[0], states[1], states[1], states[2]]
    assert [input_state(run, step) for step in (1, 2, 3)] == [states[0], states[1], states[1]]
    assert broken_links(run) == []


def test_a_broken_link_is_applied_and_told():
    link = {"op": "replace", "path": "/count", "value": 5}
    run = make_run(change({}, {"count": 1}), change({"count": 5}, {"count": 6}, link=(link,)), initial={})

    assert input_state(run, 2) == {"count": 5}
    assert state_after(run, 1) == {"count": 1}
    assert state_after(run, 2) == {"count": 6}
    assert broken_links(run) == [run.steps[1]]


def test_a_run_without_state_has_none_and_one_without_a_start_began_empty():
    assert state_after(make_run(None, None), 2) is None
    assert input_state(make_run(None), 1) is None
    assert state_after(make_run(change({}, {"a": 1})), 1) == {"a": 1}


@pytest.mark.parametrize(
    ("before", "after", "chips"),
    [
        ({"plan": 1, "count": 1}, {"docs": [], "count": 2}, "\N{MINUS SIGN}plan ~count +docs"),
        ({"docs": [1]}, {"docs": [1, 2]}, "~docs"),
        ({"a/b": {"c": 1}}, {"a/b": {}}, "~a/b"),
        ({}, {}, ""),
        ([], {}, "~state"),
    ],
)
def test_changed_keys_are_short(before, after, chips):
    assert " ".join(changed_keys(make_step(1, change(before, after)))) == chips


def test_changed_keys_sum_up_several_operations():
    operations: tuple[JsonObject, ...] = (
        {"op": "add", "path": "/a", "value": {}},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "move", "from": "/old", "path": "/new"},
        {"op": "add", "path": "/gone", "value": 1},
        {"op": "remove", "path": "/gone"},
        {"op": "test", "path": "/x", "value": 1},
    )

    assert changed_keys(make_step(1, StateChange(after=operations))) == ["+a", "\N{MINUS SIGN}old", "+new"]
