"""The quick ways of writing JSON write what the standard library writes: digests depend on it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.payload import compact_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_the_spelling_is_that_of_the_library(value):
    assert compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
