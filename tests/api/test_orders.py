"""An order with a member that nobody reads is refused by its name; every member that the docs name is taken."""

import json

import pytest

from sessions_app.models import Project, Replay
from tests.builders import project_client, row_counts
from tests.services.forking import EMPTY_ANSWER, make_order, make_run, stop, tool_stop

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/cancel_5521"
AGENT = {"agent": "orders", "breakpoints": [{"step": 2}], "request_key": "k"}
RULE = {"kind": "rule", "when": "orders is empty", "answer": {"text": "no", "tool_calls": []}}


@pytest.fixture
def full(settings):
    settings.REPLAY_AGENTS = {"orders": "shop.agents:orders"}
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    client = project_client()
    make_run(Project.objects.get())
    return client


def post(client, address, body):
    return client.post(address, json.dumps(body), content_type="application/json")


def session_of(client):
    return f"/api/v1/sessions/{client.get(RUN).json()['session_id']}/replays"


DOCUMENTED = {
    "recording": ("replays", {"mode": "recording", "breakpoints": [{"tool": "lookup_order"}], "request_key": "k"}),
    "nulls": ("replays", {"mode": "recording", "agent": None, "model": None, "tools": None, "samples": None}),
    "code": ("replays", {"mode": "code", **AGENT, "tools": {"live": ["a"]}, "on_difference": "play_on"}),
    "tools": ("replays", {"mode": "code_and_tools", **AGENT, "tools": {"run": True, "live": []}}),
    "live": (
        "replays",
        {"mode": "live", "samples": 2, "model": {"model": "m", "settings": {"seed": 7}}, "expect": "the same"},
    ),
    "fork": ("forks", {**make_order(), **AGENT, "tools": {"run": True}, "on_difference": "stop"}),
    "resume": ("resume", {"at_step": 3, **AGENT, "tools": {"live": ["a"]}, "on_difference": "play_on"}),
    "samples": ("samples", {**make_order(), "samples": 3}),
    "expect at most": ("forks", make_order(expect={"at_most_calls": {"tool": "a", "n": 3}})),
}


@pytest.mark.parametrize(("door", "order"), DOCUMENTED.values(), ids=DOCUMENTED)
def test_what_the_docs_name_is_taken(full, door, order):
    answer = post(full, f"{RUN}/{door}", order)

    assert answer.status_code == 202, answer.content


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "instructions", "value": "Be brief."},
        {"kind": "tool_result", "step": 2, "error": {"message": "away", "type": "E", "crashes": True}},
        {"kind": "model_answer", "step": 3, "value": {"text": "no", "tool_calls": []}},
        {"kind": "model", "value": {"model": "m", "settings": {"seed": 1}}},
        {"kind": "clock", "value": 60},
        {"kind": "agent", "value": "orders"},
        RULE,
    ],
    ids=lambda change: change["kind"],
)
def test_every_documented_change_is_taken(full, change):
    answer = post(full, f"{RUN}/forks", make_order(changes=[change]))

    assert answer.status_code == 202, answer.content
    misspelled = post(full, f"{RUN}/forks", make_order(changes=[{**change, "vlaue": 1}]))
    assert (misspelled.status_code, misspelled.json()["error"]["field"]) == (400, "changes[0].vlaue")


MISSPELLED = {
    "replays": ("replays", {"mode": "recording"}, {"bogus": 1}, "bogus"),
    "a parameter's own name": ("replays", {"mode": "recording"}, {"wanted": {}}, "wanted"),
    "null": ("replays", {"mode": "recording"}, {"on_diference": None}, "on_diference"),
    "of a fork": ("replays", {"mode": "recording"}, {"changes": [EMPTY_ANSWER]}, "changes"),
    "mode of a fork": ("forks", make_order(), {"mode": "code_and_tools"}, "mode"),
    "sample": ("samples", make_order(samples=2), {"sample": 3}, "sample"),
    "changes of a resume": ("resume", {"at_step": 3}, {"changes": [EMPTY_ANSWER]}, "changes"),
    "tools": ("forks", make_order(), {"agent": "orders", "tools": {"runs": True}}, "tools.runs"),
    "failure": (
        "forks",
        make_order(),
        {"changes": [{"kind": "tool_result", "step": 2, "error": {"message": "x", "crash": True}}]},
        "changes[0].error.crash",
    ),
    "expect": (
        "forks",
        make_order(),
        {"expect": {"at_most_calls": {"tool": "a", "n": 1, "m": 2}}},
        "expect.at_most_calls.m",
    ),
    "model": ("replays", {"mode": "live"}, {"model": {"model": "m", "temperature": 1}}, "model.temperature"),
    "settings": ("replays", {"mode": "live"}, {"model": {"settings": []}}, "model.settings"),
    "a number for a model": ("replays", {"mode": "live"}, {"model": 7}, "model"),
}  # fmt: skip


@pytest.mark.parametrize(("door", "order", "more", "field"), MISSPELLED.values(), ids=MISSPELLED)
def test_a_member_that_nobody_reads_is_named_and_nothing_is_queued(full, door, order, more, field):
    before = row_counts()

    answer = post(full, f"{RUN}/{door}", {**order, **more})

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field), answer.content
    assert row_counts() == before
    assert post(full, f"{RUN}/{door}", order).status_code == 202


def test_so_it_is_for_all_runs_of_a_session(full):
    refused = post(full, session_of(full), {"mode": "recording", "bogus": 1})

    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "bogus")
    assert not Replay.objects.exists()
    assert post(full, session_of(full), {"mode": "recording"}).status_code == 202


def test_so_it_is_for_answers_by_hand(full):
    post(full, f"{RUN}/forks", make_order())
    address = f"/api/v1/replays/{stop(Replay.objects.get(), tool_stop()).replay_id}/answers"

    refused = post(full, address, {"value": 1, "vlaue": 2})

    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "vlaue")
    assert post(full, address, {"value": 1}).status_code == 202
