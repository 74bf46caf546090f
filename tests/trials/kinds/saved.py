"""Kinds of mutants of what short scripts save: session files, message dumps and items.

They say most things once, so that a changed answer of a tool is another run and no contradiction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.trials.mutants import SAVED_KINDS, Expected, Kind, Place
from tests.trials.value_changes import CHANGES, in_written

Document = Any
Made = Iterator[tuple[str, Document, Expected]]
Maker = Callable[["SavedReader"], Made]
ORDER = "order of keys"
SPELLING = "spelling of a number"


class SavedReader:
    """A copy of a saved document; what it holds can be changed in place."""

    def __init__(self, document: Document) -> None:
        self.document = copy.deepcopy(document)

    @property
    def is_items(self) -> bool:
        return isinstance(self.document, dict) and "items" in self.document

    @property
    def is_session_file(self) -> bool:
        return isinstance(self.document, dict) and "session_id" in self.document and not self.is_items

    @property
    def messages(self) -> list[Any]:
        if isinstance(self.document, list):
            return self.document
        rows: list[Any] = self.document["items" if self.is_items else "messages"]
        return rows

    @property
    def fields(self) -> dict[str, Any]:
        """Beside the messages."""
        return self.document if isinstance(self.document, dict) else {}

    @property
    def output_key(self) -> str | None:
        return next((key for key in ("final_output", "output") if self.fields.get(key)), None)

    @property
    def input_key(self) -> str | None:
        return next((key for key in ("user_input", "input") if isinstance(self.fields.get(key), str)), None)

    def parts(self) -> Iterator[dict[str, Any]]:
        for message in self.messages:
            yield from [message["raw"]] if self.is_items else message["parts"]

    def is_earlier(self, part: dict[str, Any]) -> bool:
        """Of a turn before the run: what its messages say is given, and nothing of it is made anew."""
        for message in self.messages if not self.is_items else []:
            if any(part is each for each in message["parts"]):
                return bool(message.get("run_id") != self.messages[-1].get("run_id"))
        return False

    def is_last_output(self, part: dict[str, Any]) -> bool:
        """The framework's own word for an output that was taken."""
        return part.get("content") == "Final result processed."

    def _of(self, *kinds: str) -> list[dict[str, Any]]:
        return [
            part for part in self.parts() if (part.get("kind") or part.get("part_kind") or part.get("type")) in kinds
        ]

    @property
    def calls(self) -> list[dict[str, Any]]:
        return self._of("tool-call", "function_call")

    @property
    def returns(self) -> list[dict[str, Any]]:
        return self._of("tool-return", "function_call_output")

    @property
    def texts(self) -> list[dict[str, Any]]:
        """Parts of answers that hold a text, each with `text` or `content`."""
        if self.is_items:
            return [content for part in self._of("message") for content in part["content"]]
        return self._of("text")

    @property
    def listed(self) -> list[dict[str, Any]]:
        """The list of calls beside the messages of a session file."""
        return self.fields.get("tool_calls") or []


def content_key(part: dict[str, Any]) -> str:
    return next(key for key in ("output", "content", "text") if key in part)


def arguments_key(part: dict[str, Any]) -> str:
    return "arguments" if "arguments" in part else "args"


def _reading(make: Maker) -> Callable[[Document], Made]:
    return lambda document: make(SavedReader(document))


def kind(name: str) -> Callable[[Maker], Maker]:
    def put(make: Maker) -> Maker:
        SAVED_KINDS.append(Kind(f"saved: {name}", _reading(make)))
        return make

    return put


def changed(reader: SavedReader, change: Callable[[SavedReader], Any]) -> Document:
    other = SavedReader(reader.document)
    change(other)
    return other.document


def edit(where: str, number: int, **fields: Any) -> Callable[[SavedReader], None]:
    """Other fields of one of its calls, returns or listed calls."""

    def change(other: SavedReader) -> None:
        getattr(other, where)[number].update(fields)

    return change


def without(where: str, number: int) -> Callable[[SavedReader], None]:
    def change(other: SavedReader) -> None:
        del getattr(other, where)[number]

    return change


def longer_field(key: str) -> Callable[[SavedReader], None]:
    def change(other: SavedReader) -> None:
        _longer(other.fields, key)

    return change


def _longer(holder: dict[str, Any], key: str) -> None:
    holder[key] = f"{holder[key]}X"


# --- answers and arguments -----------------------------------------------------------------------

ELSEWHERE = Place()
"""Which step it is depends on the format."""


