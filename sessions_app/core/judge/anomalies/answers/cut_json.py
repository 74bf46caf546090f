"""Answers that begin as JSON and stop before their end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.reading import (
    http_words,
    own_tools,
    text_of,
    value_of,
)
from sessions_app.core.run import Run, Step, ToolCall


def cut_off_json(run: Run, rules: Rules) -> Iterator[Anomaly]:
    for step, call in own_tools(run):
        if any(is_cut_json(text) for text in answer_texts(step, call)):
            message = f"Truncated JSON in the answer of {call.tool_name}{http_words(step)}"
            yield Anomaly(code="cut_off_json", message=message, steps=(step.index,))


def answer_texts(step: Step, call: ToolCall) -> Iterator[str]:
    payloads = (call.result, step.http.response_body if step.http else None)
    yield from (text for text in map(text_of, payloads) if text)
    value = value_of(call.result)
    if isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, str))


_JSON_START = re.compile(r'\s*(\{\s*("|\Z)|\[\s*(["\[{\d-]|\Z|true|false|null))')


_TOLERANT = json.JSONDecoder(strict=False)


_BEGUN_VALUE = re.compile(r"-?\d*\.?\d*([eE][+-]?)?|t(ru?)?|f(a(ls?)?)?|n(ul?)?|\\?u?[0-9a-fA-F]{0,4}")


def is_cut_json(text: str) -> bool:
    """Whether a text begins as JSON and stops before it is whole; other faults do not count."""
    if not _JSON_START.match(text):
        return False
    try:
        _TOLERANT.decode(text)
    except json.JSONDecodeError as error:
        return _stops_at(error, text.rstrip())
    except (ValueError, RecursionError):
        return False
    return False


def _stops_at(error: json.JSONDecodeError, text: str) -> bool:
    if error.msg.startswith("Unterminated string"):
        return True
    rest = text[error.pos :]
    return len(rest) < 16 and _BEGUN_VALUE.fullmatch(rest) is not None
