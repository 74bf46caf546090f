"""pytest: `--golden-agent` says which agent exported goldens run with."""

from __future__ import annotations

import os

import pytest

from replay_goldens.playing import AGENT_VARIABLE, ExportedGolden, play


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-agent",
        metavar="MODULE:NAME",
        help="the agent that goldens run with; by default GOLDEN_AGENT, else the one that each golden names",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Into the environment, where tests that load events themselves find it too."""
    named = config.getoption("--golden-agent")
    if named:
        os.environ[AGENT_VARIABLE] = str(named)


def assert_holds(golden: ExportedGolden) -> None:
    """Fails with every check and what was seen; a golden in quarantine is an expected failure."""
    played = play(golden)
    if golden.quarantine is not None and not played.passed:
        pytest.xfail(f"in quarantine: {golden.quarantine}")
    assert played.passed, f"{golden.name}\n{played}"
