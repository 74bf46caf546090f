"""What a record in our own format says, for changing it: which message tells of which call, and where it is."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]
ANSWERS = {"tool-return", "retry-prompt"}


@dataclass(frozen=True)
class Told:
    """Where a later request tells the model what a tool answered."""

    step: int | None
    """Index of the model step; None when only the messages at the end tell it."""
    part: Json
    path: str
    """From the list of all messages of that request."""


@dataclass(frozen=True)
class Asked:
    """The call as the model wrote it."""

    step: int
    part: Json
    path: str


class RecordReader:
    """A record of its own copy, so that a mutant can be made of what is found in it."""

    def __init__(self, record: Json) -> None:
        self.record = copy.deepcopy(record)
        self.steps: list[Json] = self.record["steps"]
        self._share_copies()

    def _share_copies(self) -> None:
        """A request that says its whole past again holds copies of what was said: to change one is to change all."""
        said: dict[str, Json] = {}
        for index, step in enumerate(self.steps, start=1):
            request = step.get("request") or {}
            is_whole = index > 1 and "after" not in request
            for message in [*request.get("messages", []), step.get("response")]:
                parts = message.get("parts") if isinstance(message, dict) else None
                for at, part in enumerate(parts or []):
                    name = json.dumps(part)
                    if is_whole and name in said and message is not step.get("response"):
                        parts[at] = said[name]
                    said.setdefault(name, part)

    @property
    def last(self) -> int:
        return len(self.steps)

    def step(self, index: int) -> Json:
        return self.steps[index - 1]

    @cached_property
    def models(self) -> list[int]:
        """Indexes of the model steps of the run itself, not of what its tools did."""
        return [i for i in self._own() if self.step(i)["kind"] == "model"]

    @cached_property
    def tools(self) -> list[int]:
        return [i for i in self._own() if self.step(i)["kind"] == "tool"]

    def _own(self) -> Iterator[int]:
        for index, step in enumerate(self.steps, start=1):
            parent = step.get("parent")
            if parent is None or self.step(parent)["kind"] == "model":
                yield index

    def has_inner_steps(self, index: int) -> bool:
        return any(step.get("parent") == index and index not in self.models for step in self.steps)

    # --- messages

    def told_again(self, index: int) -> int | None:
        """The model step behind this one, where its request says the whole past once more."""
        behind = next((each for each in self.models if each > index), None)
        is_whole = behind is not None and "after" not in self.step(behind).get("request", {"after": 0})
        return behind if is_whole else None

    def messages(self, index: int) -> list[Json]:
        """All messages that went into a model step."""
        return self._whole(self.step(index).get("request"))

    @property
    def final(self) -> list[Json]:
        return self._whole(self.record.get("final"))

    def _whole(self, history: Json | None) -> list[Json]:
        if history is None:
            return []
        before = history.get("after")
        if before is None:
            start: list[Json] = []
        elif before == 0:
            start = list(self.record.get("prior") or [])
        else:
            answer = self.step(before).get("response")
            start = [*self.messages(before), *([answer] if answer else [])]
        return [*start, *history["messages"]]

    def new_messages(self, index: int) -> Iterator[tuple[str, Json]]:
        """Messages that this model step brought, each with its path."""
        history = self.step(index).get("request")
        if history is None:
            return
        first = len(self.messages(index)) - len(history["messages"])
        for offset, message in enumerate(history["messages"]):
            yield f"messages[{first + offset}]", message

    def response_parts(self, index: int) -> Iterator[tuple[str, Json]]:
        response = self.step(index).get("response")
        if isinstance(response, dict):
            for position, part in enumerate(response.get("parts", [])):
                yield f"response.parts[{position}]", part

    # --- calls

    def asked(self, index: int) -> Asked | None:
        """The call of a tool step, in the answer of the model before it."""
        call_id = self.step(index).get("call_id")
        for model in reversed([each for each in self.models if each < index]):
            for path, part in self.response_parts(model):
                if part.get("part_kind") == "tool-call" and part.get("tool_call_id") == call_id:
                    return Asked(model, part, path)
        return None

    def told(self, index: int) -> Told | None:
        """Where the answer of a tool step is told first."""
        call_id = self.step(index).get("call_id")
        for model in [each for each in self.models if each > index]:
            found = self._told_in(call_id, self.messages(model), len(self.step(model)["request"]["messages"]))
            if found:
                return Told(model, *found)
        found = self._told_in(call_id, self.final, len((self.record.get("final") or {}).get("messages", [])))
        return Told(None, *found) if found else None

    def _told_in(self, call_id: Any, messages: list[Json], new: int) -> tuple[Json, str] | None:
        for at in range(len(messages) - new, len(messages)):
            for position, part in enumerate(messages[at].get("parts", [])):
                if part.get("part_kind") in ANSWERS and part.get("tool_call_id") == call_id:
                    return part, f"messages[{at}].parts[{position}]"
        return None

    # --- changing what steps there are

    def without_step(self, index: int) -> None:
        """Nothing may refer to it any more."""
        del self.steps[index - 1]
        self._renumber(lambda old: None if old == index else old - (old > index))

    def with_copy_of(self, index: int) -> None:
        """Once more, right behind itself."""
        self.steps.insert(index, copy.deepcopy(self.steps[index - 1]))
        self._renumber(lambda old: old + (old > index))

    def with_attempt_at(self, index: int) -> None:
        """A request that failed, right before the model step that makes it again."""
        known = ("kind", "name", "agent", "model", "provider", "request", "parameters", "tools", "settings")
        attempt = {key: copy.deepcopy(value) for key, value in self.step(index).items() if key in known}
        attempt["error"] = {"type": "APIStatusError", "message": "Too many requests."}
        self.steps.insert(index - 1, attempt)
        self._renumber(lambda old: old + (old >= index))

    def cut_behind(self, count: int) -> None:
        """Keep that many steps."""
        del self.steps[count:]
        self.record.pop("final", None)

    def detach_history_from(self, index: int) -> None:
        """What went on from this model step begins where that step began, with its messages written out."""
        step = self.step(index)
        for history in self.histories():
            if history.get("after") == index:
                history["messages"] = [*step["request"]["messages"], step["response"], *history["messages"]]
                if "after" in step["request"]:
                    history["after"] = step["request"]["after"]
                else:
                    del history["after"]

    def histories(self) -> list[Json]:
        found = [step.get("request") for step in self.steps] + [self.record.get("final")]
        return [history for history in found if history]

    def _renumber(self, new: Any) -> None:
        for holder, key in self._references():
            if holder.get(key):
                holder[key] = new(holder[key])
                if holder[key] is None:
                    del holder[key]

    def _references(self) -> Iterator[tuple[Json, str]]:
        for step in self.steps:
            yield step, "parent"
            yield step, "retry_of"
        for history in self.histories():
            yield history, "after"
