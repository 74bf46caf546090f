"""A worker asks the connected model that was chosen, within its budget, and its key stays where it is."""

import json
from collections.abc import Iterator

import pytest

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.reports.run_report import as_json, as_markdown
from sessions_app.models import ConnectedModel, Project, Replay, Run
from sessions_app.services import replay_work
from sessions_app.services.connected_models import Connection, connect
from sessions_app.services.forks import request_fork
from sessions_app.services.golden_runs import run_golden, settle
from sessions_app.services.goldens import create_golden
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of
from tests.agents.talking import example
from tests.builders import make_client, make_key
from tests.fake_provider import KEY, FakeProvider, fake_provider, message, of_json, says
from tests.tasks.incidents import make_project, make_run

pytestmark = pytest.mark.django_db(transaction=True)
CHANGE = {"kind": "instructions", "value": "Ask which order."}
ORDER = {"at_step": 1, "changes": [CHANGE], "on_difference": "live"}


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool()
    yield pool
    pool.close()


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    return make_run(project, example("r_8821"))


@pytest.fixture(autouse=True)
def hosts(settings):
    settings.REPLAY_MODEL_HOSTS, settings.REPLAY_MODEL_ALLOW_PRIVATE = ["127.0.0.1:*"], True


def connected(project: Project, server: FakeProvider, name: str = "GPT", **fields: object) -> ConnectedModel:
    said = {"provider": "openai-compatible", "base_url": server.url, "key": KEY, **fields}
    return connect(project, Connection(name=name, **said))  # type: ignore[arg-type]  # as a test says them


def work(replay: Replay, children: ChildPool) -> Replay:
    assert replay_work.work_on(replay.pk, worker="a", children=children)
    replay.refresh_from_db()
    return replay


def test_the_chosen_model_answers_what_was_not_recorded(project, run, children):
    with fake_provider(says("Which order?")) as gpt, fake_provider(message({"type": "text", "text": "No."})) as claude:
        connected(project, gpt)
        connected(project, claude, "Claude", provider="anthropic", model="claude-x")

        replay = work(request_fork(run=run, order={**ORDER, "live_model": "Claude"}), children)

        assert (gpt.requests, claude.requests) == (0, 1)
    assert (replay.state, replay.live_calls, replay.order["live_model"]) == ("done", 1, "Claude")
    assert replay.produced_run is not None
    assert replay.produced_run.output_preview == "No."
    assert replay.facts["live_model"]["model"] == "claude-x"
    assert ConnectedModel.objects.get(name="Claude").sent_today == 1


def test_the_only_model_is_written_into_the_order(project, run):
    with fake_provider(says("x")) as gpt:
        connected(project, gpt)

    assert request_fork(run=run, order=ORDER).order["live_model"] == "GPT"


def test_what_was_asked_of_the_environment_goes_nowhere_else(project, run, children, settings):
    settings.REPLAY_MODEL_ENDPOINT = "http://127.0.0.1:9/v1"
    replay = request_fork(run=run, order={**ORDER, "live_model": "environment"})
    settings.REPLAY_MODEL_ENDPOINT = ""
    with fake_provider(says("x")) as gpt:
        connected(project, gpt)

        work(replay, children)

        assert gpt.requests == 0
    assert "live_model" not in replay.order
    assert replay.state == "failed"


@pytest.mark.parametrize("answer", [of_json({"error": {"message": KEY}}, status=401), of_json({"choices": KEY})])
def test_the_key_is_in_no_error_report_export_or_log(project, run, children, caplog, answer):
    caplog.set_level("DEBUG")
    with fake_provider(answer) as gpt:
        row = connected(project, gpt)
        replay = work(request_fork(run=run, order=ORDER), children)
        assert gpt.requests == 1

    api = make_client(make_key(project))
    exported = [api.get(f"/api/v1/runs/{run.run_id}/record"), api.get(f"/api/v1/replays/{replay.replay_id}")]
    told = [each.content.decode() for each in exported]
    report = report_of(replay)
    told += [json.dumps(as_json(report)), as_markdown(report), json.dumps(replay.facts), str(replay.error), caplog.text]
    assert replay.verdict == "could_not_run"
    assert not [text for text in told if KEY in text or row.sealed_key in text]


def test_a_spent_budget_is_refused_before_anything_is_queued(project, run, children):
    with fake_provider(says("Which order?")) as gpt:
        connected(project, gpt, requests_per_day=1)
        work(request_fork(run=run, order=ORDER), children)

        with pytest.raises(ForkError, match="The budget of GPT for today") as refused:
            request_fork(run=run, order=ORDER)
        assert refused.value.field == "on_difference"
        with pytest.raises(ForkError, match="The budget of GPT for today"):
            request_replay(run=run, mode="live", order={"samples": 1})
    assert Replay.objects.count() == 1


def test_a_budget_that_ends_within_a_replay_ends_its_samples_in_words(project, run, children):
    with fake_provider(says("Which order?")) as gpt:
        connected(project, gpt, requests_per_day=2)
        replay = work(request_replay(run=run, mode="live", order={"samples": 3}), children)
        assert gpt.requests == 2

    samples = replay.facts["samples"]
    assert samples["done"] == 2
    assert "is spent" in str(samples)


def test_a_golden_asks_the_model_that_it_was_kept_with(project, run, children):
    with fake_provider(says("Order #4398 is processing.")) as gpt, fake_provider(says("x")) as other:
        connected(project, gpt)
        connected(project, other, "Other")
        check = {"kind": "output", "contains": "#4398"}
        wanted = {"name": "g", "checks": [check], "replay": {"mode": "live", "live_model": "GPT"}}
        made = run_golden(create_golden(run=run, wanted=wanted))
        work(made.replay, children)
        settle([made])
        assert (gpt.requests > 0, other.requests) == (True, 0)

    assert made.replay.order["live_model"] == "GPT"
    assert made.result == "pass"


@pytest.mark.parametrize(
    ("order", "field"),
    [({"live_model": "Gone", "on_difference": "live"}, "live_model"), ({"live_model": "GPT"}, "live_model")],
)
def test_a_model_that_is_not_there_or_not_asked_is_refused(run, order, field):
    with pytest.raises(ForkError) as refused:
        request_fork(run=run, order={"at_step": 1, "changes": [CHANGE], **order})

    assert refused.value.field == field
