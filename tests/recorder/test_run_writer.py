"""What a run writes down, whatever values it is given."""

import dataclasses
import json
from contextlib import suppress
from typing import Any

import pytest

from replay_recorder.delivery.spool import Spool
from replay_recorder.guard import FAULTS
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import assemble
from replay_recorder.writing.json_text import JsonText, encode
from replay_recorder.writing.run_writer import NULL, RunWriter


@pytest.fixture
def record(tmp_path):
    """Lets a run write, and gives the record and its text."""
    spool: Any = Spool(Settings(spool=tmp_path))

    def write(tell, **options):
        run = RunWriter("r_1", spool.create("1.run"), **options)
        tell(run)
        run.finish("ok")
        run.file.finish()
        text = assemble((tmp_path / "ready" / "1.run").read_bytes()).decode()
        return json.loads(text), text

    return write


@dataclasses.dataclass
class Node:
    name: str
    others: list[Any] = dataclasses.field(default_factory=list)


class Unspeakable:
    def __str__(self):
        raise RuntimeError("no words")


class RefusesToDump:
    def model_dump(self, mode):
        raise ValueError("circular reference")

    def __str__(self):
        return "in other words"


def test_an_answer_that_was_null_is_not_the_same_as_none(record):
    found, _ = record(lambda run: [run.step("tool", tool_name="t", result=value) for value in (NULL, None, "null")])

    assert [step.get("result", "absent") for step in found["steps"]] == [None, "absent", "null"]


def test_json_made_elsewhere_stays_as_it_is_spelled_at_any_depth(record):
    pretty = JsonText('{\n\t"a":  1.0,\r\n\t"b": 1e2\n}')

    _, text = record(lambda run: run.step("tool", tool_name="t", arguments={"deep": [{"er": pretty}, (pretty,)]}))

    spelled = '{  "a":  1.0,   "b": 1e2 }'
    assert f'"arguments":{{"deep":[{{"er":{spelled}}},[{spelled}]]}}' in text


def test_objects_that_refer_to_each_other_come_to_an_end(record):
    nodes = [Node(str(number)) for number in range(30)]
    for node in nodes:
        node.others = nodes

    found, text = record(lambda run: run.step("tool", tool_name="t", result=nodes[0]))

    assert found["steps"][0]["result"]["name"] == "0"
    assert "… too much to record" in text
    assert len(text) < 20_000_000


def test_what_lies_too_deep_for_the_server_is_cut_and_said(record):
    deep: Any = JsonText("1")
    plain: Any = 1
    for _ in range(300):
        deep, plain = [deep], [plain]

    found, text = record(lambda run: run.step("tool", tool_name="t", arguments=plain, result=deep))

    assert text.count("… nested too deeply to record") == 2
    assert len(found["steps"]) == 1


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (10**5000, hex(10**5000)),
        (float("nan"), "nan"),
        ("half \ud83d a pair", "half \ufffd a pair"),
        (Unspeakable(), "<Unspeakable>"),
        (RefusesToDump(), "in other words"),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        ({(1, 2): b"bytes"}, {"(1, 2)": {"base64": "Ynl0ZXM="}}),
        ((1, {"a": (2,)}), [1, {"a": [2]}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_json_does_not_know_become_their_nearest_form(value, written):
    assert json.loads(encode({"value": value})) == {"value": written}


def test_a_field_that_cannot_be_redacted_is_left_out_and_the_others_stay(record):
    def redact(value):
        if value == "secret":
            raise KeyError("the hook is wrong")
        return f"seen {value}" if isinstance(value, str) else value

    before = FAULTS.counts.get("the field result", 0)
    found, text = record(
        lambda run: run.step("tool", tool_name="t", arguments="a", result="secret", outcome="success"), redact=redact
    )

    assert "secret" not in text
    [step] = found["steps"]
    assert (step["tool_name"], step["arguments"], step["outcome"]) == ("t", "seen a", "success")
    assert "result" not in step
    assert FAULTS.counts["the field result"] == before + 1


def test_a_name_from_outside_cannot_break_the_lines(record):
    found, _ = record(lambda run: run.put(**{"context.a\tb\nc": 1, "context.ü": 2}))

    assert (found["context.a\ufffdb\ufffdc"], found["context.ü"]) == (1, 2)


def written_by(work, tmp_path, monkeypatch) -> list[str]:
    """What each `write` took that this work made."""
    spool: Any = Spool(Settings(spool=tmp_path))
    run = RunWriter("r_1", spool.create("1.run"))
    taken: list[str] = []
    keep = run.file.append

    def append(text: str) -> None:
        taken.append(text)
        keep(text)

    monkeypatch.setattr(run.file, "append", append)
    work(run)
    return taken


def say_two_things(run: RunWriter) -> None:
    run.put(input="Hi")
    run.end(run.begin("model"))


def test_what_is_said_together_is_one_write_also_where_the_block_fails(tmp_path, monkeypatch):
    def say_together(run: RunWriter) -> None:
        with suppress(KeyError), run.together():
            with run.together():
                say_two_things(run)
            raise KeyError

    apart = written_by(say_two_things, tmp_path / "apart", monkeypatch)
    together = written_by(say_together, tmp_path / "together", monkeypatch)

    assert [line.split("\t")[0] for line in apart] == ["0", "1", "1"]
    assert [line.split("\t")[0] for line in "".join(together).splitlines()] == ["0", "1", "1"]
    assert len(together) == 1


@pytest.mark.parametrize("value", [0.0, -0.0, 1e16, 1e-7, 0.1, 2.5, True, False])
def test_numbers_are_spelled_as_json_spells_them(value):
    assert encode(value) == json.dumps(value)


def test_a_number_that_json_does_not_know_is_a_text():
    assert [encode(value) for value in (float("inf"), float("nan"))] == ['"inf"', '"nan"']


def test_a_run_that_did_not_end_well_has_failed(record):
    seen = []
    for status in ("ok", "error", "cut_off"):
        record(lambda run: seen.append(run))
        seen[-1].failed = False
        seen[-1].finish(status)

    assert [run.failed for run in seen] == [False, True, True]
