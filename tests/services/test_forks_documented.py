"""docs/forks.md names every change, answer, source and root, and its examples are what the server takes."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from sessions_app.core.fork.changes import _READERS, read_changes
from sessions_app.core.fork.conditions import ROOTS, read_condition
from sessions_app.core.fork.expectations import _READERS as CHECKS
from sessions_app.core.fork.expectations import read_expectation
from sessions_app.core.run import StepSource
from sessions_app.management.commands import fork, replay, resume

GUIDE = Path("docs/forks.md").read_text()


def section(title: str) -> str:
    return GUIDE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def examples(title: str) -> list[Any]:
    """The JSON that stands between backticks."""
    return [json.loads(text) for text in re.findall(r"`([{\"].*?)`", section(title))]


@pytest.mark.parametrize("kind", _READERS)
def test_a_change_is_documented_by_an_example_that_is_taken(kind: str):
    found = [each for each in examples("Changes") if isinstance(each, dict) and each.get("kind") == kind]

    assert f"| `{kind}` |" in GUIDE
    assert found
    assert len(read_changes(found)) == len(found)


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_is_documented_by_an_example_that_is_taken(check: str):
    [found] = [each for each in examples("What a fork is") if isinstance(each, dict) and check in each]

    assert read_expectation(found).check is not None


def test_the_conditions_of_the_guide_are_taken():
    lines = re.search(r"```conditions\n(.*?)```", GUIDE, re.DOTALL)

    assert lines is not None
    for line in lines[1].splitlines():
        assert read_condition(line, root="result").comparisons


def test_every_root_and_every_source_is_documented():
    rows = re.findall(r"^\| (`.*?) \|", section("Conditions"), re.MULTILINE)

    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(ROOTS)
    assert set(re.findall(r"^\| `(\w+)` \|", section("Where answers come from"), re.MULTILINE)) == set(
        get_args(StepSource)
    )


def test_every_option_of_the_commands_is_documented():
    rows = re.findall(r"^\| (`--.*?) \|", section("On the command line"), re.MULTILINE)

    assert set(re.findall(r"--[a-z-]+", " ".join(rows))) == options()


def options() -> set[str]:
    """Without those that every command of Django has."""
    known = {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}
    parsers = [module.Command().create_parser("manage.py", "x") for module in (fork, replay, resume)]
    names = {name for parser in parsers for action in parser._actions for name in action.option_strings}
    return {name for name in names if name.startswith("--")} - known - {"--help", "--skip-checks"}


@pytest.mark.django_db
def test_no_documented_address_is_missing(client):
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    described = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    written = re.findall(r"^    (GET|POST) +(\S+)", section("Over the API"), re.MULTILINE)

    assert written
    assert {f"{method} {path}" for method, path in written} <= described
