"""Delivery within one process: batches, waiting, refusals, and servers that fail in every way."""

import logging
import random
import threading

import pytest

import replay_recorder
from replay_recorder.delivery.http_client import Client
from replay_recorder.delivery.sender import Sender, pause_after
from replay_recorder.delivery.spool import Spool
from replay_recorder.settings import Settings
from replay_recorder.writing.run_writer import RunWriter
from tests.recorder.receiving import Answer, Die, Hang, free_port, receiving

KEY = "rpk_very-secret"
PATIENCE = 30.0


@pytest.fixture
def spool(tmp_path):
    return Spool(Settings(spool=tmp_path / "spool"))


def record(spool, *run_ids, **fields):
    for run_id in run_ids:
        run = RunWriter(run_id, spool.create(f"{run_id}.run"))
        run.step("tool", tool_name="t", arguments={}, **fields)
        run.finish("ok", output="done")
        run.file.finish()


def make_sender(spool, receiver, **options):
    url = receiver if isinstance(receiver, str) else receiver.url
    return Sender(spool, Client(url, KEY), **options)


def sent(receiver):
    """Run ids of each request."""
    return [[run["run_id"] for run in post] for post in receiver.posts]


def refused(spool):
    return {path.stem: path.read_text().strip() for path in spool.refused_folder.glob("*.reason")}


# --- batches


def test_what_waits_is_sent_in_batches_with_the_key(spool):
    record(spool, *(f"r{number:02}" for number in range(60)))

    with receiving() as receiver:
        sender = make_sender(spool, receiver)
        assert sender.flush(PATIENCE)

    assert [len(post) for post in sent(receiver)] == [50, 10]
    assert sorted(receiver.stored) == [f"r{number:02}" for number in range(60)]
    assert {headers["Authorization"] for headers in receiver.headers} == {f"Bearer {KEY}"}
    assert (sender.delivered, sender.refused, sender.trouble) == (60, 0, None)
    assert spool.waiting == 0


def test_a_batch_is_limited_in_bytes_and_a_single_run_is_not(spool):
    record(spool, "a", "b", "c", "d", result="x" * 1_400_000)
    record(spool, "e", result="x" * 5_000_000)

    with receiving() as receiver:
        assert make_sender(spool, receiver).flush(PATIENCE)

    assert sent(receiver) == [["a", "b"], ["c", "d"], ["e"]]


def test_new_recordings_are_sent_when_the_sender_is_woken(spool):
    with receiving() as receiver:
        sender = make_sender(spool, receiver)
        sender.start()
        record(spool, "a")
        sender.wake()
        assert receiver.has_request.wait(PATIENCE)
        assert sender.flush(PATIENCE)

    assert sent(receiver) == [["a"]]


def test_a_batch_that_is_refused_is_sent_one_by_one(spool, caplog):
    record(spool, "a", "b", "c", "d")
    answers = {"b": Answer(409, "Another run has this id."), "d": Answer(400, "steps[1].kind is required.")}

    with receiving(refuses=answers) as receiver:
        sender = make_sender(spool, receiver)
        assert sender.flush(PATIENCE)

    assert sent(receiver) == [["a", "b", "c", "d"], ["a"], ["b"], ["c"], ["d"]]
    assert sorted(receiver.stored) == ["a", "c"]
    assert refused(spool) == {"b": "409: Another run has this id.", "d": "400: steps[1].kind is required."}
    assert (sender.delivered, sender.refused) == (2, 2)
    assert sum("Another run has this id." in message for message in caplog.messages) == 1


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
def test_a_refused_recording_is_put_aside_and_logged_once(spool, caplog, status):
    record(spool, "a")

    with receiving(always=Answer(status, "This sentence says why.")) as receiver:
        sender = make_sender(spool, receiver)
        assert sender.flush(PATIENCE)
        record(spool, "b")
        assert sender.flush(PATIENCE)

    assert refused(spool) == dict.fromkeys("ab", f"{status}: This sentence says why.")
    assert (spool.refused_folder / "a.run").exists()
    assert sum("This sentence says why." in message for message in caplog.messages) == 1


