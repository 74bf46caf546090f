"""Anomaly rules in a project, and what a person chooses for their own browser."""

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page

from sessions_app.core.judge.anomalies.detectors import NAMES, RULES
from sessions_app.models import Project, Run
from sessions_app.services.ingest import ingest_document
from sessions_app.services.keys import create_key
from sessions_app.web.projects.anomaly_groups import GROUPS
from tests.builders import make_record, make_tool_step, post_run
from tests.web.browsing import arrive
from tests.web.making import client_of, make_project, make_user, match
from tests.web.records import load_record

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/settings/anomalies"
TYPED = {
    "max_tool_calls": "2",
    "slow_step_s": "1.5",
    "error_words": "leider\n schade \n\nleider",
    "on": list(RULES),
}


@pytest.fixture
def shop() -> Project:
    return make_project()


@pytest.fixture
def ann(shop):
    return client_of(make_user("ann", shop, role="admin"))


def codes(run_id: str) -> list[str]:
    project = Project.objects.get(slug="shop")
    steps = [make_tool_step("look", arguments={"n": n}, result="1", duration_ms=2_000) for n in range(3)]
    record = make_record(run_id, *steps, output="Das geht leider nicht.")
    run = ingest_document(project, json.dumps(record).encode()).run
    return sorted(anomaly["code"] for anomaly in run.anomalies)


def test_rules_of_the_project_judge_what_arrives_from_then_on(ann):
    before = codes("r1")

    ann.post(ADDRESS, TYPED)

    assert {"many_tool_calls", "slow_step", "error_words"} <= set(codes("r2")) - set(before)
    assert 'value="1.5"' in ann.get(ADDRESS).content.decode()


SETTINGS = {
    "General": "settings",
    "Redaction rules": "settings/redaction",
    "Anomaly rules": "settings/anomalies",
    "Models": "settings/models",
    "Model prices": "settings/prices",
    "Storage": "storage",
}


@pytest.mark.parametrize("words", SETTINGS)
def test_each_page_of_the_settings_lists_all_and_marks_itself(ann, words):
    page = ann.get(f"/p/shop/{SETTINGS[words]}").content.decode()

    beside = page.split('aria-label="Settings">')[1].split("</nav>")[0]
    links = re.findall(r'<a href="/p/shop/([^"#]+)"\s*(aria-current="page")?\s*>([^<]+)</a>', beside)
    assert {name: address for address, _, name in links} == SETTINGS
    assert [name for _, current, name in links if current] == [words]


def test_members_see_no_pages_of_administrators(shop):
    page = client_of(make_user("bob", shop)).get("/p/shop/settings").content.decode()

    assert "/settings/models" in page
    assert "/settings/redaction" not in page
    assert "/settings/anomalies" not in page


def test_the_only_administrator_has_no_button_that_would_be_refused(ann, shop):
    alone = ann.get("/p/shop/settings").content.decode()
    make_user("eve", shop, role="admin")
    two = ann.get("/p/shop/settings").content.decode()

    assert ("the only administrator" in alone, "/remove" in alone) == (True, False)
    assert ("the only administrator" in two, two.count("/remove")) == (False, 2)


def test_they_hold_for_what_scripts_send(ann, shop):
    ann.post(ADDRESS, TYPED)
    _, key = create_key(project=shop, name="ci", scope="full")
    record = make_record("r1", make_tool_step(result="1", duration_ms=2_000), output="Done.")

    answer = post_run(Client(), record, authorization=f"Bearer {key}")

    assert answer.status_code == 201
    assert [anomaly["code"] for anomaly in shop.runs.get().anomalies] == ["slow_step"]


def test_the_usual_limits_come_back(ann, shop):
    before = codes("r1")
    ann.post(ADDRESS, TYPED)

    ann.post(ADDRESS, {"usual": "1"})

    shop.refresh_from_db()
    assert shop.anomaly_rules == ""
    assert codes("r2") == before


@pytest.mark.parametrize("wrong", [{"max_tool_calls": "0"}, {"slow_step_s": "soon"}, {"error_words": "x" * 61}])
def test_limits_that_cannot_be_are_refused_and_stay_typed(ann, shop, wrong):
    answer = ann.post(ADDRESS, TYPED | wrong)

    shop.refresh_from_db()
    assert answer.status_code == 422
    assert next(iter(wrong.values())) in answer.content.decode()
    assert shop.anomaly_rules == ""


def test_a_rule_that_is_switched_off_finds_nothing_from_then_on(ann, shop):
    ann.post(ADDRESS, TYPED | {"on": [code for code in RULES if code != "slow_step"]})

    assert {"many_tool_calls", "error_words"} <= set(codes("r1"))
    assert "slow_step" not in codes("r2")
    page = ann.get(ADDRESS).content.decode()
    assert "checked" not in match(r'<input type="checkbox"[^>]*value="slow_step"([^>]*)>', page)
    assert "checked" in match(r'<input type="checkbox"[^>]*value="no_answer"([^>]*)>', page)


def test_a_rule_says_in_how_many_runs_of_the_last_30_days_it_fired(ann, shop):
    """A rule that finds three things in a run fired in one run."""
    ann.post(ADDRESS, TYPED)
    for run_id in ("r1", "r2", "r3"):
        codes(run_id)
    Run.objects.filter(run_id="r3").update(received_at=timezone.now() - timedelta(days=31))

    page = ann.get(ADDRESS).content.decode()

    assert "counted are the 2 newest runs" in page
    assert re.search(r'q=anomaly%3Aslow_step&amp;range=30d">2 runs<', page)
    assert "q=anomaly%3Ano_answer" not in page


