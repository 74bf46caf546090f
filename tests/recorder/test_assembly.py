"""From spool files to records, whole ones and torn ones."""

import json
from typing import Any

import pytest

from replay_recorder.delivery.spool import Spool
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import HEADER, SpoolError, assemble, column, event, is_empty
from replay_recorder.writing.json_text import JsonText
from replay_recorder.writing.run_writer import RunWriter
from sessions_app.core.formats.detect import parser_of
from sessions_app.core.json_text import Limits, load_strict


def lines(*given: tuple[object, str, str]) -> bytes:
    return (HEADER + "".join(event(str(place), column(field, value)) for place, field, value in given)).encode()


def make_file(folder):
    """A whole run with everything that a file can hold."""
    spool: Any = Spool(Settings(spool=folder))
    run = RunWriter("r_1", spool.create("1.run"))
    run.put(input="Wie spät ist es?", flags={"beta": True})
    run.put_agent(name="clock", tool_retries={"now": 1})
    run.put_prior([JsonText('{"kind": "request", "parts": []}')])
    row = run.row("tools", JsonText('{"name": "now"}'))
    model = run.begin("model", request={"after": 0, "messages": []}, tools=[row])
    run.end(model, response={"kind": "response", "parts": []}, input_tokens=3)
    tool = run.begin("tool", tool_name="now", arguments={"tz": "Europe/Lisbon"})
    run.end(tool, result="12:00 \t\n", outcome="success")
    run.finish("ok", output={"time": 1.0})
    run.file.finish()
    return (folder / "ready" / "1.run").read_bytes()


def test_a_run_comes_out_as_it_was_told(tmp_path):
    record = json.loads(assemble(make_file(tmp_path)))

    assert [record[field] for field in ("format", "version", "run_id", "status")] == [
        "agent-replay.run",
        1,
        "r_1",
        "ok",
    ]
    assert record["prior"] == [{"kind": "request", "parts": []}]
    assert record["tools"] == [{"name": "now"}]
    assert record["agent"] == {"name": "clock", "tool_retries": {"now": 1}}
    assert [step["kind"] for step in record["steps"]] == ["model", "tool"]
    assert record["steps"][1]["result"] == "12:00 \t\n"


def test_values_keep_their_spelling():
    content = lines((0, "run_id", '"r"'), (0, "output", '{"a":1.0,  "b": 1e2}'), (0, "status", '"ok"'))

    assert b'"output":{"a":1.0,  "b": 1e2}' in assemble(content)


def test_the_last_value_of_a_field_counts_and_rows_keep_their_order():
    content = lines((0, "run_id", '"r"'), ("tools", "+", "1"), (0, "status", '"ok"'), ("tools", "+", "2"),
                    (0, "status", '"error"'), (2, "kind", '"tool"'), (1, "kind", '"model"'))  # fmt: skip

    record = json.loads(assemble(content))

    assert record["status"] == "error"
    assert record["tools"] == [1, 2]
    assert [step["kind"] for step in record["steps"]] == ["model", "tool"]


def test_a_file_cut_at_any_byte_is_a_record_that_the_server_reads(tmp_path):
    content = make_file(tmp_path)
    seen = set()

    for end in range(len(content) + 1):
        if is_empty(content[:end]):
            assert end < content.index(b"\n", len(HEADER)) + 1
            continue
        record = assemble(content[:end])
        run = parser_of(load_strict(record, Limits()))(record, Limits())
        seen.add((run.status, len(run.steps)))

    assert seen == {("cut_off", 0), ("cut_off", 1), ("cut_off", 2), ("ok", 2)}


def test_steps_after_a_gap_are_left_out_and_it_is_said(caplog):
    content = lines((0, "run_id", '"r"'), (1, "kind", '"model"'), (2, "result", '"no kind"'), (3, "kind", '"tool"'))

    record = json.loads(assemble(content))

    assert [step["kind"] for step in record["steps"]] == ["model"]
    assert caplog.messages == ["A recording lacks its step 2; it is sent up to there."]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"something else\n", "does not begin as a recording"),
        (b"replay-recorder 2\n0\trun_id\t1\n", "does not begin as a recording"),
        (HEADER.encode() + b"0\trun_id\n", "Line 2 is not made of fields and values"),
        (HEADER.encode() + b'0\trun_id\t"r"\nelsewhere\tx\t1\n', "Line 3 belongs to 'elsewhere'"),
    ],
)
def test_what_is_no_recording_is_refused_in_words(content, words):
    with pytest.raises(SpoolError, match=words):
        assemble(content)
