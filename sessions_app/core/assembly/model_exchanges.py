"""Recorded functions whose requests to models were taken from their HTTP: the conversation that the bodies hold.

The recorder of a loop without a framework writes a model's step with its exchange and nothing else. Requests and
answers are read here as those of a trace are; calls that no step of a tool tells of stand behind the answer that asked
for them, so later steps may get other numbers than they came with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from urllib.parse import urlsplit

from sessions_app.core.assembly.steps import (
    Draft,
    StepWriter,
    attempt_of,
    messages_told,
    odd_roles,
    past_told,
    payload_of,
    respelled_tool,
    results_told,
)
from sessions_app.core.assembly.tree import Node
from sessions_app.core.conventions.provider_payload import read
from sessions_app.core.embedded_json import parsed
from sessions_app.core.history import nodes
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.told_answers import is_spelled_otherwise
from sessions_app.core.run import CALLED_BY_CODE, EXCHANGES, HttpExchange, ModelCall, OtherCall, Run, Step, ToolCall
from sessions_app.core.spans.provider_messages.fields import entries
from sessions_app.core.spans.provider_messages.requests import Spelled, messages_spelled
from sessions_app.core.spans.provider_messages.streams import merged
from sessions_app.core.spans.provider_messages.wire import body_value, failure_in, is_whole, said_in
from sessions_app.core.spans.reading import Reading
from sessions_app.core.spans.span import Span

_FAILED = 400
_PROVIDERS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}


def with_conversation(run: Run) -> Run:
    """The run itself where no step of a model holds its exchange alone."""
    if not any(_is_untold(step) for step in run.steps):
        return run
    drafts = _drafts(_attempts_apart(run.steps))
    first = next((draft.converted for draft in drafts if draft.converted and draft.converted.history), None)
    models = [draft for draft in drafts if isinstance(draft.call, ModelCall)]
    last = models[-1] if models else None
    is_over = run.status == "ok" and last is not None and not last.children_asked
    said = [draft.call for draft in models if isinstance(draft.call, ModelCall)]
    return replace(
        run,
        source_format=EXCHANGES,
        steps=_with_other_pasts(_numbered(run.steps, drafts)),
        model=run.model or next((call.model for call in said if call.model), None),
        provider=run.provider or next((call.provider for call in said if call.provider), None),
        instructions=run.instructions or (first.instructions if first else None),
        prior=run.prior or (first.start if first else None),
        final=said[-1].output_history if is_over else None,
    )


def _with_other_pasts(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Requests that go on from an earlier one may yet spell what both tell in two ways, such as the role of a message:
    what is read of them is the same."""
    sent: dict[str, list[Spelled]] = {}
    turns = _Turns()
    return tuple(_with_other_past(step, sent, turns) for step in steps)


def _with_other_past(step: Step, sent: dict[str, list[Spelled]], turns: _Turns) -> Step:
    if not isinstance(step.call, ModelCall) or step.http is None:
        return step
    said = messages_spelled(turns.whole_request(step.http))
    if step.call.history is None:
        return step
    before = next((sent[node.digest] for node in nodes(step.call.history) if node.digest in sent), [])
    sent[step.call.history.digest] = said
    other = next((at for at, pair in enumerate(zip(before, said, strict=False)) if pair[0] != pair[1]), None)
    return step if other is None else replace(step, extra={**step.extra, "past_told": f"messages[{other}]"})


def _is_untold(step: Step) -> bool:
    call, http = step.call, step.http
    is_empty = isinstance(call, ModelCall) and call.history is None and call.response is None
    return is_empty and http is not None and http.request_body is not None


def _attempts_apart(steps: tuple[Step, ...]) -> list[Step]:
    """A request that failed and was sent again as it was is no call of the model: the client tried again by itself."""
    models = [step for step in steps if _is_untold(step)]
    again = {before.index for before, after in pairwise(models) if _was_sent_again(before, after)}
    return [replace(step, call=OtherCall()) if step.index in again else step for step in steps]


def _was_sent_again(before: Step, after: Step) -> bool:
    assert before.http is not None
    assert after.http is not None
    is_refused = (before.http.status or 0) >= _FAILED
    has_failed = is_refused or before.error is not None or failure_in(before.http) is not None
    return has_failed and before.parent == after.parent and before.http.request_body == after.http.request_body


# --- as the nodes of a trace ---------------------------------------------------------------------


def _drafts(steps: list[Step]) -> list[Draft]:
    writer, nodes, turns = StepWriter(is_exact=True), dict[int, Node](), _Turns()
    for step in steps:
        span = Span(trace_id="", span_id=str(step.index), name=step.name)
        nodes[step.index] = Node(span, _reading(step, span, turns), parent=nodes.get(step.parent or 0))
        writer.take(nodes[step.index])
    return writer.finished()


def _reading(step: Step, span: Span, turns: _Turns) -> Reading:
    if _is_untold(step):
        assert step.http is not None
        request = turns.whole_request(step.http)
        return read(replace(span, attributes=_attributes(step.http, request))) or Reading(
            convention="http", kind="model"
        )
    call = step.call
    if not isinstance(call, ToolCall):
        return Reading(convention="http")
    return Reading(
        convention="http",
        kind="tool",
        tool_name=call.tool_name,
        call_id=call.call_id,
        arguments=body_value(call.arguments),
        has_arguments=call.arguments is not None,
        result=body_value(call.result),
        has_result=call.result is not None,
        error=step.error,
    )


