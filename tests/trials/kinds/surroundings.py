"""State, inner steps, times, ids and what nobody knows."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.trials.kinds.shared import Made, of_run, with_fields, without_field
from tests.trials.mutants import Expected, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader


@kind("state, a patch")
def _state(record: Json) -> Made:
    reader = RecordReader(record)
    for index, step in enumerate(reader.steps, start=1):
        for number, operation in enumerate((step.get("state") or {}).get("after") or []):
            if "value" in operation:

                def change(copy: RecordReader, index: int = index, number: int = number) -> None:
                    copy.step(index)["state"]["after"][number]["value"] = "changed"

                yield (
                    f"step {index}",
                    changed(record, change),
                    Expected(by="comparison", compared=at(index, paths="state")),
                )


@kind("state at the start")
def _initial_state(record: Json) -> Made:
    state = record.get("initial_state")
    if isinstance(state, dict):

        def change(copy: RecordReader) -> None:
            copy.record["initial_state"]["added"] = 1

        yield (
            "key",
            changed(record, change),
            Expected(by="comparison", compared=Place(paths=("initial_state", "state"))),
        )


@kind("query, chunks and answers of steps inside of others")
def _inner(record: Json) -> Made:
    reader = RecordReader(record)
    for index, step in enumerate(reader.steps, start=1):
        if step["kind"] == "retrieval":
            for number, _ in enumerate(step.get("chunks") or []):

                def change(copy: RecordReader, index: int = index, number: int = number) -> None:
                    copy.step(index)["chunks"][number]["content"] = "another chunk"

                yield (
                    f"step {index}",
                    changed(record, change),
                    Expected(by="comparison", compared=at(index, paths=("chunks", "result"))),
                )
        elif step["kind"] in ("agent", "other") and "result" in step:
            expected = Expected(by="comparison", compared=at(index, paths="result"))
            yield (
                f"step {index}",
                changed(record, with_fields(index, result="another")),
                expected,
            )


@kind("times")
def _times(record: Json) -> Made:
    def change(copy: RecordReader) -> None:
        copy.record["started_at"] = "2020-01-01T00:00:00Z"
        copy.record["duration_ms"] = 1.5
        for step in copy.steps:
            step.update(started_at="2020-01-01T00:00:01Z", duration_ms=0.5)

    yield "all", changed(record, change), Expected(by="nobody", compared=None)


@kind("token counts")
def _tokens(record: Json) -> Made:
    """A measure and nothing that the run did."""
    reader = RecordReader(record)
    for index in reader.models:

        def change(copy: RecordReader, index: int = index) -> None:
            copy.step(index).update(input_tokens=4711, output_tokens=4712)

        yield f"step {index}", changed(record, change), Expected(by="nobody", is_comparable=False)


@kind("ids of the run")
def _ids(record: Json) -> Made:
    """Each run has its own, in the messages too."""
    new = json.loads(json.dumps(record).replace(json.dumps(record["run_id"]), '"another-run"'))
    new["session_id"] = "another-session"
    yield "run_id", new, Expected(by="nobody", compared=None)


@kind("fields that nobody knows")
def _unknown(record: Json) -> Made:
    def change(copy: RecordReader) -> None:
        copy.record["x-deployment"] = {"pod": "a-7", "n": [1, 1.0]}
        for step in copy.steps:
            step["x-span"] = "0af7"

    yield "run and steps", changed(record, change), Expected(by="nobody", is_comparable=False)


@kind("spaces between values")
def _spaces(record: Json) -> Made:
    """The document spelled again; made by the writer of this bench anyhow."""
    yield "all", changed(record, lambda copy: None), Expected(by="nobody", compared=None)


@kind("nothing")
def _nothing(record: Json) -> Made:
    """The control."""
    yield "nothing", record, Expected(by="nobody", compared=None)


@kind("user whom a step acted for")
def _user_of_a_step(record: Json) -> Made:
    reader = RecordReader(record)
    for index, step in enumerate(reader.steps, start=1):
        if step.get("user_id"):
            expected = Expected(by="comparison", compared=at(index, paths="user_id"))
            yield f"step {index}", changed(record, with_fields(index, user_id="somebody-else")), expected


@kind("user of the run")
def _user(record: Json) -> Made:
    if record.get("user_id"):
        expected = Expected(by="comparison", compared=Place(paths=("user_id",)))
        yield "run", changed(record, of_run(user_id="somebody-else")), expected


@kind("feature flags")
def _flags(record: Json) -> Made:
    if record.get("flags"):
        expected = Expected(by="comparison", compared=Place(paths=("flags",)))
        yield "run", changed(record, of_run(flags={**record["flags"], "added": True})), expected


@kind("commit of the agent's code")
def _commit(record: Json) -> Made:
    """Two deployments may do the same; where they do, they are compared to find that out."""
    if record.get("code", {}).get("commit"):
        new = {**record["code"], "commit": "0" * 40}
        yield "run", changed(record, of_run(code=new)), Expected(by="nobody", is_comparable=False)


@kind("body of a response on the wire")
def _wire(record: Json) -> Made:
    """Evidence beside the answer that the agent saw, which the replay is given."""
    reader = RecordReader(record)
    for index, step in enumerate(reader.steps, start=1):
        if (step.get("http") or {}).get("response_body") is not None:
            http = {**step["http"], "response_body": "cut of"}
            expected = Expected(by="comparison", compared=at(index, paths="http"))
            yield f"step {index}", changed(record, with_fields(index, http=http)), expected


@kind("handoff, left out of its step")
def _handoff_gone(record: Json) -> Made:
    for index, step in _steps_with(record, "handoff"):
        expected = Expected(by="anybody", compared=at(index, paths="handoff"))
        yield f"step {index}: {step['handoff']}", changed(record, without_field(index, "handoff")), expected


@kind("agent of a step")
def _agent_of_a_step(record: Json) -> Made:
    for index, step in _steps_with(record, "agent"):
        expected = Expected(by="anybody", compared=at(index, paths="agent"))
        yield f"step {index}: {step['agent']}", changed(record, with_fields(index, agent="Other")), expected


def _steps_with(record: Json, field: str) -> Iterator[tuple[int, Json]]:
    if (record.get("agent") or {}).get("framework"):
        yield from ((index, step) for index, step in enumerate(record["steps"], start=1) if field in step)
