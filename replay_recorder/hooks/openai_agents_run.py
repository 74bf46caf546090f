"""What happens in one run of the OpenAI Agents SDK, written down in the words of the record format."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import cache
from importlib import metadata
from typing import Any
from weakref import WeakSet

from replay_recorder.agent_step import AgentStep
from replay_recorder.context import Identity, Place, current_identity, current_place, placed_from_now, surround
from replay_recorder.guard import guard
from replay_recorder.hooks.openai_agents_calls import CallLog, current_call
from replay_recorder.hooks.openai_agents_items import (
    Conversation,
    Json,
    KnownCalls,
    call_id_of,
    is_answer,
    messages_of,
    parts_of,
    prompt_of,
    row_of,
    rows_of,
)
from replay_recorder.hooks.openai_agents_models import current_attempts
from replay_recorder.hooks.openai_agents_reading import model_name, output_rows
from replay_recorder.hooks.openai_agents_request import ModelRequest
from replay_recorder.raw_http.tee import patch_transports
from replay_recorder.recorder import Recorder
from replay_recorder.tools.calls import error_of, written
from replay_recorder.writing.json_text import JsonText, dumps, identifier, name
from replay_recorder.writing.run_writer import RunWriter

_STOPPED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)
_GUARDRAILS = ("input", "output", "tool_input", "tool_output")
_KEPT_BY_PROVIDER = ("conversation_id", "previous_response_id", "auto_previous_response_id")
_traces: deque[str] = deque(maxlen=1000)
"""Trace ids that runs of this process are called by: one trace may hold several runs."""
traced_guardrails: WeakSet[RunWriter] = WeakSet()
"""Runs whose guardrails were told by the SDK's tracing."""


