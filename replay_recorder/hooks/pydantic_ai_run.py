"""What happens in one run of a Pydantic AI agent, written down in the words of the record format."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolRetryError
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from replay_recorder.agent_step import AgentStep
from replay_recorder.context import Identity, Place
from replay_recorder.guard import guard
from replay_recorder.hooks.pydantic_ai_calls import CallLog
from replay_recorder.hooks.pydantic_ai_messages import (
    History,
    has_other_prompt,
    message_text,
    prompt_value,
)
from replay_recorder.hooks.pydantic_ai_raw import RawAnswer
from replay_recorder.hooks.pydantic_ai_reading import (
    Expected,
    answer_facts,
    history_value,
    identity_of,
    instructions,
    is_structured_dict,
    limits,
    output_value,
    version,
    was_stopped,
)
from replay_recorder.hooks.pydantic_ai_sent import requests_at_the_end, sent_otherwise
from replay_recorder.hooks.pydantic_ai_surroundings import Surroundings
from replay_recorder.raw_http.tee import first_byte_at, http_fields, patch_transports
from replay_recorder.recorder import Recorder, active
from replay_recorder.tools.calls import error_of
from replay_recorder.writing.json_text import JsonText, name
from replay_recorder.writing.run_writer import RunWriter

_MOMENT = 0.1
"""Seconds."""
_open_runs: dict[str, RunLog] = {}


def stream_handed_over(streamed: Any) -> None:
    """The caller of `run_stream` is about to get this."""
    log = _open_runs.get(streamed.run_id)
    if log is not None:
        log.streamed = streamed


def function_called(ctx: Any, given: dict[str, Any]) -> None:
    """The function of a tool is about to begin."""
    log = _open_runs.get(ctx.run_id)
    if log is not None:
        log.calls.function_called(ctx.tool_call_id, given)


class RunLog:
    """One run, from its begin to its end. Every method may raise; the hooks guard them.

    An answer is written when it is there, with the stamps that the loop is about to put on it; what the loop made of
    it in the end is looked at when it goes on.
    """

    def __init__(self, recorder: Recorder, run: RunWriter, who: Identity, entry_point: str | None) -> None:
        self.run = run
        self.calls = CallLog(run, who=who.step_fields(), has_http=recorder.settings.http)
        self.stream: Any = None
        """The streamed answer of the request that is under way."""
        self._recorder = recorder
        self._who = who
        self._agent_step: AgentStep | None = None
        self._entry_point = entry_point
        self._history = History([])
        self._messages: list[Any] = []
        self._step = 0
        """The model step that is under way, or was last."""
        self._asked_at = 0.0
        self._request: tuple[int | None, list[Any]] | None = None
        """What the request that is under way adds, until it is written: beside the answer, where it costs least."""
        self._asked: tuple[Any, Any] | None = None
        """The contexts of the request that is under way."""
        self._raw: RawAnswer | None = None
        """What the model itself gave to the newest request."""
        self._answer: tuple[Any, Expected] | None = None
        """An answer that the loop has not taken up yet, and as it was written."""
        self._is_stream_open = False
        self._refusal: ModelRetry | None = None
        """By which a hook behind the request has it made again; the answer that was refused stands in the history."""
        self._is_taken_early = False
        """Whether the answer was written while its request was still open: the tools beside a final text run then."""
        self.streamed: Any = None
        """What `run_stream` gave to its caller."""
        self._alarm: asyncio.TimerHandle | None = None
        self._surroundings = Surroundings(run)
        self._same = ""
        self._output_facts: tuple[str | None, int | None, bool | None] = (None, None, None)
        self._has_start = False

    @classmethod
    def open(cls, ctx: Any, *, entry_point: str | None, parent: Place | None) -> RunLog | None:
        """None without a recorder, above a limit, and when this run is recorded already."""
        recorder = active()
        if recorder is None or ctx.run_id in _open_runs:
            return None
        who = identity_of(recorder, ctx)
        run = recorder.begin(
            ctx.run_id,
            identity=who,
            parent=parent,
            session_id=ctx.conversation_id,
            input=prompt_value(ctx.prompt),
            **{"recorder.ran_with": True},
        )
        if run is None:
            return None
        log = _open_runs[ctx.run_id] = cls(recorder, run, who, entry_point)
        log._put_agent(ctx)
        log._agent_step = AgentStep(
            parent, run, name=name(getattr(ctx.agent, "name", None)), arguments=prompt_value(ctx.prompt)
        )
        return log

    def _put_agent(self, ctx: Any) -> None:
        self.run.put_agent(
            name=name(getattr(ctx.agent, "name", None)),
            framework="pydantic-ai",
            framework_version=version(),
            entry_point=self._entry_point,
            end_strategy=getattr(ctx.agent, "end_strategy", None),
            usage_limits=limits(ctx),
        )

    @property
    def place(self) -> Place | None:
        """The model request that is under way, where what it sends is recorded."""
        return Place(self.run, self._step) if self._recorder.settings.http else None

    def place_of(self, call: Any) -> Place:
        return Place(run=self.run, step=self.calls.step_of(call) or self._step or None)

    def place_of_output(self, ctx: Any, output_context: Any) -> Place | None:
        """A step of its own for the function that makes the output, where what it sends is recorded."""
        if not (self._recorder.settings.http and output_context.has_function) or ctx.partial_output:
            return None
        patch_transports()
        function = name(output_context.function_name)
        return Place(self.run, self.run.begin("other", name=function, parent=self._step, of_output_function=True))

    def output_made(self, place: Place) -> None:
        if place.step is not None:
            self.run.end(place.step, **http_fields(self.run, place.step))

    # --- the run

    def run_began(self, ctx: Any, given: DeferredToolResults) -> None:
        """The messages of earlier turns are there, and the run's own are not. `given` comes from outside."""
        self._messages = ctx.messages
        prior = _earlier_turns(ctx, given)
        self._history = History(prior)
        if ctx.messages:
            self.run.put_prior([message_text(message) for message in prior])
            self.calls.carry_over(ctx.messages, given)

    def run_ended(self, result: Any) -> None:
        is_waiting, output = isinstance(result.output, DeferredToolRequests), None
        with guard("end_history"):
            self._end_history(self._with_late_answers(result.all_messages()))
        with guard("output"):
            output = None if is_waiting else output_value(result.output)
        self._close("cut_off" if is_waiting else "ok", output=output)

    def _with_late_answers(self, messages: list[Any]) -> list[Any]:
        """`run_stream` adds what the tools beside the final answer gave to its result, and not to the run's history."""
        if self.streamed is None or not messages or messages[-1].kind != "response":
            return messages
        return [*messages, *requests_at_the_end(self.streamed.all_messages())]

    def run_failed(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and self.calls.ended_by is not None:
            # The event loop stops for it, and cancels what goes on.
            error = self.calls.ended_by
        with guard("end_history"):
            self._end_history(self._messages, error)
        self.run.failed = True
        self._close("cut_off" if was_stopped(error) else "error", error=error_of(error))

    def _close(self, status: str, **fields: Any) -> None:
        _open_runs.pop(self.run.run_id, None)
        if self._alarm is not None:
            self._alarm.cancel()
        if self._history.is_rewritten_in_place:
            fields["recorder.rewritten_in_place"] = True
        with guard("parent"):
            if self._agent_step is not None:
                self._agent_step.end(result=fields.get("output"), error=fields.get("error"))
        self._recorder.end(self.run, status, deferred=self.calls.carried or None, **fields)

    # --- requests to the model

    def model_asked(self, ctx: Any, request_context: Any) -> None:
        """That a request begins; what it holds is known when the hooks inside have changed it.

        Written once the model has taken a moment to answer: an answer that comes at once is written with it.
        """
        if self._recorder.settings.http:
            patch_transports()
        self._messages = ctx.messages
        self._settle(ctx.messages)
        self.stream, self._raw = None, None
        self._asked_at, self._asked = time.perf_counter(), (ctx, request_context)
        asked = name(getattr(request_context.model, "model_name", None))
        self._step = self.run.begin_soon("model", name=asked or "model", model=asked)
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(_MOMENT, self._write_begun)

    def _write_begun(self) -> None:
        """One alarm for many quick requests: setting one and taking it back at each step costs more than looking."""
        with guard("write_begun"):
            self._alarm = None
            if self._asked is not None:
                left = self._asked_at + _MOMENT - time.perf_counter()
                if left > 0:
                    self._alarm = asyncio.get_running_loop().call_later(left, self._write_begun)
                else:
                    self.run.write_begun()

    def model_gave(self, response: Any) -> None:
        """No hook has seen it yet. Of several attempts the last one counts."""
        if self._raw is None or not self._raw.is_begun:
            self._raw = RawAnswer(response)

    def model_answered(self, ctx: Any, request_context: Any, response: Any, error: BaseException | None) -> None:
        """`error` where no answer came; a stream that its reader left is settled when the reader's reason is known."""
        if self._asked is None:
            if self._is_taken_early and response is not None:
                self._answered_late(Expected(response, ctx, request_context), response)
            return
        self._asked = None
        self._messages = ctx.messages
        is_first = not self._has_start
        self._put_start(ctx, request_context)
        self._request = self._history.new_in(ctx.messages)
        rewritten = self._history.rewritten(*self._request)
        self._same = self._surroundings.columns(ctx, request_context, response)
        fields: dict[str, Any] = {"duration_ms": self.run.elapsed(self._step), "first_token_at": self._first_token()}
        if rewritten is not None:
            fields["rewritten"] = rewritten
        if is_first and has_other_prompt(ctx.prompt, ctx.messages):
            fields["prompt_rewritten"] = True
        fields |= dict.fromkeys(sent_otherwise(request_context.messages, ctx.messages), True)
        if self._recorder.settings.http:
            fields |= http_fields(self.run, self._step)
        if response is not None:
            self._answer = (response, Expected(response, ctx, request_context))
            self._write_answer(self._answer[1].message, fields | self._raw_fields(response))
        elif isinstance(error, ModelRetry) or (error is not None and was_stopped(error)):
            self._is_stream_open = not isinstance(error, ModelRetry)
            self._refusal = error if isinstance(error, ModelRetry) else None
            self.run.amend(self._step, self._same, request=self._request_text(), **fields)
        else:
            why = None if error is None else error_of(error)
            self.run.end(self._step, self._same, request=self._request_text(), error=why, **fields)

    def _answered_late(self, made: Expected, response: Any) -> None:
        """Hooks had their turn when the answer was already written as it was streamed, for its tools to begin."""
        changed = self._raw_fields(response)
        if changed:
            self._answer = (response, made)
            self.run.amend(self._step, response=message_text(made.message), **changed)

    def _request_text(self) -> JsonText | None:
        """The messages of the request as far as they are new; once."""
        if self._request is None:
            return None
        (after, new), self._request = self._request, None
        self._history.put(after, new)
        return history_value(after, new)

    def _put_start(self, ctx: Any, request_context: Any) -> None:
        """Once: what the first request says of the whole run."""
        if self._has_start:
            return
        self._has_start = True
        model = request_context.model
        self.run.put(
            instructions=instructions(ctx.messages),
            model=name(getattr(model, "model_name", None)),
            provider=name(getattr(model, "system", None)),
        )
        if getattr(request_context, "streaming", False) and self._entry_point in (None, "run", "run_sync", "iter"):
            # A handler of events makes `run` stream its requests, which is what `run_stream_events` does.
            self._entry_point = "run_stream_events"
            self.run.put_agent(entry_point=self._entry_point)

    def _first_token(self) -> str | None:
        """From the stream, else from the first byte on the wire where that is recorded."""
        read = getattr(self.stream, "time_to_first_chunk", None)
        seconds = read(self._asked_at) if read is not None else None
        if seconds is None:
            return first_byte_at(self.run, self._step) if self._recorder.settings.http else None
        passed = time.perf_counter() - self._asked_at
        return (datetime.now(timezone.utc) - timedelta(seconds=passed - seconds)).isoformat()

    # --- what the loop did next

    def tool_called(self, ctx: Any, call: Any) -> None:
        if self._asked is not None and self.stream is not None:
            self._is_taken_early = True
            self.model_answered(*self._asked, self.stream.get(), None)
        if not self._is_taken_early:
            self._settle_answer(ctx.messages)
        self.calls.called(ctx, call, parent=self._step or None)

    def tool_started(self, ctx: Any, call: Any) -> None:
        if self._recorder.settings.http:
            patch_transports()
        who = identity_of(self._recorder, ctx)
        self.calls.started(call, {} if who is self._who else who.step_fields())

    def tool_answered(self, ctx: Any, call: Any, result: Any) -> None:
        self.calls.answered(call, result)

    def tool_failed(self, ctx: Any, call: Any, error: BaseException) -> None:
        self.calls.failed(ctx, call, error)

    def output_processed(self, ctx: Any, output_context: Any) -> None:
        if not self._is_taken_early:
            self._settle_answer(ctx.messages)
        function = name(output_context.function_name) if output_context.has_function else None
        # With `run_stream` there is no budget: output is never asked for again.
        budget = None if self._entry_point == "run_stream" else ctx.max_retries
        unchecked = True if is_structured_dict(output_context.output_type) else None
        if (function, budget, unchecked) != self._output_facts:
            self._output_facts = (function, budget, unchecked)
            self.run.put_agent(output_function=function, output_retries=budget, output_unchecked=unchecked)

    def text_processed(self, said: str, processed: Any) -> None:
        """A check of the team's may make another text of what the model said."""
        if isinstance(processed, str) and processed != said:
            self.run.put_agent(output_changed=True)

    def _settle_answer(self, messages: list[Any]) -> None:
        """The loop has taken the answer up, mostly as it was foreseen."""
        if self._answer is None:
            return
        (response, written), self._answer = self._answer, None
        taken_up = self._in_history(response, messages)
        if taken_up is not None and not written.is_what_came(taken_up):
            self.run.amend(self._step, response=message_text(taken_up), **self._raw_fields(taken_up))
            self.calls.asked_otherwise(taken_up)
        self._history.answered(response if taken_up is None else taken_up, step=self._step)

    def _write_answer(self, response: Any, fields: dict[str, Any]) -> None:
        request = self._request_text()
        with self.run.together():
            fields = {**fields, **answer_facts(response), "request": request, "response": message_text(response)}
            self.run.end(self._step, self._same, **fields)
            self.calls.open(response, parent=self._step, output_names=self._surroundings.output_names)

    def _raw_fields(self, response: Any) -> dict[str, Any]:
        """Where hooks made this of what the model gave."""
        raw = self._raw
        if raw is None or raw.is_begun or raw.is_in(response):
            return {}
        return {"raw_response": message_text(raw.message)}

    def _in_history(self, response: Any, messages: list[Any]) -> Any:
        """The answer as it stands in the history; None while it is not there."""
        found = self._next_in(messages)
        return found if found is response or getattr(found, "parts", None) == response.parts else None

    def _next_in(self, messages: list[Any]) -> Any:
        """The first message behind those that are written; None while there is none."""
        position = len(self._history.known)
        return messages[position] if position < len(messages) else None

    def _settle(self, messages: list[Any], error: BaseException | None = None) -> None:
        """What became known of the last step since it was written."""
        if self._asked is not None and error is not None:
            # The run is stopped before the request in it learns of it.
            self.model_answered(*self._asked, None, error)
        self._is_taken_early = False
        self._settle_answer(messages)
        if self._is_stream_open:
            self._settle_stream(messages, error)
        if self._refusal is not None:
            self._settle_refused(messages, self._refusal)
        self.calls.settle(messages)

    def _stop_what_goes_on(self, error: BaseException) -> None:
        """What runs inside learns of it later, when nothing is written any more."""
        self.calls.stop()
        for end in list(self.run.inside.values()):
            end(error=error_of(error))

    def _settle_stream(self, messages: list[Any], error: BaseException | None) -> None:
        """The answer stands in the history if it came; otherwise this is the reason why it did not.

        What came whole did not fail: it was refused as output, or code behind it failed.
        """
        self._is_stream_open = False
        self._write_next_in(messages)
        if error is not None and not self._came_whole() and not isinstance(error.__cause__, ToolRetryError):
            self.run.end(self._step, error=error_of(error))

    def _settle_refused(self, messages: list[Any], refusal: ModelRetry) -> None:
        """A hook before the request may have it made again too; then there was no answer."""
        self._refusal = None
        if not self._write_next_in(messages):
            self.run.end(self._step, error=error_of(refusal))

    def _write_next_in(self, messages: list[Any]) -> bool:
        """The answer as it came. Where the history holds it otherwise, the next request is written whole."""
        response = self._next_in(messages)
        if response is None or response.kind != "response":
            return False
        came = replace(response, state="complete") if self._came_whole() else response
        self._write_answer(came, {})
        if came.state == response.state:
            self._history.answered(response, step=self._step)
        return True

    def _came_whole(self) -> bool:
        """The stream itself knows; in the history an answer counts as interrupted by anything that went wrong later."""
        return self.stream is not None and getattr(self.stream.get(), "state", None) == "complete"

    def _end_history(self, messages: list[Any], error: BaseException | None = None) -> None:
        self._settle(messages, error)
        if error is not None and was_stopped(error):
            self._stop_what_goes_on(error)
        final = self._history.new_in(messages)
        self._history.end()
        if messages:
            self.run.put(final=history_value(*final))


def _earlier_turns(ctx: Any, given: DeferredToolResults) -> list[Any]:
    """Without the requests at the end of a history to which nothing is added: this run sends them as one, with its own
    instructions."""
    messages: list[Any] = ctx.messages
    if ctx.prompt is not None or given.calls or given.approvals:
        return messages
    return messages[: len(messages) - len(requests_at_the_end(messages))]
