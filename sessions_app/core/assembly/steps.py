"""The nodes of a trace as steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from sessions_app.core.assembly.contradictions import (
    are_other_arguments,
    is_another_name,
    is_reworded,
    told_otherwise,
)
from sessions_app.core.assembly.conversation import Conversations, Converted
from sessions_app.core.assembly.names import name
from sessions_app.core.assembly.printed_results import is_made_of
from sessions_app.core.assembly.requests import Asked, OpenCalls, Told, same_arguments, same_value
from sessions_app.core.assembly.resumed import LastAnswer
from sessions_app.core.assembly.tree import Node
from sessions_app.core.compare.strict import is_number
from sessions_app.core.conventions.told_twice import is_another_definition
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import (
    ATTEMPT,
    OUTPUT_PROCESSED,
    PYDANTIC_AI,
    AgentCall,
    Call,
    Chunk,
    ErrorInfo,
    ModelCall,
    OtherCall,
    Retrieval,
    Step,
    ToolCall,
    is_settled_output,
)
from sessions_app.core.shared_values import once_each
from sessions_app.core.spans.reading import ChatMessage, Reading, ResultPart, ToolDefinition
from sessions_app.core.spans.span import Span, SpanEvent, moment


@dataclass(eq=False)
class Draft:
    """A step before it has its number."""

    name: str
    call: Call
    node: Node | None
    """None for a call that no span tells of."""
    parent: Draft | None = None
    error: ErrorInfo | None = None
    told: Told | None = None
    """Of a tool's span: the call that it tells of."""
    converted: Converted | None = None
    children_asked: list[Asked] = field(default_factory=list)
    respelled_tool: str | None = None
    """Of a model's call: a tool that it defines with other fields than the calls of its agent before it."""


class StepWriter:
    """Takes nodes in order of time; `is_exact` as for `Conversations`."""

    def __init__(self, *, is_exact: bool = False, resumed: LastAnswer | None = None) -> None:
        resumed = resumed or LastAnswer()
        self.drafts: list[Draft] = []
        self._of_node: dict[int, Draft] = {}
        self._asked_by: dict[int, Draft] = {}
        self._conversations = Conversations(is_exact=is_exact, answered=resumed.answered)
        self._open = OpenCalls()
        self._left_open = [Asked(part, str(part.call_id), was_left_open=True) for part in resumed.left_open]
        self._open.add(self._left_open)
        self._beside: dict[tuple[str | None, str], JsonObject] = {}

    def take(self, node: Node) -> None:
        draft = _MAKERS.get(node.kind, StepWriter._other)(self, node)
        draft.parent = draft.parent or self._around(node)
        draft.error = None if node.reading.is_error_harmless else node.reading.error
        self._of_node[id(node)] = draft
        self.drafts.append(draft)

    def _around(self, node: Node) -> Draft | None:
        return next((draft for outer in node.above() if (draft := self._of_node.get(id(outer)))), None)

    # --- kinds

    def _model(self, node: Node) -> Draft:
        reading = node.reading
        converted = self._conversations.take(
            reading.messages,
            _answer(reading),
            apart=reading.instructions,
            model=reading.answered_model or reading.model,
        )
        self._open.answered(converted.results)
        draft = Draft(reading.answered_model or reading.model or "model", model_call(reading, converted), node)
        draft.converted = converted
        draft.respelled_tool = self._respelled(node)
        around = id(node.parent) if node.parent is not None else None
        draft.children_asked = [Asked(part, call_id, around) for part, call_id in converted.calls]
        self._asked_by.update({id(asked): draft for asked in draft.children_asked})
        self._open.add(draft.children_asked)
        return draft

    def _respelled(self, node: Node) -> str | None:
        agent = next((outer.reading.agent_name for outer in node.above() if outer.kind == "agent"), None)
        whole = (tool for tool in node.reading.tools or () if tool.parameters is not None)
        known = ((tool, self._beside.setdefault((agent, tool.name), tool.beside)) for tool in whole)
        return next((tool.name for tool, beside in known if beside != tool.beside), None)

    def _tool(self, node: Node) -> Draft:
        told = Told(node.reading, len(self._open), frozenset(map(id, node.above())))
        tool_name = name(node.reading.tool_name or node.span.name) or "tool"
        return Draft(tool_name, ToolCall(tool_name=tool_name), node, told=told)

    def _agent(self, node: Node) -> Draft:
        reading = node.reading
        call = AgentCall(run_id=None, arguments=payload_of(reading.input), result=payload_of(reading.output))
        return Draft(reading.agent_name or reading.name or node.span.name or "agent", call, node)

    def _retrieval(self, node: Node) -> Draft:
        reading = node.reading
        chunks = (
            None
            if reading.chunks is None
            else tuple(
                Chunk(
                    chunk_id=name(each.chunk_id), score=each.score, content=payload_of(each.content), extra=each.extra
                )
                for each in reading.chunks
            )
        )
        query = reading.query if reading.query is not None else reading.input
        call = Retrieval(query=payload_of(query), chunks=chunks, embedding_version=name(reading.embedding_model))
        return Draft(reading.name or node.span.name or "retrieval", call, node)

    def _other(self, node: Node) -> Draft:
        reading = node.reading
        call = OtherCall(arguments=payload_of(reading.input), result=payload_of(reading.output))
        return Draft(reading.name or node.span.name or "span", call, node)

    # --- the end

    def agent_ended(self, node: Node) -> None:
        """An agent's own span may tell what the last calls gave."""
        parts = [part for message in node.reading.conversation or () for part in message.parts]
        given = [part for part in parts if isinstance(part, ResultPart)]
        self._open.answered({part.call_id: replace(part, is_error=False) for part in given if part.call_id})

    def finished(self) -> list[Draft]:
        """All steps in order: calls that no span tells of stand behind the answer that asked for them."""
        tools = [(draft, draft.told) for draft in self.drafts if draft.told is not None]
        self._open.match([told for _, told in tools])
        for draft, told in tools:
            asked = told.call
            draft.parent = self._asked_by.get(id(asked)) if asked is not None else draft.parent
            if asked is not None and told.reading.tool_name is None:
                draft.name = name(asked.part.tool_name) or draft.name
            draft.call = _tool_call(draft, told)
        drafts = _after_their_answers(self.drafts)
        in_order = chain.from_iterable((draft, *_untold(draft.children_asked, draft)) for draft in drafts)
        return [*_untold(self._left_open, None), *in_order]


