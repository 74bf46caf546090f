"""Tags: on the page of a session, on several rows at once, in queries."""

import pytest
from playwright.sync_api import expect

from sessions_app.models import Project, Session
from sessions_app.services.tags import LONGEST, MOST
from tests.web.browsing import arrive, press
from tests.web.making import HOSTILE, client_of, make_project, make_session, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Project:
    return make_project()


@pytest.fixture
def bob(shop):
    return client_of(make_user("bob", shop))


def tags(session_id: str = "s1") -> list[str]:
    return Session.objects.get(session_id=session_id).tags


def test_tags_are_added_once_and_removed(bob, shop):
    make_session(shop, "s1")

    bob.post("/p/shop/s/s1/tags", {"add": " refund,  seen by   support ,refund"})
    bob.post("/p/shop/s/s1/tags", {"add": "refund"})
    assert tags() == ["refund", "seen by support"]

    bob.post("/p/shop/s/s1/tags", {"add": "", "untag": "refund"})
    assert tags() == ["seen by support"]


def test_a_tag_leads_to_the_sessions_that_have_it(bob, shop):
    make_session(shop, "s1")
    make_session(shop, "s2")
    bob.post("/p/shop/s/s1/tags", {"add": "seen by support"})

    page = bob.get("/p/shop/s/s1").content.decode()
    listed = bob.get("/p/shop/sessions", {"q": 'tag:"seen by support"'}).content.decode()

    assert "/p/shop/sessions?q=tag%3A%22seen%20by%20support%22" in page
    assert "/p/shop/s/s1" in listed
    assert "/p/shop/s/s2" not in listed


def test_the_part_alone_is_answered_to_htmx(bob, shop):
    make_session(shop, "s1")

    answer = bob.post("/p/shop/s/s1/tags", {"add": "refund"}, headers={"HX-Request": "true"}).content.decode()

    assert answer.lstrip().startswith("<form")
    assert "Remove the tag refund" in answer


@pytest.mark.parametrize("typed", ["x" * (LONGEST + 1), ",".join(map(str, range(MOST + 1))), "a\x00b"])
def test_tags_that_cannot_be_are_refused_in_words(bob, shop, typed):
    make_session(shop, "s1")

    answer = bob.post("/p/shop/s/s1/tags", {"add": typed}, follow=True).content.decode()

    assert "tag is text on one line" in answer or "at most 20 tags" in answer
    assert tags() == []


def test_several_rows_are_tagged_at_once(bob, shop):
    runs = [make_session(shop, name) for name in ("s1", "s2", "s3")]
    picked = [run.run_id for run in runs[:2]]

    bob.post("/p/shop/sessions/bulk", {"do": "tag", "run": picked, "tags": "refund"})
    assert [tags(name) for name in ("s1", "s2", "s3")] == [["refund"], ["refund"], []]

    bob.post("/p/shop/sessions/bulk", {"do": "untag", "run": picked[:1], "tags": "refund"})
    assert [tags(name) for name in ("s1", "s2")] == [[], ["refund"]]


@pytest.mark.django_db(transaction=True)
def test_a_tag_is_taken_off_and_the_next_one_typed(page, live_server, bob, shop):
    make_session(shop, "s1")
    bob.post("/p/shop/s/s1/tags", {"add": "refund"})
    arrive(page, f"{live_server.url}/p/shop/s/s1")

    page.get_by_role("button", name="Remove the tag refund").click()
    expect(page.locator(".tag")).to_have_count(0)
    expect(page.get_by_label("Add a tag")).to_be_focused()
    page.keyboard.type("angry")
    press(page, "Enter")

    expect(page.locator(".tag")).to_have_text("angry")
    expect(page.get_by_label("Add a tag")).to_be_focused()


def test_viewers_see_tags_and_change_none(bob, shop):
    make_session(shop, "s1")
    bob.post("/p/shop/s/s1/tags", {"add": "refund"})
    vera = client_of(make_user("vera", shop, role="viewer"))

    page = vera.get("/p/shop/s/s1").content.decode()

    assert "refund" in page
    assert "Remove the tag" not in page
    assert vera.post("/p/shop/s/s1/tags", {"untag": "refund"}).status_code == 403
    assert tags() == ["refund"]


def test_tags_are_text(bob, shop):
    make_session(shop, "s1")
    bob.post("/p/shop/s/s1/tags", {"add": HOSTILE.replace("\x1b", "").replace("\x07", "")})

    for page in ("/p/shop/s/s1", "/p/shop/sessions"):
        assert "<script>alert" not in bob.get(page).content.decode()
    assert len(tags()) == 1
