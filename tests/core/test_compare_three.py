"""A third run beside two others."""

from typing import Any

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.compare.three import ThreeValues, join_differences, join_facts, join_steps
from sessions_app.core.formats.native import parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import compact_json
from sessions_app.core.run import Run
from tests.builders import make_record, make_tool_step


def make_run(name: str, *tools: tuple[str, Any], **fields: Any) -> Run:
    steps = [make_tool_step(tool, arguments={"q": tool}, result=result) for tool, result in tools]
    text = compact_json(make_record(name, *steps, **fields))
    return parse_native(text, Limits(max_bytes=len(text)))


def beside(a: Run, b: Run, c: Run):
    return join_steps(compare_runs(a, b).steps, compare_runs(a, c).steps)


def places(trios) -> list[tuple[int | None, int | None, int | None]]:
    return [tuple(step and step.index for step in trio.steps) for trio in trios]


def values_of(a: Run, b: Run, c: Run, number: int) -> list[ThreeValues]:
    trio = beside(a, b, c)[number]
    return list(join_differences(trio.second.differences, trio.third.differences))


def test_three_equal_runs_are_the_same_in_every_step():
    run = make_run("a", ("first", 1), ("second", 2))

    trios = beside(run, run, run)

    assert places(trios) == [(1, 1, 1), (2, 2, 2)]
    assert all(trio.is_same for trio in trios)


def test_a_step_is_the_same_only_if_it_is_in_all_three():
    a = make_run("a", ("first", 1), ("second", 2))
    c = make_run("c", ("first", 1), ("second", 3))

    assert [trio.is_same for trio in beside(a, a, c)] == [True, False]
    assert [trio.is_same for trio in beside(a, c, a)] == [True, False]


def test_steps_that_a_run_lacks_leave_their_place_empty():
    a = make_run("a", ("first", 1), ("second", 2), ("third", 3))
    b = make_run("b", ("first", 1), ("third", 3))
    c = make_run("c", ("second", 2), ("third", 3))

    assert places(beside(a, b, c)) == [(1, 1, None), (2, None, 1), (3, 2, 2)]


def test_steps_of_one_run_alone_stand_after_the_step_that_they_follow():
    a = make_run("a", ("first", 1), ("last", 2))
    b = make_run("b", ("first", 1), ("b-only", 5), ("last", 2))
    c = make_run("c", ("c-before", 4), ("first", 1), ("c-only", 6), ("last", 2), ("c-after", 7))

    found = places(beside(a, b, c))

    assert found == [(None, None, 1), (1, 1, 2), (None, 2, None), (None, None, 3), (2, 3, 4), (None, None, 5)]


def test_each_field_shows_three_values():
    a, b, c = (make_run(name, ("look", {"n": n, "m": m})) for name, n, m in (("a", 1, 5), ("b", 2, 5), ("c", 3, 6)))

    assert values_of(a, b, c, 0) == [
        ThreeValues(path="result.n", left=1, right=2, third=3, differs=(True, True)),
        ThreeValues(path="result.m", left=5, right=5, third=6, differs=(False, True)),
    ]


def test_a_difference_inside_a_changed_field_is_not_taken_for_equal():
    a = make_run("a", ("look", {"n": {"x": 1, "y": 2}}))
    b = make_run("b", ("look", {"n": "gone"}))
    c = make_run("c", ("look", {"n": {"x": 9, "y": 2}}))

    whole, part = values_of(a, b, c, 0)

    assert (whole.path, whole.third, whole.differs) == ("result.n", MISSING, (True, True))
    assert whole.note == "C differs in tool answer, n.x"
    assert (part.path, part.right, part.third, part.differs) == ("result.n.x", MISSING, 9, (True, True))
    assert part.note == "B differs in tool answer, n"


def test_facts_that_differ_in_one_run_are_joined_by_name():
    a, b, c = make_run("a", model="x"), make_run("b", model="x"), make_run("c", model="y")

    found = dict(join_facts(compare_runs(a, b).facts, compare_runs(a, c).facts))

    assert found["model"] == [ThreeValues(path="model", left="x", right="x", third="y", differs=(False, True))]
    assert dict(join_facts(compare_runs(a, a).facts, compare_runs(a, a).facts)) == {}
