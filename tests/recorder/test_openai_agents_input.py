"""Code of the team's that changes what the model is asked: the recording holds what was sent, and the judge says so."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from agents import AgentHooks, RunConfig, RunHooks, Runner, SQLiteSession
from agents.run import ModelInputData

from sessions_app.core.formats.native import parse_native
from sessions_app.core.history import messages
from sessions_app.core.judge.reading import main_models
from sessions_app.core.judge.verdict import Verdict, judge
from tests.recorder.openai_playing import WAYS, Record, Scripted, agent, bytes_of, calls, lookup, one_record, says
from tests.recorder.replaying import assert_promise_kept

Items = list[Any]
Change = Callable[[int, Items], object]
ASKS = [[calls("lookup", f'{{"order": "O-{number}"}}', f"c{number}")] for number in (1, 2)]


def add_words(number: int, items: Items) -> None:
    if number == 2:
        items.append({"role": "user", "content": "Hurry."})


def change_prompt(number: int, items: Items) -> None:
    if number == 1:
        items[0]["content"] = "Changed"


def change_answer(number: int, items: Items) -> None:
    for item in items:
        if item.get("type") == "function_call_output":
            item["output"] = "[redacted]"


def forget_prompt(number: int, items: Items) -> None:
    if number == 3:
        del items[0]


def nothing(number: int, items: Items) -> None:
    return None


class Counting:
    """Calls of one change, numbered from 1."""

    def __init__(self, change: Change) -> None:
        self.change, self.count = change, 0

    def __call__(self, items: Items) -> Items:
        self.count += 1
        self.change(self.count, items)
        return items


def run_hooks(change: Change) -> Record:
    counted = Counting(change)

    class Hooks(RunHooks[Any]):
        async def on_llm_start(self, context: Any, agent: Any, prompt: Any, items: Any) -> None:
            counted(items)

    return {"hooks": Hooks()}


def agent_hooks(change: Change) -> Record:
    counted = Counting(change)

    class Hooks(AgentHooks[Any]):
        async def on_llm_start(self, context: Any, agent: Any, prompt: Any, items: Any) -> None:
            counted(items)

    return {"agent_hooks": Hooks()}


def input_filter(change: Change) -> Record:
    counted = Counting(change)

    def filtered(call: Any) -> ModelInputData:
        given = call.model_data
        return ModelInputData(input=counted(copy.deepcopy(given.input)), instructions=given.instructions)

    return {"run_config": RunConfig(call_model_input_filter=filtered)}


class Listening(Scripted):
    """Keeps what it was sent."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.sent: list[Items] = []

    async def get_response(self, *args: Any, **named: Any) -> Any:
        self.sent.append(copy.deepcopy(named.get("input", args[1:2] and args[1])))
        return await super().get_response(*args, **named)

    async def stream_response(self, *args: Any, **named: Any) -> Any:
        self.sent.append(copy.deepcopy(named.get("input", args[1:2] and args[1])))
        async for event in super().stream_response(*args, **named):
            yield event


def told(record: Record) -> list[list[Any]]:
    """What each recorded request says that a user or a tool wrote."""
    requests = [messages(call.history) for _, call in main_models(parse_native(bytes_of(record)))]
    parts = [[part for message in request for part in message.value["parts"]] for request in requests]
    return [[one["content"] for one in each if one["part_kind"] in ("user-prompt", "tool-return")] for each in parts]


def sent(model: Listening) -> list[list[Any]]:
    return [[row.get("output", row.get("content")) for row in each if _is_said(row)] for each in model.sent]


def _is_said(row: Record) -> bool:
    return bool(row.get("role") == "user" or row.get("type") == "function_call_output")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [run_hooks, agent_hooks, input_filter])
@pytest.mark.parametrize(
    ("change", "step", "reason"),
    [
        (nothing, None, None),
        (add_words, 2, "message_from_code"),
        (change_prompt, None, "input_contradicts"),
        (change_answer, 2, "answer_contradicted"),
        (forget_prompt, None, None),
    ],
)
def test_a_request_is_recorded_as_it_was_sent(way: str, place: Any, change: Change, step: int | None, reason: Any):
    options = place(change)
    model = Listening(*ASKS, [says("Both have.")])
    made = agent(model=model, tools=[lookup], hooks=options.pop("agent_hooks", None))
    record = one_record(lambda: WAYS[way](made, **options))

    assert told(record) == sent(model)
    judged = _promised(record, reason)
    assert judged.step == step
    assert [each.code for each in judged.reasons][:1] == ([reason] if reason else [])


def _promised(record: Record, reason: str | None) -> Verdict:
    """A replay that finds the contradiction itself names the same step."""
    if reason == "answer_contradicted":
        return judge(parse_native(bytes_of(record)))
    return assert_promise_kept(bytes_of(record))


def test_a_prompt_that_a_session_left_unanswered_is_told_from_another_input():
    """As after `pop_item()`, or a turn that failed: input and request are both as they were."""
    session = SQLiteSession("popped")

    async def run() -> None:
        await session.add_items([{"role": "user", "content": "Unanswered."}])
        await Runner.run(agent(model=Scripted([says("Both.")])), "Again.", session=session)

    record = one_record(run)

    assert told(record) == [["Unanswered.", "Again."]]
    (reason,) = assert_promise_kept(bytes_of(record)).reasons
    assert (reason.code, reason.step) == ("prompts_beside_input", 1)
    assert "different" not in reason.message

    record["input"] = "Something else."
    assert [each.code for each in judge(parse_native(bytes_of(record))).reasons] == ["input_contradicts"]


def test_an_input_may_hold_earlier_turns_and_a_prompt_behind_a_tools_answer():
    """As `to_input_list()` gives it of a run that `stop_on_first_tool` ended."""
    earlier = {"role": "user", "content": "Order O-1?"}
    asked = {"type": "function_call", "call_id": "c0", "name": "lookup", "arguments": '{"order": "O-1"}'}
    answered = {"type": "function_call_output", "call_id": "c0", "output": "shipped"}
    given: Any = [earlier, asked, answered, {"role": "user", "content": "And O-2?"}]
    record = one_record(lambda: Runner.run(agent(model=Scripted(*ASKS[1:], [says("Both.")]), tools=[lookup]), given))

    assert assert_promise_kept(bytes_of(record)).verdict == "replayable"

    record["input"] = given[1:3]
    codes = [each.code for each in judge(parse_native(bytes_of(record))).reasons]
    assert codes == ["prompts_beside_input", "items_contradicted"]