class RunLog:
    """One run, from its start to its end. Every method may raise; the hooks guard them."""

    def __init__(self, recorder: Recorder, run: RunWriter, identity: Identity, conversation: Conversation) -> None:
        self.run = run
        self._recorder = recorder
        self._identity = identity
        self._conversation = conversation
        self._calls = CallLog(run, conversation.calls)
        self._request: ModelRequest | None = None
        self._agent_step: AgentStep | None = None
        self._has_trace = False
        self._has_model = False
        self._is_over = False
        self._answer: tuple[Any, Any] | None = None

    @classmethod
    def open(cls, recorder: Recorder, agent: Any, input: Any, options: Mapping[str, Any], entry: str) -> RunLog | None:
        """`input` and `options` as the runner takes them, `entry` its method. None above a limit."""
        config, parent = options.get("run_config"), current_place()
        state = input if hasattr(input, "get_interruptions") else None
        identity = _identity(recorder, state, config, options)
        prompt = None if state is not None else _prompt(input)
        run_id = None if parent is not None or state is not None else _own_trace_id(config)
        run = recorder.begin(run_id, identity=identity, parent=parent, input=prompt)
        if run is None:
            return None
        is_kept = any(options.get(key) or getattr(state, f"_{key}", None) for key in _KEPT_BY_PROVIDER)
        log = cls(recorder, run, identity, Conversation(is_kept_by_provider=is_kept))
        with guard("run_facts"):
            log._put_facts(agent, input, options, entry)
            log._agent_step = AgentStep(parent, run, name=name(agent.name), arguments=prompt)
            if state is not None:
                log._calls.carry(_open_calls(state))
        return log

    def _put_facts(self, agent: Any, input: Any, options: Mapping[str, Any], entry: str) -> None:
        self.run.put_agent(
            name=name(agent.name), framework="openai-agents", framework_version=version(), entry_point=entry
        )
        self.run.put(
            input_items=input if isinstance(input, list) else None,
            previous_response_id=options.get("previous_response_id"),
            conversation_id=options.get("conversation_id"),
        )

    def trace_began(self, trace: Any) -> None:
        """`trace` is the SDK's, which exists only from the first hook on; None when tracing is off."""
        if self._has_trace or trace is None or trace.trace_id == "no-op":
            return
        self._has_trace = True
        facts = {"id": trace.trace_id, "name": trace.name, "group_id": getattr(trace, "group_id", None)}
        self.run.put(trace={**facts, "metadata": getattr(trace, "metadata", None)})

    def enter(self, step: int | None) -> None:
        """From here on the code of this task belongs to this step."""
        if self._recorder.settings.http:
            patch_transports()
        surround(current_identity(), Place(run=self.run, step=step))

    # --- requests to the model

    def model_asked(self, agent: Any, instructions: str | None, items: Any) -> None:
        """Called in the task that asks the model next."""
        asked = self._conversation.ask(items, instructions, self._calls.carried)
        self._calls.settle(asked.rows)
        self._calls.note_order(asked.rows)
        if self._request is None:
            self._put_start(instructions, asked.prior)
        title = model_name(agent.model) or "model"
        is_made = (agent.instructions or None) != (instructions or None)
        made_by_code = {"dynamic_instructions": True} if is_made else {}
        step = self.run.begin("model", name=title, agent=name(agent.name), request=asked.history, **made_by_code)
        self._request = ModelRequest(self.run, step, self._conversation, self._calls.asked_for, agents_own=agent.model)
        current_attempts.set(self._request)
        self.enter(step)

    def _put_start(self, instructions: str | None, prior: list[Json] | None) -> None:
        """Once: what the first request says of the whole run."""
        if prior is not None:
            self.run.put_prior([JsonText(dumps(message)) for message in prior])
        self.run.put(instructions=instructions or "", deferred=self._calls.deferred or None)

    def model_answered(self, response: Any) -> None:
        if self._request is not None:
            self._request.settled(response)
            self._put_model(self._request)
        current_attempts.set(None)
        self.enter(None)

    def _put_model(self, request: ModelRequest) -> None:
        """The model of the first request is that of the run."""
        if not self._has_model:
            self._has_model = True
            self.run.put(model=request.model, provider=request.provider)

    # --- calls of tools

    def tool_started(self, context: Any, agent: Any, tool: Any) -> None:
        """Called in the task that runs the tool next."""
        call = self._calls.started(context, tool, agent=name(agent.name), **self._step_facts())
        current_call.set(call)
        self.enter(call.step)

    def tool_ended(self, context: Any, tool: Any, result: Any) -> None:
        self._calls.ended(context, tool, result)
        self.enter(None)

    def handed_off(self, source: Any, target: Any) -> None:
        self._calls.handed_off(source, target, {} if self._request is None else self._request.handoffs)

    def _step_facts(self) -> dict[str, Any]:
        """Whom the tool acts for: what the team's code has said since the run began comes on top."""
        said = {key: value for key, value in current_identity().step_fields().items() if value is not None}
        return {**self._identity.step_fields(), **said}

    # --- the end

    def succeeded(self, result: Any) -> None:
        waiting = list(getattr(result, "interruptions", None) or ())
        with guard("run_result"):
            rows = self._put_items(result)
            for item in waiting:
                self._calls.leave_waiting(row_of(item.raw_item))
            self._put_last(rows, result.last_agent)
        self._close("cut_off" if waiting else "ok", output=None if waiting else written(result.final_output))

    def failed(self, error: BaseException, result: Any = None) -> None:
        """`result` is what there is of one, where the error does not hold it."""
        with guard("run_data"):
            data = getattr(error, "run_data", None) or result
            if data is not None:
                items = self._put_items(data)
                if type(error).__name__ == "MaxTurnsExceeded":
                    self._put_end(items)
        self.run.failed = True
        self._close("cut_off" if isinstance(error, _STOPPED) else "error", error=error_of(error))

    def stream_ended(self, streamed: Any, task: asyncio.Task[Any]) -> None:
        """`task` ran the loop."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception() or _stream_error(streamed)
        if error is None:
            self.succeeded(streamed)
        else:
            self.failed(error, streamed)

    def agent_ended(self, agent: Any, output: Any) -> None:
        """An agent has given its final answer, which is kept for `ended`."""
        self._answer = (agent, output)

    def ended(self, error: BaseException | None) -> None:
        """For runs whose result nobody hands to us."""
        if error is not None:
            self.failed(error)
        elif self._answer is None:
            self._close("cut_off")
        else:
            agent, output = self._answer
            with guard("run_result"):
                self._put_last([], agent)
            self._close("ok", output=written(output))

    def _put_items(self, result: Any) -> list[Json]:
        """What the SDK itself keeps of a run; returns the items."""
        items = [(item.type, row_of(item.raw_item)) for item in result.new_items]
        self._calls.settle(row for _, row in items)
        self.run.put(items=[{"type": kind, "raw": row} for kind, row in items])
        for kind in _GUARDRAILS:
            found = getattr(result, f"{kind}_guardrail_results", None)
            rows = [_guardrail(each) for each in found or ()]
            self.run.put(**{f"{kind}_guardrails": rows or None})
            self._put_untraced(rows)
        return [row for _, row in items]

    def _put_untraced(self, guardrails: list[Json]) -> None:
        """As steps, where the SDK's tracing is off, which tells of them when they run. Of those of tools, which decide
        about a call, it does not tell either."""
        if self.run in traced_guardrails:
            return
        for each in guardrails:
            if each["triggered"] is not None:
                told = guardrail_step(each["name"], each["triggered"])
                self.run.end(self.run.begin("other", name=told.pop("name")), duration_ms=None, **told)

    def _put_last(self, rows: list[Json], agent: Any) -> None:
        """The last answer, what the loop added after it, and who gave it."""
        self._put_end(rows)
        if self._request is not None:
            self.run.put_agent(output_function=self._request.output_function)
        self.run.put(last_agent=name(agent.name))

    def _put_end(self, rows: list[Json]) -> None:
        """What the loop added after the last answer."""
        if self._request is not None and not self.run.is_open(self._request.step):
            step = self._request.step
            added = [row for row in rows if not is_answer(row) and self._calls.is_asked_by(step, row)]
            self.run.put(final={"after": step, "messages": messages_of(added, self._conversation.calls)})

    def _close(self, status: str, **fields: Any) -> None:
        if self._is_over:
            return
        self._is_over = True
        with guard("open_steps"):
            if self._request is not None:
                self._request.given_up(fields.get("error"))
                self._put_model(self._request)
            self._calls.close()
        with guard("parent"):
            if self._agent_step is not None:
                self._agent_step.end(result=fields.get("output"), error=fields.get("error"))
        self._recorder.end(self.run, status, **fields)


class recording_of:
    """`with recording_of(log):` the run goes on inside; nothing of it is left behind, and it never raises."""

    def __init__(self, log: RunLog) -> None:
        self._place = placed_from_now(Place(run=log.run))
        self._tokens: list[tuple[ContextVar[Any], Token[Any]]] = []

    def __enter__(self) -> None:
        self._place.__enter__()
        of_this_run: tuple[ContextVar[Any], ...] = (current_attempts, current_call)
        self._tokens = [(variable, variable.set(None)) for variable in of_this_run]

    def __exit__(self, *error: object) -> None:
        for variable, token in self._tokens:
            with suppress(ValueError):
                variable.reset(token)
        self._place.__exit__()


# --- reading the SDK's objects -------------------------------------------------------------------


@cache
def version() -> str | None:
    """Of the SDK; None when a package of somebody else's has its name."""
    try:
        return metadata.version("openai-agents")
    except metadata.PackageNotFoundError:
        return None