def _answers(name: str) -> Maker:
    def make(reader: SavedReader) -> Made:
        for number, part in enumerate(reader.returns):
            key = content_key(part)
            is_plain = part.get("outcome", "success") == "success" and not part.get("retry")
            is_plain = is_plain and part.get("part_kind") != "retry-prompt" and not reader.is_last_output(part)
            for path, new in CHANGES[name](part[key]):
                if reader.is_items and not isinstance(new, str):
                    continue

                def change(other: SavedReader, number: int = number, key: str = key, new: Any = new) -> None:
                    other.returns[number][key] = new

                by: Any = "comparison" if is_plain else "undecided"
                yield f"answer {number}: {path}", changed(reader, change), Expected(by=by, compared=ELSEWHERE)

    return make


def _arguments(name: str, *, listed: bool, message: bool) -> Maker:
    def make(reader: SavedReader) -> Made:
        for number, part in enumerate(reader.calls):
            key = arguments_key(part)
            if not isinstance(part[key], dict) or (listed and number >= len(reader.listed)):
                continue
            for path, new in CHANGES[name](part[key]):
                if not isinstance(new, dict):
                    continue

                def change(other: SavedReader, number: int = number, key: str = key, new: Any = new) -> None:
                    if message:
                        other.calls[number][key] = new
                    if listed:
                        other.listed[number]["args"] = copy.deepcopy(new)

                contradicts = listed != message and bool(reader.listed)
                by: Any = "judge" if contradicts else "comparison"
                if name == SPELLING and part["tool_name"] == "final_result" and not contradicts:
                    by = "anybody"  # it may have become the one that the saved output has
                expected = Expected(by=by, compared=ELSEWHERE, is_comparable=message)
                if name == ORDER:
                    expected = Expected(by="undecided", is_comparable=False)
                yield f"call {number}: {path}", changed(reader, change), expected

    return make


for _name in CHANGES:
    kind(f"answer of a tool, {_name}")(_answers(_name))
    kind(f"arguments, {_name}, in the message")(_arguments(_name, listed=False, message=True))
    kind(f"arguments, {_name}, in the list of calls")(_arguments(_name, listed=True, message=False))
    kind(f"arguments, {_name}, in both")(_arguments(_name, listed=True, message=True))


@kind("arguments as a text")
def _text_arguments(reader: SavedReader) -> Made:
    for number, part in enumerate(reader.calls):
        key = arguments_key(part)
        if isinstance(part[key], str):
            for path, new in in_written(CHANGES["text"], part[key]):

                def change(other: SavedReader, number: int = number, key: str = key, new: Any = new) -> None:
                    other.calls[number][key] = new

                by: Any = "judge" if reader.listed else "comparison"
                yield f"call {number}: {path}", changed(reader, change), Expected(by=by, compared=ELSEWHERE)


@kind("list of calls, one left out")
def _listed_gone(reader: SavedReader) -> Made:
    for number, _ in enumerate(reader.listed):
        expected = Expected(by="judge", is_comparable=False)
        if len(reader.listed) == 1:
            expected = Expected(by="undecided", is_comparable=False)  # an empty list says nothing
        yield f"call {number}", changed(reader, without("listed", number)), expected


@kind("list of calls, one added")
def _listed_added(reader: SavedReader) -> Made:
    if reader.listed:
        entry = {"tool": "one_more", "args": {}}
        yield (
            "at the end",
            changed(reader, lambda other: other.listed.append(entry)),
            Expected(by="judge", is_comparable=False),
        )


@kind("list of calls, another tool")
def _listed_name(reader: SavedReader) -> Made:
    for number, _ in enumerate(reader.listed):
        change = edit("listed", number, tool="renamed")
        yield f"call {number}", changed(reader, change), Expected(by="judge", is_comparable=False)


# --- names and ids -------------------------------------------------------------------------------


@kind("tool name, in the call")
def _call_name(reader: SavedReader) -> Made:
    for number, part in enumerate(reader.calls):
        key = "name" if "name" in part else "tool_name"
        is_said_again = reader.listed or any(key in found for found in reader.returns)
        by: Any = "replay" if is_said_again else "comparison"
        if reader.is_earlier(part) or not any(_id(found) == _id(part) for found in reader.returns):
            by = "undecided"
        change = edit("calls", number, **{key: "renamed"})
        yield f"call {number}", changed(reader, change), Expected(by=by, compared=ELSEWHERE)


