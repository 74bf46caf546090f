"""HTTP of tools that run in a replay: each request is answered from the recorded exchanges of its call, and nothing
goes out."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from pydantic_ai.messages import ToolCallPart

from replay_recorder.recorded_http.calls import ExchangesOfCall, answered_from_recording, during
from replay_recorder.recorded_http.exchanges import HttpStep, RecordedExchange, SentRequest, exchanges_of
from replay_recorder.recorded_http.other_body import OtherBody
from sessions_app.agents.loop.outcomes import FixtureNotFound
from sessions_app.agents.own_code.gate import raw_arguments
from sessions_app.agents.process.world_off import WorldIsOff
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.replay.fixture_book import FixtureBook, FixtureMiss
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.replay.tool_http import RequestMiss, unsent
from sessions_app.core.run import Fixture, HttpExchange, Run, Step


def recorded_exchange(http: HttpExchange) -> RecordedExchange:
    """As the code that answers with it wants it."""
    sent, answered = http.request_body, http.response_body
    return RecordedExchange(
        method=http.method or "",
        url=http.url or "",
        status=http.status,
        request_headers=http.request_headers,
        request_body=None if sent is None else sent.content,
        is_json_value=sent is not None and sent.is_json,
        response_headers=http.response_headers,
        response_body=(answered or Payload.of_text("")).content,
        facts=http.extra,
    )


class RecordedHttp:
    """The HTTP of all calls of one recording."""

    def __init__(self, run: Run, book: FixtureBook) -> None:
        self._book = book
        self._steps = [_http_step(step) for step in run.steps]
        self._outputs = [step for step in run.steps if step.extra.get("of_output_function") is True]
        self._unasked: dict[int, tuple[str, ...]] = {}
        """Of the calls that ran, what the recording holds beyond what they sent, by their recorded step."""

    @contextmanager
    def in_the_clients(self) -> Iterator[None]:
        """In here the clients that Python code sends with are answered. Outside of a call the world is off, as in any
        replay, and the fence counts who reached for it."""
        with answered_from_recording(refuse):
            yield

    async def during(self, call: ToolCallPart, run: Callable[[], Awaitable[Any]]) -> Any:
        """The tool's function runs."""
        fixture = self._book.look_up(call.tool_name, call.tool_call_id, raw_arguments(call))
        exchanges = exchanges_of(self._steps[fixture.step - 1 :], fixture.step) if fixture else ()
        nearest = () if fixture is None else (fixture,)
        missed = _Miss(call.tool_name, call.tool_call_id, raw_arguments(call), nearest, exchanges)
        of_call = ExchangesOfCall(exchanges, missed)
        try:
            return await during(of_call, run)
        finally:
            if fixture is not None:
                self._unasked[fixture.step] = of_call.unasked

    async def during_output(
        self, name: str, call: ToolCallPart | None, answer: int, run: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, Mismatch | None]:
        """A function makes the output of the answer at this recorded step; with what it no longer sends."""
        steps = [step.index for step in self._outputs if step.parent == answer]
        exchanges = tuple(each for step in steps for each in exchanges_of(self._steps[step - 1 :], step))
        call_id, arguments = (None, None) if call is None else (call.tool_call_id, raw_arguments(call))
        of_output = ExchangesOfCall(exchanges, _Miss(name, call_id, arguments, (), exchanges))
        made = await during(of_output, run)
        return made, unsent(of_output.unasked)

    def difference(self, fixture: Fixture) -> Mismatch | None:
        """What a call of this run no longer sends, whatever it answers."""
        return unsent(self._unasked.get(fixture.step, ()))


def _http_step(step: Step) -> HttpStep:
    http = None if step.http is None else recorded_exchange(step.http)
    return HttpStep(step.index, step.parent, step.kind, http)


def refuse(request: SentRequest) -> NoReturn:
    """A request outside of a tool's call, which counts as an attempt to reach the world."""
    sys.audit("socket.connect", None, request.url)
    raise WorldIsOff(f"Replays are isolated: {request.words}.")


class _Miss:
    """Makes what a request of this call without an answer ends the replay with."""

    def __init__(
        self,
        name: str,
        call_id: str | None,
        arguments: JsonValue,
        nearest: tuple[Fixture, ...],
        exchanges: tuple[RecordedExchange, ...],
    ) -> None:
        self._name = name
        self._call_id = call_id
        self._arguments = arguments
        self._nearest = nearest
        self._recorded = tuple(each.words for each in exchanges)

    def __call__(self, sent: SentRequest, reason: str, other: OtherBody | None) -> FixtureNotFound:
        request = RequestMiss(
            method=sent.method,
            url=sent.url,
            body=sent.body,
            reason=reason,
            recorded=self._recorded,
            other=None if other is None else other.to_json(),
        )
        miss = FixtureMiss(
            tool_name=self._name,
            call_id=self._call_id,
            arguments=self._arguments,
            nearest=self._nearest,
            request=request,
        )
        return FixtureNotFound(miss)
