"""The commit of a team's own code, as it is when a replay runs it. Nothing of that code is imported to find out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

VARIABLE = "REPLAY_COMMIT"
"""Says it where there is no repository, as in an image; the recorder reads the same one."""
_TIMEOUT = 2.0


def commit_of(target: str, environment: Mapping[str, str]) -> str | None:
    """Of the module in `package.module:attribute`. `environment` is what the team declared for its code.

    None where neither that nor git knows: a file that git does not track is of no commit.
    """
    if said := environment.get(VARIABLE, "").strip():
        return said[:200]
    file = _file_of(target.partition(":")[0], _folders(environment))
    if file is None or _git(file, "ls-files", "--error-unmatch", file.name) is None:
        return None
    commit = _git(file, "rev-parse", "HEAD")
    is_changed = bool(_git(file, "status", "--porcelain", "--untracked-files=no"))
    return f"{commit}, with uncommitted changes" if commit and is_changed else commit


def _folders(environment: Mapping[str, str]) -> list[str]:
    return [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *sys.path]


def _file_of(module: str, folders: list[str]) -> Path | None:
    """Only the topmost package is looked up: any other would have to be imported for it."""
    package, *inner = module.split(".")
    try:
        spec = PathFinder.find_spec(package, folders)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = [Path(each).joinpath(*inner) for each in spec.submodule_search_locations or ()] if inner else []
    files = [each for place in places for each in (place.with_suffix(".py"), place / "__init__.py")]
    files += [Path(spec.origin)] if spec.origin and not inner else []
    return next((each.resolve() for each in files if each.is_file()), None)


def _git(file: Path, *arguments: str) -> str | None:
    """What git says in the file's folder; None without git, outside of a repository, or when it takes too long."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments],
            cwd=file.parent,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
