"""`replay_model` and `frozen_tools` in people's own tests: recorded answers or a clear refusal, nothing made up."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from agents import RunConfig, Runner, function_tool
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, FunctionToolset, ToolApproved
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart

import replay_recorder
from replay_recorder import NoAnswerRecorded, RecordingExhausted, RequestDiffers
from tests.recorder.local_server import Answer, local_server
from tests.recorder.openai_playing import agent as sdk_agent
from tests.recorder.openai_playing import calls, lookup, one_record
from tests.recorder.openai_playing import says as message
from tests.recorder.playing import Play, last_record, record_of, recorded
from tests.recorder.scenarios import SCENARIOS, Scripted, call, says, support_agent

Record = dict[str, Any]
PROMPT = "Where is ORD-1?"


def looked_up() -> Record:
    agent = support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Shipped."))
    return dict(json.loads(recorded(Play(agent, PROMPT))[-1]))


@pytest.fixture(scope="module")
def record() -> Record:
    return looked_up()


def fresh(**arguments: Any) -> Agent[None, Any]:
    """The same agent; its own model has nothing to say."""
    return support_agent(**arguments)


def run(agent: Agent[None, Any], prompt: str | None = PROMPT, **options: Any) -> str:
    return str(asyncio.run(agent.run(prompt, **options)).output)


def test_recorded_answers_come_in_their_order(record):
    agent = fresh()

    with agent.override(model=replay_recorder.replay_model(record)):
        output = run(agent)

    assert output == "Shipped."


def test_without_frozen_tools_the_tools_run_and_with_them_they_do_not(record):
    ran: list[str] = []
    tools: FunctionToolset[None] = FunctionToolset()

    def lookup_order(order_id: str) -> str:
        ran.append(order_id)
        return "another answer"

    tools.add_function(lookup_order)
    agent = Agent(instructions="You help customers.", toolsets=[tools])
    first = dict(record["parameters"][0])
    loose = copy.deepcopy(record) | {"parameters": [{**first, "function_tools": []}]}
    loose["steps"] = [{**step, "parameters": None} for step in loose["steps"]]

    def played_on(**options: Any) -> str:
        return run(agent, model=replay_recorder.replay_model(loose, on_difference="play_on"), **options)

    played_on(capabilities=[replay_recorder.frozen_tools(loose)])
    assert ran == []
    played_on()
    assert ran == ["ORD-1"]


def test_another_request_stops_and_says_where(record):
    agent = fresh()

    with pytest.raises(RequestDiffers) as raised:
        run(agent, "Where is ORD-2?", model=replay_recorder.replay_model(record))

    assert (raised.value.step, raised.value.path) == (1, "messages[0].parts[0].content")
    assert (raised.value.recorded, raised.value.now) == (PROMPT, "Where is ORD-2?")


def test_another_request_is_noted_where_it_plays_on(record):
    model = replay_recorder.replay_model(record, on_difference="play_on")

    output = run(fresh(), "Where is ORD-2?", model=model)

    assert output == "Shipped."
    assert [note.step for note in model.notes] == [1, 3]
    assert {note.source for note in model.notes} == {"recorded_for_another_request"}


def test_one_request_more_than_recorded_is_refused(record):
    model = replay_recorder.replay_model(record)
    agent = fresh()
    run(agent, model=model)

    with pytest.raises(RecordingExhausted, match="one more was asked for"):
        run(agent, model=model)


def test_a_call_that_was_never_recorded_is_refused(record):
    changed = copy.deepcopy(record)
    changed["steps"] = [step for step in changed["steps"] if step["kind"] == "model"]
    changed["steps"][1]["request"]["after"] = 1

    with pytest.raises(NoAnswerRecorded, match="lookup_order"):
        run(fresh(), model=replay_recorder.replay_model(changed), capabilities=[replay_recorder.frozen_tools(changed)])


def test_one_changed_answer_of_a_tool_is_found_in_the_next_request(record):
    changed = copy.deepcopy(record)
    changed["steps"][1]["result"]["price"] = 19.8

    with pytest.raises(RequestDiffers) as raised:
        run(fresh(), model=replay_recorder.replay_model(changed), capabilities=[replay_recorder.frozen_tools(changed)])

    assert (raised.value.step, raised.value.path) == (3, "messages[2].parts[0].content.price")


def test_a_path_and_an_id_are_read(record, tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(record))
    assert run(fresh(), model=replay_recorder.replay_model(path)) == "Shipped."
    assert run(fresh(), model=replay_recorder.replay_model(str(path))) == "Shipped."

    with local_server() as server:
        server.answer("/api/v1/runs/r_1/record", Answer(json.dumps(record).encode()))
        monkeypatch.setenv("REPLAY_URL", server.url)
        monkeypatch.setenv("REPLAY_KEY", "rpk_test")
        assert run(fresh(), model=replay_recorder.replay_model("r_1")) == "Shipped."
        assert server.received[0].headers["Authorization"] == "Bearer rpk_test"
        with pytest.raises(OSError, match="answers 404"):
            replay_recorder.replay_model("unknown")
    monkeypatch.delenv("REPLAY_URL")
    with pytest.raises(ValueError, match="REPLAY_URL"):
        replay_recorder.replay_model("r_1")


@pytest.mark.parametrize("run", [{"format": "other"}, {"messages": []}])
def test_what_is_no_record_is_refused_in_words(run):
    with pytest.raises(ValueError, match="no native record"):
        replay_recorder.replay_model(run)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_every_way_a_run_can_go_is_played_again(scenario):
    """Whatever else is raised is what was raised then."""
    record = json.loads(last_record(scenario, "run"))
    play = scenario.make()
    model = replay_recorder.replay_model(record)
    tools = replay_recorder.frozen_tools(record)
    arguments = {**play.arguments, "model": model}
    arguments["capabilities"] = [*(play.arguments.get("capabilities") or ()), tools]

    async def again() -> None:
        await play.agent.run(play.prompt, **arguments)

    if record.get("error") is None:
        asyncio.run(again())
    else:
        with pytest.raises(Exception, match=re.escape(record["error"]["message"])) as raised:
            asyncio.run(again())
        assert type(raised.value).__name__ == record["error"]["type"]
    assert model.left_over == []


def cleaner() -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        return f"{path} is gone"

    return agent


def test_a_call_whose_approval_changed_its_arguments_is_the_recorded_one():
    asks = ModelResponse([ToolCallPart("delete", {"path": "/tmp"}, tool_call_id="d1")])
    approved = DeferredToolResults(approvals={"d1": ToolApproved(override_args={"path": "/var"})})
    going_on: dict[str, Any] = {"message_history": [ModelRequest.user_text_prompt("Clean up."), asks]}
    agent = cleaner()

    async def recorded_run() -> None:
        await agent.run(model=Scripted(says("Done.")), deferred_tool_results=approved, **going_on)

    record = json.loads(record_of(recorded_run)[0])
    assert (record["steps"][0]["arguments"], record["steps"][0]["result"]) == ({"path": "/tmp"}, "/var is gone")

    def again(record: Record) -> str:
        tools = replay_recorder.frozen_tools(record)
        model = replay_recorder.replay_model(record)
        return run(agent, None, model=model, capabilities=[tools], deferred_tool_results=approved, **going_on)

    assert again(record) == "Done."
    record["steps"][0]["arguments"] = {"path": "/var"}  # not what the model sent
    with pytest.raises(RequestDiffers, match="arguments of delete"):
        again(record)


class Moves(AbstractCapability[None]):
    """Has another folder deleted than the model asked for."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return {**args, "path": self._path}


