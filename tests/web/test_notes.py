"""Notes on a run and its steps: who writes them, where they stand, what they may hold, who deletes them."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from playwright.sync_api import expect

from sessions_app.models import Note
from sessions_app.services.deletion import delete_run
from sessions_app.services.notes import LONGEST, MOST, write_note
from sessions_app.services.sharing import create_link
from sessions_app.templatetags.notes import noted
from tests.web.browsing import arrive, press
from tests.web.forked import load_forked, load_parent, make_fork
from tests.web.making import client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, tool_step
from tests.web.test_session import page_of

pytestmark = pytest.mark.django_db
WRITE = "/p/shop/s/chat_7710_1117/notes"


@pytest.fixture
def run(shop):
    return load_example(shop, "r_8821")


@pytest.fixture
def ann(shop):
    return make_user("ann", shop)


def panel_of(client, n, **headers):
    return client.get(f"/p/shop/s/chat_7710_1117/steps/{n}", headers={"HX-Request": "true", **headers})


def test_a_note_on_the_run_stands_on_its_page_with_its_author(run, ann):
    answer = client_of(ann).post(WRITE, {"run": "r_8821", "text": "  Looks like INC-7.\r\nAsk Bo.  "})

    note = Note.objects.get()
    assert (note.text, note.step, note.author) == ("Looks like INC-7.\nAsk Bo.", None, ann)
    assert answer["Location"] == f"/p/shop/s/chat_7710_1117#note-{note.pk}"
    assert "<strong>ann</strong>" in match(
        rf'(<li class="noted" id="note-{note.pk}".*?</li>)', page_of(client_of(ann), run)
    )


def test_a_note_on_a_step_stands_on_the_step_and_leads_to_it(run, ann, bob):
    client_of(ann).post(WRITE, {"run": "r_8821", "step": "2", "text": "user_id is missing"})

    for page in (panel_of(bob, 2).content, bob.get("/p/shop/s/chat_7710_1117/steps/2").content):
        assert "user_id is missing" in page.decode()
    assert "user_id is missing" not in panel_of(bob, 1).content.decode()
    assert 'href="?step=2#s2"' in page_of(bob, run, step=1)


def test_a_panel_that_a_browser_kept_is_drawn_again_once_a_note_is_written(run, ann):
    client = client_of(ann)
    kept = panel_of(client, 2)["ETag"]
    unchanged = panel_of(client, 2, **{"If-None-Match": kept}).status_code
    write_note(run=run, text="new", step=2, author=ann)

    assert (unchanged, panel_of(client, 2, **{"If-None-Match": kept}).status_code) == (304, 200)


def test_links_and_step_numbers_are_links_and_all_else_is_text():
    shown = noted("see https://a.example/x?b=1#4 <script>\u202e and #2, not a#3", "/p/shop/s/x?")

    assert '<a href="https://a.example/x?b=1#4" rel="nofollow">' in shown
    assert '<a href="/p/shop/s/x?step=2" data-step="2">#2</a>' in shown
    assert "&lt;script&gt;[RLO]" in shown
    assert shown.count("<a ") == 2
    assert "javascript:" not in noted("javascript:alert(1)", "?").replace("javascript:alert(1)", "", 1)


@pytest.mark.parametrize(
    ("text", "step", "problem"),
    [
        (" \n", "", "A note needs a text."),
        ("x" * (LONGEST + 1), "", f"text must be text of at most {LONGEST} characters."),
        ("a\x00b", "", f"text must be text of at most {LONGEST} characters."),
        ("x", "99", "The run has no step 99."),
    ],
)
def test_a_note_that_cannot_be_kept_says_why_and_loses_nothing(run, ann, text, step, problem):
    answer = client_of(ann).post(WRITE, {"run": "r_8821", "text": text, "step": step})

    page = answer.content.decode()
    assert (answer.status_code, Note.objects.count()) == (422, 0)
    assert problem in page
    assert text.strip()[:50].replace("\x00", "�") in page or text in page


def test_a_run_has_so_many_notes_at_most(run, ann):
    Note.objects.bulk_create(Note(run=run, text="x") for _ in range(MOST))

    assert "at most 500 notes" in client_of(ann).post(WRITE, {"text": "x"}).content.decode()


def test_its_author_and_admins_delete_a_note_and_nobody_else(shop, run, ann, bob):
    note = write_note(run=run, text="x", author=ann)
    delete = reverse("delete_note", args=["shop", note.pk])

    assert delete not in page_of(bob, run)
    assert bob.post(delete).status_code == 403
    assert (
        client_of(make_user("zoe", make_project("other"))).post(f"/p/other/notes/{note.pk}/delete").status_code == 404
    )
    assert delete in page_of(client_of(ann), run)
    assert delete in page_of(client_of(make_user("root", shop, "admin")), run)
    assert client_of(ann).post(delete)["Location"] == "/p/shop/s/chat_7710_1117"
    assert Note.objects.count() == 0


def test_viewers_read_notes_and_write_none(shop, run, ann):
    write_note(run=run, text="for all to see", author=ann)
    vera = client_of(make_user("vera", shop, "viewer"))

    page = page_of(vera, run)
    assert "for all to see" in page
    assert WRITE not in page
    assert vera.post(WRITE, {"text": "x"}).status_code == 403


def test_a_shared_page_has_no_notes(run, ann):
    write_note(run=run, text="only for us", author=ann, step=1)
    _, token = create_link(run=run, user=ann)

    pages = [Client().get(f"/shared/{token}{more}").content.decode() for more in ("?step=1", "/steps/1")]
    assert not any("only for us" in page or "note-new" in page for page in pages)


def test_notes_on_other_runs_of_the_session_name_their_run(shop, bob, ann):
    first = load_record(shop, run_id="one", steps=[tool_step()])
    second = load_record(shop, run_id="two", steps=[tool_step()])
    write_note(run=second, text="there", step=1, author=ann)

    assert 'href="?run=two&amp;step=1"' in page_of(bob, first, run="one")


def test_notes_go_with_their_run_and_outlive_their_author(run, ann, bob):
    write_note(run=run, text="x", author=ann)
    ann.delete()

    assert "a former member" in page_of(bob, run)
    delete_run(run)
    assert Note.objects.count() == 0


def test_three_notes_need_no_more_queries_than_one(run, ann):
    client, counts = client_of(ann), []
    for more in (1, 2):
        for _ in range(more):
            write_note(run=run, text="x", step=1, author=ann)
        with CaptureQueriesContext(connection) as queries:
            page_of(client, run, step=1)
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_a_link_is_shared_to_a_step(run, ann):
    share = reverse("share", args=["shop", "chat_7710_1117"])
    client = client_of(ann)
    asked = client.get(share, {"run": "r_8821", "step": "2"}).content.decode()
    made = client.post(share, {"run": "r_8821", "step": "2"}).content.decode()
    whole = client.post(share, {"run": "r_8821"}).content.decode()

    address = match(r'data-copy="http://testserver(/shared/[^"]*)"', made)
    assert f"{share}?run=r_8821&amp;step=2" in panel_of(client, 2).content.decode()
    assert "open at step 2" in asked
    assert address.endswith("?step=2")
    assert 'data-shown="2"' in Client().get(address).content.decode()
    assert "step=" not in match(r'data-copy="http://testserver(/shared/[^"]*)"', whole)


@pytest.mark.django_db(transaction=True)
def test_a_note_is_written_by_keys_alone(page, live_server, shop):
    make_user("bob", shop)
    load_example(shop, "r_8821")
    arrive(page, f"{live_server.url}/p/shop/s/chat_7710_1117?step=1")

    press(page, "J")
    page.wait_for_url("**step=2*")
    press(page, "m")
    page.keyboard.type("user_id is missing, see #3")
    press(page, "Control+Enter")
    page.wait_for_url("**step=2#note-*")

    expect(page.locator("#panel .noted-text")).to_have_text("user_id is missing, see #3")
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical", "moderate"}] == []


def test_notes_and_tags_of_the_recorded_run_are_not_told_of_its_fork(shop, bob, ann):
    made = load_forked(shop)
    fork = make_fork(load_parent(shop), produced_run=made)
    write_note(run=fork.run, text="on the recording", author=ann)
    made.session.tags = ["INC-7"]
    made.session.save()

    recorded, forked = (page_of(bob, made, run=name) for name in (fork.run.run_id, made.run_id))

    assert ("on the recording" in recorded, "INC-7" in recorded) == (True, True)
    assert ("on the recording" in forked, "INC-7" in forked) == (False, False)
