"""Nodes of hash chains as bytes."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.history import Link, extend, node_digest, nodes
from sessions_app.core.packed_nodes import pack_nodes, unpack_nodes
from sessions_app.core.payload import Payload, sha256_hex


def chain(length: int) -> dict[str, Link]:
    """The newest node first, as whoever walks a history finds them."""
    head = extend(None, [Payload.of_json(number) for number in range(length)])
    return {node.digest: (node.parent.digest if node.parent else None, node.message.digest) for node in nodes(head)}


@st.composite
def forests(draw) -> dict[str, Link]:
    """Chains that part anywhere, some of which go on from a node that is not among them; in any order."""
    heads: list[str | None] = [None, sha256_hex(b"elsewhere")]
    links: dict[str, Link] = {}
    for number in range(draw(st.integers(0, 20))):
        link = (draw(st.sampled_from(heads)), sha256_hex(b"%d" % number))
        heads.append(node_digest(*link))
        links[node_digest(*link)] = link
    return dict(draw(st.permutations(list(links.items()))))


@given(forests())
def test_nodes_come_back(links):
    assert unpack_nodes(pack_nodes(links)) == links


def test_a_node_comes_after_the_one_it_follows():
    read = unpack_nodes(pack_nodes(chain(5)))

    assert list(read) == [*chain(5)][::-1]


def test_a_node_takes_the_digest_of_its_message():
    assert len(pack_nodes(chain(100))) == 100 * 32 + 36


def test_nothing_packs_to_nothing():
    assert (pack_nodes({}), unpack_nodes(b"")) == (b"", {})


def test_damaged_bytes_lead_nowhere_and_never_to_another_history():
    whole = chain(6)
    packed, newest = pack_nodes(whole), next(iter(whole))
    damaged = [packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :] for at in range(len(packed))]
    damaged += [packed[:length] for length in range(len(packed))]

    found = [unpack_nodes(each) for each in damaged]

    assert all(nodes.get(digest, link) == link for nodes in found for digest, link in whole.items())
    # A count that grew leads to all that is there.
    assert sum(newest in nodes for nodes in found) < 5
