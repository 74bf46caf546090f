"""Which code runs: its commit, and the versions of the libraries that decide how an agent behaves."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from typing import Any

from replay_recorder.writing.json_text import name

COMMIT_VARIABLES = (
    "REPLAY_COMMIT", "GIT_COMMIT", "COMMIT_SHA", "GIT_SHA", "SOURCE_COMMIT", "SOURCE_VERSION", "GITHUB_SHA",
    "CI_COMMIT_SHA", "HEROKU_SLUG_COMMIT", "RENDER_GIT_COMMIT", "RAILWAY_GIT_COMMIT_SHA", "VERCEL_GIT_COMMIT_SHA",
)  # fmt: skip
"""Where builds and hosts put the commit; the first that is set counts."""
_PACKAGES = {
    "pydantic_ai": "pydantic-ai-slim",
    "agents": "openai-agents",
    "openai": "openai",
    "anthropic": "anthropic",
    "google.genai": "google-genai",
    "mistralai": "mistralai",
    "groq": "groq",
    "boto3": "boto3",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "pydantic": "pydantic",
    "httpx": "httpx",
    "httpx2": "httpx2",
}
"""Module name to distribution."""
_GIT_TIMEOUT = 1.0
"""Seconds; `install` waits for it."""


def commit_facts() -> dict[str, Any]:
    """`commit` and `dirty`: from the environment, else from git; empty where neither knows."""
    for variable in COMMIT_VARIABLES:
        if said := os.environ.get(variable, "").strip():
            return {"commit": name(said)}
    commit = _git("rev-parse", "HEAD")
    if not commit:
        return {}
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, **({} if changed is None else {"dirty": bool(changed)})}


def _git(*arguments: str) -> str | None:
    """What git says; None without git, outside a repository, or when it takes too long."""
    try:
        done = subprocess.run(
            # Without optional locks: whoever works in the repository is not to notice.
            ["git", "--no-optional-locks", *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


_known: dict[str, str | None] = {}


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries above that are loaded by now."""
    for module, package in _PACKAGES.items():
        if module in sys.modules and module not in _known:
            _known[module] = _version(package)
    # In one order, whichever was loaded first.
    found = {package: version for module, package in _PACKAGES.items() if (version := _known.get(module)) is not None}
    return {"python": platform.python_version(), **found}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, OSError, KeyError, ValueError):
        return None