def _after_their_answers(drafts: Sequence[Draft]) -> list[Draft]:
    """A tool whose host has another clock may seem to begin before it was asked for."""
    early: dict[int, list[Draft]] = {}
    given: set[int] = set()
    for draft in drafts:
        given.add(id(draft))
        if draft.told is not None and draft.parent is not None and id(draft.parent) not in given:
            early.setdefault(id(draft.parent), []).append(draft)
    late = {id(draft) for each in early.values() for draft in each}
    kept = (draft for draft in drafts if id(draft) not in late)
    return [each for draft in kept for each in (draft, *early.get(id(draft), ()))]


def put_output_tools(drafts: Sequence[Draft]) -> None:
    """A tool that carries the output is none that the loop runs: requests name it apart."""
    names = _output_tools(drafts)
    for draft in drafts if names else ():
        if isinstance(draft.call, ToolCall) and draft.name in names:
            draft.call = _output_call(draft.call)
        if draft.node is not None and draft.converted is not None:
            draft.call = model_call(draft.node.reading, draft.converted, output_tools=names)


def _output_call(call: ToolCall) -> ToolCall:
    """No span tells how it ended: an output that was neither taken nor superfluous was refused, and what the model was
    told of it says why."""
    is_refused = call.outcome == "success" and call.result is not None and not is_settled_output(call)
    return replace(call, is_output=True, outcome="retried" if is_refused else call.outcome)


def _output_tools(drafts: Sequence[Draft]) -> set[str]:
    """Those that gave the output, and those that spans name."""
    names = {draft.name for draft in drafts if isinstance(draft.call, ToolCall) and draft.call.is_output}
    for draft in drafts:
        said = (draft.node.reading.settings or {}).get("output_tools") if draft.node is not None else None
        if isinstance(said, list):
            names.update(name for name in said if isinstance(name, str))
    return names


_MAKERS = {
    "model": StepWriter._model,
    "tool": StepWriter._tool,
    "agent": StepWriter._agent,
    "retrieval": StepWriter._retrieval,
}


def _untold(calls: Sequence[Asked], parent: Draft | None) -> list[Draft]:
    return [
        Draft(
            asked.part.tool_name,
            ToolCall(
                tool_name=name(asked.part.tool_name) or "tool",
                call_id=name(asked.call_id),
                arguments=payload_of(asked.part.arguments),
                result=payload_of(asked.result, null_is_value=True) if asked.has_result else None,
                outcome=_told_outcome(asked),
                is_output=asked.has_result and asked.result == OUTPUT_PROCESSED,
            ),
            node=None,
            parent=parent,
        )
        for asked in calls
        if not asked.is_taken
    ]


