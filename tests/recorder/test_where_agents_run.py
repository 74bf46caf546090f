"""Agents in threads, web servers and workers that fork: each call is a run, replayable and reproduced."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from replay_recorder.writing.assembly import assemble
from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from tests.fake_provider import calls, says
from tests.recorder import plain_loops
from tests.recorder.local_server import LocalServer, local_server
from tests.recorder.recordings import records_of, value
from tests.recorder.replaying import replayed

CALLS = 4
QUESTION, ANSWER = "Where is ORD-5521?", "It was delivered."


@pytest.fixture
def provider() -> Iterator[LocalServer]:
    """Each conversation has an address of its own: several go on at once."""
    with local_server() as server:
        for number in range(CALLS):
            asks = calls("find_order", {"order_id": "ORD-5521"}, call_id=f"call_{number}")
            server.answer(f"/{number}/chat/completions", asks, says(ANSWER))
        yield server


def assert_all_reproduced(records: list[bytes]) -> None:
    runs = [with_conversation(parse_native(record)) for record in records]
    assert [value(run.output) for run in runs] == [ANSWER] * CALLS
    assert {run.run_id for run in runs} == {run.session_id for run in runs}
    for run in runs:
        assert ([step.kind for step in run.steps], judge(run).verdict) == (["model", "tool", "model"], "replayable")
        assert replayed(encode_native(run))[0].verdict == "reproduced"


def at_once(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(CALLS) as pool:
        return list(pool.map(work, range(CALLS)))


def test_threads(provider):
    def support(number: int) -> str:
        return plain_loops.chat(f"{provider.url}/{number}")(QUESTION)

    assert_all_reproduced(records_of(lambda: at_once(support)))


def endpoint(request: Request) -> Response:
    """Starlette, as FastAPI, runs such a function in a thread."""
    loop = plain_loops.chat(f"{request.query_params['at']}")
    return PlainTextResponse(loop(QUESTION))


async def endpoint_of_its_loop(request: Request) -> Response:
    return PlainTextResponse(await plain_loops.awaited_chat(f"{request.query_params['at']}")(QUESTION))


@pytest.mark.parametrize("function", [endpoint, endpoint_of_its_loop])
def test_endpoints_of_a_web_server(provider, function):
    def work() -> None:
        with TestClient(Starlette(routes=[Route("/ask", function)])) as client:
            answers = at_once(lambda number: client.get("/ask", params={"at": f"{provider.url}/{number}"}).text)
        assert answers == [ANSWER] * CALLS

    assert_all_reproduced(records_of(work))


TASKS = """
import celery, replay_recorder
from tests.recorder import plain_loops

replay_recorder.install(spool={spool!r})
app = celery.Celery("support", broker="filesystem://", broker_transport_options={transport!r})


@app.task(name="support")
def support(url, question):
    return plain_loops.chat(url)(question)
"""


def test_tasks_of_a_worker_that_forks(provider, tmp_path):
    (broker := tmp_path / "broker").mkdir()
    spool, transport = tmp_path / "spool", {"data_folder_in": str(broker), "data_folder_out": str(broker)}
    (tmp_path / "support.py").write_text(TASKS.format(spool=str(spool), transport=transport))
    app = Celery("support", broker="filesystem://", broker_transport_options=transport)
    for number in range(CALLS):
        app.send_task("support", [f"{provider.url}/{number}", QUESTION])

    command = [sys.executable, "-m", "celery", "-A", "support", "worker", "-P", "prefork", "-c", "2", "-l", "warning"]
    paths = f"{tmp_path}:{PROJECT_ROOT}"
    with subprocess.Popen(command, cwd=tmp_path, env={"PYTHONPATH": paths, "PATH": ""}) as worker:
        try:
            records = recorded_in(spool / "ready")
        finally:
            worker.send_signal(signal.SIGTERM)

    assert_all_reproduced(records)


def recorded_in(folder: Path) -> list[bytes]:
    until = time.monotonic() + 60
    while len(found := sorted(folder.glob("*"))) < CALLS:
        assert time.monotonic() < until, found
        time.sleep(0.1)
    return [assemble(path.read_bytes()) for path in found]
