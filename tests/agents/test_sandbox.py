"""The process in which replays run: what it says, what it survives, when it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from replay_web.supervisor.processes import wait_gone
from sessions_app.agents.process import sandbox
from sessions_app.agents.process.forking import ForkedProcess, ForkServer, bare_environment
from sessions_app.agents.process.sandbox import ChildDied, ChildPool, ReplayChild
from tests.agents.probing_child import ProbingChild
from tests.agents.talking import ask, example, probe, running

GONE_WITHIN = 5.0  # seconds


@pytest.fixture(scope="module")
def child() -> Iterator[ReplayChild]:
    with running() as started:
        yield started


# --- what it says


def test_output_of_replayed_code_disturbs_nobody(child, capfd):
    result = probe(child, "make_noise")

    assert (result["verdict"], result["facts"]["found"]) == ("reproduced", "done")
    assert capfd.readouterr() == ("", "")  # what is printed may be a payload
    assert ask(child, example())["verdict"] == "reproduced"


def test_a_record_of_twenty_megabytes_goes_through(child):
    record = example()
    record["steps"][1]["result"] = "all is well. " * 1_600_000

    result = ask(child, record)

    assert len(result["record"]) > 20_000_000
    assert result["verdict"] == "diverged"  # the next request held the shorter answer


def test_sending_does_not_wait_for_a_child_that_does_not_read():
    with running() as stopped:
        os.kill(stopped.pid, signal.SIGSTOP)
        started = time.monotonic()
        stopped.send({"id": "1", "run_id": "again", "record": "x" * 5_000_000})

        assert next(stopped.answers(poll_seconds=0.1)) is None
        assert time.monotonic() - started < GONE_WITHIN
        stopped.end()
        assert time.monotonic() - started < 2 * GONE_WITHIN


def test_the_garbage_collector_leaves_alone_what_it_loaded_and_goes_on_with_the_rest(child):
    found = probe(child, "look_at_the_collector")["facts"]["found"]

    assert found["frozen"] > 50_000
    assert found["is_on"]


# --- what it survives


@pytest.mark.parametrize(("command", "words"), [("eat_memory", "MemoryError: "), ("leave 3", "SystemExit: 3")])
def test_what_replayed_code_raises_is_the_outcome(child, command, words):
    result = probe(child, command)

    assert (result["verdict"], result["error"]) == ("could_not_run", words)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("die 9", "signal 9"),
        ("die 11", "signal 11"),
        ("close_everything", "it stopped answering"),
    ],
)
def test_the_end_of_a_child_is_told_in_words(command, words):
    with running() as child, pytest.raises(ChildDied, match=words):
        probe(child, command)


def test_the_pool_replaces_a_child_that_died_while_it_waited():
    pool = ChildPool(ProbingChild)
    pool.warm_up()
    first = pool.take()
    pool.give_back(first)
    os.kill(first.pid, signal.SIGKILL)
    wait_gone([first.pid], 5)

    second = pool.take()

    assert second.pid != first.pid
    assert ask(second, example())["verdict"] == "reproduced"
    pool.give_back(second)
    pool.close()
    assert not second.is_alive


def parent_of(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().split()[3])


def test_a_fork_server_that_died_is_started_again():
    server = ForkServer()

    def started() -> ForkedProcess:
        return server.fork(
            "tests.agents.probing_child", [json.dumps({"hidden": []})], bare_environment(), with_stderr=False
        )

    first = started()
    assert json.loads(first.stdout.readline()) == {"ready": True}
    died = parent_of(parent_of(first.pid))  # behind the keeper
    os.kill(died, signal.SIGKILL)
    wait_gone([died], 5)
    second = started()

    assert json.loads(second.stdout.readline()) == {"ready": True}
    assert first.poll() is None, "it lives on: its keeper is another process"
    for each in (first, second):
        each.kill()
        assert each.wait(5) == -signal.SIGKILL
        each.stdout.close()
        each.close()
    server.close()


def test_what_the_sdk_stands_on_is_loaded_already_and_a_name_that_a_team_may_use_is_not():
    server = ForkServer()
    names = ["pydantic_ai", "openai", "mcp", "agents"]

    child = server.fork("tests.agents.loaded_names", names, bare_environment(), with_stderr=False)

    assert json.loads(child.stdout.readline()) == [True, True, True, False]
    assert child.wait(5) == 0
    child.stdout.close()
    child.close()
    server.close()


def test_a_child_is_let_go_after_its_share():
    pool = ChildPool()
    child = pool.take()
    child.served = 100

    pool.give_back(child)

    assert not child.is_alive


# --- when it ends

PARENT = """
import sys, time
from tests.agents.probing_child import PROBE, ProbingChild
from tests.agents.talking import example
import json
child = ProbingChild()
next(answer for answer in child.answers(poll_seconds=1) if answer and "ready" in answer)
if sys.argv[1] != "idle":
    child.send({"id": "1", "run_id": "1", "record": json.dumps(example() | {"input": PROBE + sys.argv[1]})})
    next(answer for answer in child.answers(poll_seconds=1) if answer and "progress" in answer)
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("doing", ["loop_for_ever", "hold_the_interpreter", "stopped"])
def test_a_child_does_not_outlive_its_worker(doing):
    command = [sys.executable, "-c", PARENT, "idle" if doing == "stopped" else doing]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        if doing == "stopped":
            os.kill(child, signal.SIGSTOP)

        parent.kill()

        assert wait_gone([child], GONE_WITHIN)


