"""What every page shares: who may see it, the bar, keys, times, recorded text."""

import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.conf import settings
from django.db import OperationalError
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.urls import resolve, reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.templatetags import recorded as filters
from sessions_app.templatetags.frame import strip
from sessions_app.web.badges import TABLES, state_of
from sessions_app.web.errors.views import server_error
from sessions_app.web.keys import SHEET
from tests.web.making import client_of, make_project, make_session, make_user, match
from tests.web.records import load_record, tool_step

TEMPLATES = Path(settings.TEMPLATES[0]["DIRS"][0])
BUILT_IN = {"?", "Esc", "Enter", "mod+Enter", "j", "k", "d", "r"}
PAGES = ["/p/shop/sessions", "/p/shop/cold", "/p/shop/setup", "/find", "/me"]


# --- who


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_pages_need_a_sign_in(page):
    make_project()

    assert Client().get(page)["Location"].startswith("/sign-in?next=")


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES[:3])
def test_pages_of_others_look_like_pages_that_do_not_exist(page):
    make_project(name="Secret name")
    charlie = client_of(make_user("charlie"))

    theirs, none = charlie.get(page), charlie.get(page.replace("shop", "nope"))

    assert (theirs.status_code, none.status_code) == (404, 404)
    assert "you are not a member" in theirs.content.decode()
    assert "Secret name" not in theirs.content.decode()


@pytest.mark.django_db
def test_superusers_see_every_project():
    make_project()
    root = make_user("root")
    root.is_superuser = True
    root.save()

    assert client_of(root).get("/p/shop/sessions").status_code == 200


@pytest.mark.django_db
def test_the_switcher_offers_ones_own_projects_alone():
    bob = make_user("bob", make_project("one", "First"))
    make_project("two", "Second")

    page = client_of(bob).get("/p/one/sessions").content.decode()

    assert "First" in page
    assert "Second" not in page


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_pages_hold_no_inline_script_or_style(page):
    project = make_project()
    make_session(project, "s")

    content = client_of(make_user("bob", project)).get(page).content.decode()

    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|hx-on|javascript:", content)
    assert "{%" not in content


# --- errors


@pytest.mark.django_db
def test_a_host_that_is_not_ours_is_refused_in_words(client, settings):
    settings.ALLOWED_HOSTS = ["replay.example.org"]

    answer = client.get("/", headers={"host": "elsewhere.example"})

    assert answer.status_code == 400
    assert "This request could not be read." in answer.content.decode()


def test_a_failure_shows_a_reference_that_stands_in_the_log(caplog):
    response = server_error(RequestFactory().get("/p/shop/s/secret"))

    reference = match(r"reference <code>(\w{8})</code>", response.content.decode())
    assert response.status_code == 500
    assert reference in caplog.text
    assert "secret" not in response.content.decode()


def test_a_page_whose_database_does_not_answer_says_to_come_back():
    try:
        raise OperationalError
    except OperationalError:
        response = server_error(RequestFactory().get("/"))

    assert (response.status_code, response["Retry-After"]) == (503, "2")
    assert "The database does not answer." in response.content.decode()


# --- ids in addresses


@given(st.text(min_size=1, max_size=60).filter(lambda text: "\x00" not in text))
def test_any_id_comes_back_from_its_address(session_id):
    address = reverse("session", args=["shop", session_id])

    assert not {".", ".."} & set(address.split("/"))
    assert resolve(unquote(address)).kwargs == {"project": "shop", "session_id": session_id}


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_both_ids_of_a_diff_come_back_from_its_address(left, right):
    address = reverse("diff", args=["shop", left, right])

    assert resolve(unquote(address)).kwargs == {"project": "shop", "left": left, "right": right}


# --- recorded text


