"""Goldens × versions of an agent while workers are killed: each replay ends once, and the table is the planted truth.

`TRIAL_SIZE=full` runs 200 goldens with three versions and kills 20 workers.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from replay_web.celery import app
from sessions_app.core.goldens.report import Outcome, overall
from sessions_app.models import Golden, GoldenBatch, Project, Replay, Run
from sessions_app.models.replays import HELD_STATES
from sessions_app.queries.goldens import batch_by_id
from sessions_app.services.golden_batches import outcomes_of, run_batch
from sessions_app.services.goldens import create_golden
from tests.agents.talking import example
from tests.tasks.incidents import make_project, make_run
from tests.tasks.workers import OwnRedis, Worker, own_redis, wait_until, working
from tests.trials.versions import VERSIONS, agents, refuses

pytestmark = pytest.mark.django_db(transaction=True)
GOLDENS, KILLS = (200, 20) if os.environ.get("TRIAL_SIZE") == "full" else (6, 2)
PATIENCE = 1800.0 if GOLDENS > 6 else 300.0  # seconds, for a machine with other things to do
REFUSED = {"kind": "result", "tool": "cancel_order", "contains": "not eligible"}
Table = dict[tuple[str, str], str]


@pytest.fixture
def redis(monkeypatch) -> Iterator[OwnRedis]:
    with own_redis() as server:
        server.start()
        url = f"redis+socket://{server.socket}?virtual_host=0"
        monkeypatch.setattr(app.conf, "broker_url", url)
        monkeypatch.setattr(app.conf, "broker_write_url", url)
        yield server


@pytest.fixture(autouse=True)
def registered(settings) -> None:
    settings.REPLAY_AGENTS = dict(agents())


@pytest.fixture
def project() -> Project:
    return make_project()


def orders(count: int) -> list[str]:
    return [f"ORD-{1000 + number}" for number in range(count)]


def keep(project: Project, order_id: str) -> Golden:
    """The bug of cancel_5521, with another order each time."""
    record = json.loads(json.dumps(example("cancel_bug")).replace("ORD-5521", order_id))
    run = make_run(project, record, run_id=f"cancel {order_id}")
    replay = {"mode": "code_and_tools", "on_difference": "play_on"}
    return create_golden(run=run, wanted={"name": order_id, "checks": [REFUSED], "replay": replay})


def planted(order_ids: Sequence[str]) -> Table:
    return {(each, version): "pass" if refuses(version, each) else "fail" for each in order_ids for version in VERSIONS}


def table_of(outcomes: Sequence[Outcome]) -> Table:
    return {(outcome.name, str(outcome.agent)): str(outcome.result) for outcome in outcomes}


def differences(table: Table, truth: Table) -> Table:
    """The cells in which the table says something else."""
    return {cell: result for cell, result in table.items() if truth.get(cell) != result}


def finished(batch: GoldenBatch) -> list[Outcome]:
    found = batch_by_id(batch.project, batch.golden_batch_id)
    assert found is not None
    return outcomes_of(found)


def make_worker(redis: OwnRedis) -> Worker:
    """With one thread; a replay may be under way at every kill, after three of which it would rightly be given up."""
    registered = ", ".join(f"{name}={place}" for name, place in agents().items())
    settings = {"REPLAY_AGENTS": registered, "REPLAY_MAX_ATTEMPTS": str(KILLS + 1), "WORKER_THREADS": "1"}
    return Worker(redis.url, settings=settings)


def over() -> int:
    return Replay.objects.exclude(state__in=["queued", *HELD_STATES]).count()


def wait_for(number: int) -> None:
    wait_until(lambda: over() >= number, PATIENCE)


def kill_now_and_then(workers: Sequence[Worker], dice: random.Random, total: int) -> None:
    """One worker or the other, in the middle of a replay."""
    for moment in sorted(dice.sample(range(1, total * 9 // 10), KILLS)):
        wait_for(moment)
        worker = dice.choice(workers)
        time.sleep(dice.uniform(0, 0.5))
        wait_until(worker.children, PATIENCE)
        worker.kill()
        worker.start()


def test_every_version_meets_every_golden_once_although_workers_are_killed(project, redis):
    seed = int(os.environ.get("REPLAY_TEST_SEED") or random.randrange(10**6))
    names, dice = orders(GOLDENS), random.Random(seed)
    goldens = [keep(project, order_id) for order_id in names]
    batch = run_batch(project, goldens, agents=VERSIONS)
    total, started = GOLDENS * len(VERSIONS), time.monotonic()
    workers = [make_worker(redis), make_worker(redis)]
    with ExitStack() as stack:
        for worker in workers:
            stack.enter_context(working(worker))
        kill_now_and_then(workers, dice, total)
        wait_for(total)

    outcomes, seconds = finished(batch), time.monotonic() - started
    taken_over = Replay.objects.filter(attempt__gt=1).count()
    print(f"REPLAY_TEST_SEED={seed}; {total} replays in {seconds:.1f} s, {KILLS} kills, {taken_over} taken over")
    assert taken_over > 0
    assert_each_ended_once(total)
    assert (len(outcomes), differences(table_of(outcomes), planted(names))) == (total, {})
    assert overall(outcomes) == "fail"
    assert_what_was_shown(goldens, names)


def assert_each_ended_once(total: int) -> None:
    replays = list(Replay.objects.all())
    assert [replay.error for replay in replays if replay.state != "done"] == []
    produced = {replay.produced_run_id for replay in replays}
    assert (len(replays), len(produced), None in produced) == (total, total, False)
    assert set(Run.objects.filter(origin="replay").values_list("pk", flat=True)) == produced


def assert_what_was_shown(goldens: Sequence[Golden], order_ids: Sequence[str]) -> None:
    """Each golden knows its scene as a run that fails, and one run for each version."""
    shown = {golden.name: (len(golden.fails_on) - 1, len(golden.passes_on)) for golden in Golden.objects.all()}
    passing = {each: sum(refuses(version, each) for version in VERSIONS) for each in order_ids}
    assert shown == {each: (len(VERSIONS) - count, count) for each, count in passing.items()}


def test_another_version_than_was_planted_differs_in_its_cells(project, redis):
    """The control: under the name of v3 runs the code of v2."""
    names = orders(4)
    goldens, truth = [keep(project, order_id) for order_id in names], planted(names)
    batch = run_batch(project, goldens, agents=["v3"])
    worker = make_worker(redis)
    worker.settings["REPLAY_AGENTS"] = f"v3={agents()['v2']}"
    with working(worker):
        wait_for(len(names))

    others = {(name, "v3"): truth[name, "v2"] for name in names if truth[name, "v2"] != truth[name, "v3"]}
    assert 0 < len(others) < len(names)
    assert differences(table_of(finished(batch)), truth) == others