def test_a_file_that_is_no_recording_is_put_aside_and_an_empty_one_removed(spool):
    (spool.ready_folder / "0.run").write_text("replay-recorder 1\n")
    (spool.ready_folder / "1.run").write_text("something else\n")
    record(spool, "a")

    with receiving() as receiver:
        assert make_sender(spool, receiver).flush(PATIENCE)

    assert sent(receiver) == [["a"]]
    assert refused(spool) == {"1": "it is no recording: The file does not begin as a recording of this version."}
    assert not (spool.ready_folder / "0.run").exists()


# --- servers that cannot now


@pytest.mark.parametrize("status", [401, 403, 404, 405, 408, 429, 500, 502, 503])
def test_what_the_server_cannot_take_now_is_kept_and_sent_later(spool, caplog, status):
    record(spool, "a", "b")

    with receiving(Answer(status, "Not now.")) as receiver:
        sender = make_sender(spool, receiver)
        assert not sender.flush(PATIENCE)
        assert (spool.waiting, refused(spool), sender.trouble) == (2, {}, f"{status}: Not now.")
        assert sender.flush(PATIENCE)

    assert sorted(receiver.stored) == ["a", "b"]
    assert sender.trouble is None
    assert sum(f"({status}: Not now.)" in message for message in caplog.messages) == 1


def test_a_server_that_is_not_there_is_not_waited_for(spool, caplog):
    record(spool, "a")
    port = free_port()
    sender = make_sender(spool, f"http://127.0.0.1:{port}")

    assert not sender.flush(PATIENCE)
    assert "Connection refused" in sender.trouble
    with receiving(port=port) as receiver:
        assert sender.flush(PATIENCE)

    assert sent(receiver) == [["a"]]
    assert any("they wait in" in message for message in caplog.messages)


def test_a_server_that_asks_to_wait_a_moment_is_asked_again_by_the_same_flush(spool):
    record(spool, "a")

    with receiving(Answer(503, headers={"Retry-After": "1"})) as receiver:
        assert make_sender(spool, receiver).flush(PATIENCE)

    assert sent(receiver) == [["a"], ["a"]]