@given(st.text(max_size=60))
def test_recorded_text_is_never_markup_and_never_invisible(text):
    shown = filters.recorded(text)

    without_tags = re.sub(r'<span class="ctl[^>]*>|</span>', "", shown)
    assert "<" not in without_tags
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, '<em class="missing">not captured</em>'),
        ("", ""),
        ("a\nb\tc", "a\nb\tc"),
        ("a\r\nb", "a\r\nb"),
        ("a\x1bb", 'a<span class="ctl" title="U+001B">ESC</span>b'),
        ("\u200b", '<span class="ctl" title="U+200B ZERO WIDTH SPACE">ZWSP</span>'),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("a\u200db", 'a<span class="ctl" title="U+200D ZERO WIDTH JOINER">ZWJ</span>b'),
        ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;"),
        (7, "7"),
    ],
)
def test_recorded_shows(text, shown):
    assert filters.recorded(text) == shown


def test_clip_middle_keeps_both_ends():
    assert filters.clip_middle("abcdefghij", 7) == "abc…hij"
    assert filters.clip_middle("abc", 7) == "abc"
    assert filters.clip_middle(None, 7) is None


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (840, "840 ms"),
        (1420, "1.42 s"),
        (59_999, "1 min 00 s"),
        (64_000, "1 min 04 s"),
        (7_500_000, "2 h 05 min"),
    ],
)
def test_durations(milliseconds, words):
    assert filters.duration(milliseconds) == words


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (49_152, "48 KiB"), (5_347_737, "5.1 MiB")]
)
def test_sizes(size, words):
    assert filters.bytes_size(size) == words


def test_times_are_relative_for_a_day_and_exact_on_hover():
    now = timezone.now()

    assert ">2 h ago</time>" in filters.ago(now - timedelta(hours=2, minutes=5))
    assert now.isoformat() in filters.ago(now)
    assert "not captured" in filters.ago(None)


# --- states, strips, keys


def test_every_state_has_an_icon_in_the_sprite():
    sprite = (TEMPLATES.parent / "static" / "icons.svg").read_text()

    assert all(f'<symbol id="{state.icon}"' in sprite for table in TABLES.values() for state in table.values())
    assert state_of("run", "something_new").word == "something new"


def test_every_icon_that_templates_use_is_in_the_sprite():
    sprite = (TEMPLATES.parent / "static" / "icons.svg").read_text()
    used = {name for file in TEMPLATES.rglob("*.html") for name in re.findall(r'{% icon "([\w-]+)"', file.read_text())}

    assert {name for name in used if f'<symbol id="{name}"' not in sprite} == set()


def test_strip_marks_failed_steps_and_joins_repeats():
    drawn = strip("mtttM", 5)

    assert drawn.count("<rect") == 6
    assert 'class="failed"' in drawn
    assert 'class="joint"' in drawn
    assert 'aria-label="5 steps, 1 failed"' in drawn


@pytest.mark.parametrize("at", [0, 147, 200])
def test_the_strip_of_a_long_run_shows_a_failure_wherever_it_is(at):
    drawn = strip("m" * at + "T" + "m" * (200 - at), 201)
    x = int(re.search(r'class="failed" x="(\d+)"', drawn)[1])
    width = int(re.search(r'width="(\d+)"', drawn)[1])

    assert abs(x / width - at / 201) < 0.05
    assert 'aria-label="201 steps, 1 failed"' in drawn


def test_longer_runs_have_longer_strips_up_to_a_width():
    widths = [int(re.search(r'width="(\d+)"', strip("m" * 200, count))[1]) for count in (201, 2_001, 20_001)]

    assert widths[0] < widths[1] <= widths[2] == 26 * 4 - 1


def test_where_a_letter_stands_for_several_steps_failures_are_not_counted():
    assert 'aria-label="2001 steps, some failed"' in strip("m" * 199 + "T", 2_001)


@pytest.mark.django_db
def test_what_is_not_found_can_be_searched_for(bob):
    page = bob.get("/p/shop/s/no<b>pe+1/").content.decode()

    assert f'href="{reverse("find")}?q=no%3Cb%3Epe%2B1"' in page
    assert 'Search for <span class="recorded">no&lt;b&gt;pe+1</span>' in page


