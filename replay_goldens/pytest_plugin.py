"""pytest: `golden_agent` is the agent that exported goldens run with, and `golden_runs` plays one."""

from __future__ import annotations

import os

import pytest

from replay_goldens.playing import ExportedGolden, play


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-agent",
        metavar="MODULE:NAME",
        help="the agent that goldens run with; by default GOLDEN_AGENT, else the one that each golden names",
    )


@pytest.fixture(scope="session")
def golden_agent(request: pytest.FixtureRequest) -> str | None:
    """`module:attribute`; None where each golden names its own."""
    named = request.config.getoption("--golden-agent") or os.environ.get("GOLDEN_AGENT")
    return str(named) if named else None


def assert_holds(golden: ExportedGolden, agent: str | None) -> None:
    """Fails with every check and what was seen; a golden in quarantine is an expected failure."""
    played = play(golden, agent=agent)
    if golden.quarantine is not None and not played.passed:
        pytest.xfail(f"in quarantine: {golden.quarantine}")
    assert played.passed, f"{golden.name}\n{played}"