@pytest.mark.parametrize("when", ["3000", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_server_that_asks_to_wait_long_is_left_alone(spool, when):
    record(spool, "a")

    with receiving(Answer(503, headers={"Retry-After": when})) as receiver:
        sender = make_sender(spool, receiver)
        assert not sender.flush(PATIENCE)
        assert not sender.flush(PATIENCE)
        sender.wake()
        sender.stop(PATIENCE)

    assert sent(receiver) == [["a"]]
    assert spool.waiting == 1


@pytest.mark.parametrize("when", ["soon", "-5", "nan", ""])
def test_a_retry_after_that_says_nothing_is_no_reason_to_wait(spool, when):
    record(spool, "a")

    with receiving(Answer(503, headers={"Retry-After": when})) as receiver:
        sender = make_sender(spool, receiver)
        assert not sender.flush(PATIENCE)
        assert sender.flush(PATIENCE)

    assert sent(receiver) == [["a"], ["a"]]


def test_pauses_double_up_to_a_minute_and_spread():
    assert [pause_after(failures, None, 0.0) for failures in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [pause_after(0, None, spread) for spread in (0.0, 0.5, 1.0)] == [0.5, 0.625, 0.75]
    assert pause_after(8, 3.0, 0.0) == 3.0
    assert pause_after(100_000, None, 0.0) == 60


def test_a_recording_that_the_server_stumbles_over_does_not_hold_up_the_others(spool):
    record(spool, "a", "b", "c")

    with receiving(refuses={"a": Answer(500, "Something went wrong here.")}) as receiver:
        sender = make_sender(spool, receiver)
        assert not sender.flush(PATIENCE)
        assert not sender.flush(PATIENCE)
        record(spool, "d")
        assert not sender.flush(PATIENCE)

    assert sorted(receiver.stored) == ["b", "c", "d"]
    assert spool.waiting == 1
    assert refused(spool) == {}


def test_a_server_that_breaks_off_its_answer_gets_it_again_and_stores_it_once(spool):
    record(spool, "a")

    with receiving(Die()) as receiver:
        sender = make_sender(spool, receiver)
        assert not sender.flush(PATIENCE)
        assert sender.flush(PATIENCE)

    assert sent(receiver) == [["a"], ["a"]]
    assert list(receiver.stored) == ["a"]
    assert (sender.delivered, sender.refused) == (1, 0)


def test_a_server_that_never_answers_is_given_up_and_nobody_waits_for_it(spool):
    record(spool, "a")
    never = threading.Event()

    with receiving(Hang(never)) as receiver:
        sender = make_sender(spool, receiver, timeout=0.5)
        sender.start()
        assert receiver.has_request.wait(PATIENCE)
        record(spool, "b")
        sender.wake()
        # That this line is reached, with the server still silent, is the point.
        assert sent(receiver) == [["a"]]
        sender.flush(PATIENCE)
        assert sender.flush(PATIENCE)
        never.set()

    assert sorted(receiver.stored) == ["a", "b"]


def test_an_address_that_answers_yes_to_everything_has_stored_nothing(spool):
    record(spool, "a")

    with receiving(Answer(200, body=b"<html>Welcome</html>"), Answer(200, body=b'{"ok": true}')) as receiver:
        sender = make_sender(spool, receiver)
        assert not sender.flush(PATIENCE)
        assert not sender.flush(PATIENCE)
        assert "is the url right?" in sender.trouble
        assert sender.flush(PATIENCE)

    assert sent(receiver) == [["a"], ["a"], ["a"]]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(spool, status):
    record(spool, "a")

    with receiving() as elsewhere:
        answer = Answer(status, headers={"Location": f"{elsewhere.url}/api/v1/runs"})
        with receiving(always=answer) as receiver:
            sender = make_sender(spool, receiver)
            assert not sender.flush(PATIENCE)

    assert sent(receiver) == [["a"]]
    assert elsewhere.headers == []
    assert sender.trouble == f"the address answers with a redirect ({status}); set url to where it leads"


# --- the key


@pytest.mark.parametrize(
    "answer",
    [Answer(401, "Send a valid key."), Answer(409, "no"), Answer(500, "no"), Answer(302), Die(), Answer(200)],
    ids=str,
)
def test_the_key_is_in_no_log_and_no_file(spool, caplog, answer):
    caplog.set_level(logging.DEBUG)
    record(spool, "a")

    with receiving(answer) as receiver:
        make_sender(spool, receiver).flush(PATIENCE)

    assert receiver.headers[0]["Authorization"].endswith(KEY)
    assert KEY not in caplog.text
    files = [path for path in spool.folder.rglob("*") if path.is_file()]
    assert all(KEY.encode() not in path.read_bytes() for path in files)


# --- sharing


def test_two_senders_on_one_folder_send_each_recording_once(spool):
    run_ids = [f"r{number:03}" for number in range(300)]
    record(spool, *run_ids)

    with receiving() as receiver:
        senders = [make_sender(Spool(Settings(spool=spool.folder)), receiver) for _ in range(3)]
        threads = [threading.Thread(target=sender.flush, args=[PATIENCE]) for sender in senders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(run_id for post in sent(receiver) for run_id in post) == run_ids
    assert sum(sender.delivered for sender in senders) == 300


def test_recordings_in_memory_are_sent_too(tmp_path):
    (tmp_path / "spool").write_text("a file, where a folder should be")
    spool = Spool(Settings(spool=tmp_path / "spool"))
    record(spool, "a", "b")

    with receiving(refuses={"b": Answer(409, "Another run has this id.")}) as receiver:
        assert make_sender(spool, receiver).flush(PATIENCE)

    assert list(receiver.stored) == ["a"]
    assert spool.losses.counts == {"the server refused it (409: Another run has this id.)": 1}


def test_waiting_takes_nothing_from_the_random_numbers_of_the_agent(tmp_path):
    random.seed(7)
    expected = random.random()
    random.seed(7)

    recorder = replay_recorder.install(spool=tmp_path, url="http://127.0.0.1:9", flush_timeout=0.5)
    run = recorder.begin("r1")
    assert run is not None
    recorder.end(run, "ok")
    recorder.flush(1)
    replay_recorder.uninstall()

    assert random.random() == expected
