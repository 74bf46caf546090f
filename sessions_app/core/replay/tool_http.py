"""HTTP of tools in a replay: requests that no recorded exchange of their call answers, and those no longer sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.run import Run, Step

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


def observed_unsent(observed: Step) -> Sequence[str]:
    """Those exchanges of a call on a person's own machine; none where it was not answered from the recording."""
    said = observed.extra.get("http_unasked")
    return [str(each) for each in said] if isinstance(said, list) else []


def observed_miss(observed: Step, recorded: Run, call: Step) -> RequestMiss | None:
    """What ended a tool that ran on a person's own machine, where that was a request without a recorded exchange."""
    error = observed.error
    said = _IN_WORDS.fullmatch(error.message or "") if error is not None and error.type == _OBSERVED else None
    if said is None:
        return None
    of_call = (step.http for step in recorded.steps if step is call or step.parent == call.index)
    words = tuple(f"{http.method} {http.url}" for http in of_call if http is not None)
    return RequestMiss(method=said["method"], url=said["url"], body=b"", reason=said["reason"], recorded=words)
