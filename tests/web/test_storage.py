"""What storing costs: the sums against what was stored, and the page."""

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Page

from sessions_app.core.packed_nodes import NumberedLink
from sessions_app.core.payload import sha256_hex
from sessions_app.core.spans.sizes import said_bytes
from sessions_app.core.spans.span import LogRecord, SpanEvent
from sessions_app.mapping import payloads
from sessions_app.mapping.run_contents import read_history
from sessions_app.models import (
    ContentBlock,
    Project,
    Run,
    RunContent,
    SpanBatch,
    StoredPayload,
)
from sessions_app.payloads.compression import pack_object
from sessions_app.queries import storage as queries
from sessions_app.queries.payloads import read_payload
from sessions_app.queries.storage import Amount, storage_of
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from tests.builders import TRACE, a_span, make_growing_record, make_record, make_tool_step
from tests.traces.captures import CHOICE, Capture
from tests.web.browsing import arrive, looks
from tests.web.making import HOSTILE, client_of, make_project, make_user
from tests.web.records import load_record

pytestmark = pytest.mark.django_db
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")


@pytest.fixture(autouse=True)
def blobs(settings, tmp_path):
    settings.REPLAY_BLOBS = str(tmp_path / "blobs")
    settings.REPLAY_BLOB_THRESHOLD_BYTES = 4096
    return tmp_path / "blobs"


def document(run_id: str, *steps: dict[str, Any]) -> bytes:
    return json.dumps(make_record(run_id, *steps)).encode()


