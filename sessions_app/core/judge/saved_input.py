"""Whether the input that a file saves is the prompt of its messages, by which a replay goes."""

from __future__ import annotations

import re

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import parsed
from sessions_app.core.history import nodes
from sessions_app.core.judge.reading import first_requests, is_of_recorder, seen_message
from sessions_app.core.judge.unreadable import is_prompt
from sessions_app.core.payload import JsonValue, canonical_json
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.rewriting import has_prompt_of_code, prompts_before_input
from sessions_app.core.run import OPENAI_ITEMS, SESSION_FILE, SPANS, Run


def saved_input_contradicts(run: Run) -> bool:
    """A run that goes on with answers to open calls has no prompt of its own."""
    if run.source_format == SPANS:
        return _is_elsewhere(run)
    if run.input is None or not run.model_calls:
        return False
    prompts = [part.get("content") for seen in first_requests(run) for part in seen.parts_of("user-prompt")]
    if run.source_format == "native":
        return _may_be_held_against(run) and _is_another_prompt(run, prompts)
    is_saved = run.source_format in (SESSION_FILE, OPENAI_ITEMS)
    return is_saved and not same_json(prompts, [run.input.value]) and bool(prompts or run.deferred is None)


def _is_another_prompt(run: Run, prompts: list[JsonValue]) -> bool:
    """A conversation that a graph was given may hold prompts before its last one, which is the input; the recorder
    counts them."""
    if not prompts:
        return run.is_told_by_others and _is_another_turn(run)
    is_counted = len(prompts) == 1 + prompts_before_input(run)
    return run.input is not None and not (is_counted and same_json(prompts[-1], run.input.value))


def _is_another_turn(run: Run) -> bool:
    """A conversation that ends with the answer of a tool has its prompt among the earlier turns. A graph may have been
    given anything else, such as what somebody decided."""
    earlier = (part for node in nodes(run.prior) for part in seen_message(node.message, step=0).parts_of("user-prompt"))
    last = next(earlier, None)
    if last is None:
        return True
    is_asked = run.input is not None and is_prompt(run.input)
    return is_asked and run.input is not None and not same_json(last.get("content"), run.input.value)


def _may_be_held_against(run: Run) -> bool:
    """Whether nothing but the input is said to have made the prompt: no fork, no code that made another one of it, and
    no part of another library's shape. Our own recorder heard both, so a replay begins with the input and finds where
    the prompt differs. What is no prompt at all is judged by itself, where a replay would begin with it."""
    is_resumed = run.deferred is not None and not run.is_told_by_others
    is_plain = run.origin == "recorded" and not is_resumed and not is_openai_agents(run)
    if not is_plain or run.input is None or is_of_recorder(run) or has_prompt_of_code(run):
        return False
    return run.is_told_by_others or is_prompt(run.input)


def _is_elsewhere(run: Run) -> bool:
    """Of spans the input is the prompt of the first request, or what of a template around it was asked."""
    texts, asked = texts_of_prompt(run), run.input.value if run.input is not None else None
    return isinstance(asked, str) and bool(texts) and asked.strip() not in "\n".join(texts)


def texts_of_prompt(run: Run) -> list[str]:
    """Of the first request."""
    parts = [part for seen in first_requests(run) for part in seen.parts_of("user-prompt")]
    return [text for part in parts for text in _texts(part.get("content"))]


def _texts(content: JsonValue) -> list[str]:
    """A prompt is a text, or a list of texts and files, of which some stand there as texts."""
    each = content if isinstance(content, list) else [content]
    return [text for text in each if isinstance(text, str) and not _is_file(text)]


def _is_file(text: str) -> bool:
    """Whether it is a part that no message can hold, as it is spelled."""
    found = re.fullmatch(r"\[\S+\] (\{.*\})", text, re.DOTALL)
    return found is not None and canonical_json(parsed(found[1])).decode() == found[1]
