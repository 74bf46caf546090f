"""What a replay is, in words: its title, and what of it was not simulated."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.judge.reading import TIMES, count
from sessions_app.core.replay import isolation
from sessions_app.models import Replay
from sessions_app.models.replays import FORK_MODES, ReplayMode, ReplayState

_TITLES = {
    ReplayMode.RECORDING: "Replay #{number} of",
    ReplayMode.CODE: "Code replay #{number} of",
    ReplayMode.CODE_AND_TOOLS: "Replay #{number} with code and tools of",
    ReplayMode.LIVE: "Replay #{number} with a live model of",
    ReplayMode.FORK: "Fork #{number} at step {step} of",
    ReplayMode.RESUME: "Resumed from step {step} (#{number}):",
    ReplayMode.SAMPLING: "{samples} samples from step {step} (#{number}) of",
}
"""Before the id of the run."""

_SHORT = {
    ReplayMode.RECORDING: "replay of",
    ReplayMode.CODE: "code replay of",
    ReplayMode.CODE_AND_TOOLS: "replay with code and tools of",
    ReplayMode.LIVE: "replay with a live model of",
    ReplayMode.FORK: "fork at step {step} of",
    ReplayMode.RESUME: "resumed from step {step}:",
    ReplayMode.SAMPLING: "{samples} samples from step {step} of",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Badge:
    """Says of a replay what is real about it, and once it ran what was kept out; amber for what was not."""

    words: str
    icon: str
    is_amber: bool = False


def title_of(replay: Replay) -> str:
    return f"Golden run #{replay.number} of" if replay.is_golden else _filled(_TITLES, replay)


def short_title_of(replay: Replay) -> str:
    """For lists, where the number stands beside it."""
    return "golden run of" if replay.is_golden else _filled(_SHORT, replay)


def _filled(table: dict[ReplayMode, str], replay: Replay) -> str:
    words = table.get(ReplayMode(replay.mode), table[ReplayMode.RECORDING])
    order = replay.order
    return words.format(number=replay.number, step=order.get("at_step") or 1, samples=order.get("samples") or 1)


def is_fork(replay: Replay) -> bool:
    return replay.mode in FORK_MODES


def badges_of(replay: Replay) -> list[Badge]:
    """While it is open, what may go live; once it is over, what did. That the world was off only once that was
    measured."""
    code = [Badge(words=f"runs your code: {agent}", icon="code")] if (agent := agent_of(replay)) else []
    return [*code, *(_live_badges(replay) or _world_badges(replay))]


def _live_badges(replay: Replay) -> list[Badge]:
    words = _went_live(replay) if replay.is_over else _may_go_live(replay)
    return [Badge(words=each, icon="radio", is_amber=True) for each in words]


def _may_go_live(replay: Replay) -> list[str]:
    tools = sorted((replay.order.get("tools") or {}).get("live") or ())
    model = ["live model"] if replay.asks_live_model else []
    return [f"live tools: {', '.join(tools)}", *model] if tools else model


def _went_live(replay: Replay) -> list[str]:
    """A replay that crashed knows how many calls there were, and not always of what."""
    if replay.live_calls is None:
        return []
    ran = {name: times for name, times in (replay.facts.get("live_tools") or {}).items() if times}
    named = ", ".join(f"{name} {TIMES} {times}" for name, times in sorted(ran.items()))
    tools = [f"live tools: {named}"] if ran else []
    others = replay.live_calls - sum(ran.values())
    is_model = bool(replay.facts.get("live_model"))
    asked = f"live model: {count(others, 'request')}" if is_model else count(others, "live call")
    return [*tools, asked] if others else tools


def _world_badges(replay: Replay) -> list[Badge]:
    """As the report says it in full (core/replay/isolation.py)."""
    if isolation.is_own_machine(replay.facts):
        return [Badge(words="on a person's own machine", icon="triangle-alert", is_amber=True)]
    if replay.live_calls is None:
        return []
    if isolation.is_world_off(replay.facts):
        return [Badge(words="isolated", icon="unplug")]
    words = "partly isolated" if isolation.is_fenced(replay.facts) else "audit hook only"
    return [Badge(words=words, icon="triangle-alert", is_amber=True)]


def is_simulated(replay: Replay) -> bool:
    """Whether nothing may go live, and once it is over, nothing did."""
    return not _live_badges(replay)


def world_words(replay: Replay) -> str | None:
    """What did not happen, as far as it was measured; None where nothing was."""
    if replay.live_calls is None and not isolation.is_own_machine(replay.facts):
        return None
    simulated, refused = is_simulated(replay), replay.refused_calls or 0
    claim = "isolated: " if simulated else ""
    return isolation.world_in_words(replay.facts, is_live=not simulated, refused=refused, claim=claim)


def never_started(replay: Replay) -> bool:
    """Whether it was cancelled before a worker took it."""
    return replay.state == ReplayState.CANCELLED and replay.claimed_at is None


def cancelled_words(replay: Replay) -> str:
    """How far it had come, and who cancelled it; `progress_total` is known once it goes through the steps."""
    by = f" by {replay.cancelled_by.get_username()}" if replay.cancelled_by else ""
    if never_started(replay):
        return f"before it started{by}"
    step = min(replay.progress_done + 1, replay.progress_total)
    return f"at step {step} of {replay.progress_total}{by}" if step else f"before its first step{by}"


def agent_of(replay: Replay) -> str | None:
    """The registered agent whose code runs: named by the order, or by a change of the code."""
    changes = replay.order.get("changes") or []
    changed = [change["value"] for change in changes if change.get("kind") == "agent"]
    agent: str | None = changed[-1] if changed else replay.order.get("agent")
    return agent
