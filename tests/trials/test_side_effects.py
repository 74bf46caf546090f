"""An incident that cost money, replayed and forked in every way: no card is charged and no e-mail is sent.

What the tools did is counted in the process that replays, by `tests.agents.counting`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import reverse
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.examples import agents as registered_agents
from sessions_app.models import Project, Replay, Run
from sessions_app.services import replay_work
from sessions_app.services.forks import answer_by_hand, request_fork
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of
from tests.agents.counting import CountingChild
from tests.agents.looking import recorded_record
from tests.agents.talking import example
from tests.builders import make_client, make_key
from tests.recorder.scenarios import Scripted
from tests.tasks.incidents import make_run
from tests.web.making import client_of, make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = "[charged 0, e-mailed 0]"
SAID = "Invoice INV-3107 is paid: 148.00 EUR. The receipts are in your inbox."
CHECKS = "The payment may have gone through; somebody looks at it before the card is charged again."
RULE = {"kind": "rule", "when": "tool = charge_card", "answer": {"text": CHECKS}}
WHOLE = {"kind": "tool_result", "step": 4, "value": '{"charge_id": "ch_3107_1", "status": "charged"}'}
OWN_CODE = {"kind": "agent", "value": "billing_desk"}
ORDER = {"hypothesis": "It takes a broken answer for a payment that failed.", "expect": "It charges once."}


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    return make_run(project, example("charged_twice"))


@pytest.fixture
def admin(project: Project) -> User:
    return make_user("ada", project, role="admin")


@pytest.fixture
def counted(settings: Any) -> None:
    settings.REPLAY_AGENTS = {"billing_desk": "tests.agents.counting:billing_desk"}


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool(CountingChild)
    yield pool
    pool.close()


def fork(run: Run, at: int, *changes: dict[str, Any]) -> Replay:
    return request_fork(run=run, order={"at_step": at, "changes": list(changes), **ORDER})


def work(replay: Replay, children: ChildPool) -> Replay:
    assert replay_work.work_on(replay.pk, worker="a", children=children)
    replay.refresh_from_db()
    return replay


def counters(replay: Replay) -> tuple[Any, ...]:
    """Calls of live tools, attempts that were refused, and tools that ran, as the API gives them."""
    body = make_client(make_key(replay.project)).get(f"/api/v1/replays/{replay.replay_id}").json()
    return body["live_calls"], body["refused_calls"], body["facts"].get("live_tools") or {}


def counter_on_page(replay: Replay, user: User) -> str:
    page = client_of(user).get(reverse("replay", args=[replay.project.slug, replay.replay_id])).content.decode()
    line = page.partition('<span class="how-world')[2].partition("</span>")[0].partition(">")[2]
    return re.sub("<[^>]*>", "", line).strip()


def assert_nothing_ran(replay: Replay, user: User) -> None:
    assert (replay.state, replay.error) == ("done", None)
    assert counters(replay) == (0, 0, {})
    assert counter_on_page(replay, user) == "isolated: 0 network calls, 0 writes"


# --- the recording alone, in a process that has the tools within reach


def test_a_replay_of_the_recording_runs_no_tool(run: Run, admin: User, children: ChildPool):
    replay = work(request_replay(run=run), children)

    assert (replay.verdict, replay.facts["tally"]) == ("reproduced", NOTHING)
    assert_nothing_ran(replay, admin)


def test_a_fork_by_rule_runs_no_tool(run: Run, admin: User, children: ChildPool):
    replay = work(fork(run, 5, RULE), children)

    assert (replay.verdict, replay.facts["tally"]) == ("diverged", NOTHING)
    assert replay.produced_run.output_preview == CHECKS
    assert_nothing_ran(replay, admin)


def test_a_fork_from_before_the_writes_runs_no_tool(run: Run, admin: User, children: ChildPool):
    replay = work(fork(run, 1, {"kind": "clock", "value": 0}), children)

    assert (replay.verdict, replay.facts["tally"]) == ("reproduced", NOTHING)
    assert replay.produced_run.tool_call_count == 5
    assert_nothing_ran(replay, admin)


def test_a_fork_with_another_tool_answer_runs_no_tool(run: Run, admin: User, children: ChildPool):
    replay = work(fork(run, 4, WHOLE), children)
    assert (replay.verdict, replay.facts["tally"]) == ("unknown_from_step", NOTHING)

    replay = work(answer_by_hand(replay=replay, answer={"answer": {"text": SAID}}), children)

    assert (replay.verdict, replay.facts["tally"]) == ("diverged", NOTHING)
    assert_nothing_ran(replay, admin)


# --- the agent's own code, whose tools count


def test_the_agent_as_it_was_reproduces_the_incident(run: Run, admin: User, children: ChildPool):
    replay = work(request_replay(run=run, mode="code", order={"agent": "billing_desk"}), children)

    assert (replay.verdict, replay.produced_run.output_preview) == ("reproduced", SAID)
    assert_nothing_ran(replay, admin)


@pytest.mark.usefixtures("counted")
def test_a_code_replay_counts_nothing(run: Run, admin: User, children: ChildPool):
    replay = work(request_replay(run=run, mode="code", order={"agent": "billing_desk"}), children)

    assert replay.produced_run.output_preview == f"{SAID} {NOTHING}"
    assert replay.produced_run.tool_call_count == 5
    assert_nothing_ran(replay, admin)


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("step", range(1, 12))
def test_a_fork_with_own_code_counts_nothing_from_any_step(run: Run, admin: User, children: ChildPool, step: int):
    replay = work(fork(run, step, OWN_CODE), children)

    assert replay.produced_run.output_preview == f"{SAID} {NOTHING}"
    assert_nothing_ran(replay, admin)


@pytest.mark.usefixtures("counted")
def test_a_fork_with_own_code_and_another_tool_answer_counts_nothing(run: Run, admin: User, children: ChildPool):
    replay = work(fork(run, 4, OWN_CODE, WHOLE), children)
    assert (replay.verdict, replay.stopped_at["step"]) == ("unknown_from_step", 5)

    replay = work(answer_by_hand(replay=replay, answer={"answer": {"text": SAID}}), children)

    assert replay.produced_run.output_preview == f"{SAID} {NOTHING}"
    assert_nothing_ran(replay, admin)


# --- that the counters count


def test_a_live_tool_and_a_refused_attempt_are_counted_everywhere(project: Project, admin: User, children: ChildPool):
    order = {"agent": "looking", "tools": {"live": ["look"]}}
    run = make_run(project, recorded_record())
    with override_settings(REPLAY_AGENTS={"looking": "tests.agents.looking:agent"}):
        replay = work(request_replay(run=run, mode="code", order=order, user=admin), children)

    assert counters(replay) == (1, 1, {"look": 1})
    line = "live tools: look × 1; 0 other network calls, 0 writes; 1 attempt refused: listening on the network"
    assert counter_on_page(replay, admin).endswith(line)
    assert "1 attempt refused: listening on the network" in (report_of(replay).verdict or "")


def test_outside_of_a_replay_the_agent_charges_twice_and_sends_two_emails(monkeypatch: pytest.MonkeyPatch):
    charged: list[str] = []
    emailed: list[str] = []
    monkeypatch.setattr(registered_agents, "charged", charged)
    monkeypatch.setattr(registered_agents, "emailed", emailed)
    record = example("charged_twice")

    model = Scripted(*recorded_answers(record))
    result = asyncio.run(registered_agents.billing_desk().run(record["input"], model=model))

    assert (charged, len(emailed)) == (["ch_3107_1", "ch_3107_2"], 2)
    assert result.output == record["output"]


def recorded_answers(record: dict[str, Any]) -> list[ModelResponse]:
    answers = [step["response"] for step in record["steps"] if step["kind"] == "model"]
    read = ModelMessagesTypeAdapter.validate_json(json.dumps(answers))
    return [answer for answer in read if isinstance(answer, ModelResponse)]
