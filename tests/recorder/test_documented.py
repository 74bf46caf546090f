"""Every setting, variable and public name stands in docs/recording.md."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import replay_recorder
from replay_recorder.settings import _VARIABLES, Settings

GUIDE = Path("docs/recording.md").read_text()
SETTINGS = [setting.name for setting in fields(Settings)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_is_an_argument_and_is_documented(setting: str):
    variable = f"`{_VARIABLES[setting][0]}`" if setting in _VARIABLES else ""

    assert setting in inspect.signature(replay_recorder.install).parameters
    assert f"| `{setting}` | {variable} |".replace("|  |", "| |") in GUIDE


def test_no_argument_is_unknown_to_the_settings():
    assert set(inspect.signature(replay_recorder.install).parameters) == set(SETTINGS)


CALLED = (
    "record", "recorded_tool", "record_retrieval", "snapshot", "context", "mask", "StatefulAgent", "ToolRecorder",
    "ToolReplayer", "IdempotentTask", "stats",
)  # fmt: skip


@pytest.mark.parametrize("name", CALLED)
def test_what_people_call_is_documented(name: str):
    assert name in replay_recorder.__all__
    assert name in GUIDE
