#!/usr/bin/env python3
"""Start here: `python3 manage.py up` runs the product, `python3 manage.py test` its tests."""

import fcntl
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
NEEDED = ("django", "celery", "granian", "mcp", "ninja", "msgspec", "psycopg", "pydantic_ai", "zstandard")
NEEDED_BY_RUNNERS = ("axes", "celery", "django", "msgspec", "psycopg", "pydantic_ai", "redis", "time_machine", "vcr")


def enter_environment(command: str) -> None:
    """Go on inside .venv, which is made from the lock first when it is missing or out of date.

    An environment that brings every package itself, such as the container image, is used as it is. So is that of a
    runner, always: it has the team's own packages, in the team's versions, and .venv has not.
    """
    if command == "runner":
        refuse_to_run_elsewhere()
        return
    inside = Path(sys.prefix) == VENV
    if not inside and command != "test" and all(map(importlib.util.find_spec, NEEDED)):
        return
    lock = ROOT / ("requirements-dev.lock" if command == "test" else "requirements.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # two commands started at once install once
        if not is_installed(lock):
            install(lock)
    if not inside:
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])


def refuse_to_run_elsewhere() -> None:
    missing = [name for name in NEEDED_BY_RUNNERS if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"The environment {sys.prefix} lacks {', '.join(missing)}. A runner stays in the environment that starts "
            "it. Install what it needs beside your own packages: "
            f"{sys.executable} -m pip install -r {ROOT / 'requirements-runner.in'}. "
            f"To run in the server's environment: {VENV}/bin/python manage.py runner"
        )


def is_installed(lock: Path) -> bool:
    """A lock that was installed to the end has its copy in .venv."""
    copy = VENV / lock.name
    return copy.exists() and copy.read_bytes() == lock.read_bytes()


def install(lock: Path) -> None:
    """Make .venv, or bring it up to date. A half-made one, left by an interruption, is made anew."""
    # Not to where a command writes its answers: clients of `mcp` read those.
    print(f"Installing the packages of {lock.name} into .venv (this is done once) ...", file=sys.stderr, flush=True)
    python, half_made = VENV / "bin/python", VENV / "half-made"
    if half_made.exists() or not python.exists() or subprocess.run([python, "-c", "import pip"]).returncode:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    half_made.touch()
    pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    failed = subprocess.run([*pip, "--require-hashes", "--no-deps", "--no-compile", "-r", str(lock)]).returncode
    half_made.unlink()
    if failed:
        sys.exit("The packages could not be installed; pip says why above. Then try again.")
    # requirements-dev.lock holds all of requirements.lock, at the same versions.
    for installed in {lock, lock.with_name("requirements.lock")}:
        (VENV / installed.name).write_bytes(installed.read_bytes())


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is also started by older ones
        sys.exit("Replay needs Python 3.11 or later; this is " + sys.version.split()[0] + ".")
    enter_environment(command=" ".join(sys.argv[1:2]))
    from replay_web.command import main

    main()
