"""What this process loads and the recorder does not record, said once with what to do instead."""

from __future__ import annotations

import re
from importlib import metadata
from types import ModuleType

from replay_recorder.guard import logger
from replay_recorder.lazy import when_imported

NEEDED = {
    "pydantic-ai-slim": ("Pydantic AI", (2, 62)),
    "openai-agents": ("the OpenAI Agents SDK", (0, 8)),
    "langchain-core": ("LangChain", (1, 0)),
}
"""By distribution: what it is called, and the oldest version whose runs are recorded."""

OTHERS = {
    "llama_index.core": "LlamaIndex",
    "google.adk.agents": "Google ADK",
    "strands.agent": "Strands Agents",
    "crewai": "CrewAI",
    "autogen_agentchat": "AutoGen",
    "smolagents": "smolagents",
    "agno.agent": "Agno",
    "haystack": "Haystack",
    "dspy": "DSPy",
    "semantic_kernel": "Semantic Kernel",
}
"""By module: frameworks without a hook of their own here."""

_said: set[str] = set()


def warn_of_other_frameworks() -> None:
    """Of those that are loaded now, and of each that is loaded later."""
    for module in OTHERS:
        when_imported(module, _not_recorded)


def _not_recorded(module: ModuleType) -> None:
    called = OTHERS[module.__name__]
    _say_once(
        f"{called} is loaded, and nothing records its runs by itself. Put @replay_recorder.record on the function that "
        f"starts one: its requests to models become steps. Or send {called}'s OpenTelemetry spans to /v1/traces "
        f"(docs/integrations.md)."
    )


def is_recorded(distribution: str) -> bool:
    """Whether the installed version is new enough; said in words where it is not. Unknown versions are tried."""
    called, oldest = NEEDED[distribution]
    installed = _version(distribution)
    numbers = tuple(int(number) for number in re.findall(r"\d+", installed)[: len(oldest)])
    if not installed or numbers >= oldest:
        return True
    needed = ".".join(map(str, oldest))
    _say_once(
        f"Runs of {called} are not recorded: the recorder needs {distribution} {needed} or later, and {installed} is "
        f"installed. Upgrade it, or send its OpenTelemetry spans to /v1/traces (docs/integrations.md)."
    )
    return False


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _say_once(words: str) -> None:
    if words not in _said:
        _said.add(words)
        logger.warning("%s", words)
