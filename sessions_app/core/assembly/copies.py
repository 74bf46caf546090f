"""What spans around calls of models tell of them once more, and otherwise: the conversation, what the run was
asked and what it answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from sessions_app.core.assembly.contradictions import is_another_text
from sessions_app.core.assembly.tree import Node
from sessions_app.core.conventions.told_twice import (
    are_calls_named_otherwise,
    are_roles_spelled_otherwise,
    are_settings_told_otherwise,
    ids_in,
    is_system_told_otherwise,
    is_value_told_otherwise,
    said_in,
    spoken_in,
)
from sessions_app.core.embedded_json import parsed
from sessions_app.core.model_names import could_be_same_model
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages import langchain_fields, last_words, messages_of
from sessions_app.core.spans.provider_messages.parts import part_of
from sessions_app.core.spans.reading import CallPart, ChatMessage, Part, Reading, ResultPart

_Spoken = list[tuple[str, bytes]]
_ASKED = ("", "question", "query", "input", "user_input", "prompt", "message")
"""Names under which templates are given what was asked; an input that is a text alone has none."""


def conversations_told_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """Spans whose own copy of the conversation is not that of the last request around which they stand, or that have
    two."""
    last: dict[int, Node] = {}
    own: dict[int, Node] = {}
    for model in nodes:
        if model.kind == "model" and model.reading.messages:
            last |= {id(outer): model for outer in model.above()}
            own[id(_agent_of(model))] = model
    given = _results_of_tools(nodes)
    for node in nodes:
        requests = [found[id(node)] for found in (own, last) if id(node) in found]
        is_another = requests and _has_results(node) and not any(_agrees(node, each) for each in requests)
        if is_another or node.reading.is_conversation_told_otherwise or _has_other_results(node, given):
            yield node


def _results_of_tools(nodes: Sequence[Node]) -> dict[str, list[JsonValue]]:
    """What spans of tools that worked say that they gave, by the id of the call."""
    given: dict[str, list[JsonValue]] = {}
    for said in (node.reading for node in nodes if node.kind == "tool"):
        if said.call_id is not None and said.has_result and said.error is None and said.retry is None:
            given.setdefault(said.call_id, []).append(said.result)
    return given


def _has_other_results(node: Node, given: Mapping[str, list[JsonValue]]) -> bool:
    """Whether its copy ends with a result that the tool's own span tells otherwise: no request may tell of that."""
    parts = [part for message in _ended_with(node.reading.conversation or ()) for part in message.parts]
    told = [(given.get(str(part.call_id)), part.content) for part in parts if isinstance(part, ResultPart)]
    return any(own and all(is_value_told_otherwise(each, content) for each in own) for own, content in told)


