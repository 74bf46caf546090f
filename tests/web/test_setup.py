"""Sending the first recording: the key, what to paste, whether it arrived."""

import html
import json
import re

import pytest

from sessions_app.models import ApiKey, Run, Session
from sessions_app.services.ingest import ingest_document
from sessions_app.services.ingest_log import note
from sessions_app.services.keys import find_key
from sessions_app.web.setup.capture_scores import capture_scores
from tests.web.making import HOSTILE, client_of, make_project, make_session, make_user, match
from tests.web.records import load_record, model_step, tool_step

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/setup"


@pytest.fixture
def ann(shop):
    return client_of(make_user("ann", shop, "admin"))


def test_setup_shows_this_servers_address_and_waits(ann):
    page = ann.get(f"{ADDRESS}?tab=curl").content.decode()

    assert "curl http://testserver/api/v1/runs" in page
    assert "waiting for the first session…" in page
    assert 'hx-trigger="every 2s, refresh"' in page


def test_a_key_is_shown_once_and_works(shop, ann):
    response = ann.post(f"{ADDRESS}/keys", {"name": "production", "scope": "ingest"})

    page = response.content.decode()
    key = match(r'id="new-key">(rpk_[\w-]+)<', page)
    assert find_key(key) == ApiKey.objects.get()
    assert page.count(key) == 9
    assert "$REPLAY_KEY" not in page
    assert "no-store" in response["Cache-Control"]
    assert key not in ann.get(ADDRESS).content.decode()


def test_a_key_needs_a_name(shop, ann):
    assert ann.post(f"{ADDRESS}/keys", {"name": " ", "scope": "ingest"}).status_code == 422
    assert ann.post(f"{ADDRESS}/keys", {"name": "x", "scope": "root"}).status_code == 422
    assert not ApiKey.objects.exists()


def test_a_form_whose_name_is_refused_keeps_the_rest(shop, ann):
    page = ann.post(f"{ADDRESS}/keys", {"name": " ", "scope": "full", "days": "90"}).content.decode()

    assert re.findall(r'value="(\w+)" selected', page.split('id="key-scope"')[1].split("</form>")[0]) == ["full", "90"]


def test_viewers_may_not_make_keys(shop):
    eve = client_of(make_user("eve", shop, "viewer"))

    assert eve.post(f"{ADDRESS}/keys", {"name": "x", "scope": "full"}).status_code == 403
    page = eve.get(ADDRESS).content.decode()
    assert "Create key" not in page
    assert "create one above" not in page


def test_the_session_file_of_the_page_is_one_that_the_server_takes(shop, ann):
    pasted = html.unescape(match(r'id="way-curl"[^>]*>(.*?)</pre>', ann.get(f"{ADDRESS}?tab=curl").content.decode()))
    body = match(r"<<'END'\n(.*?)\nEND\n", pasted)

    run = ingest_document(shop, json.dumps(json.loads(body)).encode()).run

    assert (run.run_id, run.input_preview, run.output_preview) == (
        "my-first",
        "Where is my order?",
        "It is on its way.",
    )


SNIPPET = re.compile(r'<pre class="code" id="way-(\w+)"[^>]*>(.*?)</pre>', re.DOTALL)
TABS = ["opentelemetry", "pydantic-ai", "openai-agents", "langgraph", "recorder", "curl"]


def snippets(page):
    return {name: html.unescape(code) for name, code in SNIPPET.findall(page)}


def test_every_way_to_send_is_short_and_has_a_tab(ann):
    pages = [ann.get(ADDRESS, {"tab": tab}).content.decode() for tab in TABS]

    found = {name: code for page in pages for name, code in snippets(page).items()}
    assert len(found) == 8
    assert all(len(code.splitlines()) <= 8 for code in found.values())
    assert all(
        re.search(r'href="\?tab=(.*?)#part-send"\s+aria-current', page)[1] == tab
        for tab, page in zip(TABS, pages, strict=True)
    )


def test_an_unknown_tab_is_the_first(ann):
    assert list(snippets(ann.get(ADDRESS, {"tab": "nope"}).content.decode())) == ["opentelemetry"]


def test_with_a_new_key_every_way_is_there_with_it(shop, ann):
    page = ann.post(f"{ADDRESS}/keys?tab=curl", {"name": "production", "scope": "ingest"}).content.decode()

    key = match(r'id="new-key">(rpk_[\w-]+)<', page)
    assert len(snippets(page)) == 8
    assert all(key in code and len(code.splitlines()) <= 8 for code in snippets(page).values())
    assert page.count('<details class="way"') == len(TABS)
    assert re.search(r'<details class="way" name="way" open>\s*<summary>curl', page)


def test_the_variables_of_opentelemetry_are_those_that_exporters_read(ann):
    lines = snippets(ann.get(ADDRESS).content.decode())["opentelemetry"].splitlines()

    assert lines == [
        'export OTEL_EXPORTER_OTLP_ENDPOINT="http://testserver"',
        'export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20$REPLAY_KEY"',
        'export OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf"',
        'export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true"',
    ]


