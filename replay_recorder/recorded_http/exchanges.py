"""The HTTP of a recorded tool call: its exchanges in their order, and which of them a request of today is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_WITHIN_A_CALL = ("other", "tool", "retrieval")
"""Kinds of steps inside of a tool that its own function makes; models and agents have callers of their own."""
PLACEHOLDER = re.compile(r"\[[a-z][a-z_]{0,31}:[0-9a-f]{8}\]")
"""What the server writes in the place of a secret."""
_TAKEN_OUT = re.compile(rf"{PLACEHOLDER.pattern}|\[redacted\]|%5Bredacted%5D", re.IGNORECASE)
"""What stands where a secret was; what was there is not known, and any text may be."""
_BOUNDARY = re.compile(r"boundary=\"?([^\";,]+)", re.IGNORECASE)
_FIRST_LINE = re.compile(rb"--([^\r\n]+)\r\n")

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SentRequest:
    """A request that a tool sends in a replay."""

    method: str
    url: str
    body: bytes

    @property
    def words(self) -> str:
        return f"{self.method} {self.url}"


@dataclass(frozen=True)
class RecordedExchange:
    """A request and its answer as a record holds them."""

    method: str
    url: str
    status: int | None
    request_headers: Headers = ()
    request_body: bytes | None = None
    is_json_value: bool = False
    """The record has the value of the request's body, and not its bytes."""
    response_headers: Headers = ()
    response_body: bytes = b""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The other fields: what was cut or left out, when it was sent, the error."""

    @property
    def words(self) -> str:
        return f"{self.method} {self.url}"


@dataclass(frozen=True)
class HttpStep:
    """Of a recorded step what tells whose its exchange is."""

    index: int
    parent: int | None
    kind: str
    http: RecordedExchange | None


def exchanges_of(steps: Iterable[HttpStep], call: int) -> tuple[RecordedExchange, ...]:
    """All that the call at this step sent, in the order in which it was sent.

    The last exchange of a step stands on it, earlier ones on steps inside of it; so do those of calls that the tool
    itself makes.
    """
    inside, found, own = {call}, [], None
    for step in steps:
        if step.index == call:
            own = step.http
        elif step.parent in inside and step.kind in _WITHIN_A_CALL:
            inside.add(step.index)
            found.append(step.http)
    return tuple(sorted((each for each in [*found, own] if each is not None), key=_sent_at))


def _sent_at(exchange: RecordedExchange) -> str:
    """Recorders that say no times wrote the steps in their order, and the call's own exchange came last."""
    return str(exchange.facts.get("started_at") or "")


def had_ended_before(one: RecordedExchange, other: RecordedExchange) -> bool:
    """False where they were under way at the same time, and where the recording does not say."""
    began, took, later = one.facts.get("started_at"), one.facts.get("duration_ms"), other.facts.get("started_at")
    if not isinstance(began, str) or not isinstance(later, str) or not isinstance(took, int | float):
        return False
    return datetime.fromisoformat(began) + timedelta(milliseconds=took) <= datetime.fromisoformat(later)


# --- is it the same request?


def same_request(recorded: RecordedExchange, sent: SentRequest) -> bool:
    """By method, address and body. Headers say nothing: recordings leave most of them out."""
    return same_address(recorded, sent) and _same_body(recorded, sent.body)


def same_address(recorded: RecordedExchange, sent: SentRequest) -> bool:
    return recorded.method.upper() == sent.method.upper() and _same_url(recorded.url, sent.url)


def _same_url(recorded: str, sent: str) -> bool:
    left, right = _parts(recorded), _parts(sent)
    return all(fits(one, other, anything="[^&#;/]*") for one, other in zip(left, right, strict=True))


def _parts(url: str) -> tuple[str, ...]:
    """Without user, password and fragment, and with the port that the scheme stands for."""
    try:
        split = urlsplit(url)
        port = split.port or _PORTS.get(split.scheme)
    except ValueError:
        return (url, "", "", "")
    return (split.scheme, f"{split.hostname or ''}:{port}", split.path or "/", split.query)


def _same_body(recorded: RecordedExchange, sent: bytes) -> bool:
    content = recorded.request_body
    if content is None:
        return "request_body_left_out" in recorded.facts or not sent
    if recorded.is_json_value or recorded.facts.get("respelled"):
        return _is_json(content, sent)
    sent = with_boundary_of(recorded, sent)
    if recorded.facts.get("request_body_cut"):
        return sent.startswith(content)
    return content == sent or fits(content.decode("latin-1"), sent.decode("latin-1"), anything=".*?")


def _is_json(content: bytes, sent: bytes) -> bool:
    """Some producers keep the value of a body and not its bytes. 1, 1.0 and true are three values."""
    try:
        return _spelled(sent) == _spelled(content)
    except ValueError:
        return False


def _spelled(body: bytes) -> str:
    return json.dumps(json.loads(body), sort_keys=True)


def with_boundary_of(recorded: RecordedExchange, sent: bytes) -> bytes:
    """The parts of a form are set off by a text that is drawn anew for each request."""
    kind = next((value for name, value in recorded.request_headers if name.lower() == "content-type"), "")
    then, now = _BOUNDARY.search(kind), _FIRST_LINE.match(sent)
    return sent.replace(now[1], then[1].encode()) if then and now else sent


def fits(recorded: str, sent: str, *, anything: str) -> bool:
    return recorded == sent or _pattern(recorded, anything).fullmatch(sent) is not None


@lru_cache(maxsize=64)
def _pattern(recorded: str, anything: str) -> re.Pattern[str]:
    return re.compile(anything.join(re.escape(part) for part in _TAKEN_OUT.split(recorded)), re.DOTALL)


# --- can it be answered?


def why_not(exchange: RecordedExchange) -> str | None:
    """Why a recorded exchange answers no request; None when it does. Nothing is made up."""
    error = exchange.facts.get("error") or {}
    if exchange.status is None:
        return f"the recorded request was not answered ({error.get('type') or 'the reason was not captured'})"
    if error:
        return f"the recorded answer broke off ({error.get('type') or 'the reason was not captured'})"
    if exchange.facts.get("body_cut"):
        return "the recorded answer is too long to be whole in the recording"
    return None
