"""The model that the team's code asks, and the settings of its requests, beside the recorded ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agents import ModelSettings, handoff
from pydantic_ai import Agent

from replay_recorder.replaying.observing import Replay, observe
from replay_recorder.replaying.own_agent import OwnAgent as LocalAgent
from replay_recorder.replaying.recording import read_recording
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.fork.order import read_order
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.payload import Payload
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.own_machine import judge_observed
from sessions_app.core.replay.produce import produced_run
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.replay.words import ReplayFacts, verdict_in_words
from sessions_app.core.run import ModelCall, Run
from tests.agents.own_agents import forked_by, recorded_run, replayed_by
from tests.recorder import openai_playing as openai
from tests.recorder.playing import recorded
from tests.recorder.replaying import replayed as rebuilt
from tests.recorder.scenarios import Play, Scripted, call, says

SETTINGS = {"temperature": 0.5, "seed": 7}


class Renamed(Scripted):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._other = name

    @property
    def model_name(self) -> str:
        return self._other


def desk(model: Any, settings: Any) -> Agent[None, str]:
    agent = Agent(model, name="desk", instructions="You help.", model_settings=settings, defer_model_check=True)

    @agent.tool_plain
    def stock(item: str) -> int:
        """Count one item."""
        return 3

    return agent


def played() -> Play:
    return Play(desk(Scripted(says(call("stock", {"item": "box"}, "a")), says("Three.")), SETTINGS), "How many?")


@pytest.fixture(scope="module")
def run() -> Run:
    """1 model, 2 stock, 3 model."""
    return recorded_run(played)


def ended(result: Result) -> tuple[str, int | None, str | None]:
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


def replayed(run: Run, model: Any = "openai:scripted-1", settings: Any = SETTINGS, **options: Any) -> Result:
    return replayed_by(run, OwnAgent(agent=desk(model, settings), **options))


def model_part(result: Result) -> tuple[str, str | None]:
    part = result.facts["proof"]["model"]
    return part["state"], part["reason"]


def sentence(result: Any) -> str:
    return verdict_in_words(ReplayFacts(verdict=result.verdict, proof=read_proof(result.facts["proof"])))


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        (SETTINGS, ("proven", None)),
        ({"temperature": 0.9, "seed": 7}, ("not_proven", "differs at step 1, settings.temperature")),
    ],
)
def test_a_fork_with_the_code_says_which_model_the_code_asked(run: Run, settings: Any, part: tuple[str, str | None]):
    order = read_order({"at_step": 1, "changes": [], "agent": "desk", "hypothesis": "h", "on_difference": "play_on"})

    result = forked_by(run, OwnAgent(agent=desk("openai:scripted-1", settings)), order)

    assert model_part(result) == part
    assert result.facts["proof"]["state"]["reason"] == "no state was recorded"


@pytest.mark.parametrize("model", ["openai:scripted-1", "scripted-1", Scripted()])
def test_the_same_model_with_the_same_settings_is_proven(run: Run, model: Any):
    result = replayed(run, model)

    assert ended(result) == ("reproduced", None, None)
    assert model_part(result) == ("proven", None)
    assert sentence(result) == "Reproduced: same 3 steps, same answer"


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"temperature": 0.9, "seed": 7}, "settings.temperature"),
        ({"temperature": 0.5}, "settings.seed"),
        ({**SETTINGS, "max_tokens": 20}, "settings.max_tokens"),
        ({**SETTINGS, "stop_sequences": ["x"]}, "settings.stop_sequences"),
        (None, "settings.temperature"),
    ],
)
def test_other_settings_are_another_request(run: Run, changed: Any, path: str):
    result = replayed(run, settings=changed)

    assert ended(result) == ("diverged", 1, path)
    assert result.facts["stopped_before"] == 1
    assert model_part(result) == ("not_proven", f"differs at step 1, {path}")
    assert result.observations is not None
    found = compare_runs(run, produced_run(run, result.observations, run_id="again")).divergence
    assert found is not None
    assert found.path == path


@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", Renamed("other-1")])
def test_another_model_is_another_request(run: Run, model: Any):
    assert ended(replayed(run, model)) == ("diverged", 1, "model")


def test_settings_that_come_with_the_model_or_with_the_run_count(run: Run):
    with_model = Scripted()
    with_model._settings = {"temperature": 0.1}
    given = {"arguments": {"model_settings": {"seed": 8}}}

    assert ended(replayed(run, with_model, settings={"seed": 7})) == ("diverged", 1, "settings.temperature")
    assert ended(replayed(run, **given)) == ("diverged", 1, "settings.seed")
    assert ended(replayed(run, "other", arguments={"model": "openai:scripted-1"})) == ("reproduced", None, None)


def test_settings_may_change_from_one_request_to_the_next(run: Run):
    def settings(ctx: Any) -> Any:
        return SETTINGS if ctx.run_step < 2 else {**SETTINGS, "temperature": 1.0}

    assert ended(replayed(run, settings=settings)) == ("diverged", 3, "settings.temperature")


def test_the_produced_run_asks_as_the_code_does(run: Run):
    result = replayed_by(
        run, OwnAgent(agent=desk("openai:gpt-4o-mini", {**SETTINGS, "seed": 8})), on_difference="play_on"
    )
    assert result.observations is not None
    made = produced_run(run, result.observations, run_id="again")

    found = compare_runs(run, made).divergence
    assert found is not None
    assert (found.left_step.index, found.path) == (1, "model")
    call = made.steps[0].call
    assert isinstance(call, ModelCall)
    assert call.settings is not None
    assert (call.model, call.settings.value["seed"]) == ("gpt-4o-mini", 8)


def with_calls(run: Run, **facts: Any) -> Run:
    steps = [replace(step, call=replace(step.call, **facts)) if step.kind == "model" else step for step in run.steps]
    return replace(run, steps=tuple(steps))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"settings": None}, "the settings of the model were not recorded"),
        ({"settings": Payload.of_json({"seed": 7})}, "settings that the recording does not show: temperature"),
    ],
)
def test_what_was_not_recorded_is_not_comparable_and_said(run: Run, facts: Any, reason: str):
    result = replayed(with_calls(run, **facts))

    assert ended(result) == ("reproduced", None, None)
    assert model_part(result) == ("not_comparable", reason)
    assert sentence(result) == f"Reproduced: same 3 steps, same answer; {reason}"


def test_an_agent_that_names_no_model_is_not_said_to_ask_the_recorded_one(run: Run):
    result = replayed(run, None)

    assert model_part(result) == ("not_comparable", "which model was called is not known on both sides")


def test_what_was_taken_out_of_a_setting_is_not_compared(run: Run):
    recorded = {"temperature": 0.5, "top_p": None, "seed": 7, "extra_headers": {"x-team": "[redacted]"}}
    asked = {**SETTINGS, "extra_headers": {"x-team": "a"}}

    result = replayed(with_calls(run, settings=Payload.of_json(recorded)), settings=asked)

    assert model_part(result)[0] == "not_comparable"
    assert "extra_headers" in sentence(result)


def test_a_rebuilt_agent_has_both_from_the_recording(run: Run):
    result, _ = rebuilt(encode_native(run))

    assert (result.verdict, model_part(result)) == ("reproduced", ("not_comparable", "taken from the recording"))
    assert "taken" not in sentence(result)


@pytest.mark.parametrize("name", ["function_tools", "output_tools", "output_mode", "allow_text_output"])
def test_parameters_that_do_not_tell_how_the_model_was_asked_are_not_proven(run: Run, name: str):
    asked = run.model_calls[0][1].parameters
    assert asked is not None
    lacking = with_calls(run, parameters=Payload.of_json({key: asked.value[key] for key in asked.value if key != name}))
    reason = f"parameters that the recording does not show: {name}"
    agent = desk("openai:scripted-1", SETTINGS)

    for whole, less in (
        (replayed(run), replayed(lacking)),
        (rebuilt(encode_native(run))[0], rebuilt(encode_native(lacking))[0]),
        (observed(encode_native(run), agent), observed(encode_native(lacking), agent)),
    ):
        assert (whole.verdict, whole.facts["proof"]["parameters"]) == (
            "reproduced",
            {"state": "proven", "reason": None},
        )
        assert (less.verdict, less.facts["proof"]["parameters"]["state"]) == ("reproduced", "not_comparable")
        assert less.facts["proof"]["parameters"]["reason"] == reason
        assert f"parameters.{name}" in less.facts["not_captured"]


# --- on a person's own machine


def observed(record: bytes, agent: Any) -> Result:
    recording = read_recording(json.loads(record))
    made = observe(Replay(recording=recording, own=LocalAgent(agent=agent), on_difference="play_on"))
    result, _ = judge_observed(parse_native(record), parse_native(made), tools="frozen", run_id="observed")
    return result


@pytest.mark.parametrize(
    ("model", "settings", "path"),
    [
        ("openai:scripted-1", SETTINGS, None),
        ("openai:gpt-4o-mini", SETTINGS, "model"),
        (Scripted(), {**SETTINGS, "seed": 8}, "settings.seed"),
        (Scripted(), None, "settings.temperature"),
    ],
)
def test_an_own_machine_says_what_its_agent_asks(model: Any, settings: Any, path: str | None):
    result = observed(recorded(played())[-1], desk(model, settings))

    assert ended(result) == (("diverged", 1, path) if path else ("reproduced", None, None))
    assert model_part(result)[0] == ("not_proven" if path else "proven")


def test_an_own_agent_that_names_no_model_is_not_said_to_ask_the_recorded_one():
    result = observed(recorded(played())[-1], desk(None, SETTINGS))

    assert model_part(result) == ("not_comparable", "which model was called is not known on both sides")


def sdk_desk(model: Any, **settings: Any) -> Any:
    look = openai.calls("lookup", '{"order": "A"}', "c1")
    made = openai.agent([look], [openai.says("Done.")], tools=[openai.lookup], model_settings=ModelSettings(**settings))
    return made if model is None else made.clone(model=model)


@pytest.mark.parametrize(
    ("model", "settings", "path"),
    [
        ("scripted-1", {"temperature": 0.5}, None),
        ("gpt-4o-mini", {"temperature": 0.5}, "model"),
        ("scripted-1", {"temperature": 0.6}, "settings.temperature"),
        ("scripted-1", {"temperature": 0.5, "max_tokens": 9}, "settings.max_tokens"),
    ],
)
def test_an_own_agent_of_the_sdk_is_compared_likewise(model: Any, settings: Any, path: str | None):
    record = openai.one_record(lambda: openai.run(sdk_desk(None, temperature=0.5)))

    result = observed(openai.bytes_of(record), sdk_desk(model, **settings))

    assert ended(result) == (("diverged", 1, path) if path else ("reproduced", None, None))


def test_each_agent_of_a_handoff_is_held_against_its_own_model():
    def front(model: Any, other: Any) -> Any:
        billing = openai.agent([openai.says("Paid.")], name="Billing", model=other)
        hands_over = openai.calls("transfer_to_billing", "{}", "h1")
        made = openai.agent([hands_over], handoffs=[handoff(billing)])
        return made if model is None else made.clone(model=model)

    scripted = openai.Scripted([openai.says("Paid.")])
    scripted.model = "scripted-2"
    record = openai.bytes_of(openai.one_record(lambda: openai.run(front(None, scripted))))

    assert ended(observed(record, front("scripted-1", "scripted-2"))) == ("reproduced", None, None)
    assert ended(observed(record, front("scripted-1", "scripted-1")))[::2] == ("diverged", "model")
