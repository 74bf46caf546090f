"""What is typed on a command line, as orders of replays and forks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.core.management import CommandError

from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import NOT_JSON, load_strict
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.models import Run

_OPENING = ("{", "[", '"')
_BARE_JSON = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null|NaN|-?Infinity")
"""`NaN` is refused with the reason; it would otherwise be taken for a text."""


def run_called(run_id: str, project: str | None) -> Run:
    """The run of this id; without a project that of the first one that has it."""
    found = Run.objects.select_related("project").filter(run_id=run_id).order_by("project_id")
    run = (found if project is None else found.filter(project__slug=project)).first()
    if run is None:
        where = f" in {project}" if project else ""
        raise CommandError(f"There is no run {run_id!r}{where}.", returncode=2)
    return run


def typed_json(text: str, option: str) -> JsonValue:
    try:
        return load_strict(typed_text(text, option).encode())
    except RecordError as error:
        words = error.message.removeprefix(NOT_JSON)
        raise CommandError(f"{option} must be JSON: {words}", returncode=2) from None


def typed_text(text: str, option: str) -> str:
    """Bytes that are no UTF-8 come from a terminal as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandError(f"{option} must be UTF-8.", returncode=2) from None
    return text


def json_or_text(text: str, option: str) -> JsonValue:
    """What a tool answers. What begins like JSON has to be JSON: a text in its place would be another answer."""
    is_json = text[:1] in _OPENING or _BARE_JSON.fullmatch(text)
    return _meant_as_json(text, option) if is_json else typed_text(text, option)


def model_answer(text: str, option: str) -> JsonValue:
    """What a model answers: `{"text", "tool_calls"}` or a text. A bare number is a text."""
    return _meant_as_json(text, option) if text[:1] in _OPENING else typed_text(text, option)


def _meant_as_json(text: str, option: str) -> JsonValue:
    try:
        return typed_json(text, option)
    except CommandError as error:
        hint = f"Correct it. A text that begins with {text[0]} must be written as a JSON string, in double quotes."
        raise CommandError(f"{error} {hint}", returncode=2) from None


def typed_expectation(text: str | None) -> JsonValue:
    """An object is a check, all else words for people."""
    if text is None:
        return None
    return typed_json(text, "--expect") if text.lstrip().startswith("{") else typed_text(text, "--expect")


def tool_result(text: str) -> JsonObject:
    """`2=[]`."""
    step, sign, value = text.partition("=")
    if not sign:
        raise CommandError("--tool-result is written as STEP=JSON.", returncode=2)
    return {"kind": "tool_result", "step": step.strip(), "value": typed_json(value, "--tool-result")}


def denial(text: str) -> JsonObject:
    """`2`, or `2=Not today.`."""
    step, sign, words = text.partition("=")
    change = {"kind": "approval", "step": step.strip(), "value": "denied"}
    return {**change, "message": words} if sign else change


def rules(conditions: Sequence[str], answers: Sequence[str]) -> list[JsonObject]:
    """Each condition with the answer that was typed for it."""
    if len(conditions) != len(answers):
        raise CommandError("Each --rule needs one --answer, and each --answer one --rule.", returncode=2)
    pairs = zip(conditions, answers, strict=True)
    return [{"kind": "rule", "when": when, "answer": model_answer(answer, "--answer")} for when, answer in pairs]


def breakpoints(texts: Sequence[str]) -> list[JsonObject]:
    """`tool:cancel_order`, `step:4`, `when:args.order_id = "x"`."""
    return [_breakpoint(text) for text in texts]


def _breakpoint(text: str) -> JsonObject:
    name, sign, value = text.partition(":")
    if not sign or name not in ("tool", "step", "when"):
        raise CommandError("--break is written as tool:NAME, step:NUMBER or when:CONDITION.", returncode=2)
    return {name: value.strip()}


def live_tools(names: Sequence[str]) -> JsonObject | None:
    """`--live TOOL`, as orders name these tools."""
    return {"live": list(names)} if names else None


def typed_answer(kind: str, text: str) -> JsonObject:
    """What somebody types for a stop of this kind, as services.forks.answer_by_hand takes it."""
    return _for_model(text) if kind == "model" else _for_tool(text)


def _for_model(text: str) -> JsonObject:
    if not text:
        raise CommandError("Type the answer after e, as in: e One moment, please.")
    if _is_for_tools(text):
        words = "A model answers with a text or with tool calls"
        raise CommandError(f'{words}. If these words are its text, type e {{"text": "..."}}.')
    return {"answer": model_answer(text, "The answer")}


def _for_tool(text: str) -> JsonObject:
    if not text:
        raise CommandError('Type the answer after e, as in: e []. An empty text is typed as e "".')
    if not _is_for_tools(text):
        return {"value": json_or_text(text, "The answer")}
    word, _, rest = text.partition(" ")
    if word == "error:":
        return {"error": _failure(rest.strip())}
    return {"not_found": True} if word == "not" else {"twin": _twin(rest.strip())}


def _is_for_tools(text: str) -> bool:
    """Whether it is one of the ways in which only a tool can be answered."""
    word = text.partition(" ")[0]
    return text == "not found" or word in ("error:", "like")


def _failure(words: str) -> str:
    if not words:
        raise CommandError("Type what the error says after error:, as in: e error: timed out.")
    return typed_text(words, "The error")


def _twin(place: str) -> JsonObject:
    run_id, _, step = place.rpartition("#")
    if not run_id or not (step.isdecimal() and len(step) < 10):
        words = "Name the recorded call by its run and step, as in: e like r_8821#4"
        raise CommandError(f'{words}. A text that begins with "like" goes in double quotes.')
    return {"run_id": typed_text(run_id, "The run"), "step": int(step)}
