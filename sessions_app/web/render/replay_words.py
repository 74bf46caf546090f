"""What a replay is, in words: its title, and what of it was not simulated."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.replay.isolation import world_in_words
from sessions_app.models import Replay
from sessions_app.models.replays import FORK_MODES, ReplayMode

_TITLES = {
    ReplayMode.RECORDING: "Replay #{number} of",
    ReplayMode.CODE: "Code replay #{number} of",
    ReplayMode.FORK: "Fork #{number} at step {step} of",
    ReplayMode.RESUME: "Resumed from step {step} (#{number}):",
    ReplayMode.SAMPLING: "{samples} samples from step {step} (#{number}) of",
}
"""Before the id of the run."""

_SHORT = {
    ReplayMode.RECORDING: "replay of",
    ReplayMode.CODE: "code replay of",
    ReplayMode.FORK: "fork at step {step} of",
    ReplayMode.RESUME: "resumed from step {step}:",
    ReplayMode.SAMPLING: "{samples} samples from step {step} of",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Badge:
    """Says of anything that runs whether the world is off; amber for what is not simulated."""

    words: str
    icon: str
    is_amber: bool = False


def title_of(replay: Replay) -> str:
    return _filled(_TITLES, replay)


def short_title_of(replay: Replay) -> str:
    """For lists, where the number stands beside it."""
    return _filled(_SHORT, replay)


def _filled(table: dict[ReplayMode, str], replay: Replay) -> str:
    words = table.get(ReplayMode(replay.mode), table[ReplayMode.RECORDING])
    order = replay.order
    return words.format(number=replay.number, step=order.get("at_step") or 1, samples=order.get("samples") or 1)


def is_fork(replay: Replay) -> bool:
    return replay.mode in FORK_MODES


def badges_of(replay: Replay) -> list[Badge]:
    """`world off` stands alone; each thing that is live is named."""
    tools = replay.order.get("tools") or {}
    live = _named(tools, "live", "live tools", "radio")
    if replay.mode == ReplayMode.SAMPLING:
        live.append(Badge(words="live model", icon="radio", is_amber=True))
    code = [Badge(words=f"runs the team's own code: {agent}", icon="code")] if (agent := agent_of(replay)) else []
    return [*code, *(live or [Badge(words="world off", icon="unplug")])]


def _named(tools: dict[str, list[str]], name: str, words: str, icon: str) -> list[Badge]:
    names = tools.get(name) or []
    return [Badge(words=f"{words}: {', '.join(sorted(names))}", icon=icon, is_amber=True)] if names else []


def is_world_off(replay: Replay) -> bool:
    return not any(badge.is_amber for badge in badges_of(replay))


def world_words(replay: Replay) -> str | None:
    """What did not happen, as far as it was measured; None where nothing was."""
    if replay.live_calls is None:
        return None
    is_off, refused = is_world_off(replay), replay.refused_calls or 0
    return world_in_words(replay.facts, is_live=not is_off, refused=refused, claim="world off: " if is_off else "")


def agent_of(replay: Replay) -> str | None:
    """The registered agent whose code runs: named by the order, or by a change of the code."""
    changes = replay.order.get("changes") or []
    changed = [change["value"] for change in changes if change.get("kind") == "agent"]
    agent: str | None = changed[-1] if changed else replay.order.get("agent")
    return agent
