"""The form that keeps a run as a golden: proposals to tick, more checks as JSON, what runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django import forms

from sessions_app.core.fork.order import MAX_SAMPLES
from sessions_app.core.goldens.proposals import Proposal
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.web.goldens.evidence import Cell

MODES = (
    ("code_and_tools", "Your code and tools"),
    ("code", "Your code, its tools frozen"),
    ("recording", "From the recording"),
    ("live", "Recorded run, live model"),
)
ON_DIFFERENCE = (("play_on", "continue with the recorded answer"), ("stop", "stop there"))
SAMPLES = 5
"""So often a live model is asked, unless somebody says otherwise."""
_READ = ("n", "usd", "more_than", "less_than", "equals")
"""Members that are read as JSON where they are JSON."""
_UNTYPABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that an input of one line loses, such as a line break."""


class GoldenForm(forms.Form):
    """What is not a check."""

    name = forms.CharField(max_length=200)
    description = forms.CharField(max_length=2000, required=False)
    expected_outcome = forms.CharField(max_length=2000, required=False)
    mode = forms.ChoiceField(choices=MODES)
    agent = forms.CharField(max_length=100, required=False)
    on_difference = forms.ChoiceField(choices=ON_DIFFERENCE, required=False)
    samples = forms.IntegerField(min_value=1, max_value=MAX_SAMPLES, initial=SAMPLES, required=False)
    live_model = forms.CharField(max_length=60, required=False)
    at_least = forms.IntegerField(min_value=1, max_value=MAX_SAMPLES, required=False)
    more_checks = forms.CharField(max_length=20_000, required=False)

    def clean_more_checks(self) -> list[JsonValue]:
        """A list of checks, or one check a line."""
        text = self.cleaned_data["more_checks"].strip()
        lines = [text] if text.startswith("[") else [line for line in text.splitlines() if line.strip()]
        found: list[JsonValue] = []
        for number, line in enumerate(lines, start=1):
            try:
                read = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise forms.ValidationError(f"Line {number} is not valid JSON: {error}.") from None
            found += read if isinstance(read, list) else [read]
        return found

    def replay(self) -> JsonObject:
        """As the API takes it."""
        kept = self.cleaned_data
        if kept["mode"] == "live":
            wanted = {"samples": kept["samples"] or SAMPLES, "live_model": kept["live_model"] or None}
            return {"mode": "live", **wanted, "at_least": kept["at_least"]}
        if kept["mode"] not in ("code", "code_and_tools"):
            return {"mode": kept["mode"]}
        return {
            "mode": kept["mode"],
            "agent": kept["agent"] or None,
            "on_difference": kept["on_difference"] or "stop",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A proposal as the form shows it, and as it was typed."""

    number: int
    proposal: Proposal
    is_ticked: bool
    typed: str
    error: str = ""
    judged: Cell | None = None
    """What the run itself gives; None where the check cannot be read."""

    @property
    def is_of_one_call(self) -> bool:
        """Folded, for there are many: what a tool is called with or answers, as long as it is not ticked."""
        return self.proposal.check["kind"] in ("arguments", "result") and not self.is_ticked and not self.error

    @property
    def check(self) -> JsonObject:
        member = self.proposal.member
        return self.proposal.check if member is None else {**self.proposal.check, member: _value(member, self.typed)}


def rows_of(proposals: list[Proposal], posted: Any = None, *, ticked_at_first: Iterable[int] = ()) -> list[Row]:
    """`posted` is the form's data."""
    ticked = set(posted.getlist("check")) if posted else set(map(str, ticked_at_first))
    return [
        Row(
            number=number,
            proposal=proposal,
            is_ticked=str(number) in ticked,
            typed=(posted or {}).get(f"value_{number}", _spelled(proposal)),
        )
        for number, proposal in enumerate(proposals)
    ]


def ticked(rows: list[Row]) -> Iterator[Row]:
    return (row for row in rows if row.is_ticked)


def _spelled(proposal: Proposal) -> str:
    """So that `_value` reads it as it was recorded."""
    member, value = proposal.member, proposal.value
    if member is None or not proposal.has_value:
        return ""
    is_read_otherwise = member in _READ and (_value(member, str(value)) != value or _UNTYPABLE.search(str(value)))
    if isinstance(value, str) and not is_read_otherwise:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _UNTYPABLE.search(text) else text


def _value(member: str, typed: str) -> JsonValue:
    """Numbers and JSON as what they spell; everything else is a text."""
    if member not in _READ:
        return typed
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed
