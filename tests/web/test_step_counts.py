"""One count of steps wherever one is said: inner steps of a framework are in none of them."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run
from tests.web.making import client_of, make_user

pytestmark = pytest.mark.django_db
INNER = {"kind": "other", "name": "routing", "result": "x"}
COUNTED = 3
SAID = re.compile(r"(\d+) steps?\b(?! \d)")
"""Behind it stands no key of the keyboard: "1 steps 2 timeline"."""


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def api(shop):
    client = make_client(make_key(shop))
    steps = [make_tool_step(arguments={"n": n}, result=n) for n in range(COUNTED)]
    post_run(client, make_record("r", INNER, steps[0], INNER, *steps[1:], INNER, output="done"))
    return client


def words(answer) -> str:
    assert answer.status_code == 200, answer.content
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_answers_and_pages_count_the_same_steps(shop, api):
    ann = client_of(make_user("ann", shop))
    rows = ann.get(reverse("sessions", args=["shop"])).content.decode()
    said = {
        "page": words(ann.get(reverse("session", args=["shop", "r"]))),
        "kit": words(api.get("/api/v1/runs/r/kit")),
        "report": words(api.get("/api/v1/runs/r/report?format=html")),
        "story": api.get("/api/v1/runs/r").json()["story"],
    }

    assert re.findall(r'class="steps-count">(\d+)<', rows) == [str(COUNTED)]
    assert {number for text in said.values() for number in SAID.findall(text)} == {str(COUNTED)}
    assert SAID.findall(said["kit"])
    assert SAID.findall(said["page"])
    (listed,) = api.get("/api/v1/runs").json()["items"]
    assert listed["steps"] == api.get("/api/v1/runs/r").json()["steps"] == COUNTED
    assert [run["steps"] for run in api.get("/api/v1/sessions/r").json()["runs"]] == [COUNTED]
    assert len(api.get("/api/v1/runs/r/steps").json()["items"]) == COUNTED + 3, "with what a framework did between"
