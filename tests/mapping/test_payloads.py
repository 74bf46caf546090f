"""Payloads that are stored apart, by their digest."""

import pytest

from sessions_app.core.payload import LONG, sha256_hex
from sessions_app.mapping import payloads
from sessions_app.models import StoredPayload
from sessions_app.payloads.compression import pack
from tests.builders import make_project

pytestmark = pytest.mark.django_db
WORDS = b"the order was shipped to another address than the invoice says "


def by_digest(*contents: bytes) -> dict[str, bytes]:
    return {sha256_hex(content): content for content in contents}


def made(count: int, size: int = 2 * LONG) -> dict[str, bytes]:
    return by_digest(*(f"{n}: ".encode() + WORDS * (size // len(WORDS)) for n in range(count)))


def test_those_that_are_stored_come_back():
    project, pieces = make_project(), {**made(20), **by_digest(b"", b"short")}

    payloads.write_many(project.pk, pieces)

    assert payloads.read_many(project.pk, [*pieces, "0" * 64]) == pieces
    stored = sum(StoredPayload.objects.values_list("stored_size", flat=True))
    assert stored == sum(len(bytes(row.data or b"")) for row in StoredPayload.objects.all())
    assert stored < sum(map(len, pieces.values())) / 10


def test_those_of_another_project_are_not_read():
    project, other = make_project(), make_project("other")
    payloads.write_many(other.pk, made(1))

    assert payloads.read_many(project.pk, made(1)) == {}


def test_a_payload_that_is_there_is_not_written_again():
    project, pieces = make_project(), made(3)
    payloads.write_many(project.pk, pieces)

    payloads.write_many(project.pk, pieces)
    assert StoredPayload.objects.count() == 3

    payloads.write_many(project.pk, {**pieces, **by_digest(b"another")})
    assert StoredPayload.objects.count() == 4


def test_who_comes_too_late_reads_what_the_other_wrote(monkeypatch):
    project, first, second = make_project(), made(3), {**made(3), **by_digest(b"another")}
    payloads.write_many(project.pk, first)
    # As if the other had committed just after the question for what is known.
    monkeypatch.setattr(payloads, "_known", lambda *asked: set())

    payloads.write_many(project.pk, second)

    assert payloads.read_many(project.pk, second) == second
    assert StoredPayload.objects.count() == 4


@pytest.mark.parametrize("content", [b"short", WORDS * 20])
def test_a_short_one_is_stored_as_it_is_where_that_is_shorter(content):
    project = make_project()

    payloads.write_many(project.pk, by_digest(content))

    row = StoredPayload.objects.get()
    assert (bytes(row.data or b""), row.is_compressed) == (pack(content).data, len(content) > 100)
