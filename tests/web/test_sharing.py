"""Share links: who makes them, what they show, what they do not, and when they stop."""

import logging
import re
from datetime import UTC, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from replay_web.log_masks import MaskShareTokens
from sessions_app.core.payload import sha256_hex
from sessions_app.models import Replay, Run, ShareLink
from sessions_app.services.sharing import create_link, find_link
from tests.builders import all_stored_bytes
from tests.web.browsing import arrive, press
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(shop):
    return make_user("ann", shop)


@pytest.fixture
def run(shop):
    return load_record(shop, run_id="one", session_id="chat", steps=[model_step(1), tool_step(parent=1)])


def share_address(run):
    return reverse("share", args=["shop", run.session.session_id])


def made_by(user, run, **query):
    """The token that the page shows."""
    page = client_of(user).post(share_address(run), {"run": run.run_id, **query}).content.decode()
    return match(r"http://testserver/shared/([\w-]+)<", page)


def shared(token, *more):
    """The answer to someone without an account."""
    return Client().get("/".join(("/shared", token, *more)))


# --- making one


def test_a_member_makes_a_link_and_sees_it_once(run, ann):
    token = made_by(ann, run)

    again = client_of(ann).get(share_address(run)).content.decode()
    assert token not in again
    assert len(token) >= 22  # 128 bits and more
    assert not any(token.encode() in value for _, value in all_stored_bytes())
    assert shared(token).status_code == 200


def test_a_new_link_is_in_the_list_below_it(run, ann):
    page = client_of(ann).post(share_address(run), {"run": run.run_id}).content.decode()

    assert 'Links to this run <span class="count">1</span>' in page
    assert "Only members of this project can see" not in page


def test_the_session_page_offers_it_to_members_alone(shop, run, ann):
    vera = make_user("vera", shop, role="viewer")
    session = reverse("session", args=["shop", "chat"])

    assert f'href="{share_address(run)}?run=one"' in client_of(ann).get(session).content.decode()
    assert share_address(run) not in client_of(vera).get(session).content.decode()


def test_viewers_are_refused_and_outsiders_find_nothing(shop, run):
    vera, charlie = make_user("vera", shop, role="viewer"), make_user("charlie", make_project("elsewhere"))
    link, _ = create_link(run=run, user=None)
    revoke = reverse("revoke_share", args=["shop", "chat", link.pk])

    for user, status in ((vera, 403), (charlie, 404)):
        client = client_of(user)
        assert client.get(share_address(run)).status_code == status
        assert client.post(share_address(run)).status_code == status
        assert client.post(revoke).status_code == status
    assert ShareLink.objects.filter(revoked_at=None).count() == 1


def test_making_and_revoking_need_a_token_of_the_form(run, ann):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ann)
    link, _ = create_link(run=run, user=ann)

    assert strict.post(share_address(run)).status_code == 403
    assert strict.post(reverse("revoke_share", args=["shop", "chat", link.pk])).status_code == 403
    assert client_of(ann).get(reverse("revoke_share", args=["shop", "chat", link.pk])).status_code == 405
    assert ShareLink.objects.filter(revoked_at=None).count() == 1


@pytest.mark.parametrize(("days", "lasts"), [({}, 7), ({"days": "1"}, 1), ({"days": "30"}, 30)])
def test_a_link_ends_by_itself(run, ann, days, lasts):
    made_by(ann, run, **days)

    left = ShareLink.objects.get().expires_at - timezone.now()
    assert timedelta(days=lasts) - left < timedelta(minutes=1)


def test_no_link_lasts_longer_than_is_offered(run, ann):
    response = client_of(ann).post(share_address(run), {"days": "3650"})

    assert response.status_code == 422
    assert "Choose one of the times offered." in response.content.decode()
    assert not ShareLink.objects.exists()


def test_links_are_listed_with_their_views(run, ann):
    token = made_by(ann, run)
    for _ in range(3):
        shared(token)
    shared(token, "steps", "1")

    row = match(
        r'<table class="share-links">.*?<tbody>(.*?)</tbody>', client_of(ann).get(share_address(run)).content.decode()
    )

    assert "ann" in row
    assert '<td class="num">3</td>' in row
    assert "active" in row


# --- what it shows


def test_it_shows_the_run_read_only_and_leads_nowhere_else(run, ann):
    token = made_by(ann, run)
    until = ShareLink.objects.get().expires_at

    for more in ((), ("steps", "1"), ("steps", "2")):
        page = shared(token, *more).content.decode()
        assert "shared by <strong>ann</strong>" in page
        assert f">{until.day} {until:%b}</time>" in page
        assert "/p/" not in page
        assert '<nav class="bar' not in page
        assert "<form" not in page
        assert "download" not in page
        assert "csrf" not in page
        assert 'href="/me"' not in page
    messages = Client().get(f"/shared/{token}?view=messages&step=1").content.decode()
    assert "question 1" in messages
    assert "/p/" not in messages
    assert "download" not in messages


