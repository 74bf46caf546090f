"""Files of the spool: written at once, locked by their process, within limits."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from replay_recorder.delivery import parcels, run_file
from replay_recorder.delivery.spool import Spool
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import assemble
from replay_recorder.writing.run_writer import RunWriter


def make_spool(folder, **settings):
    return Spool(Settings(spool=folder, **settings))


def finished(spool, name, text="x"):
    file = spool.create(name)
    file.append(text)
    file.finish()


def names(spool, last=None):
    """Those that can be taken, in order."""
    found = []
    for parcel in spool.parcels(last=last or {}):
        if parcel.take():
            found.append(parcel.name)
        parcel.release()
    return found


def test_an_event_is_in_the_file_at_once_with_one_write(tmp_path, monkeypatch):
    spool = make_spool(tmp_path)
    writes = []
    real = os.write

    def write(descriptor, content):
        writes.append(bytes(content))
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", write)

    file = spool.create("1.run")
    file.append("one\ttwo\t3\n")

    assert (tmp_path / "open" / "1.run").read_text() == "one\ttwo\t3\n"
    assert writes == [b"one\ttwo\t3\n"]


def test_a_finished_run_is_ready_and_takes_no_more(tmp_path):
    spool = make_spool(tmp_path)
    file = spool.create("1.run")
    file.append("a\n")

    file.finish()
    # It takes over the number of the descriptor that has just been closed.
    with (tmp_path / "of_the_agent").open("w") as other:
        file.append("too late\n")
        file.append_last("too late\n")
        file.finish()
        file.discard()
        assert (other.tell(), os.fstat(other.fileno()).st_size) == (0, 0)

    assert (tmp_path / "ready" / "1.run").read_text() == "a\n"
    assert spool.losses.counts == {}
    assert list((tmp_path / "open").iterdir()) == []
    assert spool.waiting == 1


def test_a_discarded_run_leaves_nothing(tmp_path):
    spool = make_spool(tmp_path, max_spool_bytes=10)
    file = spool.create("1.run")
    file.append("123456789\n")
    assert spool.create("2.run") is None

    file.discard()

    assert names(spool) == []
    assert spool.create("3.run") is not None


def test_recordings_can_be_read_by_their_user_only(tmp_path):
    spool = make_spool(tmp_path / "deep" / "spool")
    spool.create("1.run")

    modes = [path.stat().st_mode & 0o777 for path in (spool.folder, spool.open_folder, spool.open_folder / "1.run")]

    assert modes == [0o700, 0o700, 0o600]


# --- taking


def test_a_run_that_goes_on_is_nobodys_to_send(tmp_path):
    spool = make_spool(tmp_path)
    file = spool.create("1.run")
    file.append("a\n")

    assert names(make_spool(tmp_path)) == []
    file.finish()
    assert names(make_spool(tmp_path)) == ["1.run"]


def test_a_run_that_nobody_will_end_is_sent_as_it_is(tmp_path):
    spool = make_spool(tmp_path)
    file = spool.create("1.run")
    file.append("a\n")

    del file

    assert names(spool) == ["1.run"]


def test_a_recording_is_taken_once(tmp_path):
    spool, other = make_spool(tmp_path), make_spool(tmp_path)
    finished(spool, "1.run")
    [mine], [theirs] = spool.parcels(last={}), other.parcels(last={})

    assert mine.take()
    assert not theirs.take()
    mine.release()
    assert theirs.take()


def test_a_recording_that_another_has_delivered_is_not_taken(tmp_path):
    spool, other = make_spool(tmp_path), make_spool(tmp_path)
    finished(spool, "1.run")
    [mine], [theirs] = spool.parcels(last={}), other.parcels(last={})

    assert mine.take()
    mine.remove()

    assert not theirs.take()
    assert names(other) == []


def test_a_recording_that_another_delivers_at_this_moment_is_not_taken(tmp_path, monkeypatch):
    spool = make_spool(tmp_path)
    finished(spool, "1.run")
    [parcel] = spool.parcels(last={})
    real = parcels.try_lock

    def slow(descriptor):
        (tmp_path / "ready" / "1.run").unlink()
        return real(descriptor)

    monkeypatch.setattr(parcels, "try_lock", slow)

    assert not parcel.take()


def test_a_recording_is_free_again_though_a_child_process_has_its_descriptor(tmp_path):
    spool = make_spool(tmp_path)
    finished(spool, "1.run")
    [parcel] = spool.parcels(last={})
    assert parcel.take()
    inherited = os.dup(parcel._descriptor)

    parcel.release()

    assert names(spool) == ["1.run"]
    os.close(inherited)


def test_oldest_come_first_and_suspects_last(tmp_path):
    spool = make_spool(tmp_path)
    for name in ("3.run", "1.run", "4.run", "2.run"):
        finished(spool, name)

    assert names(spool) == ["1.run", "2.run", "3.run", "4.run"]
    assert names(spool, last={"1.run": 7, "2.run": 3}) == ["3.run", "4.run", "2.run", "1.run"]


def test_a_refused_recording_is_put_aside_with_the_reason(tmp_path):
    spool = make_spool(tmp_path)
    finished(spool, "1.run", "content")
    [parcel] = spool.parcels(last={})

    assert parcel.take()
    parcel.refused("409: Another run has this id.")

    assert (tmp_path / "refused" / "1.run").read_text() == "content"
    assert (tmp_path / "refused" / "1.reason").read_text() == "409: Another run has this id.\n"
    assert names(spool) == []


def test_refused_recordings_make_room(tmp_path):
    spool = make_spool(tmp_path, max_spool_bytes=400)
    for number in range(4):
        finished(spool, f"{number}.run", "x" * 40)
    for parcel in spool.parcels(last={}):
        assert parcel.take()
        parcel.refused("no")

    spool.measure()

    assert sorted(path.name for path in spool.refused_folder.iterdir()) == ["2.reason", "2.run", "3.reason", "3.run"]
    assert spool.losses.counts == {"the server refused it, and it made room for others": 2}


# --- limits


def test_above_the_limit_runs_are_counted_logged_once_and_written_down(tmp_path, caplog):
    spool = make_spool(tmp_path, max_spool_bytes=100)
    finished(spool, "1.run", "x" * 100)

    assert spool.create("2.run") is None
    assert spool.create("3.run") is None

    reason = "the spool is full (100 bytes)"
    assert spool.losses.counts == {reason: 2}
    assert [line.split(" ", 2)[1:] for line in (tmp_path / "lost.log").read_text().splitlines()] == [
        ["2.run", reason],
        ["3.run", reason],
    ]
    assert len([message for message in caplog.messages if reason in message]) == 1


def test_what_other_processes_wrote_counts(tmp_path):
    finished(make_spool(tmp_path), "1.run", "x" * 100)

    assert make_spool(tmp_path, max_spool_bytes=100).create("2.run") is None
    assert make_spool(tmp_path, max_spool_bytes=101).create("3.run") is not None


def test_delivered_recordings_make_room(tmp_path):
    spool = make_spool(tmp_path, max_spool_bytes=100)
    finished(spool, "1.run", "x" * 100)
    assert spool.create("2.run") is None
    [parcel] = spool.parcels(last={})

    assert parcel.take()
    parcel.remove()

    assert spool.create("3.run") is not None


def test_a_run_above_its_limit_keeps_its_beginning_and_says_so(tmp_path):
    spool = make_spool(tmp_path, max_run_bytes=500)
    run = RunWriter("r_1", spool.create("1.run"))
    first = run.step("tool", tool_name="a", result="short")
    run.step("tool", tool_name="b", result="x" * 500)
    run.step("tool", tool_name="c", result="short, and after the loss")

    run.finish("ok", output="done")
    run.file.finish()

    record = assemble((tmp_path / "ready" / "1.run").read_bytes()).decode()
    assert first == 1
    assert '"tool_name":"a"' in record
    assert '"tool_name":"c"' not in record
    assert '"status":"cut_off","recorder.lost":"the run is longer than 500 bytes"' in record
    assert spool.losses.counts == {"the run is longer than 500 bytes": 1}


# --- disks


def test_half_a_line_on_a_full_disk_does_not_spoil_the_end(tmp_path, monkeypatch):
    spool = make_spool(tmp_path)
    run = RunWriter("r_1", spool.create("1.run"))
    real = os.write

    def half(descriptor, content):
        if len(content) < 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, bytes(content)[:20])

    with monkeypatch.context() as full:
        full.setattr(run_file.os, "write", half)
        run.step("tool", tool_name="a", result="x" * 100)
    run.finish("ok")
    run.file.finish()

    content = (tmp_path / "ready" / "1.run").read_bytes()
    assert b"tool_name" not in content
    assert b'"status":"cut_off","recorder.lost":"the disk refused to write (No space left on device)"' in assemble(
        content
    )
    assert spool.losses.counts == {"the disk refused to write (No space left on device)": 1}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root may mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_really_full_costs_the_run_its_end_and_no_more(small_disk):
    spool = make_spool(small_disk / "spool")
    run = RunWriter("r_1", spool.create("1.run"))
    run.step("tool", tool_name="small", result="x")
    for _ in range(10):
        run.step("tool", tool_name="large", result="x" * 10_000)
    run.finish("ok")
    run.file.finish()

    record = assemble((spool.ready_folder / "1.run").read_bytes())
    assert 1 <= record.count(b'"tool_name":"large"') < 10
    assert b'"status":"cut_off"' in record
    assert spool.losses.counts == {"the disk refused to write (No space left on device)": 1}


def test_a_folder_that_cannot_be_written_is_replaced_by_memory(tmp_path, caplog):
    (tmp_path / "spool").write_text("a file, where a folder should be")
    spool = make_spool(tmp_path / "spool", max_memory_bytes=100)

    finished(spool, "1.run", "x" * 60)
    long = spool.create("2.run")
    long.append("x" * 60)
    finished(spool, "3.run", "x" * 40)
    assert spool.create("4.run") is None

    assert "recordings are kept in memory" in caplog.messages[0]
    assert long.lost == "the memory is full (100 bytes)"
    assert spool.losses.counts == {"the memory is full (100 bytes)": 2}
    assert [(parcel.name, parcel.read()) for parcel in spool.parcels(last={})] == [
        ("1.run", b"x" * 60),
        ("3.run", b"x" * 40),
    ]


def test_memory_is_free_again_after_delivery_and_counted_when_given_up(tmp_path):
    (tmp_path / "spool").write_text("")
    spool = make_spool(tmp_path / "spool", max_memory_bytes=100)
    finished(spool, "1.run", "x" * 100)
    assert spool.create("2.run") is None

    for parcel in spool.parcels(last={}):
        parcel.remove()
    finished(spool, "3.run", "x")
    spool.give_up_memory()

    assert spool.waiting == 0
    assert spool.losses.counts == {
        "the memory is full (100 bytes)": 1,
        "it was kept in memory and could not be delivered in time": 1,
    }


def test_a_folder_that_was_cleaned_up_is_made_again(tmp_path):
    spool = make_spool(tmp_path / "spool")
    subprocess.run(["rm", "-r", spool.folder], check=True)

    finished(spool, "1.run")

    assert names(spool) == ["1.run"]
    assert spool.losses.counts == {}


def test_a_run_whose_folder_was_removed_is_counted(tmp_path):
    spool = make_spool(tmp_path / "spool")
    file = spool.create("1.run")
    subprocess.run(["rm", "-r", spool.folder], check=True)

    file.append("x")
    file.finish()

    assert spool.losses.counts == {"the spool cannot be written (No such file or directory)": 1}


def test_the_log_of_losses_is_limited(tmp_path):
    spool = make_spool(tmp_path, max_spool_bytes=0)
    log = Path(tmp_path / "lost.log")
    log.write_bytes(b"x" * 1024 * 1024)

    assert spool.create("1.run") is None

    assert log.stat().st_size == 1024 * 1024
    assert sum(spool.losses.counts.values()) == 1
