"""The command: sending recordings by hand, and looking into them."""

import json

import pytest

from replay_recorder.cli import main
from replay_recorder.delivery.spool import Spool
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import assemble
from replay_recorder.writing.run_writer import RunWriter
from tests.recorder.receiving import Answer, free_port, receiving


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("REPLAY_URL", "REPLAY_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def spool(tmp_path):
    return Spool(Settings(spool=tmp_path / "spool"))


def record(spool, run_id, status="ok"):
    """A run with one answered call; without a status it is left open."""
    run = RunWriter(run_id, spool.create(f"{run_id}.run"))
    run.put(input="go", model="gpt-x")
    run.end(run.begin("tool", tool_name="search", arguments={"q": "Lisbon"}), result="found", duration_ms=12.3)
    if status is None:
        run.begin("tool", tool_name="book", arguments={})
        return run
    run.finish(status, output="done")
    run.file.finish()
    return run


def push(path, receiver, *more):
    url = receiver if isinstance(receiver, str) else receiver.url
    return main(["push", str(path), "--url", url, "--key", "rpk_test", *more])


# --- push


def test_a_spool_folder_is_sent_and_emptied(spool, capsys):
    record(spool, "b")
    left_open = record(spool, "a", status=None)
    del left_open
    (spool.open_folder / "0.run").touch()

    with receiving() as receiver:
        assert push(spool.folder, receiver) == 0

    # The one that was killed before it could write anything is not worth a word.
    assert capsys.readouterr().out == "a.run: stored\nb.run: stored\n"
    assert {run_id: run["status"] for run_id, run in receiver.runs.items()} == {"a": "cut_off", "b": "ok"}
    assert [headers["Authorization"] for headers in receiver.headers] == ["Bearer rpk_test"] * 2
    assert list(spool.folder.glob("*/*.run")) == []


def test_what_is_refused_is_said_and_put_aside(spool, capsys):
    record(spool, "a")
    record(spool, "b")

    with receiving(refuses={"a": Answer(409, "Another run has this id.")}) as receiver:
        assert push(spool.folder, receiver) == 1

    assert capsys.readouterr().out == "a.run: refused: 409: Another run has this id.\nb.run: stored\n"
    assert (spool.refused_folder / "a.reason").read_text() == "409: Another run has this id.\n"
    assert list(receiver.stored) == ["b"]


def test_a_run_that_goes_on_is_left_alone(spool, capsys):
    run = record(spool, "a", status=None)

    with receiving() as receiver:
        assert push(spool.folder, receiver) == 1

    assert capsys.readouterr().out == "a.run: not sent: its run goes on, or another process sends it\n"
    assert (receiver.posts, run.file.is_open) == ([], True)


def test_a_server_that_is_away_is_tried_once_and_nothing_is_lost(spool, capsys):
    record(spool, "a")
    record(spool, "b")

    assert push(spool.folder, f"http://127.0.0.1:{free_port()}") == 1

    said = capsys.readouterr().out
    assert said.startswith("a.run: not sent: ConnectionRefusedError")
    assert said.endswith("The others were not tried.\n")
    assert sorted(path.name for path in spool.ready_folder.iterdir()) == ["a.run", "b.run"]


def test_a_wrong_key_loses_nothing(spool, capsys):
    record(spool, "a")

    with receiving(always=Answer(401, "Send a valid key: Authorization: Bearer <key>.")) as receiver:
        assert push(spool.folder, receiver) == 1

    assert "a.run: not sent: 401: Send a valid key" in capsys.readouterr().out
    assert (spool.ready_folder / "a.run").exists()


def test_files_are_sent_as_they_are_and_stay(spool, tmp_path, capsys):
    record(spool, "a")
    path = (spool.ready_folder / "a.run").rename(tmp_path / "a.run")
    spelled = b'{"session_id": "s1",   "user_input": "Where is it?", "final_output": 1.0}'
    (tmp_path / "session.json").write_bytes(spelled)
    (tmp_path / "notes.txt").write_text("not sent")

    with receiving(Answer(201), Answer(201)) as receiver:
        receiver_bodies = receiver.bodies
        assert push(path, receiver) == 0
        assert push(tmp_path / "session.json", receiver) == 0

    assert receiver_bodies == [assemble(path.read_bytes()), spelled]
    assert capsys.readouterr().out == "a.run: stored\nsession.json: stored\n"
    assert path.exists()


def test_a_folder_of_files_is_sent_file_by_file(spool, tmp_path, capsys):
    folder = tmp_path / "collected"
    folder.mkdir()
    for run_id in ("a", "b"):
        record(spool, run_id)
        (spool.ready_folder / f"{run_id}.run").rename(folder / f"{run_id}.run")
    (folder / "broken.run").write_text("replay-recorder 1\n0\tx\n")
    (folder / "notes.txt").write_text("not sent")

    with receiving() as receiver:
        assert push(folder, receiver) == 1

    assert sorted(receiver.stored) == ["a", "b"]
    assert "broken.run: refused: it is no recording: Line 2" in capsys.readouterr().out
    assert len(list(folder.iterdir())) == 4


def test_an_empty_folder_is_no_failure(spool, capsys):
    with receiving() as receiver:
        assert push(spool.folder, receiver) == 0

    assert capsys.readouterr().out == f"Nothing to send in {spool.folder}.\n"


def test_address_and_key_may_come_from_the_environment(spool, monkeypatch):
    record(spool, "a")

    with receiving() as receiver:
        monkeypatch.setenv("REPLAY_URL", receiver.url)
        monkeypatch.setenv("REPLAY_KEY", "rpk_of_the_environment\n")
        assert main(["push", str(spool.folder)]) == 0

    assert receiver.headers[0]["Authorization"] == "Bearer rpk_of_the_environment"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["push", "{folder}"], "say where to"),
        (["push", "{folder}", "--url", "localhost:8000"], "url must be like"),
        (["push", "{folder}/nothing", "--url", "http://localhost"], "there is no"),
        (["send", "{folder}"], "invalid choice"),
        ([], "required: command"),
    ],
)
def test_wrong_usage_is_explained(spool, capsys, arguments, words):
    with pytest.raises(SystemExit) as ended:
        main([argument.format(folder=spool.folder) for argument in arguments])

    assert ended.value.code == 2
    assert words in capsys.readouterr().err


