"""HTTP of tools in a replay: requests that no recorded exchange of their call answers, and those no longer sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.run import ErrorInfo, HttpExchange, Run, Step

_OBSERVED = "RequestNotRecorded"
_IN_WORDS = re.compile(r"(?P<method>\S+) (?P<url>\S+): (?P<reason>.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestMiss:
    """What was sent, why there is no answer, and what was recorded for this call."""

    method: str
    url: str
    body: bytes
    reason: str
    recorded: tuple[str, ...] = ()
    """Method and address of the exchanges of this call."""

    @property
    def words(self) -> str:
        return f"{self.method} {self.url}"

    def to_json(self) -> JsonObject:
        """The body as text where it is one."""
        named = {"method": self.method, "url": self.url, "body": self.body.decode(errors="replace") or None}
        return {**named, "reason": self.reason, "recorded": list(self.recorded)}


def unsent(exchanges: Sequence[str]) -> Mismatch | None:
    """The difference that recorded exchanges make which a call did not ask for, by their methods and addresses."""
    return Mismatch(path="http", recorded=list(exchanges), rebuilt=None) if exchanges else None


def observed_http(observed: Step | Run) -> Mismatch | None:
    """The exchanges that a call on a person's own machine did not ask for, and those that it sent in their place; of a
    run, those of the functions that made its output."""
    unasked, unrecorded = (_words(observed.extra.get(name)) for name in ("http_unasked", "http_unrecorded"))
    return Mismatch(path="http", recorded=unasked, rebuilt=unrecorded) if unasked or unrecorded else None


def _words(said: JsonValue) -> list[str] | None:
    return [str(each) for each in said] if isinstance(said, list) and said else None


def observed_miss(observed: Step, recorded: Run, call: Step) -> RequestMiss | None:
    """What ended a tool that ran on a person's own machine, where that was a request without a recorded exchange."""
    of_call = (step.http for step in recorded.steps if step is call or step.parent == call.index)
    return _miss_in(observed.error, of_call)


def observed_output_miss(observed: Run, recorded: Run) -> RequestMiss | None:
    """The same for a function that made the output."""
    functions = {step.index for step in recorded.steps if step.extra.get("of_output_function") is True}
    return _miss_in(observed.error, (step.http for step in recorded.steps if {step.index, step.parent} & functions))


def _miss_in(error: ErrorInfo | None, exchanges: Iterable[HttpExchange | None]) -> RequestMiss | None:
    said = _IN_WORDS.fullmatch(error.message or "") if error is not None and error.type == _OBSERVED else None
    if said is None:
        return None
    words = tuple(f"{http.method} {http.url}" for http in exchanges if http is not None)
    return RequestMiss(method=said["method"], url=said["url"], body=b"", reason=said["reason"], recorded=words)
