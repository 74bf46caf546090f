"""Texts of lists that go on where an earlier one ended are packed by what is new, and come back to the letter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.spans.packing import Packer, Unpacker

NAME = "gen_ai.input.messages"
MESSAGES = [json.dumps({"role": "user", "content": f"message {n} " + "words " * 40}) for n in range(6)]


def packed_and_back(texts: list[str]) -> tuple[list[str], Packer]:
    packer = Packer(lambda content, is_json: content, lambda name: False)
    packed = [packer.attributes({NAME: text}) for text in texts]
    reader = Unpacker(packer.pieces).of(nodes=packer.nodes.digests, payloads=packer.payloads.digests, exact=True)
    return [reader.attributes(each)[NAME] for each in packed], packer


def nodes_of(texts: list[str]) -> set[str]:
    return set(packed_and_back(texts)[1].pieces.nodes)


@pytest.mark.parametrize("separator", [",", ", ", ",\n"])
def test_a_growing_list_comes_back_and_keeps_each_message_once(separator):
    texts = [f"[{separator.join(MESSAGES[:count])}]" for count in range(2, 7)]

    back, packer = packed_and_back(texts)

    assert back == texts
    assert len(packer.pieces.nodes) == len(MESSAGES)


def test_a_chain_that_grew_is_the_same_as_one_that_came_whole():
    grown = [f"[{','.join(MESSAGES[:count])}]" for count in (2, 3, 6)]

    assert nodes_of(grown) == nodes_of(grown[-1:])


@given(
    st.lists(st.sampled_from([*MESSAGES, '["~0"]', "[", "]", '"', "1", '{"a": "b"}', "\\", ""]), max_size=5),
    st.sampled_from([",", ", ", ",\n", ""]),
    st.sampled_from(["]", "", "] ", "]]"]),
)
def test_whatever_follows_a_list_comes_back(rest, separator, end):
    begun = f"[{', '.join(MESSAGES[:2])}"
    texts = [f"{begun}]", separator.join([begun, *rest]) + end, f"{begun}]"]

    assert packed_and_back(texts)[0] == texts
