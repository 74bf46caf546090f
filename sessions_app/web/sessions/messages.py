"""The conversation of a session, or what the model saw at one request, read from its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from sessions_app.core.errors import HistoryMissing
from sessions_app.core.run import ModelCall
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Run
from sessions_app.queries import steps
from sessions_app.web.run_pages import RunPlace, whole_number
from sessions_app.web.sessions.conversation import conversation_context
from sessions_app.web.sessions.restored import until_of
from sessions_app.web.steps.messages import Message
from sessions_app.web.steps.parts import Part
from sessions_app.web.steps.sections import offered, read_message

MESSAGES = 30
"""A page of messages; histories of thousands are read from their end."""


def messages_context(request: HttpRequest, project: Project, place: RunPlace) -> dict[str, Any]:
    """An address that names a step asks for what the model saw there."""
    if "step" not in request.GET and until_of(place) is None:
        return conversation_context(request, place)
    here, before, after = steps.requests(place.run, whole_number(request.GET.get("step"), 1))
    found: dict[str, Any] = {"request_step": here, "request_before": before, "request_after": after}
    if here is None or here.input_node is None:
        return found
    chain, before_chain = steps.chains_of(place.run, here.input_node, before.input_node if before else None)
    if not chain.messages:
        raise HistoryMissing
    shared = chain.shared_with(before_chain)
    total = len(chain.messages)
    end = min(whole_number(request.GET.get("until"), total), total)
    start = max(0, end - MESSAGES)
    shown = _read(place.run, chain, start, end, shared)
    return found | {
        "messages_shown": shown.messages,
        "earlier": start,
        "earlier_page": min(start, MESSAGES),
        "later": total - end,
        "later_until": min(end + MESSAGES, total),
        "total_messages": total,
        "new_messages": total - shared if before else 0,
        "gone_messages": len(before_chain.nodes) - shared,
        "system": shown.system,
        "offered": _offered(place.run, here),
    }


class _Shown:
    """The messages of the page, and the system prompt that stands above them."""

    def __init__(self, messages: list[Message], system: Part | None) -> None:
        self.messages = messages
        self.system = system


def _read(run: Run, chain: steps.Chain, start: int, end: int, shared: int) -> _Shown:
    """The last message is read too, wherever the page is: it carries the instructions in force."""
    payloads = steps.read_messages(run, [*chain.messages[start:end], chain.messages[-1], chain.messages[0]])
    *shown, last, first = [read_message(payload) for payload in payloads]
    system = last.instructions or _system_of(first)
    numbered = [
        replace(_without(message, system), position=position, is_new=0 < shared < position)
        for position, message in enumerate(shown, start=start + 1)
    ]
    return _Shown(numbered, system)


def _system_of(first: Message) -> Part | None:
    """Frameworks send it as a message of its own, or as a part of the first one."""
    parts = first.parts if first.role == "system" else (part for part in first.parts if part.look == "system")
    return next(iter(parts), None)


def _without(message: Message, system: Part | None) -> Message:
    """Each request repeats the instructions; only others than those on top are worth a look."""
    said = message.instructions
    is_repeated = said is not None and system is not None and said.text == system.text
    return replace(message, instructions=None) if is_repeated else message


def _offered(run: Run, here: StepSummary) -> list[Any]:
    call = steps.step_body(run, here).call
    return offered(call) if isinstance(call, ModelCall) else []
