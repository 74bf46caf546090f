"""Answers of tools as the model was told them.

A loop of another library may keep an object and send the text of it, or bytes as the text that they spell. It is one
answer in two spellings; what goes into a replay is the one that the request holds. Recorders of ours keep one alone.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import EXCHANGES, Fixture, Run, is_of_library_recorder, main_steps
from sessions_app.core.told_results import told_results


def as_told(run: Run, fixtures: list[Fixture]) -> list[Fixture]:
    if run.source_format not in ("native", EXCHANGES) or is_of_library_recorder(run):
        return fixtures
    told = told_results(main_steps(run), run.final)
    return [_as_told(each, told.get(each.step, {}).get("content")) for each in fixtures]


def _as_told(fixture: Fixture, said: JsonValue) -> Fixture:
    given = fixture.call.result
    if given is None or said is None or not is_spelled_otherwise(given, said):
        return fixture
    return replace(fixture, call=replace(fixture.call, result=Payload.of(said)))


def is_spelled_otherwise(given: Payload, said: JsonValue) -> bool:
    """One is the text of the other."""
    if not (given.is_json or given.is_text):
        return isinstance(said, str) and given.content == said.encode()
    texts = [each for each in (given.value, said) if isinstance(each, str)]
    return len(texts) == 1 and same_json(parsed(given.value), parsed(said))
