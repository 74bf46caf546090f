import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.compare.words import Segment, text_difference

MEGABYTE = 1_000_000
TEXTS = st.text(alphabet="ab_ \n\r\t.é", max_size=60)


def random_words(count: int, seed: int) -> str:
    choose = random.Random(seed)
    return " ".join(str(choose.randrange(10**6)) for _ in range(count))


WORST = {
    "equal lines": ("same line\n" * 100_000, "same line\n" * 99_999),
    "alternating": ("a\nb\n" * 250_000, "b\na\n" * 250_000 + "c"),
    "alternating words": ("ab " * 333_333, "ba " * 333_333),
    "unrelated": (random_words(140_000, 1), random_words(140_000, 2)),
    "one long word": ("x" * MEGABYTE, "y" * MEGABYTE),
    "white space": (" " * MEGABYTE, "\t" * MEGABYTE),
}


def test_words_are_marked_and_white_space_is_a_word():
    found = text_difference("cancel  order 5521 now", "cancel order ORD-5521 now")

    assert found.segments == (
        Segment(kind="equal", text="cancel "),
        Segment(kind="removed", text=" "),
        Segment(kind="equal", text="order "),
        Segment(kind="added", text="ORD-"),
        Segment(kind="equal", text="5521 now"),
    )
    assert not found.too_different


def test_no_word_is_torn():
    assert text_difference("shipped today", "shipping today").segments == (
        Segment(kind="removed", text="shipped"),
        Segment(kind="added", text="shipping"),
        Segment(kind="equal", text=" today"),
    )


@given(TEXTS, TEXTS)
def test_segments_make_both_texts(left, right):
    segments = text_difference(left, right).segments

    assert "".join(s.text for s in segments if s.kind != "added") == left
    assert "".join(s.text for s in segments if s.kind != "removed") == right
    assert all(s.text for s in segments)


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text):
    assert {s.kind for s in text_difference(text, text).segments} <= {"equal"}


def test_texts_that_share_next_to_nothing_are_blocks():
    found = text_difference(random_words(200, 1), random_words(200, 2))

    assert found.too_different
    assert [s.kind for s in found.segments] == ["removed", "added"]


def test_long_texts_are_compared_by_lines():
    lines = [f"line {n} {'x' * 50}\n" for n in range(9_000)]

    found = text_difference("".join(["a\n", *lines, "b\n"]), "".join(["c\n", *lines[1:], "d\n"]))

    assert found.too_different
    assert [s.kind for s in found.segments] == ["removed", "added", "equal", "removed", "added", "equal"]


@pytest.mark.parametrize("pair", WORST.values(), ids=WORST.keys())
def test_worst_pairs_of_a_megabyte_are_compared(pair):
    segments = text_difference(*pair).segments

    assert "".join(s.text for s in segments if s.kind != "added") == pair[0]
