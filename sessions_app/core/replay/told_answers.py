"""Answers of tools as the model was told them.

A loop of another library may keep an object and send the text of it, or bytes as the text that they spell. It is one
answer in two spellings; what goes into a replay is the one that the request holds. Recorders of ours keep one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import EXCHANGES, OPENAI_AGENTS, PYDANTIC_AI, Fixture, Run, main_model_calls


def as_told(run: Run, fixtures: list[Fixture]) -> list[Fixture]:
    if run.source_format not in ("native", EXCHANGES) or run.agent.framework in (PYDANTIC_AI, OPENAI_AGENTS):
        return fixtures
    return [_as_told(each, _told(run, each)) for each in fixtures]


def _told(run: Run, fixture: Fixture) -> Iterator[JsonValue]:
    """What the first request behind the call tells of it."""
    after = next((call.history for step, call in main_model_calls(run) if step.index > fixture.step), run.final)
    newest = after.message.value if after is not None else None
    parts = newest.get("parts") if isinstance(newest, dict) else None
    for part in parts if isinstance(parts, list) else ():
        is_answer = isinstance(part, dict) and part.get("part_kind") == "tool-return"
        if is_answer and fixture.call.call_id is not None and part.get("tool_call_id") == fixture.call.call_id:
            yield part.get("content")


def _as_told(fixture: Fixture, told: Iterator[JsonValue]) -> Fixture:
    given, said = fixture.call.result, next(told, None)
    if given is None or said is None or not is_spelled_otherwise(given, said):
        return fixture
    return replace(fixture, call=replace(fixture.call, result=Payload.of(said)))


def is_spelled_otherwise(given: Payload, said: JsonValue) -> bool:
    """One is the text of the other."""
    if not (given.is_json or given.is_text):
        return isinstance(said, str) and given.content == said.encode()
    texts = [each for each in (given.value, said) if isinstance(each, str)]
    return len(texts) == 1 and same_json(parsed(given.value), parsed(said))