def _told_outcome(asked: Asked) -> str | None:
    if not asked.has_result:
        return None
    return "failed" if asked.has_failed else "success"


def _tool_call(draft: Draft, told: Told) -> ToolCall:
    """What the model asked and was given counts, as it was spelled there; the span fills gaps.

    Where the span tells of another tool, of other arguments than the model gave or of another answer than it was given,
    it is what the tool did: judge and replay then show the difference.
    """
    assert isinstance(draft.call, ToolCall)
    reading, asked = told.reading, told.asked
    said = reading.arguments if reading.has_arguments else None
    is_as_asked = asked is not None and asked.part.arguments is not None and not _ran_otherwise(told)
    arguments = asked.part.arguments if asked is not None and is_as_asked else said
    is_given = asked is not None and asked.has_result
    result = asked.result if asked is not None and is_given else reading.result
    if is_given and reading.has_result and not _is_same_result(result, reading.result):
        result = reading.result
    has_result = is_given or reading.has_result
    return ToolCall(
        tool_name=_tool_name(draft.call, told),
        # An attempt that another one came after answered no call.
        call_id=None if told.again_of else name(asked.call_id if asked else reading.call_id),
        arguments=payload_of(arguments, null_is_value=reading.has_arguments),
        result=payload_of(result, null_is_value=True) if has_result else None,
        outcome=_outcome(draft, reading, result) if has_result else ("crashed" if draft.error else None),
        retry=reading.retry if has_result else None,
    )


def _is_same_result(given: JsonValue, said: JsonValue) -> bool:
    return same_value(given, said) or is_made_of(given, said)


def _ran_otherwise(told: Told) -> bool:
    """Whoever approves a call may give it other arguments."""
    asked = told.asked.part.arguments if told.asked and not told.asked.was_left_open else None
    return told.reading.has_arguments and are_other_arguments(asked, told.reading.arguments)


def _tool_name(call: ToolCall, told: Told) -> str:
    asked = name(told.asked.part.tool_name) if told.asked else None
    is_told = told.reading.tool_name is not None and asked is not None
    return call.tool_name if asked is None or (is_told and is_another_name(asked, call.tool_name)) else asked


def _outcome(draft: Draft, reading: Reading, result: JsonValue) -> str:
    """A failed call whose words the model was given failed; other values were an answer all the same. In Pydantic AI no
    tool that failed gave any."""
    if reading.retry is not None:
        return "retried"
    has_failed = draft.error is not None and isinstance(result, str) and reading.framework != PYDANTIC_AI
    return "failed" if has_failed else "success"


# --- model calls -------------------------------------------------------------------------------


def _answer(reading: Reading) -> ChatMessage | None:
    """An empty answer beside an error is none."""
    is_empty = reading.answer is not None and not reading.answer.parts
    return None if is_empty and reading.error is not None else reading.answer


_OUTPUT = ("output_mode", "output_schema", "output_tools", "output_keys", "allow_text_output")
"""What the settings of a reading say of structured output."""


def model_call(reading: Reading, converted: Converted, output_tools: Collection[str] = ()) -> ModelCall:
    functions = None if reading.tools is None else definitions(reading.tools)
    keys = (reading.settings or {}).get("output_keys")
    offered = (tool for tool in functions or () if tool["name"] in output_tools)
    outputs = [{**tool, "kind": "output", **_key_of(tool, keys)} for tool in offered]
    if functions is not None and outputs:
        functions = [tool for tool in functions if tool["name"] not in output_tools]
    return ModelCall(
        history=converted.history,
        response=converted.response,
        parameters=None if functions is None else _parameters(functions, outputs, reading.settings or {}),
        tools=None if functions is None else _payloads(functions),
        settings=_settings(reading),
        model=name(reading.model),
        answered_model=name(reading.answered_model),
        provider=name(reading.provider),
        finish_reason=name(reading.finish_reason),
        input_tokens=reading.input_tokens,
        output_tokens=reading.output_tokens,
    )


def _key_of(tool: JsonObject, keys: JsonValue) -> JsonObject:
    key = keys.get(str(tool["name"])) if isinstance(keys, dict) else None
    return {} if key is None else {"outer_typed_dict_key": key}


# Nearly all calls of a run offer the same tools, so what is made of them is made once and shared.


