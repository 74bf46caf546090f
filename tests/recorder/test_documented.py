"""Every setting, variable and public name stands in docs/recording.md."""

import argparse
import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import replay_recorder
from replay_recorder.replaying.command import add_to
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


OWN_MACHINE = Path("docs/own-machine.md").read_text()


def test_every_option_of_a_replay_is_documented():
    commands = argparse.ArgumentParser().add_subparsers()
    add_to(commands)
    options = {option for action in commands.choices["replay"]._actions for option in action.option_strings}

    assert {option for option in options - {"-h", "--help"} if f"`{option}" not in OWN_MACHINE} == set()
    assert "--agent shop:agent" in OWN_MACHINE


@pytest.mark.parametrize("name", ["replay_model", "frozen_tools", "RequestDiffers", "NoAnswerRecorded"])
def test_what_tests_call_is_documented(name: str):
    assert name in replay_recorder.__all__
    assert name in OWN_MACHINE
