"""Every way a run can go, recorded in every way it can be started, replays as reproduced."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.floor import ROOT, floor_python
from tests.recorder.playing import WAYS, last_record
from tests.recorder.replaying import assert_reproduced
from tests.recorder.scenarios import SCENARIOS, Play, Scenario, instructions_of_one_run, results_of_bytes

NAMES = [f"{scenario}-{way}" for scenario in SCENARIOS for way in WAYS]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_recorded_run_is_replayable_and_reproduced(scenario: Scenario, way: str):
    record = last_record(scenario, way)

    assert judge(parse_native(record)).verdict == "replayable"
    assert json.loads(record)["recorder"] == {"version": "0.1.0"}
    assert_reproduced(record)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [results_of_bytes, instructions_of_one_run])
def test_what_only_this_library_or_no_agent_of_its_own_repeats_is_reproduced_too(make: Callable[[], Play], way: str):
    assert_reproduced(last_record(Scenario(make), way))


@pytest.fixture(scope="module")
def floor_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs, played and recorded beside the oldest supported library."""
    folder = tmp_path_factory.mktemp("floor")
    command = [str(floor_python()), "-m", "tests.recorder.playing", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_run_recorded_beside_the_oldest_library_is_reproduced(name: str, floor_records: Path):
    record = (floor_records / f"{name}.json").read_bytes()

    assert json.loads(record)["agent"]["framework_version"] == "2.62.0"
    assert_reproduced(record)
