"""Whether what a run's own span gives back is the model's last answer, or what code made beside it."""

from __future__ import annotations

import re

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.provider_messages import last_words
from sessions_app.core.spans.reading import ChatMessage, Reading

_STRANDS = "strands-agents"
_STOP_EVENT = re.compile(
    r"StopEvent\(result=AgentOutput\(response=ChatMessage\([^[]*\[TextBlock\([^=]*='text', text=['\"](.*)", re.S
)


def is_answer(answer: ChatMessage, root: Reading) -> bool:
    """The answer itself, or what a framework is known to make of an answer and of nothing else: the messages of a
    LangGraph state, Strands' lines, LlamaIndex's event."""
    said, text, lines = last_words(root.output, "assistant"), answer.words(), answer.words("\n")
    if said in (text, lines) or (root.framework == _STRANDS and said == f"{lines}\n"):
        return True
    return _is_stop_event(said, text) or _is_same_object(said, text)


def _is_stop_event(said: JsonValue, text: str) -> bool:
    """As it is printed and, by its instrumentation, cut."""
    printed = _STOP_EVENT.match(said) if isinstance(said, str) else None
    if printed is None:
        return False
    spelled, (begun, mark, _) = repr(text)[1:-1], printed[1].rpartition("...")
    return printed[1].startswith((f"{spelled}')", f'{spelled}")')) or bool(mark and begun and spelled.startswith(begun))


def _is_same_object(said: JsonValue, text: str) -> bool:
    """An object that the answer spells, read or spelled again."""
    one, other = parsed(said), parsed(text)
    return isinstance(one, dict | list) and same_json(one, other)
