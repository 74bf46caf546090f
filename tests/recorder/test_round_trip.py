"""Every way a run can go, recorded in every way it can be started, replays as reproduced."""

import json
import os
import subprocess
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from tests.recorder.floor import ROOT, floor_python
from tests.recorder.playing import WAYS, last_record
from tests.recorder.replaying import assert_promise_kept, assert_reproduced
from tests.recorder.scenarios import (
    SCENARIOS,
    Play,
    Scenario,
    cut_before_an_answer,
    instructions_of_one_run,
    results_of_bytes,
)

FULL = os.environ.get("TRIAL_SIZE") == "full"
NAMES = [
    f"{scenario}-{way}"
    for scenario, turn in zip(SCENARIOS, cycle(WAYS), strict=False)
    for way in (WAYS if FULL else [turn])
]
"""Beside the oldest library: each scenario in one way, by turns; with `TRIAL_SIZE=full` in every way."""


ENDED_BY_OTHER_CODE = {
    "output_function": "output_function",
    "output_function_crash": "error_outside_loop",
    "output_retries_exhausted": "error_outside_loop",
    "text_output_refused_for_good": "error_outside_loop",
}
"""Scenarios whose outcome the team's own code made behind the last answer, and what the judge says of that."""
REFUSED_ONCE = {"output_tool_retry", "native_output_retry", "output_validator_retry"}
"""Their first output is refused, with which `run_stream` ends: it does not ask again."""


def assert_ends_as_it_must(name: str, record: bytes) -> None:
    scenario, way = name.split("-")
    ends_streamed = way == "run_stream" and scenario in REFUSED_ONCE
    code = "error_outside_loop" if ends_streamed else ENDED_BY_OTHER_CODE.get(scenario)
    assert [reason.code for reason in assert_promise_kept(record).reasons] == ([] if code is None else [code])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_recorded_run_is_replayed_to_its_end(scenario: Scenario, way: str):
    record = last_record(scenario, way)

    assert json.loads(record)["recorder"] == {"version": "0.1.0"}
    assert_ends_as_it_must(f"{scenario}-{way}", record)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [results_of_bytes, instructions_of_one_run, cut_before_an_answer])
def test_what_only_this_library_or_no_agent_of_its_own_repeats_is_reproduced_too(make: Callable[[], Play], way: str):
    assert_reproduced(last_record(Scenario(make), way))


@pytest.fixture(scope="module")
def floor_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs, played and recorded beside the oldest supported library."""
    folder = tmp_path_factory.mktemp("floor")
    command = [str(floor_python()), "-m", "tests.recorder.playing", str(folder), *NAMES]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_run_recorded_beside_the_oldest_library_is_reproduced(name: str, floor_records: Path):
    record = (floor_records / f"{name}.json").read_bytes()

    assert json.loads(record)["agent"]["framework_version"] == "2.62.0"
    assert_ends_as_it_must(name, record)
