"""Agents that go rarer ways, recorded and replayed from the recording alone: what is promised at ingest is kept."""

import json
from collections.abc import Callable

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import recorded
from tests.recorder.rare_agents import JUDGED, REPRODUCED, bytes_in_metadata, denied_while_it_runs, retry_from_outside
from tests.recorder.replaying import assert_reproduced, replayed, verdict_of
from tests.recorder.scenarios import Play


@pytest.mark.parametrize("way", ["run", "run_stream_events"])
@pytest.mark.parametrize("make", REPRODUCED, ids=lambda make: make.__name__)
def test_a_rare_agent_is_reproduced(make: Callable[[], Play], way: str):
    record = recorded(make(), way)[-1]

    assert judge(parse_native(record)).verdict == "replayable"
    assert_reproduced(record)


@pytest.mark.parametrize("make", JUDGED, ids=lambda make: make.__name__)
def test_what_cannot_be_recorded_whole_is_judged_beforehand(make: Callable[[], Play]):
    record = recorded(make(), "run")[-1]
    step, code = JUDGED[make]

    verdict, (result, _) = judge(parse_native(record)), replayed(record)

    assert (verdict.step, verdict.reasons[0].code) == (step, code)
    assert result.verdict in ("unknown_from_step", "fixture_missing")
    assert result.divergence is not None
    assert result.divergence.step == step + 1


def test_a_retry_from_outside_is_refused_in_words():
    record = recorded(retry_from_outside())[-1]

    assert [reason.code for reason in judge(parse_native(record)).reasons] == ["retry_from_outside"]
    assert replayed(record)[0].verdict == "could_not_run"


def test_other_metadata_is_found():
    record = json.loads(recorded(bytes_in_metadata())[-1])
    record["steps"][1]["metadata"]["raw"] = "AAAA"

    assert verdict_of(record) == ("diverged", 3, "messages[2].parts[0].metadata.raw")


def test_another_denial_is_found():
    record = json.loads(recorded(denied_while_it_runs())[-1])
    denied = next(step for step in record["steps"] if step.get("outcome") == "denied")
    denied["outcome"] = "success"

    assert verdict_of(record)[0] != "reproduced"