def test_a_call_of_which_a_hook_gives_the_tool_something_else_is_not_the_recorded_one():
    asks = ModelResponse([ToolCallPart("delete", {"path": "/tmp"}, tool_call_id="d1")])
    agent: Agent[None, Any] = Agent()

    @agent.tool_plain
    def delete(path: str) -> str:
        return f"{path} is gone"

    async def recorded_run() -> None:
        await agent.run("Clean up.", model=Scripted(asks, says("Done.")), capabilities=[Moves("/tmp/a")])

    record = json.loads(record_of(recorded_run)[0])

    def again(path: str, on_difference: Any = "stop") -> str:
        tools = replay_recorder.frozen_tools(record, on_difference=on_difference)
        model = replay_recorder.replay_model(record)
        return run(agent, "Clean up.", model=model, capabilities=[Moves(path), tools])

    assert again("/tmp/a") == "Done."
    with pytest.raises(RequestDiffers, match="what delete was given differs"):
        again("/var")
    assert again("/var", "play_on") == "Done."


# --- the OpenAI Agents SDK ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def sdk_record() -> Record:
    starting = sdk_agent([calls("lookup", '{"order": "A"}', "c1")], [message("It has shipped.")], tools=[lookup])
    return one_record(lambda: Runner.run(starting, "Where is A?"))


