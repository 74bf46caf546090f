"""What the recorder does not record is said, with what to do."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata

import pytest

from replay_recorder.guard import FAULTS
from replay_recorder.hooks import hook_frameworks, unrecorded


@pytest.fixture(autouse=True)
def unsaid(monkeypatch):
    monkeypatch.setattr(unrecorded, "_said", set())


@pytest.fixture
def crewai(tmp_path, monkeypatch):
    """A module by the name of a framework that nothing here hooks."""
    (tmp_path / "crewai.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield "crewai"
    sys.modules.pop("crewai", None)


def warned(caplog, word: str) -> list[str]:
    return [message for message in caplog.messages if word in message]


@pytest.mark.parametrize("is_loaded_first", [True, False])
def test_a_framework_that_is_not_recorded_is_named_once(crewai, caplog, is_loaded_first):
    if is_loaded_first:
        importlib.import_module(crewai)
        hook_frameworks()
    hook_frameworks()
    importlib.import_module(crewai)

    (words,) = warned(caplog, "CrewAI")
    assert "nothing records its runs by itself" in words
    assert "@replay_recorder.record" in words
    assert "/v1/traces" in words


def test_nothing_is_said_of_what_is_not_loaded(caplog):
    hook_frameworks()

    assert not warned(caplog, "nothing records")


@pytest.mark.parametrize("installed", ["1.107.10", "2.61.9", "2.9.0"])
def test_an_older_pydantic_ai_is_told_what_is_needed(monkeypatch, caplog, installed):
    before = dict(FAULTS.counts)
    monkeypatch.setattr(metadata, "version", lambda name: installed)

    assert not unrecorded.is_recorded("pydantic-ai-slim")
    assert not unrecorded.is_recorded("pydantic-ai-slim")

    (words,) = warned(caplog, "Pydantic AI")
    assert f"needs pydantic-ai-slim 2.62 or later, and {installed} is installed" in words
    assert before == FAULTS.counts


@pytest.mark.parametrize("installed", ["2.62.0", "2.62.0b1", "2.100", "3.0"])
def test_a_newer_one_is_recorded(monkeypatch, installed):
    monkeypatch.setattr(metadata, "version", lambda name: installed)

    assert unrecorded.is_recorded("pydantic-ai-slim")
