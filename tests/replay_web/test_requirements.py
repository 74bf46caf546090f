"""The lock of the product holds all that the product imports; tests run with more installed."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from replay_web.supervisor.home import PROJECT_ROOT

OURS = {"replay_web", "sessions_app"}
RECORDER = {"replay_recorder"}
"""Of this project, and alone: the server shares with it how recorded HTTP is answered."""
INDIRECT = {"packaging": "kombu's Redis transport imports it without asking for it"}


def imported_by_the_product() -> Iterator[str]:
    for folder in OURS:
        for file in (PROJECT_ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.Import):
                    yield from (alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.split(".")[0]


def locked() -> set[str]:
    lock = (PROJECT_ROOT / "requirements.lock").read_text()
    return {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}


def test_lock_holds_what_the_product_imports():
    distributions = packages_distributions()
    modules = set(imported_by_the_product()) - OURS - RECORDER - sys.stdlib_module_names
    assert {"django", "pydantic_ai", "time_machine"} <= modules

    needed = {module: [d.lower().replace("_", "-") for d in distributions[module]] for module in modules}

    missing = {module for module, names in needed.items() if not set(names) & locked()}
    assert missing == set()


def test_lock_holds_what_others_import_without_saying():
    assert set(INDIRECT) <= locked()


def test_lock_names_no_address():
    for name in ("requirements.lock", "requirements-dev.lock"):
        assert "//" not in (PROJECT_ROOT / name).read_text()