def _prompt(input: Any) -> Any:
    """A text or the content of the one new message; several new items as they are."""
    prompt = prompt_of(input)
    return rows_of(input) if prompt is None else prompt


def _open_calls(state: Any) -> list[Json]:
    """The calls that the last answer asked for and nobody has answered. What waits for a person may be asked
    for by another agent, inside of one of these."""
    answered = {call_id_of(row) for row in map(_row_of_item, state._generated_items) if not is_answer(row)}
    rows = [row for response in state._model_responses[-1:] for row in output_rows(response)]
    parts = {call_id_of(row): row for row in rows if _asks_for_a_tool(row)}
    return [row for call_id, row in parts.items() if call_id not in answered]


def _row_of_item(item: Any) -> Json:
    return row_of(item.raw_item)


def _asks_for_a_tool(row: Json) -> bool:
    return any(part["part_kind"] == "tool-call" for part in parts_of(row, KnownCalls()))


def _option(config: Any, key: str) -> Any:
    return config.get(key) if isinstance(config, Mapping) else getattr(config, key, None)


def _own_trace_id(config: Any) -> str | None:
    """The id that the team gave to the trace, once: ids of runs are unique and a trace may hold several."""
    trace_id = identifier(_option(config, "trace_id"))
    if trace_id is None or trace_id in _traces:
        return None
    _traces.append(trace_id)
    return trace_id


def _identity(recorder: Recorder, state: Any, config: Any, options: Mapping[str, Any]) -> Identity:
    """Who this is for, as the team's own callback reads it from the run's context."""
    identity = current_identity()
    if recorder.settings.context is not None:
        with guard("context callback"):
            identity = identity.with_facts(recorder.settings.context(_context(state, options)) or {})
    session_id = _group(config) or identity.session_id or _kept_conversation(options)
    return identity.with_facts({"session_id": session_id})


def _context(state: Any, options: Mapping[str, Any]) -> Any:
    """As hooks and tools get it. A run that goes on takes over its context unless it is given another."""
    from agents.run_context import RunContextWrapper

    given, kept = options.get("context"), getattr(state, "_context", None)
    if given is None and kept is not None:
        return kept
    return given if isinstance(given, RunContextWrapper) else RunContextWrapper(given)


def _group(config: Any) -> str | None:
    """The trace's group, which the team chose for this run."""
    from agents.tracing import get_current_trace

    return identifier(_option(config, "group_id") or getattr(get_current_trace(), "group_id", None))


def _kept_conversation(options: Mapping[str, Any]) -> str | None:
    """The SDK's session, or the conversation that the provider keeps."""
    session = getattr(options.get("session"), "session_id", None)
    return identifier(session or options.get("conversation_id"))


def _guardrail(result: Any) -> Json:
    output = result.output
    named = getattr(result.guardrail, "get_name", None)
    return {
        "name": named() if callable(named) else type(result.guardrail).__name__,
        "triggered": getattr(output, "tripwire_triggered", None),
        "behavior": getattr(output, "behavior", None),
        "output_info": getattr(output, "output_info", None),
    }


def guardrail_step(called: str, is_triggered: bool) -> dict[str, Any]:
    words = "The guardrail tripped and ended the run." if is_triggered else "The guardrail let it pass."
    return {"name": name(called) or "guardrail", "span": "guardrail", "result": words}


def _stream_error(streamed: Any) -> BaseException | None:
    """Too many turns, or a guardrail that tripped late: the loop itself just stops, and the reader of the stream is
    told."""
    from agents.exceptions import InputGuardrailTripwireTriggered, MaxTurnsExceeded

    tripped = getattr(streamed, "_triggered_input_guardrail_result", None)
    if tripped is not None:
        return InputGuardrailTripwireTriggered(tripped)
    if streamed.max_turns is not None and streamed.current_turn > streamed.max_turns:
        return MaxTurnsExceeded(f"Max turns ({streamed.max_turns}) exceeded")
    return None
