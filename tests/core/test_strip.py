"""A run as a row of letters."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.strip import strip_of


@given(letters=st.lists(st.sampled_from("mtraMT"), max_size=90), most=st.integers(1, 40))
def test_no_failure_is_folded_away(letters, most):
    shown = strip_of(letters, most)

    assert len(shown) == min(len(letters), most)
    assert any(letter.isupper() for letter in letters) == any(letter.isupper() for letter in shown)
    assert set(shown) <= set(letters)


def test_a_failure_keeps_its_place():
    assert strip_of("m" * 148 + "T" + "m" * 51, 20).index("T") == 14
    assert strip_of("mtm", 20) == "mtm"
