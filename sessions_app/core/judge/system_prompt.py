"""Whether the system prompt of the first request is the one that the run tells of.

A replay takes it from that request, so words that nobody gave the agent would be repeated there and called the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sessions_app.core.history import nodes
from sessions_app.core.judge.reading import (
    SeenMessage,
    first_requests,
    is_of_recorder,
    main_models,
    seen_message,
    value_of,
)
from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.run import EXCHANGES, GRAPHS, Run


def instructions_contradict(run: Run) -> bool:
    """Whether the run's instructions are other than those of its first request."""
    said, sent = run.instructions, _sent(run)
    if is_of_recorder(run):
        # Other instructions that a fork was given are no system prompt.
        told = (_put_together(run), sent) if run.origin == "fork" else (_put_together(run),)
        return said is not None and said not in told
    if run.source_format == "native" and is_openai_agents(run):
        return _says_otherwise(run) or _has_unsaid_prompt(run)
    if run.source_format == "native" and run.agent.framework in GRAPHS:
        return _is_told_by_first_request(run) and _says_otherwise(run)
    if said is None or sent is not None:
        is_said = bool(said) or (said == "" and run.source_format == EXCHANGES)
        return is_said and sent != said
    first = first_requests(run)
    prompts = _prompts(first)
    is_whole = bool(first) and run.source_format == EXCHANGES  # the body holds every word that was sent
    return (bool(prompts) or is_whole) and said not in (*prompts, "\n\n".join(prompts), "\n".join(prompts))


def _is_told_by_first_request(run: Run) -> bool:
    """The recorder takes the run's instructions from whatever asked a model first, which may be inside of a tool."""
    return main_models(run)[:1] == run.model_calls[:1]


def _put_together(run: Run) -> str | None:
    """As the recorder of Pydantic AI does: the system prompts of the first request, behind them its instructions."""
    first = next((call.history for _, call in main_models(run)), None)
    if first is None:
        return run.instructions
    sent = [seen_message(node.message, step=0) for node in nodes(first)][::-1]
    newest = next((seen for seen in reversed(sent) if seen.message.get("kind") == "request"), None)
    told = newest.message.get("instructions") if newest is not None else None
    prompts = _prompts(sent)
    return "\n\n".join([*prompts, told] if isinstance(told, str) and told else prompts)


def _sent(run: Run) -> str | None:
    sent = [seen.message.get("instructions") for seen in first_requests(run)]
    return next((text for text in sent if isinstance(text, str)), None)


def _prompts(messages: Iterable[SeenMessage]) -> list[str]:
    return [str(part.get("content")) for seen in messages for part in seen.parts_of("system-prompt")]


# --- recorders of other loops ------------------------------------------------------------------


def _says_otherwise(run: Run) -> bool:
    """A recorder writes an empty text into the run, and none into the request, where an agent has no instructions."""
    newest = first_requests(run)[-1:]
    is_request = any(seen.message.get("kind") == "request" for seen in newest)
    return is_request and run.instructions is not None and run.instructions != (_sent(run) or "")


def _has_unsaid_prompt(run: Run) -> bool:
    """Agents of the OpenAI Agents SDK have instructions; a system prompt beside them can only come from the input."""
    given = run.extra.get("input_items", value_of(run.input))
    return bool(Counter(_prompts(first_requests(run))) - Counter(_prompts_in(given)))


def _prompts_in(given: JsonValue) -> Iterator[str]:
    for row in given if isinstance(given, list) else []:
        if isinstance(row, dict) and row.get("role") in ("system", "developer"):
            content = row.get("content")
            yield "\n".join(map(_text, content if isinstance(content, list) else [content]))


def _text(piece: JsonValue) -> str:
    return str((piece.get("text") if isinstance(piece, dict) else piece) or "")
