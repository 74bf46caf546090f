"""The page of failure groups."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from replay_goldens.trace import OF_ANOTHER_REQUEST
from sessions_app.models import Replay
from tests.web.making import HOSTILE, client_of, make_user
from tests.web.records import load_record, model_step

pytestmark = pytest.mark.django_db
PAGE = "/p/shop/goldens/failures"


@pytest.fixture(autouse=True)
def agents(settings):
    settings.REPLAY_AGENTS = {"old": "shop:old", "new": "shop:new"}


@pytest.fixture
def failed(shop):
    error = {"type": "TimeoutError", "message": f"late {HOSTILE}"}
    return load_record(shop, run_id="late", session_id="chat", status="error", error=error, steps=[model_step()])


def test_a_group_is_replayed_by_ticks_and_its_outcome_shown(bob, failed, shop):
    assert "TimeoutError: late" in (page := bob.get(PAGE).content.decode())
    assert "<script>alert(1)" not in page
    assert PAGE in bob.get("/p/shop/goldens").content.decode()

    bob.post(reverse("replay_failures", args=["shop"]), {"group": ["late"], "agent": ["new"], "mode": "code"})

    queued = Replay.objects.get()
    assert (queued.mode, queued.order["agent"], queued.order["on_difference"]) == ("code", "new", "play_on")
    live = bob.get(PAGE, HTTP_HX_REQUEST="true")
    assert "queued" in live.content.decode()
    assert bob.get(PAGE, HTTP_HX_REQUEST="true", HTTP_IF_NONE_MATCH=live["ETag"]).status_code == 304
    made = load_record(shop, run_id="now", session_id="chat", output="Found.", origin="replay")
    Replay.objects.update(state="done", verdict="diverged", produced_run=made)
    page = bob.get(PAGE).content.decode()
    assert (">fixed<" in page, "hx-get" in page.partition('id="failure-groups"')[2].partition(">")[0]) == (True, False)
    Replay.objects.update(facts={"sources": {"recorded_for_another_request": 1}})
    page = bob.get(PAGE).content.decode()
    assert (">fixed<" in page, f'title="{OF_ANOTHER_REQUEST}"' in page, "not judged" in page) == (False, True, True)


def test_what_cannot_be_asked_for_is_said(bob, failed):
    assert "Name at least one" in bob.post(f"{PAGE}/replay", {"group": ["late"]}, follow=True).content.decode()
    assert bob.get(PAGE, {"q": "steps:x"}).status_code == 400
    assert "No failed run matches" in bob.get(PAGE, {"q": "run:other"}).content.decode()


def test_a_group_of_which_no_run_can_be_replayed_says_so_and_is_not_replayed(bob, failed, shop):
    load_record(shop, run_id="bare", session_id="bare", status="error", error={"type": "KeyError", "message": "no"})

    page = bob.get(PAGE).content.decode()
    bob.post(f"{PAGE}/replay", {"agent": ["new"]})

    assert page.count("none can be replayed") == 1
    assert 'value="bare"' not in page
    assert [each.run.run_id for each in Replay.objects.all()] == ["late"]


def test_viewers_see_groups_and_replay_none(shop, failed):
    vera = client_of(make_user("vera", shop, "viewer"))

    assert "replay-failures" not in vera.get(PAGE).content.decode()
    assert vera.post(f"{PAGE}/replay", {"agent": ["new"]}).status_code in (403, 404)
    assert not Replay.objects.exists()


def test_many_groups_take_as_many_queries_as_one(bob, shop, failed):
    with CaptureQueriesContext(connection) as one:
        bob.get(PAGE)
    for name in ("PermissionError", "KeyError", "OSError"):
        load_record(shop, run_id=name, session_id=name, status="error", error={"type": name, "message": "no"})
    with CaptureQueriesContext(connection) as four:
        bob.get(PAGE)

    assert len(four) == len(one)


def test_groups_are_in_the_order_asked_for_and_of_the_agent_asked_for(bob, shop, failed):
    for number in range(2):
        load_record(
            shop, run_id=f"old{number}", session_id=f"old{number}", status="error", agent={"name": "bot"},
            error={"type": "KeyError", "message": "no"}, started_at="2026-01-02T03:04:05Z",
        )  # fmt: skip

    def named(query):
        page = bob.get(f"{PAGE}{query}")
        return [group.told.partition(":")[0] for group, _ in page.context["rows"]]

    assert named("") == ["TimeoutError", "KeyError"]
    assert named("?sort=count") == ["KeyError", "TimeoutError"]
    assert named("?agent=bot") == ["KeyError"]
    bob.post(f"{PAGE}/replay?agent=bot", {"agent": ["new"]})
    assert {each.run.agent_name for each in Replay.objects.all()} <= {"bot"}
