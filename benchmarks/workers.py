"""Two workers against one, as JSON: `python3 manage.py test benchmarks/workers.py -s`.

The same goldens run with the team's code by one worker and by two, in alternate pairs, each after a run that loads the
library. The ratio says something of the product only where both cores are free; the machine's load stands beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from sessions_app.models import Golden, Project
from sessions_app.services.golden_batches import run_batch
from tests.tasks.workers import OwnRedis, Worker, working
from tests.trials.test_fleet import keep, make_worker, orders, over, project, redis, registered, wait_for

__all__ = ["project", "redis", "registered"]
pytestmark = pytest.mark.django_db(transaction=True)
GOLDENS, PAIRS = 24, 3


def seconds(shop: Project, goldens: Sequence[Golden], workers: Sequence[Worker]) -> float:
    with ExitStack() as stack:
        for worker in workers:
            stack.enter_context(working(worker))
        run(shop, goldens[: len(workers) * 3])
        began = time.monotonic()
        run(shop, goldens)
        return time.monotonic() - began


def run(shop: Project, goldens: Sequence[Golden]) -> None:
    before = over()
    run_batch(shop, goldens, agents=["v2"])
    wait_for(before + len(goldens))


def test_two_workers_beside_one(project: Project, redis: OwnRedis) -> None:
    goldens = [keep(project, order_id) for order_id in orders(GOLDENS)]
    pairs = [
        (seconds(project, goldens, [make_worker(redis)]), seconds(project, goldens, [make_worker(redis) for _ in "12"]))
        for _ in range(PAIRS)
    ]
    found = {
        "replays": GOLDENS,
        "seconds": {"one": [round(one, 1) for one, _ in pairs], "two": [round(two, 1) for _, two in pairs]},
        "ratio": round(statistics.median(one / two for one, two in pairs), 2),
        "load": [round(each, 1) for each in os.getloadavg()],
        "cores": os.cpu_count(),
    }
    print(json.dumps(found, indent=1))
    assert over() == PAIRS * (2 * GOLDENS + 9)