def again(record: Record, prompt: str = "Where is A?", on_difference: str = "stop", **facts: Any) -> Any:
    tools = replay_recorder.frozen_tools(record, on_difference=on_difference)
    config = RunConfig(model=replay_recorder.replay_model(record, on_difference=on_difference), tracing_disabled=True)
    agent = tools(sdk_agent(tools=[lookup], **facts))
    return asyncio.run(Runner.run(agent, prompt, run_config=config)).final_output


def test_an_agent_of_the_sdk_gets_the_recorded_answers(sdk_record):
    assert again(sdk_record) == "It has shipped."


def test_an_agent_of_the_sdk_stops_at_another_request(sdk_record):
    with pytest.raises(RequestDiffers) as raised:
        again(sdk_record, instructions="Be rude.")

    assert (raised.value.step, raised.value.path) == (1, "messages[0].instructions")
    assert again(sdk_record, instructions="Be rude.", on_difference="play_on") == "It has shipped."


def test_a_changed_answer_of_a_tool_of_the_sdk_is_found_in_the_next_request(sdk_record):
    changed = copy.deepcopy(sdk_record)
    changed["steps"][1]["result"] = "A has not shipped"

    with pytest.raises(RequestDiffers) as raised:
        again(changed)

    assert (raised.value.step, raised.value.path) == (3, "messages[2].parts[0].content")


def test_an_agent_of_the_sdk_that_asks_once_more_is_refused(sdk_record):
    shorter = copy.deepcopy(sdk_record)
    del shorter["steps"][2]

    with pytest.raises(RecordingExhausted, match="one more was asked for"):
        again(shorter)


@pytest.mark.parametrize("tools", ["frozen", "run"])
def test_a_conversation_that_the_provider_keeps_is_compared_by_what_is_new(tools):
    script = [[calls("lookup", f'{{"order": "{order}"}}', order)] for order in "AB"]
    record = one_record(lambda: Runner.run(kept(*script, [message("Both.")]), "Both?", auto_previous_response_id=True))

    def again(record: Record) -> Any:
        config = RunConfig(model=replay_recorder.replay_model(record), tracing_disabled=True)
        agent = replay_recorder.frozen_tools(record)(kept()) if tools == "frozen" else kept()
        return asyncio.run(Runner.run(agent, "Both?", run_config=config, auto_previous_response_id=True)).final_output

    assert again(record) == "Both."
    changed = copy.deepcopy(record)
    changed["steps"][4]["request"]["messages"][0]["parts"][0]["content"] = "B is lost"
    with pytest.raises(RequestDiffers) as raised:
        again(changed)
    assert (raised.value.step, raised.value.path) == (5, "messages[4].parts[0].content")


def kept(*script: Any) -> Any:
    return sdk_agent(*script, tools=[lookup])


def test_a_failure_that_the_team_words_itself_is_told_in_the_recorded_words():
    @function_tool(failure_error_function=lambda context, error: f"Tell support: {error!r}")
    def price(order: str) -> str:
        return str({}[order])

    starting = sdk_agent([calls("price", '{"order": "A"}', "c1")], [message("No price.")], tools=[price])
    record = one_record(lambda: Runner.run(starting, "What is A?"))
    assert record["steps"][1]["result"] == "Tell support: KeyError('A')"

    again = sdk_agent(tools=[price])
    config = RunConfig(model=replay_recorder.replay_model(record), tracing_disabled=True)
    result = asyncio.run(Runner.run(replay_recorder.frozen_tools(record)(again), "What is A?", run_config=config))

    assert result.final_output == "No price."


def test_recording_alone_loads_nothing_of_this():
    loaded = "import replay_recorder, sys; print([m for m in sys.modules if 'replaying' in m or 'pydantic' in m])"

    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "[]\n"