@kind("tool name, in the answer")
def _answer_name(reader: SavedReader) -> Made:
    for number, part in enumerate(reader.returns):
        if "tool_name" in part:
            change = edit("returns", number, tool_name="renamed")
            by: Any = "undecided" if reader.is_earlier(part) else "replay"
            yield f"answer {number}", changed(reader, change), Expected(by=by, is_comparable=False)


def _id(part: dict[str, Any]) -> Any:
    return part.get("call_id") or part.get("tool_call_id")


@kind("call id, in the call")
def _call_id(reader: SavedReader) -> Made:
    yield from _one_id(reader, "calls")


@kind("call id, in the answer")
def _answer_id(reader: SavedReader) -> Made:
    yield from _one_id(reader, "returns")


def _one_id(reader: SavedReader, where: str) -> Made:
    for number, part in enumerate(getattr(reader, where)):
        key = "call_id" if "call_id" in part else "tool_call_id"
        others = reader.returns if where == "calls" else reader.calls
        if part.get(key) and not reader.is_earlier(part) and any(_id(other) == _id(part) for other in others):
            change = edit(where, number, **{key: "other-id"})
            yield f"{where} {number}", changed(reader, change), Expected(by="replay", is_comparable=False)


@kind("answers of two calls, swapped")
def _swapped(reader: SavedReader) -> Made:
    """A run in which the tools said each other's answer: whole, and another one."""
    for number, (one, other) in enumerate(zip(reader.returns, reader.returns[1:], strict=False)):
        key = content_key(one)
        if one[key] == other.get(key) or {one.get("outcome", "success"), other.get("outcome", "success")} != {
            "success"
        }:
            continue

        def change(mutant: SavedReader, number: int = number, key: str = key) -> None:
            left, right = mutant.returns[number], mutant.returns[number + 1]
            left[key], right[key] = right[key], left[key]

        yield (
            f"answers {number} and {number + 1}",
            changed(reader, change),
            Expected(by="comparison", compared=ELSEWHERE),
        )


# --- which messages there are --------------------------------------------------------------------


def _has_calls(message: Any, reader: SavedReader) -> bool:
    parts = [message["raw"]] if reader.is_items else message["parts"]
    return any(
        (part.get("kind") or part.get("part_kind") or part.get("type")) in ("tool-call", "function_call")
        for part in parts
    )


def _is_turn_end(reader: SavedReader, count: int) -> bool:
    """A run of its own ends there."""
    last = reader.messages[count - 1]
    is_answer = last.get("type") in ("ModelResponse", "MessageOutputItem") or last.get("kind") == "response"
    return is_answer and not _has_calls(last, reader)


@kind("cut short, outcome kept")
def _cut(reader: SavedReader) -> Made:
    for count in range(1, len(reader.messages)):
        if _is_turn_end(reader, count) and not reader.output_key:
            continue
        yield (
            f"after {count}",
            changed(reader, _cut_behind(count)),
            _cut_expected(),
        )


@kind("cut short, as such")
def _cut_clean(reader: SavedReader) -> Made:
    if reader.output_key is None:
        return
    for count in range(1, len(reader.messages)):

        def change(other: SavedReader, count: int = count) -> None:
            del other.messages[count:]
            other.fields.pop(str(reader.output_key))
            if other.listed:
                other.fields["tool_calls"] = other.listed[: len(other.calls)]

        yield f"after {count}", changed(reader, change), _cut_expected()


def _cut_behind(count: int) -> Callable[[SavedReader], None]:
    def change(other: SavedReader) -> None:
        del other.messages[count:]

    return change


def _cut_expected() -> Expected:
    return Expected(by="judge", compared=Place(), verdicts=frozenset({"replayable_to_step", "cold"}))


def _is_the_input(reader: SavedReader) -> bool:
    """Whether the first message says the prompt and no more, which the file says beside the messages too."""
    said = [(part.get("kind"), part.get("content")) for part in reader.messages[0]["parts"]]
    return reader.input_key is not None and said == [("user-prompt", reader.fields[reader.input_key])]


@kind("message dropped")
def _dropped(reader: SavedReader) -> Made:
    for number in range(len(reader.messages) - 1):
        if not reader.is_session_file and number == 0:
            continue  # nothing but the messages says what was asked
        change = without("messages", number)
        if number == 0 and _is_the_input(reader):
            yield "message 0", changed(reader, change), Expected(by="nobody", compared=None)
            continue
        parts = [] if reader.is_items else reader.messages[number]["parts"]
        is_given = any(reader.is_earlier(part) for part in parts) or (reader.is_items and not reader.calls)
        by: Any = "undecided" if is_given else "replay"
        yield f"message {number}", changed(reader, change), Expected(by=by, compared=Place())


