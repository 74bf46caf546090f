"""The HTTP of a recorded tool call: its exchanges in their order, and which of them a request of today is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.run import HttpExchange, Run, Step

_PORTS = {"http": 80, "https": 443}
_WITHIN_A_CALL = ("other", "tool", "retrieval")
"""Kinds of steps inside of a tool that its own function makes; models and agents have callers of their own."""
_TAKEN_OUT = re.compile(rf"{PLACEHOLDER.pattern}|\[redacted\]|%5Bredacted%5D", re.IGNORECASE)
"""What stands where a secret was; what was there is not known, and any text may be."""
_BOUNDARY = re.compile(r"boundary=\"?([^\";,]+)", re.IGNORECASE)
_FIRST_LINE = re.compile(rb"--([^\r\n]+)\r\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class SentRequest:
    """A request that a tool sends in a replay."""

    method: str
    url: str
    body: bytes

    @property
    def words(self) -> str:
        return f"{self.method} {self.url}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestMiss:
    """A request of a tool that no recorded exchange of its call answers."""

    request: SentRequest
    reason: str
    recorded: tuple[str, ...] = ()
    """Method and address of the exchanges of this call."""

    def shown_body(self) -> JsonValue:
        """As text where it is one."""
        return self.request.body.decode(errors="replace") or None


def exchanges_of(run: Run, step: int) -> tuple[HttpExchange, ...]:
    """All that the call at this step sent, in the order in which it was sent.

    The last exchange of a step stands on it, earlier ones on steps inside of it; so do those of calls that the tool
    itself makes.
    """
    inside, found = {step}, []
    for each in run.steps[step:]:
        if each.parent in inside and each.kind in _WITHIN_A_CALL:
            inside.add(each.index)
            found.append(each)
    own = run.steps[step - 1]
    return tuple(each.http for each in sorted([*found, own], key=_sent_at) if each.http is not None)


def _sent_at(step: Step) -> str:
    """Recorders that say no times wrote the steps in their order, and the call's own exchange came last."""
    said = step.http.extra.get("started_at") if step.http else None
    return str(said or "")


# --- is it the same request?


def same_request(recorded: HttpExchange, sent: SentRequest) -> bool:
    """By method, address and body. Headers say nothing: recordings leave most of them out."""
    if (recorded.method or "").upper() != sent.method.upper():
        return False
    return _same_url(recorded.url or "", sent.url) and _same_body(recorded, sent.body)


def _same_url(recorded: str, sent: str) -> bool:
    left, right = _parts(recorded), _parts(sent)
    return all(_fits(one, other, anything="[^&#;/]*") for one, other in zip(left, right, strict=True))


def _parts(url: str) -> tuple[str, ...]:
    """Without user, password and fragment, and with the port that the scheme stands for."""
    try:
        split = urlsplit(url)
        port = split.port or _PORTS.get(split.scheme)
    except ValueError:
        return (url, "", "", "")
    return (split.scheme, f"{split.hostname or ''}:{port}", split.path or "/", split.query)


def _same_body(recorded: HttpExchange, sent: bytes) -> bool:
    body = recorded.request_body
    if body is None:
        return "request_body_left_out" in recorded.extra or not sent
    if body.is_json or recorded.extra.get("respelled"):
        return _is_json(body, sent)
    content, sent = body.content, _with_boundary_of(recorded, sent)
    if recorded.extra.get("request_body_cut"):
        return sent.startswith(content)
    return content == sent or _fits(content.decode("latin-1"), sent.decode("latin-1"), anything=".*?")


def _is_json(body: Payload, sent: bytes) -> bool:
    """Some producers keep the value of a body and not its bytes."""
    try:
        return bool(json.loads(sent) == body.parsed)
    except ValueError:
        return False


def _with_boundary_of(recorded: HttpExchange, sent: bytes) -> bytes:
    """The parts of a form are set off by a text that is drawn anew for each request."""
    kind = next((value for name, value in recorded.request_headers if name.lower() == "content-type"), "")
    then, now = _BOUNDARY.search(kind), _FIRST_LINE.match(sent)
    return sent.replace(now[1], then[1].encode()) if then and now else sent


def _fits(recorded: str, sent: str, *, anything: str) -> bool:
    return recorded == sent or _pattern(recorded, anything).fullmatch(sent) is not None


@lru_cache(maxsize=64)
def _pattern(recorded: str, anything: str) -> re.Pattern[str]:
    return re.compile(anything.join(re.escape(part) for part in _TAKEN_OUT.split(recorded)), re.DOTALL)


# --- can it be answered?


def why_not(exchange: HttpExchange) -> str | None:
    """Why a recorded exchange answers no request; None when it does. Nothing is made up."""
    error = exchange.extra.get("error") or {}
    if exchange.status is None:
        return f"the recorded request was not answered ({error.get('type') or 'the reason was not captured'})"
    if error:
        return f"the recorded answer broke off ({error.get('type') or 'the reason was not captured'})"
    if exchange.extra.get("body_cut"):
        return "the recorded answer is too long to be whole in the recording"
    return None
