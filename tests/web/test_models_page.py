"""Settings → Models: connecting, testing and removing a live model, and choosing it where something is asked."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import expect

from sessions_app.models import ConnectedModel, Replay
from sessions_app.services.connected_models import Connection, connect
from sessions_app.services.live_models import spend
from tests.fake_provider import KEY, fake_provider, of_json, says
from tests.web.browsing import arrive, looks
from tests.web.making import client_of, make_project, make_user
from tests.web.records import load_example

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/settings/models"
TYPED = {"name": "GPT", "provider": "openai", "base_url": "", "key": KEY, "model": "gpt-4o", "requests_per_day": "20"}


@pytest.fixture
def ann(shop):
    return client_of(make_user("ann", shop, role="admin"))


@pytest.fixture(autouse=True)
def hosts(settings):
    settings.REPLAY_MODEL_HOSTS, settings.REPLAY_MODEL_ALLOW_PRIVATE = ["api.openai.com", "127.0.0.1:*"], True


def make_model(project, url="https://api.openai.com/v1", **fields):
    return connect(project, Connection(**{"name": "GPT", "provider": "openai", "key": KEY, "base_url": url, **fields}))


def text_of(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_model_is_connected_and_its_key_never_shown(ann):
    answer = ann.post(ADDRESS, TYPED, follow=True)

    page = answer.content.decode()
    assert "Connected GPT." in page
    assert KEY not in page
    assert "https://api.openai.com/v1" in page
    assert "0 of 20 requests today" in page
    row = ConnectedModel.objects.get()
    assert (row.provider, row.model, row.requests_per_day) == ("openai", "gpt-4o", 20)


def test_what_is_refused_stays_typed_but_for_the_key(ann):
    answer = ann.post(ADDRESS, TYPED | {"base_url": "https://elsewhere.example/v1"})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "REPLAY_MODEL_HOSTS does not list it" in page
    assert 'value="https://elsewhere.example/v1"' in page
    assert KEY not in page
    assert not ConnectedModel.objects.exists()


def test_the_model_of_the_environment_is_listed_and_cannot_be_changed(ann, settings):
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_KEY = "https://models.example.org/v1", KEY

    page = ann.get(ADDRESS).content.decode()

    assert "from the server's environment" in page
    assert "models.example.org" in page
    assert "Remove" not in page
    assert KEY not in page


def test_members_see_the_models_and_change_none(bob, shop):
    row = make_model(shop)

    page = bob.get(ADDRESS).content.decode()

    assert "0 of 200" in text_of(page)
    assert 'name="key"' not in page
    posts = [ADDRESS, *(f"{ADDRESS}/{row.pk}{what}" for what in ("/test", "", "/remove"))]
    assert [bob.post(address, TYPED).status_code for address in posts] == [403] * 4
    assert ConnectedModel.objects.get().requests_per_day == 200


def test_a_model_of_another_project_is_not_found(ann):
    row = make_model(make_project("other"))

    posts = [f"{ADDRESS}/{row.pk}{what}" for what in ("/test", "", "/remove")]
    assert [ann.post(address).status_code for address in posts] == [404] * 3
    assert ConnectedModel.objects.exists()


def test_a_model_is_changed_and_removed(ann, shop):
    row = make_model(shop)
    address = f"{ADDRESS}/{row.pk}"
    typed = TYPED | {"name": "Fast", "key": "", "requests_per_day": "5"}

    page = ann.get(address).text
    assert 'value="GPT"' in page
    assert "Redaction rules" in page, "beside the form are all settings, as on every page of them"
    assert "for another host" in ann.post(address, typed | {"base_url": "http://127.0.0.1:9/v1"}).text
    assert "Changed Fast." in ann.post(address, typed, follow=True).text
    changed = ConnectedModel.objects.get()
    assert (changed.name, changed.model, changed.requests_per_day) == ("Fast", "gpt-4o", 5)
    assert changed.sealed_key == row.sealed_key
    assert "Removed Fast" in ann.post(f"{address}/remove", follow=True).text
    assert not ConnectedModel.objects.exists()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says("ok"), "GPT answered as fake-1 in"),
        (of_json({"error": {"message": KEY}}, status=401), "GPT did not answer. It refused the key (401)."),
    ],
)
def test_a_test_says_in_words_how_it_went(ann, shop, answer, words):
    with fake_provider(answer) as server:
        row = make_model(shop, server.url)
        page = ann.post(f"{ADDRESS}/{row.pk}/test", {"model": "m"}, follow=True).content.decode()

    assert words in page
    assert KEY not in page


def test_what_is_typed_is_tested_before_it_is_stored(ann):
    with fake_provider(says("ok")) as server:
        typed = TYPED | {"base_url": server.url, "do": "test"}
        page = ann.post(ADDRESS, typed).text
        part = ann.post(ADDRESS, typed, headers={"HX-Request": "true"}).text
        unnamed = ann.post(ADDRESS, typed | {"model": ""})

    assert "GPT answered as fake-1 in" in page
    assert f'value="{server.url}"' in page
    assert "Enter it again." in page
    assert part.strip().startswith('<div id="model-tried">')
    assert "GPT answered as fake-1 in" in part
    assert "Enter it again." not in part
    assert KEY not in page + part
    assert (unnamed.status_code, "Enter a model for the test." in unnamed.text) == (422, True)
    assert not ConnectedModel.objects.exists()


def test_a_change_is_tested_with_the_stored_key_and_not_stored(ann, shop):
    with fake_provider(says("ok")) as server:
        row = make_model(shop, server.url)
        typed = TYPED | {"base_url": server.url, "model": "other", "key": "", "do": "test"}
        page = ann.post(f"{ADDRESS}/{row.pk}", typed).text

    assert "GPT answered as fake-1 in" in page
    assert (server.bodies[0]["model"], server.server.received[0].headers["Authorization"]) == ("other", f"Bearer {KEY}")
    row.refresh_from_db()
    assert (row.model, row.sent_today) == ("", 1)


# --- where it is chosen


@pytest.fixture
def run(shop):
    """Steps: 1 model, 2 tool, 3 model, 4 tool, 5 model."""
    return load_example(shop, "cancel_bug")


def page_named(client, run, name, **query):
    return client.get(reverse(name, args=[run.project.slug, run.session.session_id]), query).content.decode()


def test_what_if_offers_to_connect_a_model_and_then_the_model(bob, run, shop):
    before = page_named(bob, run, "session", step=2, what_if="form")
    make_model(shop)
    after = page_named(bob, run, "session", step=2, what_if="form")

    assert "No live model is connected to this project." in before
    assert f'href="{ADDRESS}">Connect a model</a>' in before
    assert re.search(r'value="live:GPT"\s*>ask GPT at api.openai.com', after)


def test_the_chosen_model_stands_in_the_order(bob, run, shop):
    make_model(shop)
    make_model(shop, name="Other")

    bob.post(
        reverse("what_if", args=["shop", run.session.session_id, 2]),
        {"result": "x", "result_as": "text", "on_difference": "live:Other", "do": "queue"},
    )

    order = Replay.objects.get().order
    assert (order["on_difference"], order["live_model"]) == ("live", "Other")


def test_a_spent_model_is_not_offered_and_refused_in_words(bob, run, shop):
    make_model(shop, requests_per_day=1)

    spend(ConnectedModel.objects.get())
    typed = {"result": "x", "result_as": "text", "on_difference": "live:GPT", "do": "queue"}

    answer = bob.post(reverse("what_if", args=["shop", run.session.session_id, 2]), typed)

    assert "The budget of GPT for today (1 request) is spent" in text_of(answer.content.decode())
    assert not Replay.objects.exists()


@pytest.mark.parametrize("name", ["fork", "replay_options", "new_golden"])
def test_forms_offer_each_model(bob, run, shop, name):
    make_model(shop)
    make_model(shop, name="Other")

    page = page_named(bob, run, name, step=2)

    assert re.search(r'<option value="Other"\s*>Other at api.openai.com', page)


def test_a_replay_with_a_live_model_asks_the_chosen_one(bob, run, shop):
    make_model(shop)
    make_model(shop, name="Other")

    address = reverse("replay_options", args=["shop", run.session.session_id])
    bob.post(address, {"mode": "live", "samples": "2", "live_model": "Other"})

    assert Replay.objects.get().order["live_model"] == "Other"


# --- in a browser


@pytest.mark.django_db(transaction=True)
@looks
def test_a_model_is_connected_tested_and_removed_by_hand(page, live_server, shop, width, scheme):
    make_user("ann", shop, role="admin")
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    arrive(page, live_server.url + ADDRESS, "ann")

    def check():
        assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    check()
    with fake_provider(says("ok")) as server:
        page.locator("[name=name]").fill("Local")
        page.get_by_label("Provider").select_option("openai-compatible")
        page.get_by_label("Base URL").fill(server.url)
        page.locator("[name=key]").fill(KEY)
        page.locator(".model-form [name=model]").fill("fake-1")
        page.get_by_role("button", name="Test").click()
        expect(page.get_by_text("Local answered as fake-1 in")).to_be_visible()
        assert page.locator("[name=key]").input_value() == KEY
        check()
        page.get_by_role("button", name="Connect").click()
        expect(page.get_by_text("Connected Local.")).to_be_visible()
        check()
        page.get_by_role("button", name="Test Local").click()
        expect(page.get_by_text("Local answered as fake-1 in")).to_be_visible()
    assert KEY not in page.content()
    page.get_by_role("link", name="Change Local").click()
    page.locator("[name=name]").fill("Near")
    check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed Near.")).to_be_visible()
    page.get_by_role("button", name="Remove Near").click()
    expect(page.get_by_text("None yet")).to_be_visible()
