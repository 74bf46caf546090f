"""Checks that a run suggests."""

import pytest

from sessions_app.core.goldens.proposals import part_unlike


@pytest.mark.parametrize(
    ("text", "other", "part"),
    [
        ("Three nights are €774.00.", "Three nights are €828.00.", "€774.00"),
        ("Yes, until 14:00.", "No, that is never possible.", "Yes, until 14:00"),
        ("It is shipped.", "It is shipped, and paid.", None),
        ("the same", "the same", None),
    ],
)
def test_the_part_of_an_answer_that_another_lacks_is_its_first_words_unlike(text, other, part):
    assert part_unlike(text, other) == part
