"""What a recording of the OpenAI Agents SDK holds twice: its items beside the messages. A replay goes by messages and
steps, and would not see the other copy change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, dropwhile, islice

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import nodes
from sessions_app.core.judge.model_http_requests import details_sent
from sessions_app.core.judge.openai_loop import rewritten_requests
from sessions_app.core.judge.openai_words import pieces_of, words_of
from sessions_app.core.judge.reading import (
    as_object,
    main_models,
    objects_in,
    own_tools,
    seen_message,
    seen_messages,
    step_name,
    value_of,
)
from sessions_app.core.judge.reasons import Reason, reason_at_end
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.run import Run, ToolCall


def copy_gaps(run: Run) -> Iterator[Reason]:
    if run.source_format == "native" and is_openai_agents(run):
        yield from islice(chain(_other_input(run), _other_detail(run)), 1)
        yield from islice(chain(_other_items(run), _other_number(run), _other_order(run)), 1)


# --- items -------------------------------------------------------------------------------------


def _other_input(run: Run) -> Iterator[Reason]:
    """The items that a run was started with stand in its first request, behind those of its session."""
    items = run.extra.get("input_items")
    node = main_models(run)[0][1].history if main_models(run) else None
    parts = [part for each in nodes(node) for part in seen_message(each.message, step=0).parts]
    messages = _Messages(parts, is_whole=True)
    for position, item in enumerate(items if isinstance(items, list) and node is not None else ()):
        if isinstance(item, dict) and not messages.hold(item):
            message = f"The run's input_items[{position}] says something else than its first request."
            yield reason_at_end(run, "items_contradicted", message)
    if isinstance(items, list) and _lacks_input(run, items):
        yield reason_at_end(run, "items_contradicted", "The run's input_items lack something that its input holds.")


def _other_detail(run: Run) -> Iterator[Reason]:
    """How closely a model is to look at an image stands in these items, and in the recorded HTTP of the first request,
    behind those of its session; the messages leave it out."""
    items = run.extra.get("input_items")
    step = main_models(run)[0][0] if main_models(run) else None
    body = step.http.request_body if step is not None and step.http is not None else None
    said, sent = (details_sent(each) for each in (Payload.of_json({"input": items}), body))
    if said and sent and said != sent[-len(said) :]:
        message = "The run's input_items show an image in another detail than its first request."
        yield reason_at_end(run, "items_contradicted", message)


def _lacks_input(run: Run, items: list[JsonValue]) -> bool:
    """The input is the newest prompt among the items, or all of them."""
    rows = [item for item in items if isinstance(item, dict)]
    if run.input is None or run.deferred is not None or len(rows) < len(items):
        return False
    given = run.input.value
    if same_json(given, items):
        return False
    prompt: JsonValue = next((row.get("content") for row in reversed(rows) if row.get("role") == "user"), [])
    return len(pieces_of(prompt)) != len(pieces_of(given))


def _other_items(run: Run) -> Iterator[Reason]:
    """All steps can be replayed; which of the two copies is what happened cannot be told."""
    items = run.extra.get("items")
    messages = _of_the_run(run)
    for position, item in enumerate(items if isinstance(items, list) else ()):
        words = _said_otherwise(item, messages) if isinstance(item, dict) else None
        if words is not None:
            yield reason_at_end(run, "items_contradicted", f"The run's items[{position}] {words}.")


def _other_number(run: Run) -> Iterator[Reason]:
    items = run.extra.get("items")
    is_of_recorder = isinstance(items, list) and all("raw" in as_object(item) for item in items)
    if isinstance(items, list) and is_of_recorder:
        yield from _held_again(run, items)
        yield from _not_held(run, items) if run.status == "ok" else ()


def _held_again(run: Run, items: list[JsonValue]) -> Iterator[Reason]:
    """Calls and answers that the items hold once more than the run made them."""
    made = Counter(str(call.call_id) for _, call in own_tools(run))
    held: Counter[tuple[str, str, str]] = Counter()
    for position, item in enumerate(map(as_object, items)):
        raw = as_object(item.get("raw"))
        what, call_id = _OF_CALLS.get(_told_by_item(raw)[0]), str(raw.get("call_id"))
        if what is None:
            continue
        key = what, call_id, str(item.get("type"))
        held[key] += 1
        if held[key] > made[call_id] > 0:
            message = f"The run's items[{position}] holds a call's {what} once more."
            yield reason_at_end(run, "items_contradicted", message)


def _not_held(run: Run, items: list[JsonValue]) -> Iterator[Reason]:
    """Calls, answers of tools and the last words of the model. A handoff's filter that writes the history anew may take
    those before it out of the items as well."""
    held = [as_object(item.get("raw")) for item in objects_in(items)]
    known = {(_OF_CALLS.get(_told_by_item(raw)[0]), str(raw.get("call_id"))) for raw in held}
    rewritten = rewritten_requests(run)
    kept_from = rewritten[1].index if rewritten else 0
    for step, call in own_tools(run):
        for what in _said_of(call) if step.index >= kept_from else ():
            if (what, str(call.call_id)) not in known:
                yield reason_at_end(run, "items_contradicted", f"The run's items lack the {what} of {step_name(step)}.")
    said = {text for raw in held for text in words_of(raw.get("content"))}
    for step, asked in main_models(run)[-1:]:
        parts = seen_message(asked.response, step=0).parts_of("text") if asked.response else []
        if parts and parts[-1].get("content") == value_of(run.output) and parts[-1].get("content") not in said:
            yield reason_at_end(run, "items_contradicted", f"The run's items lack the answer of {step_name(step)}.")


def _other_order(run: Run) -> Iterator[Reason]:
    """What the run said stands in its items and in its messages in one order, and each of it once."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, part in enumerate(_said_in(run)):
        for key in _keys(*_told_by_part(part), _id_of(part, "tool_call_id", "id")):
            places[key].append(place)
    reached = -1
    for position, item in enumerate(map(as_object, objects_in(run.extra.get("items")))):
        raw = as_object(item.get("raw"))
        for key in _keys(*_told_by_item(raw), _id_of(raw, "call_id", "approval_request_id", "id")):
            if key not in places or item.get("type") == "tool_approval_item":
                continue
            later = next((place for place in places[key] if place > reached), None)
            if later is None:
                message = f"The run's items[{position}] stands elsewhere than in its messages, or once more."
                yield reason_at_end(run, "items_contradicted", message)
                return
            reached = later


