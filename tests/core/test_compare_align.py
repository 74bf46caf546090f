import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.core.compare.align import Alignment, StepKey, align_steps
from sessions_app.core.compare.sequence import common_subsequence


def key(name: str, arguments: str = "a", *, shape: str = "s", kind: str = "tool") -> StepKey:
    return StepKey(index=1, kind=kind, name=name, arguments_digest=arguments, shape_digest=shape)


def keys(text: str) -> list[StepKey]:
    return [key(letter) for letter in text]


def pairs(alignment: Alignment) -> list[tuple[int | None, int | None]]:
    return [(row.left, row.right) for row in alignment.rows]


LETTERS = st.text(alphabet="abc", max_size=30)


@given(LETTERS)
def test_aligning_a_run_with_itself_has_no_gaps(text):
    assert pairs(align_steps(keys(text), keys(text))) == [(i, i) for i in range(len(text))]


@given(LETTERS, st.integers(0, 30), st.sampled_from("abcd"))
def test_an_inserted_step_shifts_nothing(text, at, letter):
    longer = text[:at] + letter + text[at:]

    rows = pairs(align_steps(keys(text), keys(longer)))
    back = pairs(align_steps(keys(longer), keys(text)))

    assert len(rows) == len(text) + 1
    assert sum(left is None for left, _ in rows) == sum(right is None for _, right in back) == 1
    assert all(text[i] == longer[j] for i, j in rows if i is not None)


@given(LETTERS, LETTERS)
def test_each_step_stands_once_and_in_order(left, right):
    rows = pairs(align_steps(keys(left), keys(right)))

    assert [i for i, _ in rows if i is not None] == list(range(len(left)))
    assert [j for _, j in rows if j is not None] == list(range(len(right)))
    assert all(left[i] == right[j] for i, j in rows if i is not None and j is not None)


def test_changed_arguments_pair_by_shape_before_name():
    left = [key("look", "1", shape="x")]
    right = [key("look", "2", shape="y"), key("look", "3", shape="x")]

    assert pairs(align_steps(left, right)) == [(None, 0), (0, 1)]


def test_steps_of_other_names_do_not_pair():
    assert pairs(align_steps(keys("ab"), keys("ac"))) == [(0, 0), (1, None), (None, 1)]


def test_model_steps_pair_whatever_the_model_is_called():
    left, right = key("sonnet-4-2510", "x", kind="model"), key("sonnet-4-2511", "y", kind="model")

    assert pairs(align_steps([left], [right])) == [(0, 0)]


def test_moved_steps_name_each_other():
    rows = align_steps(keys("abc"), keys("bca")).rows

    assert [(r.left, r.right, r.moved_to) for r in rows] == [(0, None, 2), (1, 0, None), (2, 1, None), (None, 2, 0)]


@given(LETTERS, LETTERS)
def test_common_subsequence_is_in_order_and_agrees(left, right):
    found = common_subsequence(left, right).pairs

    assert found == sorted(found)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)
    assert [j for _, j in found] == sorted(j for _, j in found)
    assert all(left[i] == right[j] for i, j in found)


@settings(deadline=None, max_examples=20)
@given(LETTERS, LETTERS)
def test_common_subsequence_beyond_the_cap_says_so_and_stays_in_order(left, right):
    found = common_subsequence(left, right)
    left_long, right_long = [*range(-20_000, 0)], [*range(-40_000, -20_000)]

    rough = common_subsequence(["l", *left_long, *left, "l"], ["r", *right_long, *right, "r"])

    assert rough.approximate
    assert not found.approximate
    assert len(rough.pairs) <= len(found.pairs)
    assert [j for _, j in rough.pairs] == sorted({j for _, j in rough.pairs})


def test_two_long_unlike_runs_are_aligned_roughly():
    choose = random.Random(1)
    left, right = ([key(choose.choice("abc"), choose.choice("1234")) for _ in range(20_000)] for _ in "lr")

    assert align_steps(left, right).approximate