def _attributes(http: HttpExchange, request: JsonValue) -> dict[str, JsonValue]:
    said: dict[str, JsonValue] = {
        "provider.kind": "invocation",
        "provider.request": request,
        "provider.response": said_in(http.response_body) if is_whole(http) else None,
        "provider.error": failure_in(http),
        "provider.name": _PROVIDERS.get(urlsplit(http.url or "").hostname or ""),
        "provider.status": http.status,
    }
    return {name: value for name, value in said.items() if value is not None}


class _Turns:
    """Of OpenAI Responses, which keeps what was said and goes on from it by the id of an answer."""

    def __init__(self) -> None:
        self._items: dict[str, list[JsonValue]] = {}
        """All that was said up to an answer, by its id."""

    def whole_request(self, http: HttpExchange) -> JsonValue:
        """With the turns that an earlier request of this run carried. Nothing where others stayed with the provider:
        nobody knows then what the model was given."""
        kept, request = kept_by_provider(http), body_value(http.request_body)
        body = parsed(request)
        if not isinstance(body, dict) or "input" not in body:
            return None if kept else request
        before = self._items.get(str(kept.get("previous_response_id")))
        if kept and (before is None or len(kept) > 1):
            return None
        said = body["input"]
        items = [*(before or ()), *(said if isinstance(said, list) else [{"role": "user", "content": said}])]
        self._keep(items, http)
        return {**body, "input": items} if kept else request

    def _keep(self, items: list[JsonValue], http: HttpExchange) -> None:
        said = said_in(http.response_body) if is_whole(http) else None
        response = merged(said) if isinstance(said, list) else parsed(said)
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self._items[response["id"]] = [*items, *entries(response, "output")]


def kept_by_provider(http: HttpExchange) -> JsonObject:
    """What the request goes on from and does not carry."""
    body = parsed(body_value(http.request_body))
    said = body if isinstance(body, dict) else {}
    conversation = said.get("conversation")
    named = conversation.get("id") if isinstance(conversation, dict) else conversation
    found = {"previous_response_id": said.get("previous_response_id"), "conversation_id": named}
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


# --- back to steps -------------------------------------------------------------------------------


def _numbered(steps: tuple[Step, ...], drafts: list[Draft]) -> tuple[Step, ...]:
    indexes = {id(draft): index for index, draft in enumerate(drafts, start=1)}
    moved = {int(draft.node.span.span_id): indexes[id(draft)] for draft in drafts if draft.node is not None}
    return tuple(_step(steps, draft, indexes, moved) for draft in drafts)


def _step(steps: tuple[Step, ...], draft: Draft, indexes: dict[int, int], moved: dict[int, int]) -> Step:
    index, asking = indexes[id(draft)], indexes.get(id(draft.parent))
    if draft.node is None:
        return Step(index=index, name=draft.name, call=draft.call, parent=asking)
    step = steps[int(draft.node.span.span_id) - 1]
    parent = asking if isinstance(step.call, ToolCall) else moved.get(step.parent or 0)
    if _is_untold(step):
        error, kept = step.error or draft.error, kept_by_provider(step.http) if step.http else {}
        told = {**past_told(draft.converted), **odd_roles(draft.converted), **results_told(draft.converted)}
        extra = {**step.extra, **kept, **told, **respelled_tool(draft), **messages_told(draft)}
        return replace(step, index=index, name=draft.name, call=draft.call, parent=parent, error=error, extra=extra)
    extra = dict(_moved(step, moved))
    if not isinstance(step.call, ToolCall):
        return replace(step, index=index, parent=parent, extra=extra)
    call = _tool(step.call, draft)
    is_told = step.call.result is not None and call.result != step.call.result
    returned = {"returned": body_value(step.call.result)} if is_told else {}
    extra |= {**returned, **attempt_of(draft.told), **_by_code(draft)}
    return replace(step, index=index, call=call, parent=parent, extra=extra)


def _by_code(draft: Draft) -> JsonObject:
    """Calls inside of another tool are part of its answer."""
    is_asked = draft.told is not None and (draft.told.call is not None or draft.told.reading.call_id is not None)
    is_inside = draft.parent is not None and isinstance(draft.parent.call, ToolCall)
    return {} if is_asked or is_inside else {CALLED_BY_CODE: True}


def _tool(call: ToolCall, draft: Draft) -> ToolCall:
    """What its own step does not say is taken from the answer that asked for it and the request behind it. Words that
    the loop made of the answer are what the model was given; what the tool returned is kept beside them."""
    made, told = draft.call, _told(draft)
    assert isinstance(made, ToolCall)
    asked = replace(call, tool_name=made.tool_name, call_id=made.call_id, arguments=made.arguments)
    if draft.told is not None and draft.told.asked is not None and draft.told.asked.has_failed:
        asked = replace(asked, outcome="failed")
    if call.result is None:
        return replace(asked, result=made.result, outcome=made.outcome)
    return asked if told is None or _is_text_of(told, call.result) else replace(asked, result=told)


def _is_text_of(told: Payload, result: Payload) -> bool:
    """An object or a list that was sent as its JSON is one answer, of which its own step holds the better spelling."""
    is_structured = result.is_json and isinstance(result.value, dict | list)
    return is_structured and is_spelled_otherwise(result, told.value)


def _told(draft: Draft) -> Payload | None:
    asked = draft.told.asked if draft.told is not None else None
    return payload_of(asked.result, null_is_value=True) if asked is not None and asked.has_result else None


def _moved(step: Step, moved: dict[int, int]) -> Iterator[tuple[str, JsonValue]]:
    for name, value in step.extra.items():
        yield name, moved.get(value, value) if name == "retry_of" and isinstance(value, int) else value
