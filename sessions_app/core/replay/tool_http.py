"""HTTP of tools in a replay: requests that no recorded exchange of their call answers, and those no longer sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.run import HttpExchange, Run, Step

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
    other: JsonObject | None = None
    """In what the body is another one than was recorded for this address: `path`, `recorded`, `now`."""

    @property
    def words(self) -> str:
        return f"{self.method} {self.url}"

    def to_json(self) -> JsonObject:
        """The body as text where it is one."""
        named = {"method": self.method, "url": self.url, "body": self.body.decode(errors="replace") or None}
        return {**named, "reason": self.reason, "recorded": list(self.recorded), "other": self.other}

    @property
    def difference(self) -> Mismatch:
        """The first place in the body where the address is a recorded one; else all addresses, and of one that was
        recorded why nothing answers it now."""
        now = f"{self.words}: {self.reason}" if self.words in self.recorded else self.words
        return _in_body(self.other) or Mismatch(path="http", recorded=list(self.recorded) or None, rebuilt=now)


def unsent(exchanges: Sequence[str]) -> Mismatch | None:
    """The difference that recorded exchanges make which a call did not ask for, by their methods and addresses."""
    return Mismatch(path="http", recorded=list(exchanges), rebuilt=None) if exchanges else None


def observed_http(observed: Step | Run) -> Mismatch | None:
    """The exchanges that a call on a person's own machine did not ask for, and those that it sent in their place; of a
    run, those of the functions that made its output."""
    unasked, unrecorded = (_words(observed.extra.get(name)) for name in ("http_unasked", "http_unrecorded"))
    if not unasked and not unrecorded:
        return None
    return _in_body(_other(observed)) or Mismatch(path="http", recorded=unasked, rebuilt=unrecorded)


def _other(observed: Step | Run) -> JsonObject | None:
    other = observed.extra.get("http_other")
    return other if isinstance(other, dict) else None


def _in_body(other: JsonObject | None) -> Mismatch | None:
    if other is None:
        return None
    return Mismatch(path=f"http.{other.get('path')}", recorded=other.get("recorded"), rebuilt=other.get("now"))


def _words(said: JsonValue) -> list[str] | None:
    return [str(each) for each in said] if isinstance(said, list) and said else None


def observed_miss(observed: Step, recorded: Run, call: Step) -> RequestMiss | None:
    """What ended a tool that ran on a person's own machine, where that was a request without a recorded exchange."""
    return _miss_in(observed, [step for step in recorded.steps if call.index in (step.index, step.parent)])


def observed_output_miss(observed: Run, recorded: Run) -> RequestMiss | None:
    """The same for a function that made the output."""
    functions = {step.index for step in recorded.steps if step.extra.get("of_output_function") is True}
    return _miss_in(observed, [step for step in recorded.steps if {step.index, step.parent} & functions])


def _miss_in(observed: Step | Run, sent_by: Sequence[Step]) -> RequestMiss | None:
    error = observed.error
    said = _IN_WORDS.fullmatch(error.message or "") if error is not None and error.type == _OBSERVED else None
    if said is None:
        return None
    return RequestMiss(
        method=said["method"],
        url=said["url"],
        body=b"",
        reason=said["reason"],
        recorded=tuple(f"{http.method} {http.url}" for http in _in_order(sent_by)),
        other=_other(observed),
    )


def _in_order(sent_by: Sequence[Step]) -> list[HttpExchange]:
    """As they were sent: the last exchange of a tool stands on its own step, in front of the steps of earlier ones."""
    last_on_top = [*sent_by[1:], *sent_by[:1]]
    exchanges = [step.http for step in last_on_top if step.http is not None]
    return sorted(exchanges, key=lambda http: str(http.extra.get("started_at") or ""))
