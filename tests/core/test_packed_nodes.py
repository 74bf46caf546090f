"""Links of histories as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.packed_nodes import NumberedLink, Reference, read_links, write_links

REFERENCES: st.SearchStrategy[Reference] = st.integers(0, 2**31) | st.binary(min_size=32, max_size=32).map(bytes.hex)


@st.composite
def forests(draw) -> tuple[int, list[NumberedLink]]:
    """Chains that part anywhere, some of which go on from links before the first."""
    first = draw(st.integers(0, 1_000))
    links: list[NumberedLink] = []
    for number in range(first, first + draw(st.integers(0, 20))):
        links.append((draw(st.none() | st.integers(0, number - 1)) if number else None, draw(REFERENCES)))
    return first, links


@given(forests())
def test_links_come_back(forest):
    first, links = forest

    assert read_links(write_links(links, first), first) == dict(enumerate(links, first))


@pytest.mark.parametrize("first", [0, 5_000])
def test_a_chain_takes_a_byte_or_two_a_link(first):
    chain: list[NumberedLink] = [(number - 1 if number else None, number % 100) for number in range(first, first + 100)]

    assert len(write_links(chain, first)) < 220
