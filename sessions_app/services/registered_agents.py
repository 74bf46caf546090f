"""Whether the agents that the settings register can be loaded where this runs."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from sessions_app.agents.process.code_fence import CodeLimits
from sessions_app.agents.process.code_sandbox import CodeCrashed, LoadChild


def code_limits() -> CodeLimits:
    """How much the team's code may use, as the settings say."""
    return CodeLimits(
        memory_mb=settings.REPLAY_CODE_MEMORY_MB,
        seconds=settings.REPLAY_CODE_SECONDS,
        output_mb=settings.REPLAY_CODE_OUTPUT_MB,
    )


def problems_of_agents() -> Iterator[tuple[str, str | None]]:
    """Each registered name with what keeps its agent from being loaded, None for nothing.

    One process loads them all; after one that ends it, another goes on with the next.
    """
    waiting = list(settings.REPLAY_AGENTS.items())
    while waiting:
        for problem in _loaded([target for _, target in waiting]):
            yield waiting.pop(0)[0], problem


def _loaded(targets: list[str]) -> Iterator[str | None]:
    child = LoadChild(targets[0], code_limits(), settings.REPLAY_AGENT_ENV)
    try:
        yield from child.problems(targets)
    except CodeCrashed as crash:
        yield str(crash)
    finally:
        child.end()


def agent_lines() -> Iterator[str]:
    """For a terminal: each agent with its place, and what is wrong with it."""
    return (agent_line(name, problem) for name, problem in problems_of_agents())


def agent_line(name: str, problem: str | None) -> str:
    said = f"{name}={settings.REPLAY_AGENTS[name]}"
    return f"  {'PROBLEM' if problem else 'ok':8}{said}{': ' + problem if problem else ''}"
