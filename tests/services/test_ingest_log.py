"""The log of refusals: counted up, bounded, without secrets, and never in the way."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from sessions_app.models import IngestNote
from sessions_app.queries.ingest_log import last_received, recent
from sessions_app.services import ingest_log
from sessions_app.services.ingest_log import note, refused_key_words
from sessions_app.services.keys import create_key
from tests.builders import make_client, make_key, make_project, make_record, post_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop():
    return make_project()


def refused(project, words="1 span refused: no traceId", **changed):
    note(project, **{"door": "traces", "status": 400, "words": words, "count": 1} | changed)


@pytest.fixture(autouse=True)
def nothing_noted_yet(monkeypatch):
    monkeypatch.setattr(ingest_log, "_noted_at", {})


def made_older(**age):
    IngestNote.objects.update(last_at=timezone.now() - timedelta(**age))


def test_the_same_refusal_within_a_minute_is_counted_up(shop):
    for _ in range(3):
        refused(shop)

    assert [(kept.times, kept.count) for kept in recent(shop)] == [(3, 3)]


@pytest.mark.parametrize("changed", [{"words": "not JSON"}, {"status": 413}, {"door": "runs"}])
def test_another_refusal_is_a_line_of_its_own(shop, changed):
    refused(shop)
    refused(shop, **changed)

    assert [kept.times for kept in recent(shop)] == [1, 1]


def test_after_a_minute_the_same_refusal_is_a_new_line(shop):
    refused(shop)
    made_older(seconds=61)
    refused(shop)

    assert [kept.times for kept in recent(shop)] == [1, 1]


def test_only_the_newest_are_kept_for_each_project(shop, monkeypatch):
    monkeypatch.setattr(ingest_log, "KEPT", 3)
    other = make_project("other")
    refused(other, "theirs")
    note(shop, door="traces", status=200, words="", count=7)
    for number in range(5):
        refused(shop, f"reason {number}")

    assert [kept.words for kept in recent(shop)] == ["reason 4", "reason 3", "reason 2"]
    assert [kept.words for kept in recent(other)] == ["theirs"]
    assert last_received(shop).count == 7


def test_of_deliveries_the_newest_is_kept(shop):
    note(shop, door="traces", status=200, words="", count=4)
    made_older(seconds=5)
    ingest_log._noted_at.clear()
    note(shop, door="traces", status=202, words="", count=1)

    assert IngestNote.objects.count() == 1
    assert (last_received(shop).count, last_received(shop).times) == (1, 2)
    assert recent(shop) == []


def test_a_busy_sender_costs_no_query(shop, django_assert_num_queries):
    note(shop, door="traces", status=200, words="", count=4)

    with django_assert_num_queries(0):
        note(shop, door="traces", status=200, words="", count=5)
    note(shop, door="logs", status=200, words="", count=6)
    assert sorted(kept.count for kept in IngestNote.objects.all()) == [4, 6]


def test_of_several_processes_one_a_second_writes(shop):
    note(shop, door="traces", status=200, words="", count=4)
    ingest_log._noted_at.clear()
    note(shop, door="traces", status=200, words="", count=5)

    assert [kept.count for kept in IngestNote.objects.all()] == [4]


def test_an_empty_delivery_is_no_news(shop):
    note(shop, door="metrics", status=200, words="")

    assert last_received(shop) is None


def test_nothing_of_another_project_is_seen(shop):
    other = make_project("other")
    refused(other)
    note(other, door="traces", status=200, words="", count=1)

    assert recent(shop) == []
    assert last_received(shop) is None
    assert len(recent(other)) == 1


def test_refusals_are_forgotten_on_the_page_after_a_day(shop):
    refused(shop)
    made_older(hours=25)

    assert recent(shop) == []


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("Bearer rpk_ab12cdefghijklmnop", "unknown key rpk_ab12…"),
        ("bearer   sk-proj-abcdefghijkl", "unknown key sk-p…"),
        ("Bearer \x1b[31mred", "unknown key"),
        ("Bearer \u202egpj", "unknown key"),
        ("Basic dXNlcjpwYXNz", "no key: send the header Authorization: Bearer <key>"),
        ("", "no key: send the header Authorization: Bearer <key>"),
    ],
)
def test_of_an_unknown_key_only_the_beginning_is_told(header, words):
    assert refused_key_words(header) == words


def test_words_are_redacted_and_cut_and_can_be_stored(shop):
    refused(shop, "mail ann.smith@example.com\n\x00 \ud800" + "x" * 1000)

    words = recent(shop)[0].words
    assert "ann.smith@example.com" not in words
    assert words.startswith("mail [email:")
    assert len(words) == 300
    assert "\x00" not in words


def test_a_failure_to_note_is_not_the_senders(shop, caplog):
    refused(shop, status=10**9)

    assert recent(shop) == []
    assert "could not be noted: DataError" in caplog.text
    refused(shop)
    assert len(recent(shop)) == 1


@pytest.mark.django_db(transaction=True)
def test_who_notes_the_same_at_the_same_moment_does_not_wait(shop, second_connection):
    with transaction.atomic():
        refused(shop)
        with second_connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
            assert cursor.fetchone() == (1,)
            same = f"{shop.pk} traces 400 1 span refused: no traceId"
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 5))", [same])
            assert cursor.fetchone() == (False,)
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 5))", [same + "!"])
            assert cursor.fetchone() == (True,)

    assert len(recent(shop)) == 1


@pytest.fixture
def second_connection(transactional_db):
    copied = connection.copy()
    yield copied
    copied.close()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{not json", 400, "The document is not"),
        (make_record("r", {"kind": "guess"}), 400, "steps[0].kind"),
        (b"[" * 10_000, 413, "deep"),
    ],
)
def test_a_refused_run_is_noted_in_its_project(shop, body, status, words):
    answer = post_run(make_client(make_key(shop)), body)

    (noted,) = recent(shop)
    assert (answer.status_code, noted.status, noted.door) == (status, status, "runs")
    assert words in noted.words


def test_a_conflict_is_noted_and_what_was_taken_in_is_not(shop):
    client = make_client(make_key(shop))
    post_run(client, make_record("r1"))
    assert recent(shop) == []

    post_run(client, make_record("r1", output="other"))

    assert recent(shop)[0].words == "run_id: Run 'r1' is already stored with different content."


def test_an_unknown_key_is_shown_in_every_project_without_the_key(shop):
    post_run(make_client("rpk_ab12secretsecret"), make_record())

    (noted,) = recent(make_project("other"))
    assert (noted.project, noted.status, noted.words) == (None, 401, "unknown key rpk_ab12…")


def test_an_expired_key_is_noted_as_such(shop):
    ends = timezone.now() - timedelta(minutes=1)
    _, text = create_key(project=shop, name="x", scope="ingest", expires_at=ends)

    post_run(make_client(text), make_record())

    (noted,) = recent(shop)
    assert noted.words == f"key {text[:8]}… expired on {ends:%Y-%m-%d %H:%M} UTC"


def test_reading_with_a_bad_key_is_not_noted(shop):
    make_client("rpk_ab12secretsecret").get("/api/v1/sessions")

    assert not IngestNote.objects.exists()