@once_each
def definitions(tools: tuple[ToolDefinition, ...]) -> list[JsonObject]:
    return list(map(definition, tools))


@once_each
def _payloads(functions: list[JsonObject]) -> tuple[Payload, ...]:
    return tuple(map(Payload.of_json, functions))


@once_each
def _plain_parameters(functions: list[JsonObject]) -> Payload:
    """Of a call that may answer with a text or ask for one of these."""
    said = {"function_tools": functions, "output_tools": [], "output_mode": "text", "allow_text_output": True}
    return Payload.of_json(said)


def definition(tool: ToolDefinition) -> JsonObject:
    """In the shape of Pydantic AI."""
    said: JsonObject = {"name": tool.name, "description": tool.description}
    return said if tool.parameters is None else {**said, "parameters_json_schema": tool.parameters}


def _settings(reading: Reading) -> Payload | None:
    settings = {key: value for key, value in (reading.settings or {}).items() if key not in _OUTPUT}
    return Payload.of_json(settings) if settings else None


def _parameters(functions: list[JsonObject], outputs: list[JsonObject], settings: JsonObject) -> Payload:
    schema, mode = settings.get("output_schema"), settings.get("output_mode")
    said: JsonObject = {"function_tools": functions, "output_tools": outputs}
    if outputs:
        texts = settings.get("allow_text_output")
        allowed: JsonObject = {} if texts is None else {"allow_text_output": texts}
        return Payload.of_json({**said, "output_mode": "tool", **allowed})
    if mode in ("native", "prompted", "auto") and isinstance(schema, dict):
        return Payload.of_json({**said, "output_mode": mode, "output_object": {"json_schema": schema}})
    if mode is None and settings.get("allow_text_output") is False:
        return Payload.of_json({**said, "output_mode": "text", "allow_text_output": False})
    return _plain_parameters(functions)


def payload_of(value: JsonValue, *, null_is_value: bool = False) -> Payload | None:
    if value is None:
        return Payload.of_json(None) if null_is_value else None
    return Payload.of(value)


# --- numbers -----------------------------------------------------------------------------------


def numbered(drafts: Sequence[Draft]) -> tuple[Step, ...]:
    indexes = {id(draft): index for index, draft in enumerate(drafts, start=1)}
    return tuple(_step(draft, indexes) for draft in drafts)


def _step(draft: Draft, indexes: dict[int, int]) -> Step:
    index = indexes[id(draft)]
    parent = indexes.get(id(draft.parent)) if draft.parent is not None else None
    span = draft.node.span if draft.node else None
    return Step(
        index=index,
        name=name(draft.name) or "step",
        call=draft.call,
        parent=parent if parent is not None and parent < index else None,
        started_at=span.started_at if span else None,
        first_token_at=moment(draft.node.reading.first_token_ns) if draft.node else None,
        duration_ms=span.duration_ms if span else None,
        error=draft.error,
        user_id=name(draft.node.reading.user_id) if draft.node else None,
        tenant_id=name(draft.node.reading.tenant_id) if draft.node else None,
        extra=_extra(draft),
    )


def _extra(draft: Draft) -> JsonObject:
    if draft.node is None:
        return {}
    named = {} if draft.told is None else _named_call(draft.told)
    tools = {"tools_told": "otherwise"} if draft.node.reading.are_tools_told_otherwise else {}
    settings = {"settings_told": "otherwise"} if draft.node.reading.are_settings_told_otherwise else {}
    return {
        **told_by(draft.node),
        **odd_roles(draft.converted),
        **past_told(draft.converted),
        **respelled_tool(draft),
        **results_told(draft.converted),
        **named,
        **tools,
        **settings,
        **messages_told(draft),
        **_result_told(draft.told),
        **_defined_otherwise(draft),
        **_named_otherwise(draft),
        **_given_otherwise(draft.told),
        **_ran_with(draft.told),
    }


def _named_call(told: Told) -> JsonObject:
    """An id that is not that of the call: the span's own, or one in its messages."""
    said = told.reading
    if told.names_another_call:
        return {"named_call": said.call_id}
    return {"named_call": said.other_call_id} if said.call_id and said.other_call_id else {}


def _defined_otherwise(draft: Draft) -> JsonObject:
    said = draft.told.reading.tools or () if draft.told is not None else ()
    asking = draft.parent.node.reading if said and draft.parent and draft.parent.node else None
    known = {tool.name: tool for tool in asking.tools or ()} if asking is not None else {}
    is_other = any(is_another_definition(known[tool.name], tool) for tool in said if tool.name in known)
    return {"defined": "otherwise"} if is_other else {}