def test_a_child_that_does_not_listen_can_be_ended():
    with running() as child:
        child.send({"id": "1", "run_id": "1", "record": '{"input": "probe: hold_the_interpreter"}'})
        while "progress" not in (next(child.answers(poll_seconds=5)) or {}):
            pass
        started = time.monotonic()
        child.end()
        child.end()

        assert time.monotonic() - started < 2 * GONE_WITHIN
        assert not child.is_alive


def test_children_leave_no_descriptors_behind():
    def used() -> int:
        return len(os.listdir("/proc/self/fd"))

    ReplayChild().end()  # the fork server is there
    before = used()
    for _ in range(3):
        child = ReplayChild()
        child.end()
    until = time.monotonic() + 5
    while used() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert used() <= before


# --- the clock


def test_the_time_of_a_replay_is_that_of_its_recording(child):
    """And it is over with the replay: the next one has another, and between them there is none."""
    now = datetime.fromisoformat(probe(child, "tell_time")["facts"]["found"][0])
    assert abs((datetime.now(now.tzinfo) - now).total_seconds()) < 60

    told = [ask(child, record)["facts"]["clock"] for record in (example("cancel_bug"), example("price_429"))]

    assert told == ["2026-11-16T09:41:12.000000+00:00", example("price_429")["started_at"].replace("Z", "+00:00")]
    again = datetime.fromisoformat(probe(child, "tell_time")["facts"]["found"][0])
    assert abs((datetime.now(now.tzinfo) - again).total_seconds()) < 60


# --- the same again


PLACES = (("UTC", "C"), ("Asia/Kathmandu", "C.UTF-8"), ("America/St_Johns", "de_DE.UTF-8"), ("Pacific/Apia", "POSIX"))


def test_twenty_replays_are_the_same_wherever_they_run(monkeypatch):
    """Four processes that differ in all that a process is born with; five replays in each, in turn of two records."""
    places = [
        {"PYTHONHASHSEED": str(seed), "TZ": zone, "LC_ALL": locale, "LANG": locale}
        for seed, (zone, locale) in enumerate(PLACES)
    ]
    started = [started_in(monkeypatch, place) for place in places]
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(replay_five, started))

    assert len(set(answers)) == 1
    first, other, *again = answers[0]
    assert again == [first, other, first]
    assert {verdict for verdict, *_ in answers[0]} == {"reproduced"}


def started_in(monkeypatch: pytest.MonkeyPatch, place: dict[str, str]) -> ReplayChild:
    with monkeypatch.context() as patch:
        usual = sandbox.bare_environment()
        patch.setattr(sandbox, "bare_environment", lambda: usual | place)
        return ReplayChild()


def replay_five(child: ReplayChild) -> tuple[tuple[str, str, str], ...]:
    first, other = example("run_xyz789"), example("cancel_bug")
    results = [ask(child, record) for record in (first, other, first, other, first)]
    child.end()
    return tuple((result["verdict"], json.dumps(result["facts"]), own_ids_left_out(result)) for result in results)


def own_ids_left_out(result: dict[str, Any]) -> str:
    """The library draws an id for each run of the loop."""
    return re.sub(r'"(run_id|conversation_id)":"[0-9a-f-]{36}"', r'"\1":"…"', result["record"])
