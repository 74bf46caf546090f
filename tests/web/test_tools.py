"""The page of tools: what each did over the project's runs, and the calls behind each number."""

import json
from typing import Any

import pytest

from sessions_app.models import Project
from sessions_app.services.ingest import ingest_document
from tests.builders import make_record, make_tool_step
from tests.web.making import HOSTILE, client_of, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Project:
    return make_project()


@pytest.fixture
def bob(shop):
    return client_of(make_user("bob", shop))


def send(project: Project, run_id: str, *steps: dict[str, Any]) -> None:
    ingest_document(project, json.dumps(make_record(run_id, *steps)).encode())


def test_an_empty_project_says_so(bob):
    assert "No tool calls" in bob.get("/p/shop/tools").content.decode()


def test_each_number_leads_to_what_it_counts(bob, shop):
    send(shop, "r1", make_tool_step(arguments={"q": 1}, result="1"))
    assert "Drift" not in bob.get("/p/shop/tools").content.decode(), "a column of zeros says nothing"
    send(shop, "r2", make_tool_step(arguments={"q": 1}, result="2"))
    page = bob.get("/p/shop/tools").content.decode()
    name = bob.get("/p/shop/tools").context["rows"][0].name

    drift = bob.get(f"/p/shop/tools?tool={name}&show=drift").content.decode()

    assert f"?tool={name}&amp;show=drift#calls" in page
    assert "/p/shop/s/r1?run=r1&amp;step=" in drift
    assert "/p/shop/s/r2?run=r2&amp;step=" in drift


def test_the_lead_is_by_rate_and_not_by_the_calls_of_a_busy_tool(bob, shop):
    failed = {"error": {"type": "IOError", "message": "no"}}
    send(shop, "busy", *[make_tool_step("migrate", **(failed if n < 8 else {"result": "1"})) for n in range(40)])
    send(shop, "bad", *[make_tool_step("cancel", **failed) for _ in range(6)])
    send(shop, "once", make_tool_step("charge", **failed))

    page = bob.get("/p/shop/tools")

    assert (page.context["worst"].name, page.context["worst"].failed) == ("cancel", 6)


def test_tools_stand_in_the_order_of_the_errors_that_are_shown_then_of_their_share(bob, shop):
    failed = {"error": {"type": "IOError", "message": "no"}}
    send(shop, "busy", *[make_tool_step("migrate", **(failed if n < 8 else {"result": "1"})) for n in range(40)])
    send(shop, "often", *[make_tool_step("refund", **(failed if n < 6 else {"result": "1"})) for n in range(9)])
    send(shop, "bad", *[make_tool_step("cancel", **failed) for _ in range(6)])

    page = bob.get("/p/shop/tools")

    assert [row.name for row in page.context["rows"]] == ["migrate", "cancel", "refund"]
    assert "The order is by count, then by share" in page.content.decode()


def test_a_tool_that_failed_each_of_its_few_calls_is_named_before_one_that_hardly_fails(bob, shop):
    failed = {"error": {"type": "IOError", "message": "no"}}
    send(shop, "big", *[make_tool_step("migrate", **(failed if n == 7 else {"result": "1"})) for n in range(100)])
    send(shop, "small", *[make_tool_step("refund", **failed) for _ in range(3)])

    page = bob.get("/p/shop/tools").content.decode()

    words = " ".join(page.split())
    assert '<span class="recorded">refund</span> fails most often: 3 of 3 calls (100 %)' in words
    assert 'href="?tool=refund&amp;show=failed#calls" data-next' in words


def test_the_slowest_is_the_one_with_the_longest_p95_of_the_table(bob, shop):
    send(shop, "busy", *[make_tool_step("search", result="1", duration_ms=370) for _ in range(20)])
    send(shop, "rare", *[make_tool_step("charge", result="1", duration_ms=took) for took in (430, 430, 430, 430, 5000)])
    send(shop, "once", make_tool_step("export", result="1", duration_ms=60_000))

    assert bob.get("/p/shop/tools").context["slowest"].name == "charge"


def test_what_a_failure_group_says_of_an_answer_is_an_error_of_the_tool(bob, shop):
    send(shop, "r1", make_tool_step("charge", result='{"ok": tru'), make_tool_step("charge", result="1"))

    page = bob.get("/p/shop/tools")

    assert [(row.failed, row.calls, row.days[-1]) for row in page.context["rows"]] == [(1, 2, 1)]
    assert "Truncated JSON in the answer of charge" in bob.get("/p/shop/goldens/failures").content.decode()


def test_the_time_and_the_agent_narrow_what_is_counted(bob, shop):
    record = make_record("r1", make_tool_step(result="1"), started_at="2026-01-02T03:04:05Z")
    ingest_document(shop, json.dumps(record).encode())

    assert "No tool calls" in bob.get("/p/shop/tools?agent=nobody").content.decode()
    assert "No tool calls" in bob.get("/p/shop/tools?range=24h").content.decode()


def test_ten_runs_take_as_many_queries_as_one(bob, shop, django_assert_num_queries):
    send(shop, "r0", make_tool_step(result="0"))
    bob.get("/p/shop/tools")
    with django_assert_num_queries(8):
        bob.get("/p/shop/tools")
    for number in range(1, 10):
        send(shop, f"r{number}", make_tool_step(result=str(number)))

    with django_assert_num_queries(8):
        bob.get("/p/shop/tools")


def test_recorded_names_are_text(bob, shop):
    send(shop, "r1", make_tool_step(HOSTILE, result="1"))

    assert "<script>alert" not in bob.get("/p/shop/tools").content.decode()