def _said_in(run: Run) -> list[JsonObject]:
    """Parts of messages in their order; a run that goes on has items of the runs before it too."""
    messages = seen_messages(run)
    own = messages if run.deferred is not None else list(dropwhile(lambda seen: not seen.is_answer, messages))
    return [part for seen in own for part in seen.parts]


def _keys(what: str, said: JsonValue, call_id: str) -> list[tuple[str, str]]:
    if what in _OF_CALLS:
        return [(what, call_id)]
    return [(what, word) for word in words_of(said)] if what == "assistant" else []


_OF_CALLS = {"call": "arguments", "answer": "answer"}


def _said_of(call: ToolCall) -> list[str]:
    return ["arguments", *([] if call.result is None else ["answer"])] if call.call_id else []


def _said_otherwise(item: JsonObject, messages: _Messages) -> str | None:
    """Of the items that the recorder writes, and of no other list that a record may call so."""
    raw, kind = item.get("raw"), item.get("type")
    if not isinstance(raw, dict):
        return "holds nothing" if any(kind in kinds for kinds in _AROUND.values()) else None
    if not messages.hold(raw):
        return "says something else than its messages"
    is_other = kind not in _AROUND.get(str(raw.get("type")), [kind])
    return f"is a {kind} and holds a {raw['type']}" if is_other else None


_AROUND: dict[str, list[JsonValue]] = {
    "message": ["message_output_item"],
    "function_call": ["tool_call_item", "handoff_call_item", "tool_approval_item"],
    "function_call_output": ["tool_call_output_item", "handoff_output_item"],
}
"""What the SDK calls the items that hold each."""


def _of_the_run(run: Run) -> _Messages:
    parts = [part for seen in seen_messages(run) for part in seen.parts]
    knows_its_past = run.deferred is None or run.prior is not None
    is_whole = knows_its_past and all(call.response is not None for _, call in run.model_calls)
    messages = _Messages(parts, is_whole=is_whole)
    # The words of a handler of errors stand nowhere but in the output.
    messages.texts["assistant"].update(words_of(value_of(run.output)))
    for _, call in run.tool_calls:
        if call.result is not None:
            told = call.result.as_text() if call.result.is_text else value_of(call.result)
            messages.said["answer", str(call.call_id)].append(told)
    return messages


class _Messages:
    """What messages say, as items would."""

    def __init__(self, parts: list[JsonObject], *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self.texts: dict[str, set[str]] = defaultdict(set)
        self.said: dict[tuple[str, str], list[JsonValue]] = defaultdict(list)
        for part in parts:
            what, said = _told_by_part(part)
            self.said[what, _id_of(part, "tool_call_id", "id")].append(said)
            self.texts[what].update(words_of(said))

    def hold(self, item: JsonObject) -> bool:
        """Whether they say what this item says, as far as they tell of it."""
        what, said = _told_by_item(item)
        called = _id_of(item, "call_id", "approval_request_id", "id")
        if item.get("type", "message") == "message":
            return not self._is_whole or self.texts[what].issuperset(words_of(said))
        known = self.said.get((what, called))
        if not known:
            return not self._is_whole or (what == "answer" and ("call", called) in self.said)
        # A call id may come again, and then stands for several.
        return any(same_json(each, said) for each in known)


def _id_of(told: JsonObject, *names: str) -> str:
    return str(next((told[name] for name in names if told.get(name) not in (None, _NO_ID)), None))


_NO_ID = "__fake_id__"
"""What the SDK writes where the provider gave no id."""


def _told_by_part(part: JsonObject) -> tuple[str, JsonValue]:
    match part.get("part_kind"):
        case "tool-call" | "builtin-tool-call":
            return "call", [part.get("tool_name"), part.get("args")]
        case "tool-return" | "builtin-tool-return":
            return "answer", part.get("content")
        case "thinking":
            return "thought", [part.get("content"), part.get("signature")]
    return _SPEAKERS.get(str(part.get("part_kind")), "user"), part.get("content")


_SPEAKERS = {"text": "assistant", "system-prompt": "system"}


def _told_by_item(item: JsonObject) -> tuple[str, JsonValue]:
    kind = str(item.get("type", "message"))
    match kind:
        case "message":
            return str(item.get("role")).replace("developer", "system"), item.get("content")
        case "reasoning":
            pieces = [*objects_in(item.get("summary")), *objects_in(item.get("content"))]
            words = "\n".join(str(piece.get("text", "")) for piece in pieces)
            return "thought", [words, item.get("encrypted_content")]
        case "function_call":
            return "call", [item.get("name"), item.get("arguments")]
        case "custom_tool_call":
            return "call", [item.get("name"), {"input": item.get("input")}]
    rest = {name: value for name, value in item.items() if name not in ("type", "id", "call_id")}
    if kind.endswith(("_output", "_response")):
        return "answer", item.get("output", rest)
    return "call", [kind.removesuffix("_call"), rest]
