"""Answers that say that something was done, where the tool that does it was at hand and was never called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import SENTENCE, plain
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.reading import has_answer, main_models, object_of, own_tools, seen_message
from sessions_app.core.run import AgentCall, ModelCall, OtherCall, Run, ToolCall

_IRREGULAR = {
    "send": "sent", "pay": "paid", "put": "put", "set": "set", "write": "written", "make": "made", "buy": "bought",
    "submit": "submitted", "cancel": "cancel(?:l)?ed", "give": "given", "reset": "reset", "transfer": "transferred",
}  # fmt: skip
_ACTS = re.compile(
    r"(?:activate|archive|block|book|buy|cancel|charge|close|deactivate|delete|deploy|disable|enable|escalate|forward"
    r"|grant|invite|lock|mail|move|notify|order|pay|post|publish|purge|redirect|refund|register|reschedule|reserve"
    r"|reset|restart|revoke|save|schedule|send|ship|submit|subscribe|transfer|unlock|unsubscribe|upload)(?:_|[A-Z])"
)
"""What nobody does by words alone, as one may compare, write or find something."""
_CLAIM = r"(?<!\w)(?:i|we)(?:'ve| have)(?: now| just| already| also| successfully)? (?:{done})(?!\w)"


def unmade_claims(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """By a sentence such as "I have moved your appointment". Not where any call before it did something of the kind,
    and not where an earlier turn or another agent may have done it."""
    if not has_answer(run) or run.prior is not None:
        return
    if any(isinstance(step.call, AgentCall | OtherCall) for step in run.steps):
        return
    called, made = {call.tool_name for _, call in run.tool_calls}, own_tools(run)
    writes = [(step.index, call) for step, call in made if not looks_up(step, call)]
    told = set[str]()
    for step, call in main_models(run):
        for tool in sorted(_offered(call) - called - told):
            said = _claim(tool, _text(call))
            if said and not any(at < step.index and _is_alike(tool, one) for at, one in writes):
                told.add(tool)
                message = f"“{said}” was said, and {tool} was never called"
                yield Anomaly(code="claim_unmade", message=message, steps=(step.index,))


def _offered(call: ModelCall) -> set[str]:
    tools = object_of(call.parameters).get("function_tools")
    names = (tool.get("name") for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()
    return {name for name in names if isinstance(name, str) and _ACTS.match(name)}


def _parts(tool: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", tool)]


def _claim(tool: str, text: str) -> str:
    """The sentence that says so, with a word for the thing."""
    verb, *things = _parts(tool)
    regular = rf"{verb[:-1]}ied" if verb.endswith("y") else rf"{verb.removesuffix('e')}(?:{verb[-1:]})?ed"
    done = _IRREGULAR.get(verb, regular)
    for sentence in SENTENCE.split(text):
        said = plain(sentence)
        if any(thing.removesuffix("s") in said for thing in things) and re.search(_CLAIM.format(done=done), said):
            return sentence.strip()[:_SAID]
    return ""


_SAID = 100


def _is_alike(tool: str, call: ToolCall) -> bool:
    """A tool that does something with the same kind of thing, or does the same."""
    return not {word.removesuffix("s") for word in _parts(tool)}.isdisjoint(
        word.removesuffix("s") for word in _parts(call.tool_name)
    )


def _text(call: ModelCall) -> str:
    parts = seen_message(call.response, step=0).parts_of("text") if call.response else []
    return "\n".join(str(part.get("content")) for part in parts)
