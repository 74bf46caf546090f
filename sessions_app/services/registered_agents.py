"""Whether the agents that the settings register can be loaded where this runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from django.conf import settings

from sessions_app.agents.process.code_fence import CodeLimits
from sessions_app.agents.process.code_sandbox import CodeCrashed, LoadChild
from sessions_app.core.payload import JsonObject
from sessions_app.core.redaction import Redactor


def code_limits() -> CodeLimits:
    """How much the team's code may use, as the settings say."""
    return CodeLimits(
        memory_mb=settings.REPLAY_CODE_MEMORY_MB,
        seconds=settings.REPLAY_CODE_SECONDS,
        output_mb=settings.REPLAY_CODE_OUTPUT_MB,
    )


def problems_of_agents() -> Iterator[tuple[str, str | None]]:
    """Each registered name with what keeps its agent from being loaded, None for nothing.

    One process loads them all; after one that ends it, another goes on with the next. What the team's code raised goes
    into logs: secrets in it are redacted, by the rules that every project has.
    """
    redactor = Redactor(secrets.token_bytes(32))
    waiting = list(settings.REPLAY_AGENTS.items())
    while waiting:
        for loaded in _loaded([target for _, target in waiting]):
            yield waiting.pop(0)[0], loaded["problem"] and redactor.redact_text(loaded["problem"])


def ignores_state(name: str) -> bool:
    """Whether the agent says that it makes nothing of a recorded state. One that cannot be loaded here, as on a machine
    without the team's code, says nothing."""
    return next(_loaded([settings.REPLAY_AGENTS[name]]))["reads_state"] is False


def _loaded(targets: list[str]) -> Iterator[JsonObject]:
    child = LoadChild(targets[0], code_limits(), settings.REPLAY_AGENT_ENV)
    try:
        yield from child.loaded(targets)
    except CodeCrashed as crash:
        yield {"problem": str(crash), "reads_state": None}
    finally:
        child.end()


def agent_lines() -> Iterator[str]:
    """For a terminal: each agent with its place, and what is wrong with it."""
    return (agent_line(name, problem) for name, problem in problems_of_agents())


def agent_line(name: str, problem: str | None) -> str:
    said = f"{name}={settings.REPLAY_AGENTS[name]}"
    return f"  {'PROBLEM' if problem else 'ok':8}{said}{': ' + problem if problem else ''}"