def _ended_with(conversation: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The results of tools behind all else that it tells."""
    tools = len(list(takewhile(lambda message: message.role == "tool", reversed(conversation))))
    return conversation[len(conversation) - tools :]


def begun_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """Spans whose initial messages stand together in no request inside of them."""
    initial = [(node, said) for node in nodes if (said := spoken_in(node.reading.initial))]
    models = [node for node in nodes if node.kind == "model" and node.reading.messages] if initial else []
    told = {id(message): message for model in models for message in model.reading.messages or ()}
    spoken = {key: spoken_in((message,)) for key, message in told.items()}
    for node, said in initial:
        inside = [model.reading.messages or () for model in models if node in model.above()]
        requests = ([each for message in messages for each in spoken[id(message)]] for messages in inside)
        if inside and not any(_stand_in(sent, said) for sent in requests):
            yield node


def _stand_in(sent: _Spoken, said: _Spoken) -> bool:
    """One after the other; the last of them may stand in a template."""
    (*before, (speaker, last)), length = said, len(said)
    pieces = (sent[at : at + length] for at in range(len(sent) - length + 1))
    return any(piece[:-1] == before and piece[-1][0] == speaker and last[1:-1] in piece[-1][1] for piece in pieces)


def agents_set_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """Agents whose own span tells a setting otherwise than the call of a model that is nearest to it."""
    pairs = [(agent, each.reading.settings) for agent, each in _agents_and_models(nodes)]
    others = [agent for agent, said in pairs if are_settings_told_otherwise(agent.reading.settings, said)]
    yield from {id(agent): agent for agent in others}.values()


def agents_instructed_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """Likewise of what the system says, which the first call was sent."""
    first = {id(agent): (agent, model) for agent, model in reversed(list(_agents_and_models(nodes)))}
    for agent, model in first.values():
        said, sent = _instructions_of(agent.reading), model.reading
        system = [each.words("\n") for each in sent.messages or () if each.role == "system"]
        texts = [text.strip() for text in (sent.instructions or "", *system, "\n".join(system)) if text.strip()]
        if said is not None and texts and all(is_another_text(text, said.strip()) for text in texts):
            yield agent


def _instructions_of(agent: Reading) -> str | None:
    """Which may stand among the messages with which it began."""
    system = [message.words("\n") for message in agent.initial or () if message.role == "system"]
    return agent.instructions or "\n".join(system) or None


def _agents_and_models(nodes: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    for model in nodes:
        agent = next((each for each in model.above() if each.kind == "agent"), None) if model.kind == "model" else None
        if agent is not None:
            yield agent, model


def summaries_told_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """Spans that sum up a run with a call, a result or words that no call of a model or a tool tells."""
    summed = [(node, node.reading.summary) for node in nodes if node.reading.summary is not None]
    known = _all_said([node for node in nodes if node.kind in ("model", "tool")]) if summed else frozenset[bytes]()
    yield from (node for node, summary in summed if not known.issuperset(said_in([summary])))


def copies_of_other_calls(nodes: Sequence[Node]) -> Iterator[Node]:
    """Spans whose own copy of the conversation names a call by an id that no call of a model or a tool has, where these
    have ids."""
    copies = [(node, ids) for node in nodes if (ids := {*ids_in(_copied(node))} - {None})]
    known = _known_ids(nodes) if copies else set[str | None]()
    yield from (node for node, ids in copies if known and not ids <= known)


def _copied(node: Node) -> list[ChatMessage]:
    said = node.reading
    return [*(said.initial or ()), *(said.conversation or ()), *([] if said.summary is None else [said.summary])]


def _known_ids(nodes: Sequence[Node]) -> set[str | None]:
    calls = [node.reading for node in nodes if node.kind in ("model", "tool")]
    told = {id(message): message for call in calls for message in call.messages or ()}
    answers = [call.answer for call in calls if call.answer is not None]
    return {*ids_in([*told.values(), *answers]), *(call.call_id for call in calls)} - {None}


def _has_results(node: Node) -> bool:
    """Some spans sum up a whole run as its prompt and its answer: only the results of tools tell that it is not so."""
    parts = (part for message in node.reading.conversation or () for part in message.parts)
    return any(isinstance(part, ResultPart) for part in parts)


def _agent_of(model: Node) -> Node | None:
    return next((node for node in model.above() if node.reading.conversation), None)


def _agrees(node: Node, model: Node) -> bool:
    """Behind the model's answer stands at most what tools gave for it."""
    conversation, answer = node.reading.conversation or (), model.reading.answer
    messages = (*(model.reading.messages or ()), *(() if answer is None else (answer,)))
    sent, told, behind = map(spoken_in, (messages, conversation, _ended_with(conversation)))
    is_as_sent = told[: len(sent)] == sent and not (
        are_roles_spelled_otherwise(conversation, messages)
        or are_calls_named_otherwise(conversation, messages)
        or is_system_told_otherwise(conversation, messages)
    )
    return is_as_sent and len(told) - len(behind) <= len(sent)


def asked_otherwise(nodes: Sequence[Node], asked: JsonValue, prompt: str) -> Iterator[Node]:
    """Spans around the first call of a model that were asked something else than the run, where templates hold what was
    asked; and those that tell their input in two ways."""
    yield from (node for node in nodes if node.reading.is_input_told_otherwise)
    first = next((node for node in nodes if node.kind == "model"), None)
    for node in _wrappers(first):
        named = [] if not isinstance(asked, str) else asked_in(node.reading.input)
        if named and all(is_another_text(prompt, each) and is_another_text(asked, each) for each in named):
            is_within = prompt != asked and all(each.strip() in prompt for each in named)
            yield from () if is_within or is_prompt_of_code(nodes, prompt, named[0]) else (node,)


def is_prompt_of_code(nodes: Sequence[Node], prompt: str, text: str) -> bool:
    """Whether a later request of the run asks this in place of its prompt: code that sums up a history put it there,
    and spans around it tell the history as it was then."""
    requests = (node.reading.messages or () for node in nodes if _is_of_loop(node))
    asked = ([each.words("\n") for each in messages if each.role == "user"] for messages in requests)
    return any(text in texts and prompt not in texts for texts in asked)


def _is_of_loop(node: Node) -> bool:
    return node.kind == "model" and not any(outer.kind in ("model", "tool") for outer in node.above())


def answered_otherwise(nodes: Sequence[Node], output: JsonValue) -> Iterator[Node]:
    """Spans around the last call of a model that answered something else than the run, where its answer is the
    outcome; and those that tell their output in two ways."""
    yield from (node for node in nodes if node.reading.is_output_told_otherwise)
    last = next((node for node in reversed(nodes) if _is_of_loop(node)), None)
    answer = last.reading.answer.words() if last is not None and last.reading.answer is not None else ""
    if answer and answer == output:
        yield from (node for node in _wrappers(last) if is_another_text(answer, node.reading.output or answer))


def failed_around(nodes: Sequence[Node]) -> Iterator[Node]:
    """Agents and chains inside of the run's span, and of no tool, that ended with an error: somebody handled that, or
    the run did not end as its own span tells."""
    for node in nodes:
        has_failed = node.reading.error is not None and not node.reading.is_error_harmless
        if has_failed and node.kind in ("agent", "chain") and _wrappers(node):
            yield node


def _wrappers(node: Node | None) -> list[Node]:
    """Agents and chains around it, none of which is the tool of another agent."""
    around = list(node.above()) if node is not None else []
    is_main = all(node.kind in ("agent", "chain", "other") for node in around)
    return [node for node in reversed(around) if node.kind != "other"] if is_main else []


def asked_in(said: JsonValue) -> list[str]:
    """The texts that name what was asked."""
    given = last_words(parsed(said), "user")
    named = given if isinstance(given, dict) else {"": given}
    texts = (named.get(each) for each in _ASKED)
    return [text for text in texts if isinstance(text, str) and text.strip()]


def states_told_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """A graph and its nodes around a call, which are given its state and give back changes of it, with a message that
    no call of a model or a tool tells. Nodes without calls make messages of their own."""
    calls = [node for node in nodes if node.kind in ("model", "tool")]
    around = {id(outer) for call in calls for outer in call.above()}
    states = [(node, _state_of(node)) for node in nodes if node.kind in ("agent", "chain") and id(node) in around]
    has_any = any(state for _, state in states)
    known = _all_said(calls) if has_any else frozenset[bytes]()
    ids = _known_ids(calls) if has_any else set[str | None]()
    names = {part.call_id: part.tool_name for part in _parts_of_answers(calls) if isinstance(part, CallPart)}
    for node, state in states:
        is_of_other_calls = bool(ids) and not {*ids_in(state)} - {None} <= ids
        is_otherwise = _names_another_tool(state, names) or any(each.are_calls_told_otherwise for each in state)
        if is_of_other_calls or is_otherwise or not known.issuperset(said_in(state)):
            yield node


def _parts_of_answers(calls: Sequence[Node]) -> Iterator[Part]:
    answers = (call.reading.answer for call in calls)
    return (part for answer in answers if answer is not None for part in answer.parts)


def _names_another_tool(state: list[ChatMessage], names: Mapping[str | None, str]) -> bool:
    """Whether a result is told as that of another tool than its call asked for."""
    results = (part for message in state for part in message.parts if isinstance(part, ResultPart))
    return any(each.tool_name not in (None, names.get(each.call_id, each.tool_name)) for each in results)


def models_told_otherwise(nodes: Sequence[Node]) -> Iterator[Node]:
    """A graph and its nodes around a call, whose state has its answer as that of another model."""
    named: dict[int, list[tuple[str, list[bytes]]]] = {}
    for model in nodes:
        answer, own = model.reading.answer, model.reading.answered_model or model.reading.model
        for node in model.above() if model.kind == "model" and answer is not None else ():
            told = named.setdefault(id(node), _models_in(node)) if node.kind in ("agent", "chain") else []
            names = [name for name, said in told if said == said_in((answer,))] if told and answer else []
            if names and not any(could_be_same_model(name, own) for name in names):
                yield node


def _models_in(node: Node) -> list[tuple[str, list[bytes]]]:
    """Of each answer in its state the model, as LangChain keeps it, and what was said."""
    found = []
    for update in _updates(parsed(node.reading.output), "output"):
        messages = update.get("messages")
        for message in messages if isinstance(messages, list) else ():
            fields = langchain_fields(message) if isinstance(message, dict) else {}
            kept = fields.get("response_metadata")
            name = kept.get("model_name") if isinstance(kept, dict) else None
            if isinstance(name, str):
                found.append((name, said_in(messages_of([message]))))
    return found


def _state_of(node: Node) -> list[ChatMessage]:
    found: list[ChatMessage] = []
    for value, name in ((parsed(node.reading.input), "input"), (parsed(node.reading.output), "output")):
        calls = filter(_is_call, _states(value, name))
        found.append(ChatMessage(role="assistant", parts=tuple(map(part_of, calls))))
        found += [each for update in _updates(value, name) for each in messages_of(update.get("messages")) or ()]
    return found


def _updates(value: JsonValue, name: str) -> list[JsonObject]:
    updates = (state.get("update", state) for state in _states(value, name) if isinstance(state, dict))
    return [update for update in updates if isinstance(update, dict)]


def _states(value: JsonValue, name: str) -> list[JsonValue]:
    value = value[name] if isinstance(value, dict) and value.keys() == {name} else value
    return value if isinstance(value, list) else [value]


def _is_call(value: JsonValue) -> bool:
    """One that a node which runs tools is given."""
    return isinstance(value, dict) and value.get("type") == "tool_call"


def _all_said(nodes: Sequence[Node]) -> frozenset[bytes]:
    """Calls of a model share their messages, so each is looked at once."""
    calls = [node.reading for node in nodes]
    answers = [call.answer for call in calls if call.answer is not None]
    told = {id(message): message for call in calls for message in call.messages or ()}
    results = [ResultPart(content=call.result) for call in calls if call.has_result]
    given = ChatMessage(role="tool", parts=tuple(results))
    return frozenset(said_in([*told.values(), *answers, given]))
