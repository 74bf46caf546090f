"""Orders that decide otherwise on an approval: what is taken, and what is refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import call_command

from sessions_app.models import Replay
from tests.builders import make_client, make_key, make_project, post_run
from tests.recorder.playing import last_record, recorded
from tests.recorder.rare_agents import denied_while_it_runs
from tests.recorder.scenarios import SCENARIOS

pytestmark = pytest.mark.django_db
DENY = {"kind": "approval", "step": 1, "value": "denied"}
SAID = {"at_step": 1, "hypothesis": "It stops.", "expect": "It stops."}


@pytest.fixture
def client():
    return make_client(make_key(make_project()))


@pytest.fixture
def run_id(client) -> str:
    scenario = next(each for each in SCENARIOS if str(each) == "approval_second")
    return str(post_run(client, json.loads(last_record(scenario, "run"))).json()["run_id"])


def fork(client: Any, run_id: str, *changes: Any) -> Any:
    body = {**SAID, "changes": list(changes)}
    return client.post(f"/api/v1/runs/{run_id}/forks", body, content_type="application/json")


def test_another_decision_is_an_order_and_is_said_in_words(client, run_id):
    answer = fork(client, run_id, DENY | {"message": "Not today."})

    assert answer.status_code == 202
    replay = Replay.objects.get()
    assert replay.order["changes"] == [DENY | {"message": "Not today."}]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ([DENY | {"step": 2}], "changes[0].value", "The call of step 2 was already denied then."),
        ([DENY | {"step": 3}], "changes[0].step", "Step 3 is a model step; this needs a tool step."),
        ([DENY | {"value": "maybe"}], "changes[0].value", "must be approved or denied"),
        ([DENY | {"value": "approved", "message": "x"}], "changes[0].message", "belongs to a denial"),
        ([DENY, {"kind": "instructions", "value": "x"}], "changes[1]", "No approval can be changed together"),
    ],
)
def test_a_decision_that_cannot_be_is_refused_at_its_field(client, run_id, changes, field, words):
    answer = fork(client, run_id, *changes)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert words in answer.json()["error"]["message"]


def test_a_call_that_nobody_decided_on_cannot_be_denied(client):
    scenario = next(each for each in SCENARIOS if str(each) == "one_tool")
    run_id = post_run(client, json.loads(last_record(scenario, "run"))).json()["run_id"]

    answer = fork(client, run_id, DENY | {"step": 2})

    assert answer.status_code == 400
    assert "The recording shows no approval decision for step 2" in answer.json()["error"]["message"]


def test_what_code_decided_while_the_run_went_on_can_be_decided_otherwise(client):
    """1 model; 2 approved, 3 denied by code; 4 model."""
    run_id = post_run(client, json.loads(recorded(denied_while_it_runs())[-1])).json()["run_id"]

    taken = [fork(client, run_id, DENY | {"step": 2}), fork(client, run_id, DENY | {"step": 3, "value": "approved"})]
    refused = [fork(client, run_id, DENY | {"step": 3}), fork(client, run_id, DENY | {"step": 2, "value": "approved"})]

    assert [answer.status_code for answer in taken + refused] == [202, 202, 400, 400]
    assert "was already denied then" in refused[0].json()["error"]["message"]
    assert "was already approved then" in refused[1].json()["error"]["message"]


def test_the_command_takes_decisions_and_lets_tools_run(run_id, capsys):
    typed = ["fork", run_id, "--at", "1", "--deny", "1=Not today.", "--approve", "2", "--no-wait"]
    call_command(*typed, "--hypothesis", "x", "--expect", "y", "--agent", "order_desk", "--tools", "run")

    order = Replay.objects.get().order
    approve = {"kind": "approval", "step": "2", "value": "approved"}
    assert order["changes"][:2] == [approve, DENY | {"step": "1", "message": "Not today."}]
    assert order["tools"] == {"run": True}