def test_members_change_no_rules(shop):
    assert client_of(make_user("bob", shop)).post(ADDRESS, TYPED).status_code == 403


def test_settings_lead_to_all_their_pages(ann):
    page = ann.get("/p/shop/settings").content.decode()

    for address in ("settings/redaction", "settings/anomalies", "settings/prices", "storage"):
        assert f"/p/shop/{address}" in page
    assert "/me" in page


def test_the_zone_is_kept_in_the_browser(ann):
    ann.post("/me", {"theme": "dark", "keys": "on", "clock": "mine", "zone": "Asia/Tokyo"})

    page = ann.get("/p/shop/sessions")
    assert ann.cookies["zone"].value == "Asia/Tokyo"
    assert 'data-theme="dark"' in page.content.decode()
    assert "<span data-zone>Asia/Tokyo</span>" in page.content.decode()


def test_times_are_spelled_in_the_zone_with_scripts_off(ann, shop):
    load_record(shop, started_at="2025-11-17T15:14:00Z")
    address = "/p/shop/sessions?sort=started"
    in_utc = ann.get(address).content.decode()
    ann.post("/me", {"theme": "dark", "keys": "on", "clock": "mine", "zone": "Pacific/Kiritimati"})

    in_zone = ann.get(address).content.decode()

    assert 'data-exact="2025-11-17 15:14:00 UTC" data-ago>2025-11-17</time>' in in_utc
    assert 'data-exact="2025-11-17 15:14:00 UTC" data-ago>2025-11-18</time>' in in_zone


def test_preferences_are_opened_with_the_menu_of_the_project(ann, shop):
    assert 'href="/me?in=shop"' in ann.get("/p/shop/sessions").content.decode()


def test_a_browser_is_told_as_a_person_would(shop):
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0"
    make_user("eve", shop)
    eve = Client(headers={"User-Agent": agent})
    eve.post("/sign-in", {"username": "eve", "password": "right"})

    page = eve.get("/me").content.decode()

    assert f'<span title="{agent}">Firefox on Linux</span>' in page


@pytest.mark.django_db(transaction=True)
def test_a_rule_is_found_and_what_is_not_saved_is_said(page: Page, live_server, shop):
    make_user("ann", shop, "admin")
    arrive(page, f"{live_server.url}/p/shop/settings/anomalies", "ann")

    page.get_by_label("Find a rule").fill("error_swallowed")

    assert page.locator("tbody tr:visible").count() == 1
    assert page.locator(".rules-changed").inner_text() == ""
    page.get_by_role("switch", name="Error swallowed").uncheck()
    assert page.locator(".rules-changed").inner_text() == "Changed, not saved"
    page.get_by_role("switch", name="Error swallowed").check()
    assert page.locator(".rules-changed").inner_text() == ""


@pytest.mark.django_db(transaction=True)
def test_a_part_of_the_settings_is_marked_in_the_menu(page: Page, live_server, shop):
    make_user("ann", shop, "admin")
    arrive(page, f"{live_server.url}/p/shop/settings#keys", "ann")

    weights = page.eval_on_selector_all(".side a", "all => all.map(each => getComputedStyle(each).fontWeight)")

    names = page.locator(".side a").all_inner_texts()
    assert [name for name, weight in zip(names, weights, strict=True) if weight == "600"] == ["Keys"]


def test_preferences_stand_among_the_settings_of_the_project_that_led_there(ann, shop):
    assert 'href="/me?in=shop"' in ann.get("/p/shop/settings").content.decode()

    inside, alone = (ann.get(address).content.decode() for address in ("/me?in=shop", "/me?in=other"))
    answer = ann.post("/me?in=shop", {"theme": "dark"})

    assert ("/p/shop/settings/anomalies" in inside, "/p/shop/settings" in alone) == (True, False)
    assert answer["Location"] == "/me?in=shop"


def test_a_zone_that_does_not_exist_is_refused_in_words(ann):
    answer = ann.post("/me", {"zone": "Mars/Olympus"})

    assert answer.status_code == 422
    assert "There is no time zone" in answer.content.decode()
    assert "zone" not in ann.cookies


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("width", [390, 320])
def test_nothing_of_the_members_is_cut_off_on_a_phone(page: Page, live_server, shop, width):
    make_user("ann", shop, role="admin")
    page.set_viewport_size({"width": width, "height": 800})

    arrive(page, f"{live_server.url}/p/shop/settings", "ann")

    for shown in page.locator(".blocks select, .blocks .acts span").all():
        box = shown.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
    assert page.evaluate("[...document.querySelectorAll('.scroll-x')].every(e => e.scrollWidth <= e.clientWidth)")


def test_a_rule_of_anomalies_has_a_name_that_people_use_and_its_code_beside_it(ann):
    page = ann.get(ADDRESS).content.decode()

    assert '<strong>Refusal not reported</strong> <code class="soft small">refusal_unsaid</code>' in page
    assert "<strong>Error swallowed</strong>" in page
    assert NAMES.keys() <= RULES.keys()


def test_rules_stand_by_what_they_are_about_with_those_that_fired_in_sight(ann, shop):
    ann.post(ADDRESS, TYPED)
    codes("r1")

    page = ann.get(ADDRESS).content.decode()
    waste = page.partition("Loops and waste</h2>")[2].partition("</section>")[0]
    fired, unfired = waste.split("<details", 1)

    assert sorted(code for group in GROUPS.values() for code in group) == sorted(RULES)
    assert re.findall(r'name="on"\s+value="(\w+)"', fired) == ["many_tool_calls", "slow_step"]
    assert "4 rules that have not fired" in unfired
    assert unfired.count('name="on"') == 4