def _given_otherwise(told: Told | None) -> JsonObject:
    is_other = told is not None and told.reading.are_arguments_told_otherwise
    return {"arguments_told": "otherwise"} if is_other else {}


def _named_otherwise(draft: Draft) -> JsonObject:
    """The tool's name in its span, where the step has the one that the model gave."""
    reading = draft.told.reading if draft.told is not None else None
    said = [] if reading is None else [name(reading.tool_name), name(reading.other_tool_name)]
    known = (None, draft.call.tool_name) if isinstance(draft.call, ToolCall) else said
    return next(({"named_tool": each} for each in said if each not in known), {})


def messages_told(draft: Draft) -> JsonObject:
    is_other = draft.node is not None and draft.node.reading.are_messages_told_otherwise
    return {"messages_told": "otherwise"} if is_other else {}


def respelled_tool(draft: Draft) -> JsonObject:
    return {} if draft.respelled_tool is None else {"respelled_tool": draft.respelled_tool}


def results_told(converted: Converted | None) -> JsonObject:
    others = converted.other_results if converted is not None else None
    return {} if others is None else {"tool_results": others}


def past_told(converted: Converted | None) -> JsonObject:
    past = converted.past_told if converted is not None else None
    return {} if past is None else {"past_told": past}


def odd_roles(converted: Converted | None) -> JsonObject:
    if converted is None:
        return {}
    said = {"unknown_role": converted.unknown_role, "other_speaker": converted.other_speaker}
    return {fact: role for fact, role in said.items() if role is not None}


_VERCEL = "vercel-ai-sdk"
"""It tells the model of an error in the words of that error, and of nothing behind them."""


def _result_told(told: Told | None) -> JsonObject:
    if told is not None and told.reading.is_result_told_otherwise:
        return {"result_told": "in two ways"}
    if told is None or told.asked is None or not told.asked.has_result:
        return {}
    given, said = told.asked.result, told.reading
    if not said.has_result:
        error = said.error.message if said.error is not None else None
        is_other = is_reworded(error or "", given, is_last=said.framework == _VERCEL)
        return {"result_told": "as an error in other words"} if is_other else {}
    is_quoted = said.is_result_quoted and (is_number(given) or isinstance(given, dict | list))
    found = "as a text" if is_quoted else told_otherwise(given, said.result)
    return {} if found is None else {"result_told": found}


def _ran_with(told: Told | None) -> JsonObject:
    """The arguments that the tool's span tells, where they are not those that the model asked with; for an attempt the
    id of the call."""
    if told is not None and told.again_of is not None:
        return attempt_of(told)
    asked = told.asked.part.arguments if told is not None and told.asked is not None else None
    if told is None or asked is None or not told.reading.has_arguments or same_arguments(asked, told.reading.arguments):
        return {}
    if _ran_otherwise(told):
        return {}  # then the step has them
    return {"ran_with": told.reading.arguments}


def attempt_of(told: Told | None) -> JsonObject:
    """Of a failed attempt at a call, after which the call was tried again: the id of the call."""
    return {ATTEMPT: told.again_of.call_id} if told is not None and told.again_of is not None else {}


def told_by(node: Node) -> JsonObject:
    """The span behind a step, with everything in it that no convention understood."""
    is_orphan = node.is_adopted or (node.parent is None and node.span.parent_id is not None)
    orphan = {"is_orphan": True} if is_orphan else {}
    answer = {"response_id": node.reading.response_id} if node.reading.response_id else {}
    return {"span": {**span_facts(node.span, node.reading), **answer, **orphan, **_twins(node)}}


def _twins(node: Node) -> JsonObject:
    return {"twins": [span_facts(twin, node.reading) for twin in node.twins]} if node.twins else {}


def span_facts(span: Span, reading: Reading) -> JsonObject:
    unknown = {name: value for name, value in span.attributes.items() if name not in reading.used}
    facts: JsonObject = {
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "name": span.name,
        "convention": reading.convention,
        "status": None if span.status == "unset" else span.status,
        "status_message": span.status_message or None,
        "attributes": unknown or None,
        "events": [_event(event) for event in span.events if event.name != "exception"] or None,
        "links": [{"trace_id": link.trace_id, "span_id": link.span_id} for link in span.links] or None,
        "dropped": span.dropped or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _event(event: SpanEvent) -> JsonObject:
    return {"name": event.name, "attributes": event.attributes}
