"""Files and records as people's own code prints them, and docs/own-formats.md, which says what becomes of each.

`python -m tests.api.printed` writes the page anew from what the parsers answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sessions_app.core.assembly.run import assemble
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import find_parser, parser_of
from sessions_app.core.formats.not_recordings import refusal_of
from sessions_app.core.importers.documents import read_document
from sessions_app.core.importers.formats import spans_in
from sessions_app.core.json_text import Limits
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run

FOLDER = Path("tests/records/printed")
PAGE = Path("docs/own-formats.md")


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A file as it was printed, with what it is called on the page."""

    name: str
    what: str
    known_by: str = ""

    @property
    def content(self) -> bytes:
        return (FOLDER / self.name).read_bytes()


PRINTED = (
    Printed(name="session_file.json", what="Session file", known_by="`session_id`, `messages`"),
    Printed(
        name="session_short.json",
        what="Session file, short",
        known_by="`messages` of `type` and `parts`; `input`, `output`",
    ),
    Printed(
        name="openai_record.json",
        what="Record of the OpenAI Agents SDK with `str(item.raw_item)`",
        known_by="`items`, each `raw` a string",
    ),
    Printed(
        name="snapshot.json",
        what="Snapshot of an agent's state, or a list of them",
        known_by="`step_number`, `memory`, `context_variables`, `tool_results`, `iteration_count`",
    ),
    Printed(
        name="step_events.json",
        what="Events of steps: a list, lines, or `{run_id, events}`",
        known_by="`step_id`, `tool_name`, `input_state`, `output_state`",
    ),
    Printed(
        name="checkpoint.json",
        what="Checkpoint, or a list of those of one run",
        known_by="`messages`, `state`, `tool_calls` or `step_number`",
    ),
    Printed(name="checkpoint_blob.json", what="Checkpoint as a store keeps it", known_by="`messages`, `state`"),
    Printed(
        name="tool_recordings.json",
        what="Recordings of tools, alone or as `{run_id, recordings}`",
        known_by="`tool_name`, `args`, `result`",
    ),
    Printed(
        name="recorded_tool.json",
        what="Calls as `RecordedTool` hands them to a recorder",
        known_by="`name` or `tool_name`, `args`, `kwargs`, `result`",
    ),
    Printed(
        name="spans_console.txt",
        what="Spans as OpenTelemetry's `ConsoleSpanExporter` prints them",
        known_by="ids with `0x`",
    ),
    Printed(name="langsmith_nested.json", what="LangSmith runs with `child_runs`", known_by="`id`, `run_type`"),
    Printed(name="cassette.yaml", what="Cassette of vcrpy, YAML or JSON", known_by="`interactions`"),
    Printed(name="nock.json", what="Recording of nock", known_by="`scope`, `method`, `path`"),
    Printed(name="wiremock.json", what="Mappings or journal of WireMock", known_by="`mappings`, `requests`"),
    Printed(name="checkpoint_delta.json", what="What changed between two checkpoints"),
    Printed(name="golden_trace.json", what="A golden trace"),
    Printed(name="attempt.json", what="The result of an attempt"),
    Printed(name="attempts.json", what="A list of attempts"),
    Printed(name="analysis.json", what="The analysis of a trace"),
    Printed(name="report.txt", what="A reproduction report"),
    Printed(name="tool_results.txt", what="A value that Python printed"),
    Printed(name="tool_calls.txt", what="Calls of tools that Python printed"),
    Printed(name="tool_calls_named.txt", what="The same, behind `Tool calls:`"),
    Printed(name="steps.txt", what="A listing of steps, as people print it"),
    Printed(name="recorded_tool_places.json", what="Calls of `RecordedTool` with arguments of both kinds"),
)


def run_in(printed: Printed) -> Run:
    """Raises `RecordError` for what is refused."""
    document = read_document(printed.content)
    if find_parser(document.value) is None and refusal_of(document.value) is None:
        spans = spans_in(document.value)
        if spans:
            return assemble(spans, is_closed=True)
    return parser_of(document.value)(document.content, Limits())


def _row(printed: Printed) -> str:
    try:
        run = run_in(printed)
    except RecordError as error:
        return f"| {printed.what} | – | refused | {error.message} |"
    kinds = Counter(step.kind for step in run.steps)
    steps = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    states = sum(step.state is not None for step in run.steps)
    held = [f"steps: {steps}", *([f"states: {states}"] if states else [])]
    exchanges = sum(step.http is not None for step in run.steps)
    held += [f"HTTP exchanges: {exchanges}"] if exchanges else []
    return f"| {printed.what} | {printed.known_by} | {judge(run).verdict.replace('_', ' ')} | {'; '.join(held)} |"


_HEAD = """\
# Files of your own

Many teams save what their agents do with a few lines of their own code. `POST /api/v1/runs`, the upload on the page
*Send data* and `manage.py import FILE …` accept these files as they are; each format is recognised by its content.
Every row was made from a file in `tests/records/printed`, and a test compares this page with the server's answers.

| file | recognised by | replay | result for the test file, or why it is refused |
| --- | --- | --- | --- |
"""
_TAIL = """
Anything that such a file cannot hold is missing from the run, and the replay kit says so.

- **A name for the run.** Files without `run_id` or `session_id` are named after their content, `run-` and 16 digits.
- **Python objects as strings.** `str(raw_item)` gives a string like `ResponseFunctionToolCall(name='get_weather', …)`.
  It is read as data; nothing in it is executed. The run has `derived`, which says how many items arrived this way and
  how many of them could be parsed; an item that cannot be parsed is kept as text.
- **Checkpoints.** Messages may be those of a provider (`role`, `content`), of Pydantic AI or of a session file. The
  state of each checkpoint is attached to the step that its messages end with. Lists of tool calls that grow from one
  checkpoint to the next hold all calls so far; lists that do not grow hold the calls of one step.
- **Snapshots.** The results in a snapshot are tool steps; in a list of snapshots, a result that was undone by
  going back to an earlier snapshot stays in the record.
- **Runs without a model.** Events, lists of tool calls and recorded HTTP hold no model call, so there is no
  request that a replay could check: such a run is cold, and says so. Its states play back as they were recorded: the
  page shows the state after each step, `GET /api/v1/runs/{run_id}/steps` returns `input_state` and `output_state` of
  each, and a comparison of two runs compares them.
- **Spans with plain attributes.** `run_id`, `query` and `step_number` on the spans of the run and its steps,
  `tool_name`, `args`, `success` and `error` on those of tools. The run is found under its `run_id` and under the id
  of its trace; where another run already has that id, or the spans of a trace name several, it keeps the id of the
  trace. Add `result` to the spans of tools: with `result_size` alone there is nothing to replay.

## Recorded HTTP for an existing run

A file of vcrpy, betamax, nock or WireMock becomes a separate run, unless you send it for an existing one:

    curl -H "Authorization: Bearer $REPLAY_KEY" --data-binary @cassettes/prices.yaml \\
        http://127.0.0.1:8000/api/v1/runs/r_8821/exchanges

or upload it on *Send data* together with the run's id. Each exchange is attached to the tool call whose answer or
arguments it holds, or during which it was recorded; one that matches no call is left out, and the response lists it.
Headers that hold secrets are left out. nock and WireMock may keep a JSON body as a value: the exchange then says
`respelled`, because its bytes are not those that went over the wire. Exchanges cannot be attached to runs made from
spans, because these runs are rebuilt when more spans arrive.
"""


def page() -> str:
    return _HEAD + "\n".join(map(_row, PRINTED)) + "\n" + _TAIL


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