def test_it_tells_of_replays_but_not_of_forks_and_not_whose_run_it_was(shop, run, ann):
    Run.objects.update(user_id="u_100", tenant_id="t_north")
    common = {"project": shop, "run": run, "content": run.content, "state": "done"}
    Replay.objects.create(**common, number=1, verdict="reproduced")
    Replay.objects.create(**common, number=2, verdict="cancelled")
    Replay.objects.create(**common, number=1, mode="fork", verdict="diverged", fork_id="f")

    page = shared(made_by(ann, run)).content.decode()

    tried = match(r'(<section class="tried".*?</section>)', page)
    assert re.findall(r"(?:replay|fork) #\d", tried) == ["replay #1", "replay #2"]
    assert "u_100" not in page
    assert "t_north" not in page


def test_its_times_are_read_days_later_and_elsewhere(run, ann):
    page = shared(made_by(ann, run)).content.decode()

    assert f">{run.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC</time>" in page
    assert "data-ago" not in page


def test_a_member_sees_the_same_page(run, ann):
    token = made_by(ann, run)

    assert client_of(ann).get(f"/shared/{token}").content == shared(token).content


@pytest.mark.parametrize("name", ["r_8821", "run_xyz789", "cancel_bug", "price_429", "abc123.session"])
def test_every_page_of_the_examples_stays_below_the_link(shop, ann, name):
    run = load_example(shop, name)
    _, token = create_link(run=run, user=ann)
    last = len(run.steps)

    pages = [shared(token), Client().get(f"/shared/{token}?view=messages&step={last}")]
    pages += [shared(token, "steps", str(n)) for n in range(1, last + 1)]
    pages += [Client().get(f"/shared/{token}/steps/{n}", headers={"HX-Request": "true"}) for n in range(1, last + 1)]

    for page in pages:
        assert page.status_code == 200
        assert b"/p/" not in page.content
        assert b"download" not in page.content


def test_search_engines_caches_and_other_sites_are_told_nothing(run, ann):
    token = made_by(ann, run)
    digest = run.document

    for answer in (shared(token), shared(token, "steps", "1"), shared(token, "payloads", digest), shared("none")):
        assert answer["X-Robots-Tag"] == "noindex, nofollow"
        assert answer["Referrer-Policy"] == "no-referrer"
        assert "no-store" in answer["Cache-Control"]
    assert '<meta name="robots" content="noindex, nofollow">' in shared(token).content.decode()


def test_hostile_text_is_text_here_too(shop, ann):
    run = load_record(shop, input=HOSTILE, output=HOSTILE, steps=[tool_step("<i>t</i>", arguments={"a": HOSTILE})])
    _, token = create_link(run=run, user=ann)

    for page in (shared(token), shared(token, "steps", "1")):
        assert b"<script>alert" not in page.content
        assert "\u202e" not in page.content.decode()
        assert b"<i>t" not in page.content


def test_only_payloads_of_the_run_can_be_read_and_only_their_first_part(shop, run, ann):
    own = load_record(shop, run_id="big", session_id="big", input="x" * 200_000, steps=[model_step(1), tool_step()])
    token = made_by(ann, own)
    page = shared(token).content.decode()
    digest = match(rf"/shared/{token}/payloads/([0-9a-f]+)", page)

    shown = shared(token, "payloads", digest).content.decode()
    assert "bytes 0–65536" in shown
    assert "next part" not in shown
    assert "download" not in shown
    whole = Client().get(f"/shared/{token}/payloads/{digest}?download=1&from=65536&as=bytes")
    assert whole.content.decode() == shown
    assert "attachment" not in whole.get("Content-Disposition", "")
    assert shared(token, "payloads", own.document).status_code == 404
    assert shared(token, "payloads", "0" * 64).status_code == 404
    assert shared(token, "payloads", "x").status_code == 404


def test_messages_of_the_run_have_an_address_and_those_of_others_do_not(shop, ann):
    first = load_record(shop, run_id="a", session_id="a", steps=[model_step(1)])
    second = load_record(shop, run_id="b", session_id="b", steps=[model_step(2)])
    tokens = [create_link(run=run, user=ann)[1] for run in (first, second)]
    pages = [shared(token, "steps", "1").content.decode() for token in tokens]
    digests = [match(r"message-user.*?/payloads/([0-9a-f]{64})", page) for page in pages]

    assert shared(tokens[0], "payloads", digests[0]).status_code == 200
    assert shared(tokens[0], "payloads", digests[1]).status_code == 404
    assert shared(tokens[1], "payloads", digests[0]).status_code == 404


