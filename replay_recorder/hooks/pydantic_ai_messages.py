"""Pydantic AI's messages as JSON, and which of them are new since the last request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_json

from replay_recorder.hooks.pydantic_ai_held import held
from replay_recorder.redaction import safe_settings
from replay_recorder.writing.json_text import (
    JsonText,
    dumps,
    exact,
    holds_iterator,
    jsonable,
    unmistakable,
    value_of,
    within_limits,
)

_MESSAGE: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)
_PARAMETERS: TypeAdapter[ModelRequestParameters] = TypeAdapter(ModelRequestParameters)
_DEFINITION: TypeAdapter[ToolDefinition] = TypeAdapter(ToolDefinition)
_PROMPT: TypeAdapter[UserPromptPart] = TypeAdapter(UserPromptPart)


def message_text(message: ModelMessage) -> JsonText:
    """The message as the library writes it."""
    if not _waits_to_be_read(message):
        try:
            # Messages bring their own serializer: the adapters write the same, and take longer.
            return JsonText(within_limits(to_json(message, inf_nan_mode="null").decode()))
        except ValueError:
            pass
    return _as_far_as_possible(_MESSAGE, message)


def _waits_to_be_read(message: ModelMessage) -> bool:
    for part in message.parts:
        for value in (getattr(part, "content", None), getattr(part, "metadata", None)):
            if value is not None and not isinstance(value, str) and holds_iterator(value):
                return True
    return False


def parameters_text(parameters: ModelRequestParameters) -> JsonText:
    """Without the secrets of the provider's own tools."""
    text = _text(_PARAMETERS, parameters)
    if not any(getattr(parameters, field, None) for field in _NATIVE):
        return text
    said = json.loads(text)
    # A provider sends parts of these on to a server of the team, as MCP servers get them.
    return JsonText(dumps({**said, **safe_settings({field: said[field] for field in _NATIVE if field in said})}))


_NATIVE = ("native_tools", "builtin_tools")
"""The name of the list in the versions of the library."""


def definition_text(definition: ToolDefinition) -> JsonText:
    return _text(_DEFINITION, definition)


def prompt_value(prompt: Any) -> Any:
    """A run's input: the text, or the list of texts and files as a message would hold it."""
    if prompt is None or isinstance(prompt, str):
        return prompt
    return _content(_text(_PROMPT, UserPromptPart(content=prompt)).encode())


def _text(adapter: TypeAdapter[Any], value: Any) -> JsonText:
    try:
        return JsonText(within_limits(adapter.dump_json(value).decode()))
    except ValueError:
        return _as_far_as_possible(adapter, value)


def _as_far_as_possible(adapter: TypeAdapter[Any], value: Any) -> JsonText:
    """Of what the library cannot write, as half a surrogate pair or an object of the team, what can be kept."""
    return JsonText(dumps(jsonable(adapter.dump_python(value))))


_BEFORE, _BEHIND = '{"tool_name":"-","content":', ',"tool_call_id":"-"'


def answer_value(value: Any) -> JsonText | None:
    """What a tool gave, as a message would hold it, taken at once: the tool may change the object later.

    None, which is "not captured", for what only the agent may read.
    """
    try:
        # Plain JSON needs none of the library's types; anything else is refused here.
        plain = exact(value_of(value))
    except (TypeError, ValueError, RecursionError):
        return None if holds_iterator(value) else _typed_answer(value)
    return _typed_answer(value) if _ODD_KEY in plain else JsonText(plain)


_ODD_KEY = '"null":'
"""The key None as Python's encoder spells it; the library says "None"."""


def _typed_answer(value: Any) -> JsonText:
    said = ToolReturnPart(tool_name="-", content=value, tool_call_id="-")
    try:
        part = within_limits(to_json(said, inf_nan_mode="null").decode())
    except ValueError:
        return JsonText(dumps(jsonable(value)))
    if part.startswith(_BEFORE) and _BEHIND in part:
        return JsonText(part[len(_BEFORE) : part.rindex(_BEHIND)])
    return JsonText(dumps(_content(part.encode())))


def metadata_value(value: Any) -> JsonText:
    """What a tool keeps beside its answer, as a message holds it."""
    if not holds_iterator(value):
        said = ToolReturnPart(tool_name="-", content="-", tool_call_id="-", metadata=value)
        try:
            part = within_limits(to_json(said, inf_nan_mode="null").decode())
            return JsonText(dumps(value_of(json.loads(part)["metadata"])))
        except ValueError:
            pass
    return JsonText(dumps(value_of(jsonable(value))))


