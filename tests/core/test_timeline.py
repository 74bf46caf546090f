"""What a run waited for: the critical path over parallel calls, sub-agents and pauses."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.step_summary import StepSummary
from sessions_app.core.timeline import critical_path, step_times

START = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


def step(index, kind, start, end, parent=None):
    at = None if start is None else START + timedelta(milliseconds=start)
    length = None if end is None else end - start
    return StepSummary(index=index, kind=kind, name=kind, text=0, parent=parent, started_at=at, duration_ms=length)


def path_of(*steps):
    """Which step was waited for, from when to when."""
    path = critical_path(step_times(steps, START))
    return [(stretch.step and stretch.step.index, stretch.start, stretch.end) for stretch in path]


def test_steps_one_after_the_other_are_all_waited_for():
    assert path_of(step(1, "model", 0, 900), step(2, "tool", 900, 1000, 1), step(3, "model", 1000, 1500)) == [
        (1, 0, 900),
        (2, 900, 1000),
        (3, 1000, 1500),
    ]


def test_of_parallel_calls_the_last_one_to_end_is_waited_for():
    steps = [
        step(1, "model", 0, 100),
        step(2, "tool", 100, 300, 1),
        step(3, "tool", 100, 500, 1),
        step(4, "model", 500, 600),
    ]

    assert path_of(*steps) == [(1, 0, 100), (3, 100, 500), (4, 500, 600)]


def test_time_in_which_nothing_ran_belongs_to_no_step():
    assert path_of(step(1, "model", 0, 100), step(2, "model", 350, 400)) == [
        (1, 0, 100),
        (None, 100, 350),
        (2, 350, 400),
    ]


def test_what_ran_inside_of_a_sub_agent_is_waited_for_and_the_rest_of_its_time_is_its_own():
    steps = [step(1, "agent", 0, 1000), step(2, "model", 100, 600, 1), step(3, "tool", 600, 900, 2)]

    assert path_of(*steps) == [(1, 0, 100), (2, 100, 600), (3, 600, 900), (1, 900, 1000)]


def test_what_ran_on_in_the_background_is_not_what_the_run_waited_for():
    steps = [step(1, "tool", 0, 690), step(2, "model", 0, 200), step(3, "tool", 200, 500), step(4, "model", 500, 700)]

    assert path_of(*steps) == [(2, 0, 200), (3, 200, 500), (4, 500, 700)]


def test_steps_without_times_are_left_out():
    assert path_of(step(1, "model", None, None), step(2, "tool", 0, 50), step(3, "tool", 50, None)) == [(2, 0, 50)]
    assert path_of() == []


numbers = st.integers(0, 60)


@given(st.lists(st.tuples(st.sampled_from(["model", "tool", "agent"]), numbers, numbers, st.integers(0, 9))))
def test_the_path_goes_from_the_first_start_to_the_last_end_without_holes(drawn):
    steps = [
        step(index, kind, start, start + length, parent if 0 < parent < index else None)
        for index, (kind, start, length, parent) in enumerate(drawn, start=1)
    ]
    path = path_of(*steps)

    assert all(start < end for _, start, end in path)
    assert all(one[2] == other[1] for one, other in pairwise(path))
    if path:
        first, last = (
            min(s.started_at for s in steps),
            max(s.started_at + timedelta(milliseconds=s.duration_ms) for s in steps),
        )
        assert path[0][1] == (first - START).total_seconds() * 1000
        assert path[-1][2] == (last - START).total_seconds() * 1000
