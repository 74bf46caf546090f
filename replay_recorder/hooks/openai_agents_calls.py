"""Calls of tools in one run of the OpenAI Agents SDK, as steps of its recording."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.hooks.openai_agents_items import Json, KnownCalls, call_id_of, is_answer, parts_of
from replay_recorder.raw_http.tee import http_fields
from replay_recorder.tools.calls import error_of, written
from replay_recorder.writing.json_text import name
from replay_recorder.writing.run_writer import RunWriter


@dataclass(eq=False)
class ToolCall:
    """A call that is under way or over."""

    step: int
    call_id: str | None
    error: BaseException | None = None
    """What the tool raised where the model is told of it and the run goes on."""


current_call: ContextVar[ToolCall | None] = ContextVar("replay_recorder_openai_call", default=None)
"""The one that the current code runs in."""


class CallLog:
    """Every call that a model asked for, whoever answered it."""

    def __init__(self, run: RunWriter, known: KnownCalls) -> None:
        self.carried: frozenset[str] = frozenset()
        """Calls that an earlier run left for a person to approve."""
        self._run = run
        self._known = known
        self._task = current_task()
        self._asked: dict[str, int] = {}
        """Model steps by the id of a call that they asked for."""
        self._calls: dict[str, ToolCall] = {}
        """Calls with a step, by their id."""
        self._open: list[ToolCall] = []
        self._results: dict[str, Any] = {}
        """What is written as the answer of a call."""
        self._handoffs: frozenset[str] = frozenset()
        """Names of the tools that stand for handoffs, as the last request had them."""

    def carry(self, rows: Iterable[Json]) -> None:
        self.carried = frozenset(part["tool_call_id"] for row in rows for part in parts_of(row, self._known))
        # Those that are approved run, and then have an outcome of their own.
        self._known.outcomes.update(dict.fromkeys(self.carried, "denied"))

    @property
    def deferred(self) -> dict[str, str]:
        """What became of them, by their id."""
        return {call_id: self._known.outcomes[call_id] for call_id in sorted(self.carried)}

    def asked_for(self, step: int, parts: Iterable[Json], handoffs: Iterable[str]) -> None:
        """The answer of this model step may ask for calls; some of them may be `handoffs`."""
        self._handoffs = frozenset(handoffs)
        for call_id in (part["tool_call_id"] for part in parts if part["part_kind"] == "tool-call"):
            # An id may come again, although it should not.
            self._asked.pop(call_id, None)
            self._asked[call_id] = step
            self._calls.pop(call_id, None)
            self._results.pop(call_id, None)

    def is_asked_by(self, step: int, row: Json) -> bool:
        return self._asked.get(call_id_of(row) or "") == step

    # --- tools that run

    def started(self, context: Any, tool: Any, **fields: Any) -> ToolCall:
        """Called in the task that runs the tool; when it ends without an answer, the call has ended too."""
        call = self._start(context, tool, **fields)
        task = current_task()
        if task is not None and task is not self._task and hasattr(context, "tool_call_id"):
            task.add_done_callback(partial(self._task_ended, call))
        return call

    def ended(self, context: Any, tool: Any, result: Any) -> None:
        call_id = getattr(context, "tool_call_id", None)
        call = self._calls.get(call_id) if call_id else current_call.get()
        if call is None:
            # It goes on since an earlier run: an agent in it had to wait for a person.
            call = self._start(context, tool)
        outcome = "success" if call.error is None else "failed"
        if call.call_id is not None:
            self._results[call.call_id] = result
            self._known.outcomes[call.call_id] = outcome
        self._end(
            call,
            outcome=outcome,
            result=written(result),
            # The model gets texts and files; what the tool really gave is kept beside it.
            returned=None if isinstance(result, str) else written(result),
            error=None if call.error is None else error_of(call.error),
        )

    def _start(self, context: Any, tool: Any, **fields: Any) -> ToolCall:
        call_id = getattr(context, "tool_call_id", None) or self._waiting_for(tool)
        step = self._begin(call_id, tool.name, _sent(context, tool), **fields)
        call = ToolCall(step, call_id)
        self._open.append(call)
        if call_id is not None:
            self._calls[call_id] = call
        return call

    def _begin(self, call_id: str | None, tool_name: str, arguments: Any = None, **fields: Any) -> int:
        key = call_id or ""
        return self._run.begin(
            "tool",
            tool_name=name(self._known.names.get(key) or tool_name),
            call_id=name(call_id),
            arguments=self._known.arguments.get(key) if arguments is None else arguments,
            parent=self._asked.get(key),
            **fields,
        )

    def _waiting_for(self, tool: Any) -> str | None:
        """Tools that are no functions are not told which call they answer; theirs are answered one by one."""
        waiting = (call_id for call_id in self._asked if call_id not in self._calls)
        return next((each for each in waiting if tool.name.startswith(self._known.names.get(each, "\0"))), None)

    def _task_ended(self, call: ToolCall, task: asyncio.Task[Any]) -> None:
        """It raised, was stopped because another one did, or waits for a person."""
        with guard("tool_task_ended"):
            error = None if task.cancelled() else task.exception()
            outcome = "interrupted" if task.cancelled() else "unapproved"
            self._end(call, **({"outcome": outcome} if error is None else _crash(error)))

    def _end(self, call: ToolCall, **fields: Any) -> None:
        if call in self._open:
            self._open.remove(call)
            self._run.end(call.step, **fields, **http_fields(self._run, call.step))

    # --- calls that the loop answers

    def handed_off(self, source: Any, target: Any, handoffs: dict[str, Any]) -> None:
        """`handoffs` are the SDK's objects by the name of their tool."""
        said = {"instructions": target.instructions} if isinstance(target.instructions, str) else {}
        facts = {"agent": name(source.name), "handoff": {"from": name(source.name), "to": name(target.name), **said}}
        for call_id in self._asked:
            handoff = handoffs.get(self._known.names.get(call_id, ""))
            if call_id not in self._calls and handoff is not None and handoff.agent_name == target.name:
                self._known.outcomes[call_id] = "success"
                self._answer(call_id, **facts)
                # A filter may take it away before the model is told.
                self._settle(call_id, handoff.get_transfer_message(target))
                return
        self._run.step("other", name="handoff", **facts)

    def _answer(self, call_id: str, **fields: Any) -> None:
        step = self._begin(call_id, "tool", **fields)
        self._calls[call_id] = ToolCall(step, call_id)
        self._run.end(step, outcome=self._known.outcomes.get(call_id))

    def settle(self, rows: Iterable[Json]) -> None:
        """Answers as the model is told them: the loop gives some by itself, and puts those of tools into words."""
        for row in rows:
            call_id = call_id_of(row)
            if call_id is not None and not is_answer(row) and "output" in row:
                self._settle(call_id, row["output"])

    def note_order(self, rows: Iterable[Json]) -> None:
        """Of calls of several kinds in one answer the model is told kind by kind."""
        newest = max(self._asked.values(), default=None)
        asked = [call_id for call_id, step in self._asked.items() if step == newest]
        told = [call_id for row in rows if not is_answer(row) and (call_id := call_id_of(row)) in asked]
        if told != sorted(told, key=asked.index) and self._calls.keys() >= set(told):
            for place, call_id in enumerate(told, start=1):
                self._run.amend(self._calls[call_id].step, told_as=place)

    def _settle(self, call_id: str, output: Any) -> None:
        if call_id not in self._calls and (call_id in self._asked or call_id in self.carried):
            # It never ran: a person or a guardrail said no, there is no such tool, or another handoff came before it.
            is_handoff = self._known.names.get(call_id) in self._handoffs
            self._answer(call_id, handoff={"ignored": True} if is_handoff else None)
        if call_id in self._calls and self._results.get(call_id) != output:
            self._run.amend(self._calls[call_id].step, result=written(output))
        self._results[call_id] = output

    # --- the end

    def leave_waiting(self, row: Json) -> None:
        """A person has to approve it first."""
        call_id = call_id_of(row)
        if call_id in self._asked and call_id not in self._calls:
            self._run.end(self._begin(call_id, "tool"), outcome="unapproved")

    def close(self) -> None:
        for call in list(self._open):
            self._end(call, outcome="interrupted")


def _sent(context: Any, tool: Any) -> Any:
    """As the answer says it: free text is the `input` of a call, whose arguments are an object."""
    sent = getattr(context, "tool_arguments", None)
    return {"input": sent} if type(tool).__name__ == "CustomTool" else sent


def current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _crash(error: BaseException) -> Json:
    """Fields of a call that raised. The run raises the same; what the tool itself raised is the cause of it."""
    cause = {} if error.__cause__ is None else {"cause": error_of(error.__cause__)}
    return {"outcome": "crashed", "error": {**error_of(error), **cause}}
