"""The tools: each does what an operation of the API does, with the same services, for the project of one key.

No tool has a way to a live model or to a live tool: what runs, runs with the world off. The docstrings are what the
coding agent reads.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from sessions_app.api.reads import replay_in
from sessions_app.api.runs import run_in, whole_run
from sessions_app.api.shapes import note_body, replay_body, step_body
from sessions_app.api.waiting import wait_for_end
from sessions_app.core.compare.as_json import to_json
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.reports.run_report import as_markdown
from sessions_app.core.run import ModelCall
from sessions_app.core.search.query import parse_query
from sessions_app.mapping.load import load_steps
from sessions_app.mcp.keys import key_in_force
from sessions_app.mcp.refusals import in_words
from sessions_app.mcp.shapes import WHOLE, compared, cut, cut_members, listed, replayed, step_line, whole
from sessions_app.models import ApiKey, Project, Replay, Run
from sessions_app.queries import steps
from sessions_app.queries.replays import has_ended
from sessions_app.queries.run_lists import Page, runs_page
from sessions_app.services.comparisons import compare
from sessions_app.services.forks import request_fork
from sessions_app.services.notes import write_note
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of_run

_MESSAGES = 40
"""The newest messages of a request that a step shows."""
RunId = Annotated[str, Field(description="The id of a run, as find_runs gives it.")]
Wait = Annotated[float, Field(ge=0, le=60, description="Seconds to wait for its end before answering.")]


class Tools:
    """For whoever holds the key."""

    def __init__(self, key: str) -> None:
        self._key_text = key

    @property
    def _key(self) -> ApiKey:
        return key_in_force(self._key_text)

    @property
    def _project(self) -> Project:
        return self._key.project

    @in_words
    def find_runs(
        self,
        query: Annotated[
            str,
            Field(description="Words that were said, an id, or filters such as status:error tool:refund user:u_7."),
        ] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> dict[str, Any]:
        """Find recorded agent runs, newest first. Start here: search for words that the user or the agent said, for an
        id, or for nothing to see the newest. Each run has a story, which says in one line what happened."""
        runs, cursor = runs_page(self._project, parse_query(query), Page(cursor=None, limit=limit))
        for run in runs:
            run.project = self._project
        return {"runs": list(map(listed, runs)), "has_more": cursor is not None}

    @in_words
    def read_run(self, run_id: RunId) -> dict[str, Any]:
        """Read the facts of a run: input, output, error, anomalies with their steps, the verdict which says whether
        and how far it can be replayed, and what was not captured for a replay, with how to capture it next time."""
        run = run_in(self._project, run_id)
        return whole(run, whole_run(run))

    @in_words
    def read_steps(
        self,
        run_id: RunId,
        after: Annotated[int, Field(ge=0, description="The step before the first one that is wanted.")] = 0,
        limit: Annotated[int, Field(ge=1, le=100)] = 40,
    ) -> dict[str, Any]:
        """Read the steps of a run in order: model calls, tool calls, retrievals and sub-agents, with arguments, results
        and errors. Long values are cut and say so; read_step gives one step whole."""
        run = run_in(self._project, run_id)
        found, states, is_last = load_steps(run, after=after, limit=limit)
        bodies = [
            step_body(step, input_state=before, output_state=then, changes=changes)
            for step, (before, then, changes) in zip(found, states, strict=True)
        ]
        return {
            "steps": list(map(step_line, bodies)),
            "total": run.content.length,
            "next_after": None if is_last else found[-1].index,
        }

    @in_words
    def read_step(self, run_id: RunId, step: Annotated[int, Field(ge=1)]) -> dict[str, Any]:
        """Read one step whole, with the agent's state before and after it, and for a model call the messages that the
        model saw, the newest last."""
        run = run_in(self._project, run_id)
        found, states, _ = load_steps(run, after=step - 1, limit=1)
        if not found:
            raise ToolError(f"The run has {run.content.length} steps.")
        before, then, changes = states[0]
        body = step_body(found[0], input_state=before, output_state=then, changes=changes)
        seen = _messages(run, step) if isinstance(found[0].call, ModelCall) else None
        return cut_members(body, WHOLE) | ({"messages": seen} if seen is not None else {})

    @in_words
    def replay_run(
        self,
        run_id: RunId,
        mode: Annotated[
            Literal["recording", "code", "code_and_tools"],
            Field(
                description="recording: an agent rebuilt from the recording, to prove that the recording is complete. "
                "code: a registered agent with frozen tools. code_and_tools: its tools run too, without a network."
            ),
        ] = "recording",
        agent: Annotated[str | None, Field(description="The registered agent, for the modes that run code.")] = None,
        wait: Wait = 30,
    ) -> dict[str, Any]:
        """Replay a run with the world off: recorded model answers, no network, no writes. The verdict says whether it
        was reproduced; divergence names the first step and field that differ."""
        run = run_in(self._project, run_id)
        return self._after(request_replay(run=run, mode=mode, order={"agent": agent} if agent else {}), wait)

    @in_words
    def fork_run(
        self,
        run_id: RunId,
        at_step: Annotated[int, Field(ge=1, description="The first step that may be another one.")],
        changes: Annotated[
            list[dict[str, Any]],
            Field(
                description='What is changed, such as {"kind": "tool_result", "step": 2, "value": …}, {"kind": '
                '"tool_result", "step": 2, "error": "timeout"}, {"kind": "instructions", "value": "…"}, {"kind": '
                '"model_answer", "step": 3, "value": {"text": "…", "tool_calls": [{"name": "…", "arguments": {}}]}}, '
                '{"kind": "message", "step": 1, "index": 0, "value": "…"}, {"kind": "state", "step": 2, "patch": [JSON '
                'Patch]} or {"kind": "clock", "value": seconds}.'
            ),
        ],
        hypothesis: Annotated[str, Field(description="Why the change should matter, in one sentence.")] = "",
        expect: Annotated[
            Any,
            Field(
                description='The expected outcome: words, {"contains": text}, {"equals": value}, {"ends_within": n}.'
            ),
        ] = None,
        wait: Wait = 30,
    ) -> dict[str, Any]:
        """Ask "what if": go on from a step of a run with something changed, world off. Earlier steps stay as recorded;
        sources says where later answers came from. A fork stops at a request that nothing recorded answers (verdict
        unknown_from_step, stopped_at); fork again with that answer as a model_answer or tool_result change."""
        order: JsonObject = {"at_step": at_step, "changes": changes, "hypothesis": hypothesis, "expect": expect}
        return self._after(request_fork(run=run_in(self._project, run_id), order=order), wait)

    @in_words
    def read_replay(self, replay_id: str, wait: Wait = 0) -> dict[str, Any]:
        """Read the state, the verdict and the first divergence of a replay or a fork. Its run_id is the run that it
        produced, which can be read and compared as any other."""
        return self._after(replay_in(self._project, replay_id), wait)

    @in_words
    def compare_runs(self, left: RunId, right: RunId) -> dict[str, Any]:
        """Compare two runs step by step and field by field: the first divergence in a sentence, and the steps that
        differ. Compare a run with what a replay or a fork of it produced, or a bad run with a good one."""
        runs = run_in(self._project, left), run_in(self._project, right)
        return compared(to_json(compare(*runs)))

    @in_words
    def report(self, run_id: RunId) -> str:
        """The reproduction report of a run in Markdown, to paste into a ticket: verdict, replays, what was proven and
        what was not, anomalies, and what could not be pinned."""
        return str(cut(_text(as_markdown(report_of_run(run_in(self._project, run_id)))), WHOLE * 2))

    @in_words
    def write_note(
        self,
        run_id: RunId,
        text: Annotated[str, Field(description="Plain text; URLs become links, and #4 links to step 4.")],
        step: Annotated[int | None, Field(description="Left out for a note on the whole run.")] = None,
    ) -> dict[str, Any]:
        """Leave a note on a run or one of its steps for the people who work on the incident."""
        return note_body(write_note(run=run_in(self._project, run_id), text=text, step=step, key=self._key))

    def _after(self, replay: Replay, wait: float) -> JsonObject:
        wait_for_end(lambda: has_ended(replay), wait)
        found = replay_in(self._project, replay.replay_id)
        return replayed(found, replay_body(found))


def _messages(run: Run, step: int) -> list[JsonValue] | None:
    row = run.step(step)
    if row is None or row.input_node is None:
        return None
    tail = steps.tail_of(run, row.input_node, stop=None, limit=_MESSAGES)
    return [cut(message.value, WHOLE // 10) for message in steps.read_messages(run, tail.messages)]


def _text(rendered: bytes | str) -> str:
    return rendered.decode() if isinstance(rendered, bytes) else rendered
