"""Which runs are kept when not all of them are."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import replay_recorder
from replay_recorder.context import Place
from replay_recorder.delivery.sampling import is_sampled
from replay_recorder.writing.assembly import assemble
from replay_web.supervisor.home import PROJECT_ROOT

IN_ID, OUT_ID = "r5", "r2"


@pytest.fixture
def recorder(tmp_path):
    """One that keeps half of the successes: `IN_ID` is in that half, `OUT_ID` is not."""
    yield replay_recorder.install(spool=tmp_path, sample=0.5)
    replay_recorder.uninstall()


def kept(folder):
    """What a run that was kept says about it, by run id."""
    records = [json.loads(assemble(path.read_bytes())) for path in (folder / "ready").iterdir()]
    return {record["run_id"]: record.get("sampling") for record in records}


def record_thousand(folder, seed):
    source = f"""
import replay_recorder
recorder = replay_recorder.install(spool={str(folder)!r}, sample=0.1)
for number in range(1000):
    recorder.end(recorder.begin(f"run-{{number}}"), "ok")
print(recorder.stats()["recorded"], recorder.stats()["sampled_out"])
"""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return [int(count) for count in done.stdout.split()]


def test_the_ids_of_these_tests_are_in_and_out():
    assert [is_sampled(IN_ID, 0.5), is_sampled(OUT_ID, 0.5)] == [True, False]


def test_a_share_of_the_successes_is_kept_and_the_same_in_every_process(tmp_path):
    recorded, sampled_out = record_thousand(tmp_path / "a", seed="1")
    record_thousand(tmp_path / "b", seed="2")

    first = kept(tmp_path / "a")
    assert first == kept(tmp_path / "b")
    assert (recorded, sampled_out) == (1000, 1000 - len(first))
    # Ten standard deviations would be 95; the ids are fixed, so this cannot fail by chance.
    assert 80 <= len(first) <= 120
    assert set(first) == {f"run-{n}" for n in range(1000) if is_sampled(f"run-{n}", 0.1)}
    assert all(said == {"rate": 0.1, "kept": "sample"} for said in first.values())


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (1.0, 1000)])
def test_nothing_and_everything_are_shares_too(share, count):
    assert sum(is_sampled(str(number), share) for number in range(1000)) == count


def test_a_larger_share_holds_the_smaller_one():
    tenth = {number for number in range(1000) if is_sampled(str(number), 0.1)}

    assert tenth < {number for number in range(1000) if is_sampled(str(number), 0.3)}


@pytest.mark.parametrize("status", ["error", "cut_off"])
def test_what_did_not_end_well_is_kept_always(recorder, tmp_path, status):
    recorder.end(recorder.begin(OUT_ID), status)

    assert kept(tmp_path) == {OUT_ID: {"rate": 0.5, "kept": "failure"}}


def test_a_run_with_a_failed_step_is_kept(recorder, tmp_path):
    run = recorder.begin(OUT_ID)
    run.end(run.begin("tool", tool_name="t"), error={"type": "TimeoutError", "message": "too slow"})
    recorder.end(run, "ok")

    assert kept(tmp_path) == {OUT_ID: {"rate": 0.5, "kept": "failure"}}


def test_a_run_that_lost_its_end_is_kept(tmp_path):
    recorder: Any = replay_recorder.install(spool=tmp_path, sample=0.5, max_run_bytes=2000)
    run = recorder.begin(OUT_ID)
    run.step("tool", tool_name="t", result="x" * 2000)
    recorder.end(run, "ok")
    replay_recorder.uninstall()

    assert list(kept(tmp_path)) == [OUT_ID]


@pytest.mark.parametrize(("root_id", "expected"), [(IN_ID, {IN_ID, OUT_ID}), (OUT_ID, set())])
def test_a_run_inside_another_shares_its_fate(recorder, tmp_path, root_id, expected):
    root = recorder.begin(root_id)
    inner = recorder.begin(OUT_ID if root_id == IN_ID else IN_ID, parent=Place(root, 1))
    recorder.end(inner, "ok")
    assert kept(tmp_path) == {}
    recorder.end(root, "ok")

    assert set(kept(tmp_path)) == expected
    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.parametrize("failing", ["root", "inner"])
def test_a_failure_anywhere_keeps_them_all(recorder, tmp_path, failing):
    root = recorder.begin(OUT_ID)
    inner = recorder.begin("inner", parent=Place(root, 1))
    recorder.end(inner, "error" if failing == "inner" else "ok")
    recorder.end(root, "error" if failing == "root" else "ok")

    assert kept(tmp_path) == {run_id: {"rate": 0.5, "kept": "failure"} for run_id in (OUT_ID, "inner")}


@pytest.mark.parametrize("root_id", [IN_ID, OUT_ID])
def test_a_run_that_begins_after_its_parent_ended_shares_its_fate_too(recorder, tmp_path, root_id):
    root = recorder.begin(root_id)
    recorder.end(root, "ok")
    late = recorder.begin("late", parent=Place(root, 1))
    recorder.end(late, "ok")

    assert set(kept(tmp_path)) == ({IN_ID, "late"} if root_id == IN_ID else set())


def test_two_runs_of_one_id_at_a_time_do_not_disturb_each_other(recorder, tmp_path):
    first, second = recorder.begin(OUT_ID), recorder.begin(OUT_ID)
    recorder.end(first, "ok")
    recorder.end(second, "error")

    assert list(kept(tmp_path)) == [OUT_ID]
    assert recorder.stats()["sampled_out"] == 1
    assert list((tmp_path / "open").iterdir()) == []


def test_a_full_recording_does_not_speak_of_sampling(tmp_path):
    recorder: Any = replay_recorder.install(spool=tmp_path)
    recorder.end(recorder.begin(OUT_ID), "ok")
    replay_recorder.uninstall()

    assert kept(tmp_path) == {OUT_ID: None}


def test_a_killed_run_says_that_it_is_a_failure(tmp_path):
    source = f"""
import os, signal, replay_recorder
recorder = replay_recorder.install(spool={str(tmp_path)!r}, sample=0.5)
run = recorder.begin({OUT_ID!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", source], env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, timeout=60)

    [path] = (tmp_path / "open").iterdir()
    record = json.loads(assemble(path.read_bytes()))
    assert (record["status"], record["sampling"]) == ("cut_off", {"rate": 0.5, "kept": "failure"})
