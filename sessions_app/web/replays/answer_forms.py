"""An answer that somebody types: what a tool or the model shall have said at a stop."""

from __future__ import annotations

from typing import Any

from django import forms

from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonObject, JsonValue

LONGEST = 1024 * 1024
_LIMITS = Limits(max_bytes=4 * LONGEST)
_WAYS = (
    ("value", "It answers"),
    ("error", "It fails, and the error is returned to the model"),
    ("crash", "It fails, and the run ends with the error"),
    ("not_found", "Not found"),
)


def _typed(rows: int = 0, css: str = "") -> forms.CharField:
    """As it was typed, white space and all; `rows` makes it a text area."""
    area = forms.Textarea(attrs={"rows": rows, "spellcheck": "false", "class": css})
    return forms.CharField(required=False, strip=False, max_length=LONGEST, widget=area if rows else forms.TextInput)


class ToolAnswer(forms.Form):
    """`answer` after `is_valid`, as `services.forks.answer_by_hand` wants it."""

    way = forms.ChoiceField(choices=_WAYS, initial="value", widget=forms.RadioSelect)
    value = _typed(rows=6, css="mono")
    error = _typed()
    answer: JsonObject

    def clean(self) -> dict[str, Any]:
        typed = super().clean() or {}
        way = typed.get("way")
        if way in ("error", "crash") and not typed.get("error", "").strip():
            self.add_error("error", "Enter the error.")
        elif way == "value" and not typed.get("value", "").strip():
            self.add_error("value", 'Enter the result; for an empty text, enter "".')
        elif way in ("value", "error", "crash", "not_found"):
            self.answer = self._read(way, typed)
        return typed

    def _read(self, way: str, typed: dict[str, Any]) -> JsonObject:
        if way == "not_found":
            return {"not_found": True}
        if way == "value":
            return {"value": _json_or_text(self, "value", typed["value"])}
        return {"error": {"message": typed["error"].strip(), "crashes": way == "crash"}}


class ModelAnswer(forms.Form):
    """Likewise for a model's request: a text, tool calls, or both."""

    text = _typed(rows=4)
    tool_calls = _typed(rows=4, css="mono")
    answer: JsonObject

    def clean(self) -> dict[str, Any]:
        typed = super().clean() or {}
        calls = typed.get("tool_calls", "").strip()
        if not typed.get("text", "").strip() and not calls:
            self.add_error("text", "Write a text, tool calls, or both.")
        said = {"text": typed.get("text") or None, "tool_calls": _json(self, "tool_calls", calls) if calls else []}
        self.answer = {"answer": said}
        return typed


class TwinAnswer(forms.Form):
    """The answer that a recorded call got."""

    run_id = forms.CharField(max_length=512, strip=False)
    step = forms.IntegerField(min_value=1)

    @property
    def answer(self) -> JsonObject:
        return {"twin": dict(self.cleaned_data)}


AnswerForm = ToolAnswer | ModelAnswer | TwinAnswer


def answer_form(kind: str, posted: Any = None, initial: dict[str, str] | None = None) -> AnswerForm:
    """The form for a stop of this kind, filled with what was posted, or at first with a recorded answer."""
    if posted is not None and "run_id" in posted:
        return TwinAnswer(posted)
    return (ModelAnswer if kind == "model" else ToolAnswer)(posted, initial=initial)


def _json_or_text(form: forms.Form, field: str, text: str) -> JsonValue:
    """What reads as JSON is JSON; what only begins like an object, list or string is a mistake, the rest a text."""
    try:
        return load_strict(text.strip().encode(), _LIMITS)
    except (RecordError, UnicodeEncodeError) as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            form.add_error(field, _complaint(error))
        return text


def _json(form: forms.Form, field: str, text: str) -> JsonValue:
    try:
        return load_strict(text.encode(), _LIMITS)
    except (RecordError, UnicodeEncodeError) as error:
        form.add_error(field, _complaint(error))
        return None


def _complaint(error: Exception) -> str:
    words = error.message if isinstance(error, RecordError) else "It holds half of a surrogate pair."
    return words.replace("The document", "It")