@pytest.mark.django_db
@pytest.mark.parametrize(("address", "status"), [("replays/none", 404), ("settings/name", 405)])
def test_pages_of_what_went_wrong_keep_the_navigation_of_the_project(address, status):
    shop = make_project()
    member, stranger = client_of(make_user("bob", shop)), client_of(make_user("eve"))

    answers = [client.get(f"/p/shop/{address}") for client in (member, stranger)]

    assert answers[0].status_code == status
    assert ["/p/shop/costs" in answer.content.decode() for answer in answers] == [True, False]


def test_every_key_of_the_sheet_has_a_control_on_some_page():
    pages = "\n".join(file.read_text() for file in TEMPLATES.rglob("*.html"))
    written = {text.replace("&lt;", "<").replace("&gt;", ">") for text in re.findall(r'data-key="([^"{]+)"', pages)}
    sections = {"g n", "g s", "g r", "g c", "g g", "g t", "g m", "g d", "g e"}

    assert {key.press for group in SHEET for key in group.keys} - BUILT_IN - sections - written == set()


def test_state_tag_takes_a_suffix():
    shown = Template('{% load frame %}{% state "verdict" "replayable_to_step" 5 %}').render(Context({}))

    assert "replayable to step 5" in shown
    assert "state-partial" in shown


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s/chat_9", "No session chat_9."),
        ("s/chat_9?run=r_7", "No run r_7."),
        ("replays/rp_1", "No replay rp_1."),
        ("goldens/gd_1", "No golden gd_1."),
        ("nothing/here", "no such page"),
    ],
)
def test_a_page_that_is_not_there_names_what_was_asked_for(shop, bob, address, words):
    page = bob.get(f"/p/shop/{address}")

    assert page.status_code == 404
    assert words in re.sub(r"<[^>]+>", "", page.content.decode())


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["s/chat_1/steps/99", "s/chat_1/fork?step=99"])
def test_a_step_that_its_run_does_not_have_denies_neither_the_session_nor_the_run(shop, bob, address):
    load_record(shop, run_id="r_1", session_id="chat_1", steps=[tool_step("track"), tool_step("track")])

    page = bob.get(f"/p/shop/{address}")
    words = re.sub(r"<[^>]+>", "", page.content.decode())

    assert page.status_code == 404
    assert "r_1 has no step 99; it has 2." in words
    assert "No session" not in words
    assert 'href="/p/shop/s/chat_1/steps/2"' in page.content.decode()


@pytest.mark.django_db
def test_a_project_of_others_is_named_beside_those_that_one_can_open(shop, bob):
    page = bob.get("/p/other/sessions").content.decode()

    assert "No project other, or you are not a member." in re.sub(r"<[^>]+>", "", page)
    assert "Search for" not in page
    assert re.search(r'<li><a href="/p/shop/">', page)
    stranger = client_of(make_user("eve")).get("/p/other/sessions").content.decode()
    assert "You are not a member of any project yet." in stranger


@pytest.mark.django_db
def test_pages_without_runs_lead_to_where_data_is_sent_and_offer_nothing_else(shop, bob):
    for address in ("cold", "goldens", "goldens/failures", "tools"):
        page = bob.get(f"/p/shop/{address}").content.decode()
        assert re.search(r'btn-main"\s+href="/p/shop/setup"', page), address
        assert "Export…" not in page


@pytest.mark.django_db
def test_the_page_where_data_is_sent_says_why_now_opens_it(shop, bob):
    page = bob.get("/p/shop/", follow=True).content.decode()

    assert re.search(r"<h1>\s*Send data\s*</h1>", page)
    assert "<em>Now</em> opens here until it arrives" in page


def test_no_page_sends_its_reader_to_a_file_of_the_source():
    named = {path.name: re.findall(r"docs/[\w-]+\.md", path.read_text()) for path in TEMPLATES.rglob("*.html")}

    assert {name: files for name, files in named.items() if files} == {}
