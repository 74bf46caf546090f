"""What a replay plays of a run, and what it only reads.

A replay makes the requests and the calls of the agent's own loop. What ran inside a tool or another agent came with
its answer; tools that code called by itself, retrievals and agents beside the loop are read as they were recorded.
Nothing of it is proven, so it is named wherever a replay says what it showed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from sessions_app.core.run import Run, Step, main_steps

Unplayed = Literal["tools", "agents", "tool", "retrieval", "agent", "lost"]
"""Inside of tools or agents, or a step of that kind beside the loop; `lost` are spans that never came."""
_WORDS: dict[str, tuple[str, str]] = {
    "tools": ("1 step inside of tools", "{} steps inside of tools"),
    "agents": ("1 step inside of agents", "{} steps inside of agents"),
    "tool": ("1 tool call that no model asked for", "{} tool calls that no model asked for"),
    "retrieval": ("1 retrieval step", "{} retrieval steps"),
    "agent": ("1 agent step", "{} agent steps"),
}


def loop_steps(run: Run) -> list[Step]:
    """The requests and the calls of the agent's own loop."""
    return [step for step in main_steps(run) if step.kind in ("model", "tool")]


def unplayed_steps(run: Run) -> list[Step]:
    """Work that is no step of an agent's, such as building a prompt, is shown and not counted."""
    loop = {step.index for step in loop_steps(run)}
    return [step for step in run.steps if step.index not in loop and step.kind != "other"]


def unplayed(run: Run) -> dict[str, int]:
    """How many steps of the run no replay plays, by where they are."""
    main = {step.index for step in main_steps(run)}
    inside: dict[int, str] = {}
    for step in run.steps:
        if step.index not in main and step.parent is not None:
            inside[step.index] = inside.get(step.parent) or f"{run.steps[step.parent - 1].kind}s"
    counts = Counter(inside.get(step.index, step.kind) for step in unplayed_steps(run))
    lost = len(lost_spans(run))
    return {**counts, **({"lost": lost} if lost else {})}


def lost_spans(run: Run) -> list[str]:
    """Ids of spans that others name as the one around them, and that never came: what they told is not known."""
    trace = run.extra.get("trace")
    ids = trace.get("lost_spans") if isinstance(trace, dict) else None
    return [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else []


def unplayed_in_words(counts: Mapping[str, int]) -> str | None:
    """Such as `2 steps inside of tools were not played`; None where everything was."""
    said = [
        one if counts[where] == 1 else more.format(counts[where])
        for where, (one, more) in _WORDS.items()
        if counts.get(where)
    ]
    steps = sum(number for where, number in counts.items() if where in _WORDS)
    not_played = [f"{' and '.join(said)} {'was' if steps == 1 else 'were'} not played"] if said else []
    return "; ".join([*not_played, *_lost_in_words(counts.get("lost", 0))]) or None


def _lost_in_words(number: int) -> list[str]:
    words = "1 span around its steps was lost" if number == 1 else f"{number} spans around its steps were lost"
    return [words] if number else []