def _said_twice(number: int) -> Callable[[SavedReader], None]:
    def change(other: SavedReader) -> None:
        other.messages.insert(number, copy.deepcopy(other.messages[number]))

    return change


@kind("message said twice")
def _doubled(reader: SavedReader) -> Made:
    for number in range(len(reader.messages)):
        has_calls = _has_calls(reader.messages[number], reader)
        is_answer = bool(reader.returns) and number > 0 and _has_calls(reader.messages[number - 1], reader)
        parts = [] if reader.is_items else reader.messages[number]["parts"]
        if (has_calls or is_answer) and not any(reader.is_earlier(part) for part in parts):
            change = _said_twice(number)
            yield f"message {number}", changed(reader, change), Expected(by="replay", compared=Place())


# --- what stands around them ---------------------------------------------------------------------


@kind("output changed")
def _output(reader: SavedReader) -> Made:
    key = reader.output_key
    if key and isinstance(reader.fields[key], str):
        change = longer_field(key)
        yield (
            key,
            changed(reader, change),
            Expected(by="replay", place=Place(paths=("output",)), compared=Place(paths=("output",))),
        )


@kind("output left out")
def _output_gone(reader: SavedReader) -> Made:
    key = reader.output_key
    if key:
        # The last answer says the same, so that it may be taken from there.
        yield key, changed(reader, lambda other: other.fields.pop(key)), Expected(by="anybody", is_comparable=False)


@kind("last text")
def _last_text(reader: SavedReader) -> Made:
    if reader.texts and _is_turn_end(reader, len(reader.messages)):
        key = content_key(reader.texts[-1])
        if reader.output_key:
            expected = Expected(by="replay", place=Place(paths=("output",)), compared=Place())
        else:
            expected = Expected(by="comparison", compared=Place())
        yield "text", changed(reader, lambda other: _longer(other.texts[-1], key)), expected


@kind("last text and output")
def _both_texts(reader: SavedReader) -> Made:
    key = reader.output_key
    if key and reader.texts and reader.texts[-1][content_key(reader.texts[-1])] == reader.fields[key]:

        def change(other: SavedReader) -> None:
            _longer(other.texts[-1], content_key(other.texts[-1]))
            _longer(other.fields, str(key))

        yield "both", changed(reader, change), Expected(by="comparison", compared=Place())


@kind("input alone")
def _input(reader: SavedReader) -> Made:
    key = reader.input_key
    if key and reader.is_session_file:
        expected = Expected(by="replay", compared=Place())
        yield key, changed(reader, longer_field(key)), expected


@kind("prompt alone")
def _prompt(reader: SavedReader) -> Made:
    prompts = [part for part in reader.parts() if part.get("kind") == "user-prompt"]
    if prompts and reader.is_session_file and isinstance(prompts[0]["content"], str):

        def change(other: SavedReader) -> None:
            _longer(next(part for part in other.parts() if part.get("kind") == "user-prompt"), "content")

        yield "prompt", changed(reader, change), Expected(by="replay", compared=Place())


@kind("instructions")
def _instructions(reader: SavedReader) -> Made:
    if reader.fields.get("instructions"):
        change = longer_field("instructions")
        yield "run", changed(reader, change), Expected(by="comparison", compared=Place())


@kind("model")
def _model(reader: SavedReader) -> Made:
    if reader.fields.get("model"):
        yield (
            "run",
            changed(reader, longer_field("model")),
            Expected(by="comparison", compared=Place()),
        )


@kind("times")
def _times(reader: SavedReader) -> Made:
    if reader.is_session_file:
        new = {"timestamp": "2020-01-01T00:00:00Z", "duration_ms": 1.5}
        yield "run", changed(reader, lambda other: other.fields.update(new)), Expected(by="nobody", compared=None)


@kind("fields that nobody knows")
def _unknown(reader: SavedReader) -> Made:
    if reader.fields:
        new = {"x-pod": {"n": [1, 1.0]}}
        yield "run", changed(reader, lambda other: other.fields.update(new)), Expected(by="nobody", is_comparable=False)


@kind("nothing")
def _nothing(reader: SavedReader) -> Made:
    yield "nothing", reader.document, Expected(by="nobody", compared=None)


@kind("no instructions, as the script writes them")
def _no_instructions(reader: SavedReader) -> Made:
    """An empty text; the other run had some."""
    if reader.is_session_file:
        expected = Expected(by="comparison", is_comparable=False)
        yield "run", changed(reader, lambda copy: copy.fields.update(instructions="")), expected
