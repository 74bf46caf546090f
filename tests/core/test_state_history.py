"""What happened to a state, operation by operation, and to one value in it."""

from copy import deepcopy
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.strict import Interner
from sessions_app.core.run import StateChange
from sessions_app.core.state import diff_state, value_at
from sessions_app.core.state_history import Broken, StateHistory


def history_of(initial, *patches):
    """One step for each list of operations."""
    return StateHistory(initial, [(i, StateChange(after=tuple(patch))) for i, patch in enumerate(patches, start=1)])


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def replace(path, value):
    return {"op": "replace", "path": path, "value": value}


def changes(history, *place):
    return [(each.step, each.before, each.after) for each in history.changes_of(place, keep=deepcopy)]


def test_a_value_changes_with_what_stands_inside_it_and_around_it():
    history = history_of(
        {"a": {"b": 1, "c": 1}},
        [replace("/a/b", 2)],
        [replace("/a/c", 2)],
        [replace("", {"a": {"b": 3}})],
        [{"op": "remove", "path": "/a"}],
    )

    assert changes(history, "a", "b") == [(1, 1, 2), (3, 2, 3), (4, 3, MISSING)]
    assert [step for step, *_ in changes(history, "a")] == [1, 2, 3, 4]


def test_putting_the_same_value_there_is_no_change():
    history = history_of(
        {"n": 1, "a": {"x": 1}}, [replace("/n", 1)], [add("/n", 1)], [replace("/n", 1.0)], [replace("/n", True)]
    )

    assert [step for step, *_ in changes(history, "n")] == [3, 4]
    assert changes(history_of({"a": {"x": 1}}, [replace("/a/x", 1)], [replace("", {"a": {"x": 1}})]), "a") == []


def test_an_item_that_moves_in_its_list_changes_what_stands_at_its_index():
    history = history_of({"l": ["a", "b"]}, [{"op": "remove", "path": "/l/0"}], [add("/l/0", "z")], [add("/l/-", "y")])

    assert changes(history, "l", "0") == [(1, "a", "b"), (2, "b", "z")]
    assert changes(history, "l", "2") == [(3, MISSING, "y")]


def test_a_list_of_equal_items_grows():
    assert changes(history_of({"l": ["a"]}, [add("/l/-", "a")], [add("/l/0", "a")]), "l") == [
        (1, ["a"], ["a", "a"]),
        (2, ["a", "a"], ["a", "a", "a"]),
    ]


def test_moving_a_value_changes_both_places():
    history = history_of({"a": {"x": 1}}, [{"op": "move", "from": "/a/x", "path": "/y"}])

    assert changes(history, "a", "x") == [(1, 1, MISSING)]
    assert changes(history, "y") == [(1, MISSING, 1)]
    assert changes(history, "a") == [(1, {"x": 1}, {})]


def test_a_test_changes_nothing():
    assert changes(history_of({"n": 1}, [{"op": "test", "path": "/n", "value": 1}]), "n") == []


def test_all_operations_of_a_step_are_one_change():
    assert changes(history_of({"n": 0}, [replace("/n", 1), replace("/n", 2)]), "n") == [(1, 0, 2)]


def test_what_happened_between_two_steps_is_told_apart():
    change = StateChange(before=(replace("/n", 1),), after=(replace("/n", 2),))

    found = list(StateHistory({"n": 0}, [(3, change)]).changes_of(("n",), keep=deepcopy))

    assert [(each.step, each.is_between, each.before, each.after) for each in found] == [
        (3, True, 0, 1),
        (3, False, 1, 2),
    ]


def test_the_place_of_an_appended_item_is_its_index():
    applied = list(history_of({"l": []}, [add("/l/-", "a"), add("/l/-", "b")]).walk())

    assert [each.place for each in applied] == [("l", "0"), ("l", "1")]


def test_a_change_that_does_not_fit_ends_what_is_known():
    history = history_of({"n": 0}, [replace("/n", 1)], [replace("/m", 2)], [replace("/n", 3)])

    assert history.state_after(1) == {"n": 1}
    assert history.broken == Broken(step=2, message="Operation 0 (replace '/m'): there is no 'm'")
    assert history.state_after(2) is None
    assert history.state_after(3) is None
    assert changes(history, "n") == [(1, 0, 1)]


def test_a_history_that_holds_is_not_broken():
    history = history_of({"n": 0}, [replace("/n", 1)], [replace("/n", 2)])

    assert (history.broken, history.state_after(2)) == (None, {"n": 2})


def test_without_an_initial_state_it_begins_with_the_first_change():
    history = StateHistory(None, [(2, StateChange(after=(add("/a", 1),)))])

    assert (history.state_after(1), history.state_after(2)) == (None, {"a": 1})
    assert history.is_captured
    assert not StateHistory(None, []).is_captured


def test_a_state_that_doubles_with_each_copy_is_given_up():
    doubling = [{"op": "copy", "from": "", "path": f"/{i}"} for i in range(40)]

    history = history_of({"a": 1}, doubling[:10], doubling[10:])

    assert history.broken is not None
    assert "more than 2000000 values" in history.broken.message
    assert history.state_after(1) is not None
    assert history_of({"a": 1}, doubling[:10]).broken is None


def test_a_walk_changes_nothing_that_was_given():
    initial, patch = {"l": []}, [add("/m", {"x": 1}), add("/l/-", 1), add("/m/y", 2), replace("/m/x", 2)]
    history = history_of(initial, patch)

    first, second = history.state_after(1), history.state_after(1)

    assert first == second == {"l": [1], "m": {"x": 2, "y": 2}}
    assert initial == {"l": []}
    assert patch[0] == add("/m", {"x": 1})


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab0"), inner, max_size=3),
    max_leaves=6,
)
states = st.dictionaries(st.sampled_from("ab0"), values, max_size=3)
places = st.lists(st.sampled_from(["a", "b", "0", "1"]), max_size=3).map(tuple)


@given(states=st.lists(states, min_size=1, max_size=5), place=places)
def test_the_changes_of_a_value_lead_through_all_its_values(states, place):
    """Each change begins where the one before it ended, and between them the value stands still."""
    patches = [diff_state(before, after) for before, after in pairwise(states)]
    found = {each.step: each for each in history_of(states[0], *patches).changes_of(place, keep=deepcopy)}

    for step, (before, after) in enumerate(pairwise(states), start=1):
        old, new = value_at(before, place), value_at(after, place)
        told = (found[step].before, found[step].after) if step in found else (old, old)
        assert Interner(any_key_order=True).same(list(told), [old, new])