@pytest.mark.parametrize("tab", ["pydantic-ai", "openai-agents", "langgraph", "recorder"])
@pytest.mark.parametrize("with_key", [True, False])
def test_code_in_python_is_python(ann, tab, with_key):
    asked = (
        ann.post(f"{ADDRESS}/keys", {"name": "n", "scope": "ingest"}) if with_key else ann.get(f"{ADDRESS}?tab={tab}")
    )

    found = snippets(asked.content.decode())

    for name in found.keys() - {"opentelemetry", "curl", "dump"}:
        compile(found[name], name, "exec")
    assert found


def test_refusals_are_shown_in_words(shop, ann):
    for _ in range(3):
        note(shop, door="traces", status=400, words="logs were sent to the traces address")
    note(None, door="traces", status=401, words="unknown key rpk_ab12…")
    note(shop, door="traces", status=200, words="1 span refused: no traceId", count=1)

    page = ann.get(f"{ADDRESS}/waiting").content.decode()

    rows = [" ".join(re.sub(r"<.*?>", " ", row).split()) for row in page.split("<li>")[1:]]
    assert [row.split(" ", 2)[2] for row in rows] == [
        "refused 1 span refused: no traceId",
        "401 unknown key rpk_ab12…",
        "400 logs were sent to the traces address × 3",
    ]
    assert "waiting for the first session…" in page


def test_refusals_of_another_project_are_not_shown(shop, ann):
    note(make_project("other"), door="traces", status=400, words="theirs alone")

    assert "theirs alone" not in ann.get(ADDRESS).content.decode()


def test_words_of_a_refusal_are_text(shop, ann):
    note(shop, door="traces", status=400, words=HOSTILE)

    page = ann.get(ADDRESS).content.decode()

    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_spans_are_shown_before_their_session_is_there(shop, ann):
    note(shop, door="traces", status=200, words="", count=1)

    page = " ".join(re.sub(r"<.*?>", " ", ann.get(f"{ADDRESS}/waiting").content.decode()).split())

    assert "received 1 span, " in page
    assert "the session appears when its run has ended" in page


def test_log_records_are_not_called_spans(shop, ann):
    note(shop, door="logs", status=200, words="", count=2)

    assert "2 log records, " in ann.get(f"{ADDRESS}/waiting").content.decode()


def test_a_run_that_came_after_the_spans_is_shown_instead(shop, ann):
    note(shop, door="traces", status=200, words="", count=1)
    make_session(shop, "chat_1")

    page = ann.get(f"{ADDRESS}/waiting").content.decode()

    assert "1 span" not in page
    assert "/s/chat_1?run=" in page


def test_what_arrived_is_shown_live_and_unchanged_parts_are_not_sent_again(shop, ann):
    before = ann.get(f"{ADDRESS}/waiting")
    make_session(shop, "chat_1")
    after = ann.get(f"{ADDRESS}/waiting")

    assert "waiting for" in before.content.decode()
    assert "chat_1" in after.content.decode()
    assert "1 step" in after.content.decode()
    assert ann.get(f"{ADDRESS}/waiting", headers={"If-None-Match": after["ETag"]}).status_code == 304


def test_later_the_page_scores_what_was_captured(shop, ann):
    make_session(shop, "s")

    page = ann.get(ADDRESS).content.decode()

    assert "Send data</h1>" in " ".join(page.split()).replace(" </h1>", "</h1>")
    assert "Capture next" in page
    assert "100 %" in page


def test_the_cheapest_of_what_is_mostly_missing_is_to_be_captured_next(shop):
    make_session(shop, "s")

    scores = capture_scores(shop)

    assert scores["runs"] == 1
    assert [entry["line"]["key"] for entry in scores["fixes"]] == ["commit", "flags"]
    assert all(entry["line"]["code"] for entry in scores["fixes"])


def test_a_line_that_is_partial_says_what_it_holds(shop, ann):
    load_record(shop, steps=[model_step(), tool_step()])

    page = ann.get(ADDRESS).content.decode()

    partly = [entry for entry in capture_scores(shop)["lines"] if entry["partial"]]
    assert partly
    for entry in partly:
        assert html.escape(entry["partly_why"][:60]) in page


def test_scores_of_many_runs_are_one_query(shop, django_assert_num_queries):
    for number in range(3):
        make_session(shop, f"s{number}")

    with django_assert_num_queries(1):
        assert capture_scores(shop)["runs"] == 3


def test_examples_come_and_go_with_one_click(shop, ann):
    make_session(shop, "mine")
    ann.post("/p/shop/examples/load")
    loaded = Run.objects.count()

    ann.post("/p/shop/examples/remove")

    assert loaded > 1
    assert [session.session_id for session in Session.objects.all()] == ["mine"]


def test_only_admins_remove_examples(shop):
    bob = client_of(make_user("bob", shop))

    assert bob.post("/p/shop/examples/remove").status_code == 403
    assert "Remove the example" not in bob.get(ADDRESS).content.decode()