def json_value(value: Any) -> JsonText:
    """Any object of the team as JSON: by the library's rules, else by ours."""
    if not holds_iterator(value):
        try:
            return unmistakable(within_limits(to_json(value, inf_nan_mode="strings").decode()))
        except ValueError:
            pass
    return JsonText(dumps(value_of(jsonable(value))))


def _content(part: bytes) -> Any:
    return json.loads(part)["content"]


def has_other_prompt(prompt: Any, messages: Sequence[Any]) -> bool:
    """Whether the first request asks in other words than the run was started with: code in front of it rewrote them."""
    asked = [part.content for part in messages[-1].parts if part.part_kind == "user-prompt"] if messages else []
    return isinstance(prompt, str) and len(asked) == 1 and isinstance(asked[0], str) and asked[0] != prompt


# --- what is new -------------------------------------------------------------------------------


@dataclass(slots=True)
class Known:
    """A message that was written, with the parts that it had then."""

    message: Any
    parts: tuple[Any, ...]
    held: list[Any]

    @classmethod
    def of(cls, message: Any) -> Known:
        return cls(message, tuple(message.parts), list(map(held, contents_of(message))))

    def is_same(self, message: Any) -> bool:
        """Whether this is the message, or the loop's copy of it with its stamps."""
        if message is self.message:
            return True
        parts = getattr(message, "parts", ())
        return len(parts) == len(self.parts) and all(map(is_, parts, self.parts)) and bool(parts)

    def is_unchanged(self) -> bool:
        """False when somebody changed the message in place after it had been written."""
        return self.held == list(map(held, contents_of(self.message)))


def contents_of(message: Any) -> list[Any]:
    """What may be put into a message later."""
    said = [getattr(message, "instructions", None)]
    for part in message.parts:
        said += (getattr(part, "content", None), getattr(part, "args", None))
    return said


def holds_still(message: Any, contents: Sequence[Any]) -> bool:
    """Whether `contents_of` the message are these very objects, or texts that say the same."""
    now = contents_of(message)
    return len(now) == len(contents) and all(map(_is_still, now, contents))


def _is_still(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)


class History:
    """The messages as far as they are written: those of the last request, and its answer."""

    def __init__(self, prior: Sequence[Any]) -> None:
        self.known = [Known.of(message) for message in prior]
        self.is_rewritten_in_place = False
        self._after: int | None = 0
        """The model step whose request and answer stand before `_base`; 0 for the earlier turns."""
        self._base = len(self.known)
        """How many messages stand before those of the request that is under way."""
        self._originals: list[Any] = list(prior)
        """The messages before `_base`, for a quick look."""

    def new_in(self, messages: Sequence[Any]) -> tuple[int | None, list[Any]]:
        """The step that these messages go on from and what they add; no step and all of them when they do not.

        Only identities are compared: writing a history out again at each step would be quadratic.
        """
        if self._goes_on(messages):
            return self._after, list(messages[self._base :])
        self._look_for_changes()
        return None, list(messages)

    def _goes_on(self, messages: Sequence[Any]) -> bool:
        if len(messages) < self._base:
            return False
        if all(map(is_, self._originals, messages)):
            return True
        return all(map(Known.is_same, self.known[: self._base], messages))

    def rewritten(self, after: int | None, new: Sequence[Any]) -> dict[str, Any] | None:
        """Of a history that begins anew what became of the messages before: `made` are the positions of those that were
        not there, without the newest, and `cut` is the number of those that are gone. None for one that goes on."""
        if after is not None or not self.known:
            return None
        there = {id(known.message) for known in self.known} | {tuple(map(id, known.parts)) for known in self.known}
        made = [
            at for at, message in enumerate(new[:-1]) if there.isdisjoint((id(message), tuple(map(id, message.parts))))
        ]
        return {"made": made, "cut": len(self.known) - (len(new[:-1]) - len(made))}

    def put(self, after: int | None, new: Sequence[Any]) -> None:
        """These were written as the request that is under way."""
        if after is None:
            self._base, self._after = 0, None
            self._originals.clear()
        del self.known[self._base :]
        self.known.extend(map(Known.of, new))

    def answered(self, message: Any, *, step: int) -> None:
        """The answer of this step; the next request goes on from here."""
        self.known.append(Known.of(message))
        self._originals.extend([known.message for known in self.known[self._base :]])
        self._after, self._base = step, len(self.known)

    def end(self) -> None:
        self._look_for_changes()

    def _look_for_changes(self) -> None:
        if not all(map(Known.is_unchanged, self.known)):
            self.is_rewritten_in_place = True