def incompressible(size: int) -> str:
    return "".join(sha256_hex(str(number).encode()) for number in range(size // 64))


# --- sums --------------------------------------------------------------------------------------


def test_an_empty_project_costs_nothing(shop):
    ingest_document(make_project("other"), document("r1", make_tool_step(result="one")))

    found = storage_of(shop)

    assert found.is_empty
    assert (found.stored_bytes, found.parts, found.bytes_a_step) == (0, [], None)


def test_documents_are_counted_as_received_and_equal_ones_once(shop):
    first, second = document("r1", make_tool_step(result="one")), document("r2", make_tool_step(result="two"))
    for content in (first, first, second):
        ingest_document(shop, content)

    assert storage_of(shop).documents == Amount(count=2, size=len(first) + len(second))


def test_payloads_are_summed_where_they_lie(shop, blobs):
    ingest_document(shop, document("r1", make_tool_step(result="plain " * 1_000)))
    ingest_document(shop, document("r2", make_tool_step(result=incompressible(64_000))))

    found = storage_of(shop)

    rows = list(StoredPayload.objects.filter(project=shop))
    files = [path for path in blobs.rglob("*") if path.is_file()]
    contents = payloads.read_many(shop.pk, map(str, rows)).values()
    inside = [row for row in rows if row.data is not None]
    taken = [row.data for row in rows if row.data]
    assert files
    assert inside
    assert found.payloads.count + found.blobs.count == len({sha256_hex(content) for content in contents})
    assert (found.payloads.size or 0) + (found.blobs.size or 0) == sum(map(len, contents))
    assert (found.blobs.count, found.blobs.stored) == (len(files), sum(path.stat().st_size for path in files))
    assert (found.payloads.count, found.payloads.stored) == (len(inside), sum(map(len, taken)))


def test_what_is_read_back_is_equal_to_what_was_compressed(shop):
    content = document("r1", make_tool_step(result="again and " * 2_000))
    run = ingest_document(shop, content).run

    row = StoredPayload.objects.get(digest=run.source_digest)

    assert row.is_compressed
    assert row.stored_size < row.size == len(content)
    assert read_payload(shop.pk, sha256_hex(content)) == content


def test_runs_steps_and_batches_are_summed_to_the_byte(shop):
    ingest_document(shop, document("r1", make_tool_step(result="one")))
    receive(shop, ORDER.spans)

    found = storage_of(shop)

    assert found.runs.stored == sum(len(pack_object(bytes(content.header))) for content in RunContent.objects.all())
    outlines = sum(len(bytes(content.outline)) for content in RunContent.objects.all())
    assert found.steps.stored == outlines + sum(len(bytes(block.data)) for block in ContentBlock.objects.all())
    assert found.steps.count == sum(len(run.steps) for run in Run.objects.all()) > 0
    assert found.batches.stored == sum(len(bytes(batch.content)) for batch in SpanBatch.objects.all())
    assert found.stored_bytes == sum(amount.stored for amount in found.kept) > found.batches.stored > 0


def test_spans_count_what_their_attributes_said(shop):
    event = SpanEvent(name="said", time_ns=1, attributes={"äh": [1, "two"]})
    log = LogRecord(trace_id=TRACE, span_id=None, event=SpanEvent(name="log", time_ns=1, attributes={"k": "v" * 500}))

    receive(shop, [a_span(attributes={"text": "x" * 5_000, "n": 7}, events=(event,))], [log])

    said = (4 + 5_000) + (1 + 8) + (3 + 8 + 3) + (1 + 500)
    assert storage_of(shop).spans == Amount(count=1, size=said)


@pytest.mark.parametrize(
    ("value", "size"),
    [("\ud800", 1), ("ä", 2), (10**5_000, 8), (None, 8), (float("nan"), 8), ([], 0), ({"k": ["v", {"": True}]}, 10)],
    ids=["half a pair", "not ASCII", "huge", "null", "not a number", "empty", "nested"],
)
def test_any_value_has_a_size(value, size):
    assert said_bytes({"name": value}) == len("name") + size


def test_values_nested_deep_have_a_size():
    value: Any = "x"
    for _ in range(100_000):
        value = [value]

    assert said_bytes({"n": value}) == 2


def test_spans_that_come_twice_in_one_batch_count_once(shop):
    receive(shop, [a_span(attributes={"text": "x" * 5_000})])
    once = storage_of(shop)

    receive(shop, [a_span(attributes={"text": "x" * 5_000})])

    assert storage_of(shop) == once
    assert once.spans.size == 5_004


def test_a_conversation_sent_again_and_again_is_kept_once(shop):
    receive(shop, ORDER.spans)
    sent = sum(said_bytes(span.attributes) for span in ORDER.spans)

    found = storage_of(shop)

    assert found.spans.size == sent + sum(said_bytes(each.attributes) for span in ORDER.spans for each in span.events)
    assert (found.recorded, found.made) == (1, 0)


def test_histories_say_how_many_messages_their_links_stand_for(shop):
    ingest_document(shop, json.dumps(make_growing_record("r1", steps=12)).encode())
    content = Run.objects.get().content
    links = read_history(content, range(content.node_count))

    found = storage_of(shop)

    heads = [step.input_node for step in Run.objects.get().steps if step.input_node is not None]
    walked = [walk(links, head) for head in heads]
    assert found.histories is not None
    assert found.histories.requests == len(heads) > 5
    assert found.histories.references == sum(map(len, walked))
    assert found.histories.links == len({node for path in walked for node in path}) < found.histories.references / 2
    assert found.links.count == len(links)
    assert found.histories.messages == len({links[node][1] for path in walked for node in path})


def walk(links: dict[int, NumberedLink], head: int | None) -> list[int]:
    path = []
    while head is not None:
        path.append(head)
        head = links[head][0]
    return path


def test_histories_too_long_to_walk_are_not_counted(shop, monkeypatch):
    ingest_document(shop, json.dumps(make_growing_record("r1", steps=12)).encode())
    monkeypatch.setattr(queries, "_AT_MOST_NODES", 5)

    assert storage_of(shop).histories is None


def test_sums_that_were_cut_say_so(shop, monkeypatch):
    for number in range(4):
        ingest_document(shop, document(f"r{number}", make_tool_step(result=number)))
    whole = storage_of(shop)
    monkeypatch.setattr(queries, "AT_MOST", 3)

    found = storage_of(shop)

    assert not whole.is_cut
    assert (found.is_cut, found.runs.is_cut, found.spans.is_cut) == (True, True, False)
    assert (found.bytes_a_step, whole.bytes_a_step is None) == (None, False)


def test_the_largest_runs_come_first_and_are_ten(shop):
    for number in range(12):
        ingest_document(shop, document(f"r{number}", make_tool_step(result="x" * number * 100)))
    ingest_document(make_project("other"), document("theirs", make_tool_step(result="x" * 9_000)))

    found = storage_of(shop).largest

    assert [run.run_id for run in found] == [f"r{number}" for number in range(11, 1, -1)]
    assert found[0].size == len(document("r11", make_tool_step(result="x" * 1_100)))


def test_the_page_asks_eight_questions_whatever_is_stored(shop):
    def count() -> int:
        with CaptureQueriesContext(connection) as asked:
            storage_of(shop)
        return len(asked)

    ingest_document(shop, json.dumps(make_growing_record("r1", steps=6)).encode())
    one = count()
    ingest_document(shop, json.dumps(make_growing_record("r2", steps=12)).encode())
    receive(shop, ORDER.spans)

    assert (one, count()) == (8, 8)


# --- pages -------------------------------------------------------------------------------------


def page_of(project: Project) -> str:
    return client_of(make_user("bob", project)).get(f"/p/{project.slug}/storage").content.decode()


def test_the_page_shows_the_sums(shop):
    ingest_document(shop, document("r1", make_tool_step(result="one")))

    page = page_of(shop)

    assert re.search(r"\S+ K?i?B stored for 1 recorded run\.", " ".join(page.split()))
    assert "replay" not in page.partition('id="main"')[2].partition("Runs are kept")[0]
    assert f"{len(document('r1', make_tool_step(result='one')))} B" in page
    assert "/p/shop/s/r1?run=r1" in page


def test_replays_are_not_counted_as_recorded_runs(shop):
    load_record(shop, run_id="r1", session_id="chat")
    load_record(shop, run_id="r1_replay_1", session_id="chat", origin="replay")

    found = storage_of(shop)

    assert (found.recorded, found.made) == (1, 1)
    assert "stored for 1 recorded run." in " ".join(page_of(shop).split())


def test_the_page_of_an_empty_project_says_so(shop):
    page = page_of(shop)

    assert "Nothing is stored yet." in page
    assert "Largest runs" not in page


def test_the_page_says_many_for_what_was_not_counted(shop, monkeypatch):
    ingest_document(shop, document("r1", make_tool_step(result="one")))
    assert "many" not in page_of(shop)
    monkeypatch.setattr(queries, "AT_MOST", 1)

    page = client_of(make_user("eve", shop)).get("/p/shop/storage").content.decode()

    assert "too many runs to add up" in page
    assert "many" in page


def test_only_members_see_what_a_project_costs(shop):
    stranger = client_of(make_user("charlie"))

    assert stranger.get("/p/shop/storage").status_code == 404


def test_the_set_up_page_links_to_storage(shop):
    assert 'href="/p/shop/storage"' in client_of(make_user("bob", shop)).get("/p/shop/setup").content.decode()


@pytest.mark.parametrize(
    ("is_compressed", "words", "other"),
    [
        (True, r"stored as \d+ B <span class=\"soft\">\(zstd\)</span>", "stored as it is"),
        (False, "stored as it is", "zstd"),
    ],
)
def test_a_payload_says_how_it_is_stored(shop, is_compressed, words, other):
    long = "long enough to be stored apart " * 200
    ingest_document(shop, document("r1", make_tool_step(result=long)))
    if not is_compressed:
        StoredPayload.objects.filter(size=len(long)).update(is_compressed=False, data=long.encode())
    client = client_of(make_user("bob", shop))

    page = client.get(f"/p/shop/payloads/{sha256_hex(long.encode())}").content.decode()

    assert re.search(words, page)
    assert other not in page


# --- in a browser ------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@looks
def test_the_page_is_accessible_and_fits(page: Page, live_server, shop, monkeypatch, scheme, width):
    make_user("ann", shop)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    arrive(page, f"{live_server.url}/p/shop/storage", "ann")

    def check(state: str) -> None:
        found = [(each["id"], each["nodes"][0]["html"]) for each in Axe().run(page).response["violations"]]
        assert (state, found) == (state, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, state

    check("empty")
    receive(shop, ORDER.spans)
    ingest_document(shop, json.dumps(make_growing_record("r" * 200, steps=12)).encode())
    ingest_document(shop, document(HOSTILE.split("\x1b")[0], make_tool_step(result=incompressible(64_000))))
    page.reload()
    check("filled")
    monkeypatch.setattr(queries, "AT_MOST", 1)
    page.reload()
    assert "too many runs to add up" in page.inner_text("main")
    check("cut")
    page.goto(f"{live_server.url}/p/shop/setup")
    check("set up")
    digest = Run.objects.filter(trace__isnull=True).latest("pk").document
    page.goto(f"{live_server.url}/p/shop/payloads/{digest}")
    check("payload")