def test_another_run_of_the_session_is_not_reachable(shop, run, ann):
    other = load_record(shop, run_id="two", session_id="chat", input="secret two", steps=[tool_step(result="two")] * 5)
    token = made_by(ann, run)

    page = shared(token).content.decode()
    assert "two" not in page
    assert "2 runs" not in page
    for more in ("?run=two", "?run=2", "/steps/1?run=two", "/steps/4"):
        assert Client().get(f"/shared/{token}{more}").status_code == 404
    for reference in bytes(other.content.header).split(b'"sha256": "')[1:2]:
        assert shared(token, "payloads", reference[:64].decode()).status_code == 404


def test_a_recording_that_names_a_payload_of_another_run_does_not_open_it(shop, ann):
    secret = "known to one run alone " * 400
    load_record(shop, run_id="other", session_id="other", input=secret, steps=[tool_step()])
    digest = sha256_hex(secret.encode())
    named = {"sha256": digest}
    run = load_record(shop, run_id="own", session_id="own", odd=named, steps=[tool_step(odd=[named])])

    assert shared(made_by(ann, run), "payloads", digest).status_code == 404


def test_the_number_of_queries_is_fixed(shop, run, ann):
    many = load_record(shop, run_id="many", session_id="many", steps=[model_step(1), *[tool_step(parent=1)] * 150])
    counts = []
    for shown in (run, many):
        _, token = create_link(run=shown, user=ann)
        with CaptureQueriesContext(connection) as seen:
            Client().get(f"/shared/{token}?step=1")
        counts.append(len(seen))

    assert counts[0] == counts[1]


# --- the end of it


def test_expired_revoked_and_unknown_links_are_the_same_answer(run, ann):
    expired, revoked = made_by(ann, run), made_by(ann, run)
    newest = ShareLink.objects.order_by("-pk").first()
    ShareLink.objects.exclude(pk=newest.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    ShareLink.objects.filter(pk=newest.pk).update(revoked_at=timezone.now())

    for more in ((), ("steps", "1"), ("payloads", run.document)):
        answers = [shared(token, *more) for token in (expired, revoked, "A" * 43, "x")]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1
        assert len({tuple(sorted(set(answer.items()) - {_id_of(answer)})) for answer in answers}) == 1


def _id_of(answer):
    """Each request has an id of its own."""
    return "X-Request-ID", answer["X-Request-ID"]


def test_a_link_ends_at_its_hour(run, ann):
    token = made_by(ann, run)
    ends = ShareLink.objects.get().expires_at

    assert find_link(token, now=ends - timedelta(seconds=1)) is not None
    assert find_link(token, now=ends) is None


def test_a_revoked_link_shows_nothing_at_the_next_request(run, ann):
    token = made_by(ann, run)
    assert shared(token).status_code == 200
    link = ShareLink.objects.get()

    answer = client_of(ann).post(reverse("revoke_share", args=["shop", "chat", link.pk]), follow=True)

    assert "revoked" in answer.content.decode()
    assert shared(token).status_code == 404
    assert shared(token, "steps", "1").status_code == 404


def test_a_link_of_another_project_cannot_be_revoked_from_here(run):
    elsewhere = make_project("elsewhere")
    theirs = load_record(elsewhere, session_id="chat")
    link, _ = create_link(run=theirs, user=None)
    bob = client_of(make_user("bob", run.project))

    assert bob.post(reverse("revoke_share", args=["shop", "chat", link.pk])).status_code == 404
    assert ShareLink.objects.filter(revoked_at=None).exists()


def test_the_link_of_someone_who_left_still_says_so(run, ann):
    token = made_by(ann, run)
    ann.delete()

    assert "shared by <strong>a former member</strong>" in shared(token).content.decode()


def test_the_token_does_not_reach_the_log(run, ann):
    token = made_by(ann, run)
    path = f"/shared/{token}/steps/99"
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "%s: %s", ("Not Found", path), None)

    MaskShareTokens().filter(record)

    assert record.getMessage() == "Not Found: /shared/…/steps/99"
    assert "mask" in settings.LOGGING["handlers"]["stderr"]["filters"]


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_a_shared_page_is_only_read(run, ann, method):
    token = made_by(ann, run)

    assert getattr(Client(), method)(f"/shared/{token}").status_code == 405


# --- in a browser


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_link_is_made_by_a_key_and_opened_without_an_account(page, browser, live_server, run, ann, scheme):
    page.emulate_media(color_scheme=scheme)
    arrive(page, f"{live_server.url}{reverse('session', args=['shop', 'chat'])}", "ann")
    press(page, "s")
    page.wait_for_url("**/share?run=one")
    page.click("text=Make a link")
    address = page.text_content(".share-made code")
    assert serious_in(page) == []

    other = browser.new_context(color_scheme=scheme, viewport={"width": 320, "height": 640}).new_page()
    other.goto(address)
    assert "shared by ann" in other.text_content(".shared-by")
    assert other.evaluate("document.documentElement.scrollWidth") == 320
    assert serious_in(other) == []
    other.context.close()


def serious_in(page):
    found = Axe().run(page).response["violations"]
    return [violation["id"] for violation in found if violation["impact"] in ("serious", "critical")]
