"""Payloads that came together lie in blocks; what was stored before that is read as it was."""

import pytest
from zstandard import ZstdError

from sessions_app.core.payload import sha256_hex
from sessions_app.mapping import payloads
from sessions_app.models import PayloadBlock, StoredPayload
from sessions_app.payloads.blocks import BLOCK_BYTES, blocks_of, read_block
from sessions_app.payloads.compression import pack
from tests.builders import make_project

WORDS = b"the order was shipped to another address than the invoice says "


def by_digest(*contents: bytes) -> dict[str, bytes]:
    return {sha256_hex(content): content for content in contents}


def made(count: int, size: int) -> dict[str, bytes]:
    return by_digest(*(f"{n}: ".encode() + WORDS * (size // len(WORDS)) for n in range(count)))


@pytest.mark.parametrize("pieces", [by_digest(b""), by_digest(b"", b"a"), made(7, 700), made(3, BLOCK_BYTES - 100)])
def test_blocks_hold_every_piece_once_and_their_shares_are_the_whole(pieces):
    blocks = list(blocks_of(pieces))

    found = {}
    for block in blocks:
        raw = read_block(block.data)
        found |= {digest: raw[each.start : each.start + each.size] for digest, each in block.places.items()}
        assert len(raw) <= BLOCK_BYTES
        assert sum(each.stored_size for each in block.places.values()) == (len(block.data) if raw else 0)
    assert found == pieces
    assert len(blocks) == (3 if len(pieces) == 3 else 1)


def test_a_changed_bit_of_a_block_is_noticed_unless_it_changes_nothing():
    (block,) = blocks_of(made(5, 300))
    raw, noticed = read_block(block.data), 0

    for bit in range(8 * len(block.data)):
        changed = bytearray(block.data)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            assert read_block(bytes(changed)) == raw
        except ZstdError:
            noticed += 1

    assert noticed > 7 * len(block.data)


@pytest.mark.django_db
def test_payloads_of_one_call_share_a_block_and_come_back():
    project, pieces = make_project(), made(20, 1500)

    payloads.write_many(project.pk, pieces)

    assert payloads.read_many(project.pk, [*pieces, "0" * 64]) == pieces
    assert PayloadBlock.objects.count() == 1
    stored = sum(StoredPayload.objects.values_list("stored_size", flat=True))
    assert stored == len(PayloadBlock.objects.get().data) < sum(map(len, pieces.values())) / 10


@pytest.mark.django_db
def test_a_payload_that_is_there_is_not_written_again():
    project, pieces = make_project(), made(3, 300)
    payloads.write_many(project.pk, pieces)

    payloads.write_many(project.pk, pieces)
    assert (PayloadBlock.objects.count(), StoredPayload.objects.count()) == (1, 3)

    payloads.write_many(project.pk, {**pieces, **by_digest(b"another")})
    assert (PayloadBlock.objects.count(), StoredPayload.objects.count()) == (2, 4)


@pytest.mark.django_db
def test_who_comes_too_late_reads_what_the_other_wrote(monkeypatch):
    project, first, second = make_project(), made(3, 300), {**made(3, 300), **by_digest(b"another")}
    payloads.write_many(project.pk, first)
    # As if the other had committed just after the question for what is known.
    monkeypatch.setattr(payloads, "_known", lambda *asked: set())

    payloads.write_many(project.pk, second)

    assert payloads.read_many(project.pk, second) == second
    assert (PayloadBlock.objects.count(), StoredPayload.objects.count()) == (2, 4)


@pytest.mark.django_db
def test_a_piece_too_long_for_a_block_stands_alone():
    project, long, short = make_project(), WORDS * 4_000, by_digest(b"one", b"two")
    assert len(long) > BLOCK_BYTES

    payloads.write_many(project.pk, {**by_digest(long), **short})

    alone = StoredPayload.objects.get(size=len(long))
    assert (alone.block, bytes(alone.data or b"")) == (None, pack(long).data)
    assert payloads.read_many(project.pk, [sha256_hex(long), *short]) == {**by_digest(long), **short}


@pytest.mark.django_db
@pytest.mark.parametrize("content", [b"short", WORDS * 20])
def test_rows_of_their_own_from_before_there_were_blocks_are_read(content):
    project, packed = make_project(), pack(content)
    StoredPayload.objects.create(
        project=project,
        digest=bytes.fromhex(sha256_hex(content)),
        size=len(content),
        stored_size=len(packed.data),
        data=packed.data,
        is_compressed=packed.is_compressed,
    )

    assert payloads.read(project.pk, sha256_hex(content)) == content
