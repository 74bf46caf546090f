"""Decides for each tool call of the team's agent whether the tool itself runs, and where. By default none does.

One that runs does so in the sealed process; one that is named live, and only reads, where there is a network.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_core import to_jsonable_python

from replay_recorder.hooks.pydantic_ai_given import given_fields
from sessions_app.agents.loop.outcomes import FixtureNotFound
from sessions_app.core.embedded_json import without_half_pairs
from sessions_app.core.fork.order import ToolPolicy
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import code_behind
from sessions_app.core.replay.fixture_book import matches, missing, recorded_arguments
from sessions_app.core.replay.marks import MARK
from sessions_app.core.run import Fixture

Ask = Callable[[JsonObject], JsonValue]
"""A question to the parent process, for what this one cannot reach."""
Body = Callable[[], Awaitable[Any]]
Around = Callable[[ToolCallPart, Body], Awaitable[Any]]


class BodyReached(BaseException):
    """The call has come through all checks, and here the tool itself would begin."""


class ToolCannotRun(BaseException):
    """A tool that was to run live does not; the text says why."""


_calling: ContextVar[ToolCallPart] = ContextVar("calling")


@contextmanager
def calling(call: ToolCallPart) -> Iterator[None]:
    """The loop makes this call, with all that the team's hooks do around it."""
    token = _calling.set(call)
    try:
        yield
    finally:
        _calling.reset(token)


def call_under_way() -> ToolCallPart | None:
    """The call of the replayed agent in whose course this is asked."""
    return _calling.get(None)


@dataclass
class Gate:
    """Whether it runs depends on the order, on what the tool says of itself, and on the calls beside it."""

    policy: ToolPolicy
    fixtures: tuple[Fixture, ...]
    decided: frozenset[str] = frozenset()
    """Ids of calls that the run was resumed with. A tool that puts its call off again was answered from outside."""
    ran: list[ToolCallPart] = field(default_factory=list)
    """Calls whose tools did run, here or live."""
    kept_frozen: set[str] = field(default_factory=set)
    """Tools that were asked for live and do not say that they only read."""
    heard: list[tuple[ToolCallPart, JsonObject]] = field(default_factory=list)
    """Calls that came to their tools, with what is to be said of the arguments."""
    known: set[str] = field(default_factory=set)
    """Names of all tools that were offered."""
    reading: set[str] = field(default_factory=set)
    """Those that say that they only read."""
    around: Around | None = None
    """What stands around the tools that run in this process."""
    by_hand: Callable[[ToolCallPart], bool] = lambda call: False
    """Whether a fork says itself what this call is answered."""
    on_run: Callable[[ToolCallPart], None] = lambda call: None
    """Told of each call whose tool is about to run; it may raise to pause there."""

    def has_run(self, call: ToolCallPart) -> bool:
        """Whether a tool gave the answer. Ids of calls may come again, so that only the call itself tells."""
        return any(each is call for each in self.ran)

    def is_live(self, call: ToolCallPart) -> bool:
        """Whether a tool gave the answer that had a network."""
        return self.has_run(call) and self.goes_live(call.tool_name)

    def goes_live(self, name: str) -> bool:
        return name in self.policy.live & self.reading

    def hear(self, given: dict[str, Any], behind: Iterable[str]) -> None:
        """The call under way has come through all checks and hooks. Code that is `behind` this place, and does not run
        where the tool is frozen, may give the tool other arguments."""
        call = _calling.get()
        names = list(behind)
        said = {"ran_with_unknown": {"behind": names}} if names else given_fields(raw_arguments(call), given)
        self.heard.append((call, said))

    def hear_function(self, given: dict[str, Any], behind: Iterable[str]) -> None:
        """The function itself begins, where code before it was not heard."""
        if code_behind(self.given_now() or {}):
            self.hear(given, behind)

    def given_now(self) -> JsonObject | None:
        """What was heard last of the call under way; None where it did not come to its tool."""
        call = _calling.get(None)
        return next((said for each, said in reversed(self.heard) if each is call), None)

    def offered(self, name: str, tool: ToolDefinition) -> None:
        self.known.add(name)
        if (tool.metadata or {}).get(MARK) == "read":
            self.reading.add(name)

    async def body(self, ctx: RunContext[Any], run: Body) -> Any:
        """In the tool's place. Raises `BodyReached` for one that is frozen."""
        if not self.may_run(_calling.get()):
            raise BodyReached
        if not self.policy.run:
            self._hold_back_for_misses(ctx)
        try:
            return await run()
        except (CallDeferred, NotImplementedError):
            if ctx.tool_call_id not in self.decided:
                raise
            raise BodyReached from None

    async def run_here(self, call: ToolCallPart, run: Body) -> Any:
        """The tool's own function, in this process."""
        return await (run() if self.around is None else self.around(call, run))

    def called_now(self) -> ToolCallPart:
        """The call in whose course this is asked, which is counted as one that ran."""
        call = _calling.get()
        self.on_run(call)
        self.ran.append(call)
        return call

    def may_run(self, call: ToolCallPart) -> bool:
        """Whether the tool runs when this call comes to it."""
        name = call.tool_name
        if name in self.policy.live - self.reading:
            self.kept_frozen.add(name)
        return (self.policy.run or self.goes_live(name)) and not self.by_hand(call)

    def _hold_back_for_misses(self, ctx: RunContext[Any]) -> None:
        """Before any tool runs it is clear what the calls beside it are answered: a missing answer ends the replay."""
        for call in _newest_calls(ctx):
            name, arguments = call.tool_name, raw_arguments(call)
            is_frozen = name in self.known and not self.may_run(call)
            if is_frozen and not any(matches(fixture, name, arguments) for fixture in self.fixtures):
                raise FixtureNotFound(missing(name, call.tool_call_id, arguments, self.fixtures))


def _newest_calls(ctx: RunContext[Any]) -> list[ToolCallPart]:
    newest = next((message for message in reversed(ctx.messages) if isinstance(message, ModelResponse)), None)
    return [part for part in newest.parts if isinstance(part, ToolCallPart)] if newest else []


def as_sent(call: ToolCallPart, ctx: RunContext[Any]) -> ToolCallPart:
    """Whoever approves a call may change its arguments, and recordings hold those that the model sent."""
    return next((each for each in _newest_calls(ctx) if each.tool_call_id == call.tool_call_id), call)


def raw_arguments(call: ToolCallPart) -> JsonValue:
    """As the model sent them, read; what is no JSON stays text."""
    return recorded_arguments(Payload.of(call.args))


def plain(value: Any) -> JsonValue:
    """What a tool or an agent gave, as JSON."""
    found = to_jsonable_python(value, serialize_unknown=True, bytes_mode="base64", inf_nan_mode="null")
    return without_half_pairs(found)
