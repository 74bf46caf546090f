"""Delivery by real processes: killed, forked, sharing a folder, without a server, and to the real one."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import urllib.request
from collections import Counter
from typing import Any

import pytest

import replay_recorder
from replay_web.supervisor.home import PROJECT_ROOT
from tests.recorder.receiving import Answer, Hang, free_port, receiving

PATIENCE = 60.0
PRELUDE = """
import os, signal, sys, time
import replay_recorder

def install(flush_timeout=60, **settings):
    url, key = sys.argv[2:]
    return replay_recorder.install(spool=sys.argv[1], url=url, key=key, flush_timeout=flush_timeout, **settings)

def record(recorder, run_id, steps=1):
    run = recorder.begin(run_id, input="go")
    for number in range(1, steps + 1):
        run.step("tool", tool_name="t", arguments={"n": number}, result=number)
    recorder.end(run, "ok", output="done")
"""
TEN_STEPS_KILLED_IN_THE_SEVENTH = """
recorder = install()
run = recorder.begin("killed", input="go")
for number in range(1, 11):
    step = run.begin("tool", tool_name="t", arguments={"n": number})
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    run.end(step, result=f"answer {number}")
recorder.end(run, "ok", output="done")
"""


def start(source, spool, url, key="rpk_test"):
    """A process that records; it is not waited for."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(source), str(spool), url, key]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(source, spool, url, key="rpk_test", code=0):
    """A process to its end; what it wrote to stderr."""
    process = start(source, spool, url, key)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, said
    return said


def nowhere():
    return f"http://127.0.0.1:{free_port()}"


def sent(receiver):
    return Counter(run["run_id"] for post in receiver.posts for run in post)


@pytest.fixture
def installed(tmp_path):
    """Installs in this process for one test."""
    yield lambda **settings: replay_recorder.install(spool=tmp_path / "spool", **settings)
    replay_recorder.uninstall()


# --- killed


def test_a_killed_process_loses_the_open_call_at_most(tmp_path):
    with receiving() as receiver:
        run(TEN_STEPS_KILLED_IN_THE_SEVENTH, tmp_path, receiver.url, code=-signal.SIGKILL)
        assert receiver.runs == {}
        run("install()", tmp_path, receiver.url)

    record = receiver.runs["killed"]
    assert record["status"] == "cut_off"
    assert [step.get("result") for step in record["steps"]] == [f"answer {n}" for n in range(1, 7)] + [None]
    assert record["steps"][6]["arguments"] == {"n": 7}
    assert "output" not in record
    assert sent(receiver) == {"killed": 1}


