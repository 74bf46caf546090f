"""Frameworks and HTTP clients that the recorder knows. Each hook is imported only when its framework is."""

from __future__ import annotations

from types import ModuleType

from replay_recorder.hooks.unrecorded import is_recorded, warn_of_other_frameworks
from replay_recorder.lazy import when_imported


def hook_frameworks() -> None:
    """Record every run of every framework that this process loads, now or later."""
    when_imported("pydantic_ai.agent", _pydantic_ai)
    when_imported("agents.run", _openai_agents)
    when_imported("langchain_core.callbacks.manager", _langchain)
    warn_of_other_frameworks()


def hook_clients() -> None:
    """Take the raw HTTP of every client that this process loads, now or later."""
    from replay_recorder.raw_http.tee import tee_clients

    tee_clients()


def _pydantic_ai(module: ModuleType) -> None:
    if is_recorded("pydantic-ai-slim"):
        from replay_recorder.hooks import pydantic_ai

        pydantic_ai.patch(module)


def _openai_agents(module: ModuleType) -> None:
    if is_recorded("openai-agents"):
        from replay_recorder.hooks import openai_agents

        openai_agents.patch(module)


def _langchain(module: ModuleType) -> None:
    if is_recorded("langchain-core"):
        from replay_recorder.hooks import langchain

        langchain.patch(module)
