"""What is to be installed holds all that is imported; tests run with more installed."""

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from replay_web.supervisor.home import PROJECT_ROOT

OURS = {"replay_web", "sessions_app"}
BESIDE = {"replay_recorder", "replay_goldens"}
"""Distributions of their own: the server shares with them how recorded HTTP is answered, and the checks of goldens."""
OF_THE_TEAM = {"agents"}
"""Imported only where the team's registered agent has imported it: the OpenAI Agents SDK in the team's version."""
OPTIONAL = {"obstore"}
"""Installed by those who keep large payloads in a bucket: the extra `s3`."""
INDIRECT = {
    "packaging": "kombu's Redis transport imports it without asking for it",
    "google-re2": "replay_goldens takes it where it is installed",
}


def imported_by_the_product() -> Iterator[str]:
    for folder in OURS:
        for file in (PROJECT_ROOT / folder).rglob("*.py"):
            yield from imported_by(file)


def imported_by(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def locked() -> set[str]:
    lock = (PROJECT_ROOT / "requirements.lock").read_text()
    return {normal(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}


def test_lock_holds_what_the_product_imports():
    distributions = packages_distributions()
    modules = set(imported_by_the_product()) - OURS - BESIDE - OF_THE_TEAM - OPTIONAL - sys.stdlib_module_names
    assert {"django", "pydantic_ai", "time_machine"} <= modules

    needed = {module: list(map(normal, distributions[module])) for module in modules}

    missing = {module for module, names in needed.items() if not set(names) & locked()}
    assert missing == set()


def test_a_runner_has_what_it_imports_and_none_of_the_team_s_versions_pinned():
    """A runner serves no page, no API and no coding agent, and starts no service."""
    written = (PROJECT_ROOT / "requirements-runner.in").read_text()
    named = {name.lower() for name in re.findall(r"^([\w-]+)", written, re.MULTILINE)}
    served = ("web", "api", "mcp")
    rooms = [folder for folder in (PROJECT_ROOT / "sessions_app").iterdir() if folder.name not in served]
    imported = {name for room in rooms for file in room.rglob("*.py") for name in imported_by(file)}
    modules = imported - OURS - BESIDE - OF_THE_TEAM - OPTIONAL - sys.stdlib_module_names
    assert {"django", "pydantic_ai", "time_machine"} <= modules

    distributions = packages_distributions()
    brought = with_needs(named)
    lacking = {module for module in modules if not set(map(normal, distributions[module])) & brought}

    assert lacking == set()
    assert not re.findall(r"^\S+==", written, re.MULTILINE)


def normal(name: str) -> str:
    return name.lower().replace("_", "-")


def with_needs(named: set[str]) -> set[str]:
    """And what these bring along, as far as it is installed here."""
    found, waiting = set(), sorted(named)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            waiting += [
                normal(re.split(r"[^\w.-]", need)[0]) for need in requires(name) or () if "extra ==" not in need
            ]
    return found


def test_lock_holds_what_others_import_without_saying():
    assert set(INDIRECT) <= locked()


def test_lock_names_no_address():
    for name in ("requirements.lock", "requirements-dev.lock"):
        assert "//" not in (PROJECT_ROOT / name).read_text()
