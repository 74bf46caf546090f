"""What was acknowledged is there, whole and once, although the web server was killed while it arrived.

`TRIAL_SIZE=full` sends 1,000 sessions and kills five times.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from random import Random

import pytest

from tests.builders import make_record, make_tool_step
from tests.instances import Instance, clean_environment, instance_in, manage, open_folder
from tests.otlp_requests import JSON, PROTOBUF, as_protobuf, make_span, make_traces
from tests.trials.delivery import Delivery, Parcel, kill_web, rows, wait_until

SESSIONS, KILLS = (1000, 5) if os.environ.get("TRIAL_SIZE") == "full" else (200, 3)
STEPS = 20
_PER_RUN = """
SELECT run.run_id, run.step_count, content.step_count
FROM sessions_app_run run JOIN sessions_app_runcontent content ON content.id = run.content_id WHERE NOT run.is_example
"""
_PER_TRACE = "SELECT trace_id, batches_received, batches_assembled, span_count, problem FROM sessions_app_trace"


@pytest.fixture
def instance() -> Iterator[Instance]:
    with open_folder() as folder, instance_in(folder) as instance:
        yield instance


def native(n: int) -> Parcel:
    steps = [make_tool_step(call_id=f"c{at}", arguments={"page": at}, result=f"{n} {at}") for at in range(STEPS)]
    body = json.dumps(make_record(f"native-{n}", *steps)).encode()
    return Parcel(name=f"native-{n}", path="/api/v1/runs", content_type=JSON, body=body)


def traced(n: int) -> list[Parcel]:
    """A trace in two requests: the tools, then the agent that called them and the rest."""
    trace_id = (n + 1).to_bytes(16, "big")
    agent = make_span({"gen_ai.operation.name": "invoke_agent"}, trace_id=trace_id, span_id=b"\xff" * 8)
    tools = [tool_span(n, at, trace_id) for at in range(STEPS)]
    return [otlp(trace_id, tools[:12]), otlp(trace_id, [*tools[12:], agent])]


def tool_span(n: int, at: int, trace_id: bytes):
    told = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": f"c{at}",
        "gen_ai.tool.call.arguments": json.dumps({"page": at}),
        "gen_ai.tool.call.result": f"{n} {at}",
    }
    return make_span(told, trace_id=trace_id, span_id=bytes([1] * 7 + [at]), parent_span_id=b"\xff" * 8)


def otlp(trace_id: bytes, spans) -> Parcel:
    body = as_protobuf(make_traces(*spans))
    return Parcel(name=trace_id.hex(), path="/v1/traces", content_type=PROTOBUF, body=body)


def all_parcels(random: Random) -> list[Parcel]:
    made = [parcel for n in range(SESSIONS // 2) for parcel in (native(n), *traced(n))]
    random.shuffle(made)
    return made


def kill_now_and_then(delivery: Delivery, random: Random, total: int) -> list[int]:
    """At random moments while requests are under way; gives how many were acknowledged at each."""
    moments = sorted(random.sample(range(total // 20, total * 9 // 10), KILLS))
    met = []
    for moment in moments:
        wait_until(partial(delivery.has_acknowledged, moment))
        met.append(len(delivery.acknowledged))
        kill_web(delivery.instance)
    return met


def test_nothing_acknowledged_is_lost_doubled_or_half_stored(instance):
    random = Random(1)
    parcels, delivery, started = all_parcels(random), Delivery(instance), time.monotonic()
    sender = threading.Thread(target=delivery.send_all, args=[parcels])
    sender.start()
    met = kill_now_and_then(delivery, random, len(parcels))
    sender.join()

    wait_until(lambda: all(row[1] == row[2] for row in rows(instance, _PER_TRACE)), 60)
    print(f"{SESSIONS} sessions, killed at {met}, {dict(delivery.statuses)}, {time.monotonic() - started:.1f} s")
    assert len(delivery.acknowledged) == len(parcels)
    assert delivery.retries > 0
    stored = rows(instance, _PER_RUN)
    assert sorted(str(run_id) for run_id, *_ in stored) == sorted({parcel.name for parcel in parcels})
    assert {run_id: counts for run_id, *counts in stored if not is_whole(str(run_id), counts)} == {}
    assert {row[1:] for row in rows(instance, _PER_TRACE)} == {(2, 2, STEPS + 1, None)}
    verified = manage("verify", environment=clean_environment(REPLAY_HOME=str(instance.home.path)))
    assert verified.returncode == 0, verified.stdout


def is_whole(run_id: str, counts: list[object]) -> bool:
    steps = STEPS if run_id.startswith("native") else STEPS + 1
    return counts in ([steps, steps], [STEPS, STEPS])
