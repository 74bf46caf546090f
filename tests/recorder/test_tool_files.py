"""Tool calls in a file, written in production and played back in a test."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from replay_recorder import (
    RecordedTool,
    RecordedToolError,
    RecordingError,
    RecordingExhausted,
    ReplayMismatch,
    ToolRecorder,
    ToolReplayer,
)


def replayer_of(folder: Path, *calls: dict[str, Any]) -> ToolReplayer:
    recorder = ToolRecorder()
    for call in calls:
        recorder.record(**{"tool_name": "lookup", "args": {}, "result": None, **call})
    recorder.save("run", folder)
    return ToolReplayer("run", folder)


def test_a_file_is_a_list_of_tool_name_args_and_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    recorder = ToolRecorder()
    recorder.record("lookup_order", {"id": "ORD-5521"}, {"status": "shipped"})
    recorder.record("cancel_order", {"id": "ORD-5521"}, "no")

    path = recorder.save("run_abc123")

    # As `json.dump` writes what the program has collected.
    assert path == Path("recordings/run_abc123.json")
    assert path.read_text() == json.dumps(
        [
            {"tool_name": "lookup_order", "args": {"id": "ORD-5521"}, "result": {"status": "shipped"}},
            {"tool_name": "cancel_order", "args": {"id": "ORD-5521"}, "result": "no"},
        ]
    )
    assert [each.name for each in path.parent.iterdir()] == ["run_abc123.json"]


def test_a_file_written_by_hand_is_replayed_in_order(tmp_path: Path):
    (tmp_path / "run.json").write_text(
        '[{"tool_name":"a","args":{"x":1},"result":[1]},{"tool_name":"a","args":{"x":1},"result":2}]'
    )
    replayer = ToolReplayer("run", tmp_path)

    assert replayer.replay("a", {"x": 1}) == [1]
    assert replayer.left_over() == [{"tool_name": "a", "args": {"x": 1}, "result": 2}]
    assert replayer.replay("a", {"x": 1}) == 2
    assert replayer.left_over() == []


def test_another_tool_or_other_arguments_name_both_calls(tmp_path: Path):
    replayer = replayer_of(tmp_path, {"tool_name": "lookup", "args": {"id": 1}, "result": "x"})

    with pytest.raises(ReplayMismatch, match=r'Call 1 .* lookup\({"id": 1}\), and cancel\({"id": 1}\) was') as caught:
        replayer.replay("cancel", {"id": 1})
    with pytest.raises(ReplayMismatch, match=r'lookup\({"id": 1}\), and lookup\({"id": 2}\)'):
        replayer.replay("lookup", {"id": 2})

    assert caught.value.position == 1
    assert caught.value.recorded == {"tool_name": "lookup", "args": {"id": 1}, "result": "x"}
    assert caught.value.asked == {"tool_name": "cancel", "args": {"id": 1}}
    # A call that does not fit uses nothing up.
    assert replayer.replay("lookup", {"id": 1}) == "x"


@pytest.mark.parametrize(("recorded", "asked"), [(1, 1.0), (1, True), (0, False), (1.0, True), ("1", 1), (None, False)])
def test_values_that_are_written_differently_are_different_arguments(recorded: Any, asked: Any, tmp_path: Path):
    replayer = replayer_of(tmp_path, {"args": {"x": [recorded]}, "result": "x"})

    with pytest.raises(ReplayMismatch):
        replayer.replay("lookup", {"x": [asked]})
    assert replayer.replay("lookup", {"x": [recorded]}) == "x"


def test_the_order_of_keys_and_tuples_make_no_difference(tmp_path: Path):
    replayer = replayer_of(tmp_path, {"args": {"a": 1, "b": (1, 2)}, "result": "x"})

    assert replayer.replay("lookup", {"b": [1, 2], "a": 1}) == "x"


def test_running_out_is_explained(tmp_path: Path):
    replayer = replayer_of(tmp_path, {"args": {"id": 1}, "result": "x"})
    replayer.replay("lookup", {"id": 1})

    with pytest.raises(
        RecordingExhausted, match=r'run\.json holds 1 calls .* to answer lookup\({"id": 1}\)\. The code'
    ):
        replayer.replay("lookup", {"id": 1})


def test_parallel_calls_are_matched_by_id_in_any_order(tmp_path: Path):
    replayer = replayer_of(
        tmp_path,
        {"args": {"n": 1}, "result": "one", "call_id": "c1"},
        {"args": {"n": 2}, "result": "two", "call_id": "c2"},
    )

    assert replayer.replay("lookup", {"n": 2}, call_id="c2") == "two"
    with pytest.raises(ReplayMismatch):
        replayer.replay("lookup", {"n": 2}, call_id="c1")
    assert replayer.replay("lookup", {"n": 1}, call_id="c1") == "one"
    with pytest.raises(RecordingExhausted, match="with the id 'c1'"):
        replayer.replay("lookup", {"n": 1}, call_id="c1")


def test_ids_that_were_not_recorded_leave_the_order(tmp_path: Path):
    replayer = replayer_of(tmp_path, {"args": {}, "result": "x"})

    assert replayer.replay("lookup", {}, call_id="c1") == "x"


def test_a_failure_is_raised_again(tmp_path: Path):
    replayer = replayer_of(tmp_path, {"error": {"type": "Timeout", "message": "slow"}})

    with pytest.raises(RecordedToolError, match="Timeout: slow") as caught:
        replayer.replay("lookup", {})
    assert (caught.value.type, caught.value.message) == ("Timeout", "slow")
    assert replayer.left_over() == []


def test_an_answer_that_was_not_captured_is_not_replayed_as_null(tmp_path: Path):
    replayer = replayer_of(tmp_path, {"captured": False}, {"result": None})

    with pytest.raises(RecordingError, match="could not be written down"):
        replayer.replay("lookup", {})
    assert replayer.replay("lookup", {}) is None


def test_what_a_recorded_tool_recorded_can_be_replayed(tmp_path: Path):
    recorder = ToolRecorder()

    async def lookup(order_id: str, limit: int = 5) -> dict[str, Any]:
        return {"id": order_id, "raw": b"\x00"}

    asyncio.run(RecordedTool(lookup, recorder)("ORD-1"))
    recorder.save("run", tmp_path)

    assert ToolReplayer("run", tmp_path).replay("lookup", {"order_id": "ORD-1"}) == {
        "id": "ORD-1",
        "raw": {"base64": "AA=="},
    }


def test_recordings_are_as_they_were_when_they_were_recorded(tmp_path: Path):
    recorder, args = ToolRecorder(), {"ids": [1]}
    recorder.record("lookup", args, args)
    args["ids"].append(2)

    assert recorder.recordings == [{"tool_name": "lookup", "args": {"ids": [1]}, "result": {"ids": [1]}}]


@pytest.mark.parametrize("run_id", ["../up", "a/b", "..", ".", "a\\b", "a\nb", "ü:*", "C:", "%2F", "~root"])
def test_a_run_id_never_leaves_the_folder(run_id: str, tmp_path: Path):
    folder = tmp_path / "recordings"
    recorder = ToolRecorder()
    recorder.record("lookup", {}, run_id)

    path = recorder.save(run_id, folder)

    assert path.resolve().parent == folder.resolve()
    assert list(tmp_path.iterdir()) == [folder]
    assert ToolReplayer(run_id, folder).replay("lookup", {}) == run_id


@pytest.mark.parametrize("run_id", ["", "x" * 201])
def test_a_run_id_that_is_no_file_name_is_refused(run_id: str, tmp_path: Path):
    with pytest.raises(ValueError, match="run id"):
        ToolRecorder().save(run_id, tmp_path)


def test_saving_again_replaces_the_file_and_a_failure_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recorder = ToolRecorder()
    recorder.record("lookup", {}, 1)
    path = recorder.save("run", tmp_path)
    before = path.read_text()
    recorder.record("lookup", {}, 2)

    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        with self.open("w") as file:
            file.write("[half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space"):
            recorder.save("run", tmp_path)

    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
    recorder.save("run", tmp_path)
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"args": {}}]'])
def test_a_file_that_is_no_recording_is_refused_in_words(content: str, tmp_path: Path):
    (tmp_path / "run.json").write_text(content)

    with pytest.raises(ValueError, match="holds no recording"):
        ToolReplayer("run", tmp_path)