def test_a_killed_run_is_shown_as_cut_off_by_the_real_server(running_instance, tmp_path):
    url, key = running_instance.url, running_instance.api_key
    run(TEN_STEPS_KILLED_IN_THE_SEVENTH, tmp_path, url, key, code=-signal.SIGKILL)

    pushed = subprocess.run(
        [sys.executable, "-m", "replay_recorder", "push", tmp_path, "--url", url, "--key", key],
        cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip

    assert (pushed.returncode, pushed.stderr) == (0, "")
    assert pushed.stdout.endswith(": stored\n")
    assert ask(running_instance, "/runs/killed")["status"] == "cut_off"
    steps = ask(running_instance, "/runs/killed/steps")["items"]
    assert [step["result"] for step in steps] == [f"answer {n}" for n in range(1, 7)] + [None]
    assert [step["duration_ms"] is None for step in steps] == [False] * 6 + [True]


def ask(instance, path):
    request = urllib.request.Request(
        f"{instance.url}/api/v1{path}", headers={"Authorization": f"Bearer {instance.api_key}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def test_the_real_server_takes_what_the_sender_sends_once(running_instance, tmp_path):
    source = """
    recorder = install()
    for number in range(3):
        record(recorder, f"sent-{number}")
    assert recorder.flush(60), recorder.stats()
    assert recorder.stats()["delivered"] == 3
    record(recorder, "sent-0")
    record(recorder, "sent-3")
    assert recorder.flush(60), recorder.stats()
    assert (recorder.stats()["delivered"], recorder.stats()["refused"]) == (4, 1)
    """

    said = run(source, tmp_path, running_instance.url, running_instance.api_key)

    reason = next((tmp_path / "refused").glob("*.reason")).read_text()
    assert reason.startswith("409: ")
    assert "sent-0" in reason
    assert reason.strip() in said
    assert [ask(running_instance, f"/runs/sent-{n}")["status"] for n in range(4)] == ["ok"] * 4


# --- the end of a process


def test_recordings_are_delivered_before_a_process_ends(tmp_path):
    with receiving() as receiver:
        run("record(install(), 'last')\nsys.exit(0)", tmp_path, receiver.url)

    assert sent(receiver) == {"last": 1}


def test_a_process_that_fails_delivers_too(tmp_path):
    with receiving() as receiver:
        run("record(install(), 'last')\nraise SystemError('of the agent')", tmp_path, receiver.url, code=1)

    assert sent(receiver) == {"last": 1}


def test_a_silent_server_does_not_keep_a_process_from_ending(tmp_path):
    never = threading.Event()

    with receiving(Hang(never)) as receiver:
        said = run("record(install(flush_timeout=0.2), 'a')", tmp_path, receiver.url)
        # The server is still silent, and the process has ended.
        assert receiver.stored == {}
        never.set()
        assert f"Recordings wait in {tmp_path} (1)" in said
        run("install()", tmp_path, receiver.url)

    assert list(receiver.stored) == ["a"]


# --- without a server


def test_a_server_that_comes_up_later_gets_each_run_once_from_the_same_process(installed):
    port = free_port()
    recorder = installed(url=f"http://127.0.0.1:{port}")
    for number in range(20):
        recorder.end(recorder.begin(f"r{number}"), "ok")
    assert not recorder.flush()

    with receiving(port=port) as receiver:
        assert recorder.flush(PATIENCE)

    assert sent(receiver) == {f"r{number}": 1 for number in range(20)}
    assert recorder.stats() == {
        "recorded": 20,
        "sampled_out": 0,
        "delivered": 20,
        "refused": 0,
        "waiting": 0,
        "lost": {},
        "faults": recorder.stats()["faults"],
        "trouble": None,
    }


def test_a_server_that_comes_up_later_gets_each_run_once_from_the_next_process(tmp_path):
    said = run("recorder = install()\nfor n in range(20): record(recorder, f'r{n}')", tmp_path, nowhere())
    assert "Connection refused" in said
    assert f"Recordings wait in {tmp_path} (20)" in said

    with receiving() as receiver:
        run("install()", tmp_path, receiver.url)
        run("install()", tmp_path, receiver.url)

    assert sent(receiver) == {f"r{number}": 1 for number in range(20)}


def test_without_an_address_recordings_wait_for_a_push(installed, tmp_path, caplog):
    recorder = installed()
    recorder.end(recorder.begin("r1"), "ok")

    assert not recorder.flush()
    assert recorder.stats()["waiting"] == 1
    assert f"No url is set: recordings stay in {tmp_path / 'spool'} until they are pushed." in caplog.messages


def test_a_key_that_is_put_right_delivers_what_waited(tmp_path):
    with receiving(always=Answer(401, "Send a valid key.")) as receiver:
        run("record(install(), 'a')", tmp_path, receiver.url)
        assert (receiver.stored, list((tmp_path / "refused").iterdir())) == ({}, [])
        receiver.always = None
        run("install()", tmp_path, receiver.url)

    assert list(receiver.stored) == ["a"]


# --- many at once


def test_several_processes_share_a_folder_and_lose_and_double_nothing(tmp_path):
    source = """
    recorder = install()
    for number in range(40):
        record(recorder, f"{os.getpid()}-{number}")
    """
    with receiving(Answer(503, headers={"Retry-After": "1"})) as receiver:
        processes = [start(source, tmp_path, receiver.url) for _ in range(4)]
        for process in processes:
            process.communicate(timeout=PATIENCE)
        run("assert install().flush(60)", tmp_path, receiver.url)
        first = receiver.posts[0]

    expected = {f"{process.pid}-{number}" for process in processes for number in range(40)}
    assert receiver.stored.keys() == expected
    # What was answered with 503 came once more, and nothing else did.
    assert sent(receiver) == Counter(expected) + Counter(run["run_id"] for run in first)
    assert [path for folder in ("open", "ready", "refused") for path in (tmp_path / folder).glob("*.run")] == []


def test_threads_record_at_once(installed):
    with receiving() as receiver:
        recorder = installed(url=receiver.url)

        def work(thread):
            for number in range(20):
                run = recorder.begin(f"{thread}-{number}")
                for step in range(5):
                    run.step("tool", tool_name="t", arguments={"n": step}, result=step)
                recorder.end(run, "ok")

        threads = [threading.Thread(target=work, args=[n]) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert recorder.flush(PATIENCE)

    assert sent(receiver) == {f"{thread}-{number}": 1 for thread in range(5) for number in range(20)}
    assert all([step["result"] for step in run["steps"]] == list(range(5)) for run in receiver.runs.values())


def test_threads_share_a_run(installed):
    with receiving() as receiver:
        recorder = installed(url=receiver.url)
        run = recorder.begin("shared")

        def work(thread):
            for number in range(50):
                step = run.begin("tool", tool_name="t", arguments={"thread": thread, "n": number})
                run.end(step, result=[thread, number])

        threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        recorder.end(run, "ok")
        assert recorder.flush(PATIENCE)

    steps = receiver.runs["shared"]["steps"]
    assert len(steps) == 200
    assert all(step["result"] == [step["arguments"]["thread"], step["arguments"]["n"]] for step in steps)


# --- forks


def test_parent_and_child_record_and_deliver_after_a_fork(tmp_path):
    source = """
    recorder = install()
    record(recorder, "before")
    assert recorder.flush(60)
    child = os.fork()
    record(recorder, "of the child" if child == 0 else "of the parent")
    recorder.flush(60)
    assert recorder.stats()["recorded"] == (1 if child == 0 else 2), recorder.stats()
    if child == 0:
        sys.exit(0)
    sys.exit(os.waitpid(child, 0)[1])
    """

    with receiving() as receiver:
        run(source, tmp_path, receiver.url)

    assert sent(receiver) == {"before": 1, "of the child": 1, "of the parent": 1}


def test_a_run_that_is_open_at_a_fork_is_the_parents(tmp_path):
    source = """
    recorder = install()
    run = recorder.begin("open", input="go")
    run.step("tool", tool_name="t", arguments={}, result="before the fork")
    child = os.fork()
    if child == 0:
        run.step("tool", tool_name="t", arguments={}, result="in the child")
        recorder.end(run, "error")
        record(recorder, "of the child")
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    run.step("tool", tool_name="t", arguments={}, result="after the fork")
    recorder.end(run, "ok", output="done")
    """

    with receiving() as receiver:
        run(source, tmp_path, receiver.url)

    assert receiver.runs["open"]["status"] == "ok"
    assert [step["result"] for step in receiver.runs["open"]["steps"]] == ["before the fork", "after the fork"]
    assert sent(receiver) == {"open": 1, "of the child": 1}


def test_a_fork_does_not_hang_on_locks_that_other_threads_held(tmp_path):
    source = """
    import threading
    recorder = install()
    run = recorder.begin("open")
    locks = [run.file.lock, run.tree._lock, recorder.spool._lock, recorder.sender._changed, recorder.spool.losses._lock]
    held, forked = threading.Event(), threading.Event()

    def hold():
        for lock in locks:
            lock.acquire()
        held.set()
        forked.wait()
        for lock in locks:
            lock.release()

    threading.Thread(target=hold).start()
    held.wait()
    child = os.fork()
    forked.set()
    if child == 0:
        run.step("tool", tool_name="t")
        recorder.end(run, "ok")
        record(recorder, "of the child")
        recorder.stats()
        os._exit(0 if recorder.flush(60) else 1)
    sys.exit(os.waitpid(child, 0)[1])
    """

    with receiving() as receiver:
        run(source, tmp_path, receiver.url)

    assert sent(receiver)["of the child"] == 1


def test_what_is_in_memory_at_a_fork_is_the_parents(tmp_path):
    (tmp_path / "spool").write_text("a file, where a folder should be")
    source = """
    recorder = install()
    record(recorder, "of the parent")
    run = recorder.begin("open")
    recorder.flush(60)
    child = os.fork()
    if child == 0:
        recorder.end(run, "ok")
        os._exit(recorder.stats()["waiting"])
    recorder.end(run, "ok")
    sys.exit(os.waitpid(child, 0)[1] or 10 + recorder.stats()["waiting"])
    """

    run(source, tmp_path / "spool", nowhere(), code=12)


def test_a_child_that_lives_on_does_not_hold_what_its_killed_parent_recorded(tmp_path):
    source = """
    recorder = install()
    run = recorder.begin("open", input="go")
    child = os.fork()
    if child == 0:
        sys.stdin.read()
        os._exit(0)
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    with receiving() as receiver:
        parent = start(source, tmp_path, receiver.url)
        child = int(parent.stdout.readline())
        assert parent.wait(PATIENCE) == -signal.SIGKILL

        run("assert install().flush(60)", tmp_path, receiver.url)
        os.kill(child, 0)  # It lives.
        parent.communicate()

    assert {run_id: run["status"] for run_id, run in receiver.runs.items()} == {"open": "cut_off"}


def test_a_worker_that_ends_hard_leaves_its_recordings_to_the_others(tmp_path):
    source = """
    recorder = install()
    child = os.fork()
    if child == 0:
        recorder.sender.start = recorder.sender.wake = lambda: None
        record(recorder, "of the worker")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """

    with receiving() as receiver:
        run(source, tmp_path, receiver.url)

    assert sent(receiver) == {"of the worker": 1}


# --- limits


def test_what_was_lost_is_said_in_the_next_record_and_the_agent_goes_on(installed, tmp_path, caplog):
    run("record(install(), 'large', steps=100)", tmp_path / "spool", nowhere())
    with receiving(always=Answer(503)) as receiver:
        recorder = installed(url=receiver.url, max_spool_bytes=3_000)
        assert [recorder.begin(f"lost{number}") for number in range(3)] == [None, None, None]
        receiver.always = None
        assert recorder.flush(PATIENCE)
        recorder.end(recorder.begin("next"), "ok")
        assert recorder.flush(PATIENCE)

    reason = "the spool is full (3000 bytes)"
    assert recorder.stats()["lost"] == {reason: 3}
    assert receiver.runs["next"]["recorder"]["lost_runs"] == {reason: 3}
    assert receiver.runs.keys() == {"large", "next"}
    assert (tmp_path / "spool" / "lost.log").read_text().count(reason) == 3
    assert sum(reason in message for message in caplog.messages) == 1


def test_memory_that_could_not_be_delivered_is_counted_at_the_end(tmp_path, caplog):
    (tmp_path / "spool").write_text("a file, where a folder should be")
    recorder: Any = replay_recorder.install(spool=tmp_path / "spool", url=nowhere())
    recorder.end(recorder.begin("r1"), "ok")

    replay_recorder.uninstall()

    assert recorder.stats()["lost"] == {"it was kept in memory and could not be delivered in time": 1}
    assert any("could not be delivered in time" in message for message in caplog.messages)


def test_a_run_that_ends_after_uninstall_is_delivered_too(installed):
    with receiving() as receiver:
        recorder = installed(url=receiver.url)
        run = recorder.begin("late")
        replay_recorder.uninstall()
        recorder.end(run, "ok")
        assert recorder.flush(PATIENCE)

    assert sent(receiver) == {"late": 1}
