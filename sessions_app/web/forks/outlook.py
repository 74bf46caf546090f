"""What a fork can count on after its change: recorded tool answers, the tools of the run, and who may answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_step
from sessions_app.core.run import ToolCall, ToolKind, is_answered_by_tool
from sessions_app.mapping.pieces import step_texts
from sessions_app.models import Run
from sessions_app.queries.code_places import why_not_forked
from sessions_app.queries.steps import StoredOrGone
from sessions_app.services.fork_checks import Parent
from sessions_app.services.replays import registered_agents

TOOLS = 100
"""Tools that the page names."""
_KINDS: tuple[ToolKind, ...] = ("read", "write")


@dataclass(frozen=True, kw_only=True, slots=True)
class LaterCalls:
    """The tool calls after a step that a fork may ask for again, and the steps of those without a recorded answer."""

    total: int
    missing: tuple[int, ...]

    @property
    def recorded(self) -> int:
        return self.total - len(self.missing)


def later_calls(parent: Parent, step: int) -> LaterCalls:
    """Calls of the agent's own loop; what the framework answers itself needs no recording."""
    later = [row for row in parent.row.steps[step:] if row.kind == "tool" and row.index in parent.main]
    bare = [row for row in later if row.result_key is None]
    texts = step_texts(parent.row.content, bare)
    missing = [row.index for row, text in zip(bare, texts, strict=True) if _needs_answer(row.index, text)]
    return LaterCalls(total=len(later) - len(bare) + len(missing), missing=tuple(missing))


def _needs_answer(index: int, text: bytes) -> bool:
    call = read_step(Fields(text), index, StoredOrGone({})).call
    return isinstance(call, ToolCall) and is_answered_by_tool(call)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRow:
    """A tool that the run called."""

    name: str
    kind: ToolKind
    calls: int


def tools_of(run: Run) -> list[ToolRow]:
    """By name. The kind is what the recorder was told; most recordings do not say it."""
    names: Counter[str] = Counter()
    kinds: dict[str, ToolKind] = {}
    calls = [row for row in run.steps if row.kind == "tool"]
    counts = Counter(row.name for row in calls)
    rows = list({row.name: row for row in reversed(calls)}.values())[: 2 * TOOLS]
    for row, text in zip(rows, step_texts(run.content, rows), strict=True):
        step = read_step(Fields(text), row.index, StoredOrGone({}))
        if isinstance(step.call, ToolCall):
            names[step.call.tool_name] += counts[row.name]
            kinds.setdefault(step.call.tool_name, _kind(step.extra.get("tool_kind")))
    return [ToolRow(name=name, kind=kinds[name], calls=names[name]) for name in sorted(names)[:TOOLS]]


def _kind(said: object) -> ToolKind:
    return next((kind for kind in _KINDS if kind == said), "unknown")


def offered_agents(run: Run) -> dict[str, Any]:
    """The registered agents that may fork this run, and what keeps all of them from it."""
    refusal = why_not_forked(run)
    agents = [] if refusal else registered_agents()
    return {"agents": agents, "code_refusal": refusal}


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Who may answer after the change, and whether it is allowed here."""

    name: str
    words: str
    allowed: bool
    is_live: bool = False


def sources(agents: list[str], *, is_sampling: bool, has_live_model: bool) -> list[Source]:
    """In the order in which they are asked. In a sampling the recordings answer for tools alone."""
    whose, by_hand = ("request", "the fork stops and asks; you write the answer")
    if is_sampling:
        whose, by_hand = ("tool call", "the answers in this form; a sample that stops is counted separately")
    return [
        Source(name="recorded", words=f"the same {whose} as in this run", allowed=True),
        Source(
            name="borrowed", words=f"the same {whose}, answered in another recorded run of the project", allowed=True
        ),
        Source(name="by hand", words=by_hand, allowed=True),
        Source(name="rule", words="a rule of this form answers the model's request", allowed=True),
        _own_code(agents, is_sampling=is_sampling),
        _live_model(is_sampling=is_sampling, is_there=has_live_model),
    ]


def _own_code(agents: list[str], *, is_sampling: bool) -> Source:
    if agents and is_sampling:
        return Source(name="own code", words="off: a sampling runs the rebuilt agent", allowed=False)
    off = "off: no agent registered on this server can replay the run"
    words = "only where you choose it as the version of the agent" if agents else off
    return Source(name="own code", words=words, allowed=bool(agents))


def _live_model(*, is_sampling: bool, is_there: bool) -> Source:
    if is_sampling:
        return Source(name="live", words="called for all other model answers", allowed=True, is_live=True)
    if not is_there:
        return Source(name="live", words="off: no live model can be asked", allowed=False)
    return Source(name="live", words="off unless you tick it for this fork", allowed=False)