# --- inspect


def test_a_recording_is_described(spool, capsys):
    run = record(spool, "r_1", status=None)

    assert main(["inspect", str(spool.open_folder / "r_1.run")]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("r_1.run: ")
    assert lines[1].startswith("run r_1  cut_off  2 steps  started 20")
    assert [line.split() for line in lines[2:4]] == [
        ["1", "tool", "search", "12", "ms", "answer"],
        ["2", "tool", "book", "-", "no", "answer"],
    ]
    assert lines[4].startswith("missing: output, instructions, user_id,")
    assert lines[4].endswith("result in step 2")
    assert run.file.is_open


def test_losses_and_sampling_are_described(tmp_path, capsys):
    path = tmp_path / "r.json"
    lost = {"recorder.lost": "the disk was full", "recorder": {"lost_runs": {"the spool is full": 3}}}
    record = {"format": "agent-replay.run", "run_id": "r", **lost, "sampling": {"rate": 0.1, "kept": "failure"}}
    path.write_text(json.dumps(record))

    assert main(["inspect", str(path)]) == 0

    assert capsys.readouterr().out.splitlines()[-3:] == [
        'recorder.lost: "the disk was full"',
        'recorder.lost_runs: {"the spool is full": 3}',
        'sampling: {"rate": 0.1, "kept": "failure"}',
    ]


def test_a_complete_record_misses_nothing(tmp_path, capsys):
    path = tmp_path / "r.json"
    fields = dict.fromkeys(("run_id", "input", "output", "instructions", "model", "user_id", "tenant_id"), "x")
    path.write_text(
        json.dumps({"format": "agent-replay.run", **fields, "code": {"commit": "0"}, "agent": {"version": "1"}})
    )

    assert main(["inspect", str(path)]) == 0

    assert capsys.readouterr().out.splitlines()[-1] == "missing: nothing"


def test_recorded_text_cannot_talk_to_the_terminal(tmp_path, capsys):
    path = tmp_path / "r.json"
    steps = [{"kind": "tool", "name": "\x1b]0;title\x07"}]
    path.write_text(json.dumps({"format": "agent-replay.run", "run_id": "\x1b[2J", "steps": steps}))

    assert main(["inspect", str(path)]) == 0

    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "run \ufffd[2J" in said


def test_several_recordings_in_one_document_are_each_described(tmp_path, capsys):
    path = tmp_path / "batch.json"
    runs = [{"format": "agent-replay.run", "run_id": "a"}, {"session_id": "b", "messages": []}]
    path.write_text(json.dumps({"runs": runs}))

    assert main(["inspect", str(path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("run a  ")
    assert lines[-1].startswith("b: no native record")


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"replay-recorder 9\n", b"[" * 100_000])
def test_what_cannot_be_read_is_said(tmp_path, capsys, content):
    path = tmp_path / "x.run"
    path.write_bytes(content)

    assert main(["inspect", str(path)]) == 1

    assert capsys.readouterr().err.startswith("x.run: ")


def test_a_spool_folder_is_described(spool, capsys):
    run = record(spool, "going-on", status=None)
    abandoned = record(spool, "abandoned", status=None)
    del abandoned
    for run_id in ("a", "b", "c"):
        record(spool, run_id)
    for parcel in spool.parcels(last={"a.run": 1}):
        if parcel.name in ("b.run", "c.run") and parcel.take():
            parcel.refused("409: Another run has this id.")
    spool.losses.note("d.run", "the spool is full (5 bytes)")

    assert main(["inspect", str(spool.folder)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == ["waiting to be sent: 2", "being recorded or sent now: 1"]
    assert lines[2:] == [
        "refused: 2",
        "  2 × 409: Another run has this id.",
        "      b.run, …",
        "lost, or not recorded whole: 1",
        "  1 × the spool is full (5 bytes)",
        "      d.run",
    ]
    assert run.file.is_open
    assert sorted(path.name for path in spool.ready_folder.iterdir()) == ["a.run"]


def test_another_folder_is_not_taken_for_a_spool(tmp_path, capsys):
    assert main(["inspect", str(tmp_path)]) == 1

    assert "It is no spool folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
