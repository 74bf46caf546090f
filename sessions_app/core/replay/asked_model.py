"""Which model the team's code asks, and with which settings: part of a request as its messages are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json
from sessions_app.core.replay.matching import Mismatch, Tally
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.replay.rewriting import sent_otherwise
from sessions_app.core.run import ModelCall, Step

_WRITTEN_WHOLE = frozenset({"temperature", "top_p", "seed"})
"""A recording that holds these, be it as null, holds every setting; others hold those that their producer knows of."""
_TAKEN_OUT = re.compile(r"\[[a-z][a-z_]{0,31}:[0-9a-f]{8}\]|\[redacted\]")
_HEADERS = frozenset({"extra_headers", "headers", "http_headers", "default_headers"})
"""Recordings hold their names alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedModel:
    """What one request is sent to, and with."""

    name: str | None
    """The id of the model; None where the code leaves it to whoever starts the run."""
    settings: JsonObject
    sent_otherwise: frozenset[str] = frozenset()
    """How hooks made other messages of the loop's (`rewriting.SENT_OTHERWISE`)."""

    def as_recorded(self, call: ModelCall) -> ModelCall:
        """The recorded call, asking for this; what says the same stays as it was written."""
        recorded = call.settings.value if call.settings else None
        is_same = not isinstance(recorded, dict) or not any(_other_settings(recorded, self.settings, Tally()))
        keeps_name = self.name is None or call.model is None or _is_same_model(call.model, self.name)
        return replace(
            call,
            model=call.model if keeps_name else self.name,
            settings=call.settings if is_same else Payload.of_json(self.settings),
        )


def asked_in(step: Step, call: ModelCall) -> AskedModel:
    """What a recorder saw."""
    value = call.settings.value if call.settings else None
    settings = value if isinstance(value, dict) else {}
    return AskedModel(name=call.model or None, settings=settings, sent_otherwise=sent_otherwise(step))


def first_other(planned: PlannedAnswer, asked: AskedModel, tally: Tally) -> Mismatch | None:
    """Where the code asks another model, or with other settings, than was recorded; what cannot be compared is tallied
    under `model` and `settings`. A hook that sends other messages than the loop's, and did not then, comes first."""
    new = sorted(asked.sent_otherwise - planned.sent_otherwise) if planned.sent_otherwise is not None else []
    if new:
        return Mismatch(path=new[0], recorded=None, rebuilt=True)
    if planned.model is None or asked.name is None:
        tally.note_missing("model")
    elif not _is_same_model(planned.model, asked.name):
        return Mismatch(path="model", recorded=planned.model, rebuilt=asked.name)
    if not isinstance(planned.settings, dict):
        tally.note_missing("settings")
        return None
    return next(_other_settings(planned.settings, asked.settings, tally), None)


def _is_same_model(recorded: str, asked: str) -> bool:
    """Some producers write the provider in front: `openai:gpt-4o`, `openai/gpt-4o`."""
    longer, shorter = sorted((recorded, asked), key=len, reverse=True)
    return longer == shorter or longer.endswith((f":{shorter}", f"/{shorter}"))


def _other_settings(recorded: JsonObject, asked: JsonObject, tally: Tally) -> Iterator[Mismatch]:
    is_whole = recorded.keys() >= _WRITTEN_WHOLE
    for name in [*recorded, *(name for name in asked if name not in recorded)]:
        left, right = recorded.get(name), asked.get(name)
        tally.compared += 1
        if same_json(left, right):
            continue
        if (name not in recorded and not is_whole) or _is_hidden(name, left, right):
            tally.note_missing(f"settings.{name}")
        else:
            yield Mismatch(path=f"settings.{name}", recorded=left, rebuilt=right)


def _is_hidden(name: str, recorded: JsonValue, asked: JsonValue) -> bool:
    """Whether both sides say it, and what the recording says was taken out of it."""
    if recorded is None or asked is None:
        return False
    return name in _HEADERS or _TAKEN_OUT.search(compact_json(recorded).decode()) is not None
