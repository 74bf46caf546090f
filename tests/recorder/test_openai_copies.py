"""What a recording of the OpenAI Agents SDK holds twice has to say the same, for a replay goes by one of the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from agents import (
    CustomTool,
    GuardrailFunctionOutput,
    LocalShellTool,
    RunConfig,
    ShellTool,
    ToolOutputText,
    WebSearchTool,
    function_tool,
    output_guardrail,
    tool_output_guardrail,
)
from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellResult
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from openai.types.responses import (
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
    ResponseFunctionWebSearch,
    ResponseReasoningItem,
)
from openai.types.responses.response_output_item import LocalShellCall

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.proof import GIVEN_TURNS
from tests.recorder import openai_playing as playing
from tests.recorder.openai_playing import Record, bytes_of
from tests.recorder.replaying import assert_promise_kept, replayed

Change = Callable[[Record], None]
STATUS: dict[str, Any] = {"x": 1.0, "tags": ["a", None, True], "big": 10**20, "é": "😀 'quoted'"}


@dataclass
class Order:
    number: int


def _looked_up(given: Any) -> Record:
    """Steps: 1 model, 2 the tool, 3 model. Items: the call, its answer, the final message."""

    @function_tool
    async def status() -> Any:
        return given

    made = playing.agent([playing.calls("status", "{}", "c1")], [playing.says("Done.")], tools=[status])
    return playing.one_record(lambda: playing.run(made))


def _other_text(record: Record) -> None:
    record["items"][2]["raw"]["content"][0]["text"] = "I refuse."


def _other_arguments(record: Record) -> None:
    record["items"][0]["raw"]["arguments"] = '{"all": true}'


def _other_tool(record: Record) -> None:
    record["items"][0]["raw"]["name"] = "erase"


def _other_output(record: Record) -> None:
    record["items"][1]["raw"]["output"] = "nothing"


def _other_kind(record: Record) -> None:
    record["items"][0]["type"] = "message_output_item"


def _other_id(record: Record) -> None:
    record["items"][1]["raw"]["call_id"] = "c2"


def _nothing(record: Record) -> None:
    del record["items"][2]["raw"]


def _doubled_call(record: Record) -> None:
    record["items"].insert(1, record["items"][0])


def _doubled_answer(record: Record) -> None:
    record["items"].insert(1, record["items"][1])


def _no_call(record: Record) -> None:
    del record["items"][0]


def _no_answer(record: Record) -> None:
    del record["items"][1]


COUNTED: dict[Change, str] = {
    _doubled_call: "The run's items[1] holds a call's arguments once more.",
    _doubled_answer: "The run's items[2] holds a call's answer once more.",
    _no_call: "The run's items lack the arguments of step 2 (status).",
    _no_answer: "The run's items lack the answer of step 2 (status).",
}


@pytest.mark.parametrize("change", COUNTED)
def test_items_that_hold_a_call_twice_or_not_at_all_are_named(change: Change):
    record = _looked_up(STATUS)

    change(record)

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.message, reason.step) for reason in judged.reasons] == [(COUNTED[change], 4)]


def _several() -> Record:
    """Items: a text, two calls, their answers, a call, its answer, the final message."""

    @function_tool
    async def status(of: int) -> str:
        return f"shipped {of}"

    calls = [playing.calls("status", f'{{"of": {number}}}', f"c{number}") for number in (1, 2, 3)]
    answers = [playing.says("I will look."), *calls[:2]], [calls[2]], [playing.says("Done.")]
    return playing.one_record(lambda: playing.run(playing.agent(*answers, tools=[status])))


def _text_twice(record: Record) -> None:
    content = record["items"][7]["raw"]["content"]
    content.append(content[0])


DISORDERED: dict[str, tuple[Change, int]] = {
    "reversed": (lambda record: record["items"].reverse(), 1),
    "the text behind its calls": (lambda record: record["items"].insert(2, record["items"].pop(0)), 2),
    "calls swapped": (lambda record: record["items"].insert(1, record["items"].pop(2)), 2),
    "answers swapped": (lambda record: record["items"].insert(3, record["items"].pop(4)), 4),
    "an answer before its call": (lambda record: record["items"].insert(5, record["items"].pop(6)), 6),
    "a message twice": (lambda record: record["items"].append(record["items"][7]), 8),
    "a text twice": (_text_twice, 7),
}


@pytest.mark.parametrize("change", DISORDERED)
def test_items_in_another_order_than_the_messages_or_twice_are_named(change: str):
    record = _several()
    assert assert_promise_kept(bytes_of(record)).reasons == ()
    change_items, at = DISORDERED[change]

    change_items(record)

    told = [(each.code, each.message) for each in assert_promise_kept(bytes_of(record)).reasons]
    message = f"The run's items[{at}] stands elsewhere than in its messages, or once more."
    assert told == [("items_contradicted", message)]


def _continued() -> Record:
    """The run of a call that somebody approved: 1 the tool, 2 model."""

    @function_tool(needs_approval=True)
    async def cancel() -> str:
        return "cancelled"

    made = playing.agent([playing.calls("cancel", "{}", "c1")], [playing.says("Done.")], tools=[cancel])

    async def decided() -> None:
        state = (await playing.run(made)).to_state()
        state.approve(state.get_interruptions()[0])
        await playing.run(made, state)

    return playing.recorded(decided)[-1]


def test_items_of_a_run_that_goes_on_have_the_order_of_both_runs():
    record = _continued()
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    record["items"].reverse()

    assert [each.code for each in assert_promise_kept(bytes_of(record)).reasons] == ["items_contradicted"]


@pytest.mark.parametrize("change", [_other_text, _other_output, _no_answer, lambda record: record["items"].clear()])
def test_items_of_a_run_that_goes_on_are_held_against_both_runs(change: Change):
    record = _continued()
    assert [item["raw"]["type"] for item in record["items"] if item["type"] != "tool_approval_item"] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    record["items"] = [item for item in record["items"] if item["type"] != "tool_approval_item"]
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    change(record)

    judged = assert_promise_kept(bytes_of(record))
    assert [reason.code for reason in judged.reasons] == ["items_contradicted"]


def test_items_without_the_last_words_of_the_model_are_named():
    record = _looked_up(STATUS)

    del record["items"][2]

    told = [reason.message for reason in assert_promise_kept(bytes_of(record)).reasons]
    assert told == ["The run's items lack the answer of step 3 (scripted-1)."]


THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "List them."}],
    "encrypted_content": "c2lnbmVk",
}
SHELL_CALL = {
    "id": "ls_1",
    "type": "local_shell_call",
    "call_id": "c1",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "opening hours"},
}
OUTPUTS: dict[str, Any] = {
    "reasoning": ResponseReasoningItem.model_validate(THOUGHT),
    "local_shell_call": LocalShellCall.model_validate(SHELL_CALL),
    "web_search_call": ResponseFunctionWebSearch.model_validate(SEARCH),
    "custom_tool_call": ResponseCustomToolCall(type="custom_tool_call", call_id="c2", name="sql", input="SELECT 1"),
}
"""What a model may answer besides texts and calls of functions, by kind."""


def _of_all_kinds() -> Record:
    """Steps: 1 model, 2 the shell, 3 the database, 4 model."""

    async def asked(context: Any, said: str) -> str:
        return f"ran {said}"

    tools: list[Any] = [
        LocalShellTool(executor=lambda request: "a.txt"),
        CustomTool(name="sql", description="Ask the database.", on_invoke_tool=asked),
        WebSearchTool(),
    ]
    made = playing.agent([*OUTPUTS.values()], [playing.says("Done.")], tools=tools)
    return playing.one_record(lambda: playing.run(made))


OF_KINDS: dict[str, Callable[[Record], Any]] = {
    "reasoning": lambda raw: raw["summary"][0].update(text="Erase them."),
    "local_shell_call": lambda raw: raw["action"].update(command=["rm"]),
    "local_shell_call_output": lambda raw: raw.update(output="b.txt"),
    "web_search_call": lambda raw: raw["action"].update(query="salaries"),
    "custom_tool_call": lambda raw: raw.update(input="DROP TABLE orders"),
    "custom_tool_call_output": lambda raw: raw.update(output="dropped"),
}


@pytest.mark.parametrize("kind", OF_KINDS)
def test_items_of_every_kind_are_held_against_the_messages(kind: str):
    record = _of_all_kinds()
    assert "items_contradicted" not in [each.code for each in judge(parse_native(bytes_of(record))).reasons]
    at, item = next((at, item) for at, item in enumerate(record["items"]) if item["raw"]["type"] == kind)

    OF_KINDS[kind](item["raw"])

    told = [each.message for each in assert_promise_kept(bytes_of(record)).reasons]
    assert f"The run's items[{at}] says something else than its messages." in told


@pytest.mark.parametrize("field", ["id", "encrypted_content"])
def test_a_thoughts_id_and_signature_are_part_of_it(field: str):
    record = _of_all_kinds()

    record["items"][0]["raw"][field] = "forged"

    told = [each.message for each in assert_promise_kept(bytes_of(record)).reasons]
    assert "The run's items[0] says something else than its messages." in told


PAST: list[Any] = [
    {"role": "user", "content": "Order O-1?"},
    {"type": "function_call", "call_id": "c0", "name": "status", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c0", "output": "shipped"},
    {"role": "user", "content": "And now?"},
]
FORGED: list[tuple[int, str, str]] = [
    (0, "role", "developer"),
    (1, "arguments", '{"all": true}'),
    (1, "name", "erase"),
    (1, "call_id", "c9"),
    (2, "output", "lost"),
]


@pytest.mark.parametrize(("at", "field", "other"), FORGED)
def test_what_a_run_was_started_with_stands_in_its_first_request(at: int, field: str, other: str):
    record = playing.one_record(lambda: playing.run(playing.agent([playing.says("Done.")]), PAST))
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    record["input_items"][at][field] = other

    told = [each.message for each in assert_promise_kept(bytes_of(record)).reasons]
    assert told == [f"The run's input_items[{at}] says something else than its first request."]


@pytest.mark.parametrize("odd", [["x"], {"a": 1}, 5, None], ids=str)
@pytest.mark.parametrize("place", [("raw", "type"), ("raw", "call_id"), ("type",)], ids="-".join)
def test_items_whose_names_are_no_texts_are_judged_all_the_same(place: tuple[str, ...], odd: Any):
    record = _looked_up(STATUS)
    holder = record["items"][1]["raw"] if place[0] == "raw" else record["items"][1]
    holder[place[-1]] = odd

    assert [reason.code for reason in judge(parse_native(bytes_of(record))).reasons] == ["items_contradicted"]


CHANGES = (_other_text, _other_arguments, _other_tool, _other_output, _other_kind, _other_id, _nothing)


@pytest.mark.parametrize("change", CHANGES)
def test_items_that_say_something_else_than_the_messages_are_named(change: Change):
    record = _looked_up(STATUS)
    assert assert_promise_kept(bytes_of(record)).verdict == "replayable"

    change(record)

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("items_contradicted", 4)]


@pytest.mark.parametrize("returned", [{"other": 1}, {**STATUS, "x": 1}, dict(reversed(STATUS.items())), [STATUS]])
def test_what_a_tool_returned_is_held_against_what_the_model_was_told(returned: Any):
    record = _looked_up(STATUS)
    assert record["steps"][1]["returned"] == STATUS

    record["steps"][1]["returned"] = returned

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 2)]


@pytest.mark.parametrize(
    ("given", "returned"),
    [
        (2.5, 3.5),
        (7, 7.0),
        (True, False),
        (ToolOutputText(text="sunny"), {"type": "text", "text": "rain"}),
        ([ToolOutputText(text="sunny")], [{"type": "text", "text": "rain"}]),
    ],
    ids=repr,
)
def test_a_number_or_a_text_that_a_tool_returned_is_what_the_model_was_told(given: Any, returned: Any):
    record = _looked_up(given)
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    record["steps"][1]["returned"] = returned

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 2)]


@pytest.mark.parametrize(
    "given",
    [
        Order(number=7),
        [Order(number=7)],
        {1: "a"},
        {"price": Decimal("1.50")},
        (1, 2.5),
        [(1, "a")],
        {"a", "b"},
        None,
        7,
    ],
    ids=lambda given: "a set" if isinstance(given, set) else repr(given),  # a set has no order, and its name needs one
)
def test_what_python_prints_of_other_values_is_no_contradiction(given: Any):
    assert judge(parse_native(bytes_of(_looked_up(given)))).reasons == ()


# --- what a run was started with -----------------------------------------------------------------


def _goes_on() -> Record:
    made = playing.agent([playing.says("At sea.")])
    given = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": [{"type": "input_text", "text": "Where is it?"}]},
    ]
    return playing.one_record(lambda: playing.run(made, given))


@pytest.mark.parametrize("position", range(3))
def test_items_that_a_run_was_started_with_say_what_its_first_request_says(position: int):
    record = _goes_on()
    assert assert_promise_kept(bytes_of(record)).verdict == "replayable"

    record["input_items"][position]["content"] = "Goodbye."

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("items_contradicted", 2)]


def test_the_proof_says_that_earlier_turns_are_those_of_the_recording():
    result, _ = replayed(bytes_of(_goes_on()))

    assert result.facts["proof"]["requests"] == {"state": "proven", "reason": GIVEN_TURNS}


@pytest.mark.parametrize("step", [1, 3])
def test_a_tool_that_stands_twice_among_those_of_a_step_is_named(step: int):
    record = _looked_up("sunny")
    record["steps"][step - 1]["tools"] *= 2

    result, _ = replayed(bytes_of(record))

    parameters = result.facts["proof"]["parameters"]
    assert parameters == {
        "state": "not_comparable",
        "reason": f"step {step} (scripted-1) has status twice among its tools",
    }


# --- what the run was started with, and how it ended ---------------------------------------------

PICTURE = "data:image/png;base64,AAAA"


def _with_picture() -> Record:
    content = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": PICTURE}]
    made = playing.agent([playing.says("A cat.")])
    return playing.one_record(lambda: playing.run(made, [{"role": "user", "content": content}]))


def _other_picture(record: Record) -> None:
    record["input_items"][0]["content"][1]["image_url"] = PICTURE.replace("AAAA", "BBBB")


def _other_media_type(record: Record) -> None:
    record["input_items"][0]["content"][1]["image_url"] = PICTURE.replace("png", "jpeg")


def _no_picture(record: Record) -> None:
    del record["input_items"][0]["content"][1]


def _no_items(record: Record) -> None:
    record["input_items"] = []


@pytest.mark.parametrize("change", [_other_picture, _other_media_type, _no_picture, _no_items])
def test_items_that_lack_a_file_of_the_input_or_hold_another_are_named(change: Change):
    record = _with_picture()
    assert assert_promise_kept(bytes_of(record)).verdict == "replayable"

    change(record)

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("items_contradicted", 2)]


def _refused() -> Record:
    @tool_output_guardrail
    def hides(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("Hidden.")

    @function_tool(tool_output_guardrails=[hides])
    async def status() -> str:
        return "secret"

    made = playing.agent([playing.calls("status", "{}", "c1")], [playing.says("Sorry.")], tools=[status])
    return playing.one_record(lambda: playing.run(made))


@pytest.mark.parametrize("change", [{"message": "Shown."}, {"type": "allow"}], ids=str)
def test_a_guardrail_that_refused_in_other_words_than_the_model_was_told_is_named(change: Record):
    record = _refused()
    assert judge(parse_native(bytes_of(record))).verdict == "replayable"
    assert replayed(bytes_of(record))[0].verdict == "reproduced"

    record["tool_output_guardrails"][0]["behavior"] |= change

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("items_contradicted", 4)]


def test_another_last_agent_than_the_one_of_the_last_answer_is_named():
    record = _looked_up("fine")
    assert assert_promise_kept(bytes_of(record)).verdict == "replayable"

    record["last_agent"] = "Nobody"

    judged = assert_promise_kept(bytes_of(record))
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("agent_contradicted", 4)]


def _handed_over() -> Record:
    """Steps: 1 model, 2 the handoff, 3 model of the other agent, 4 its tool, 5 model."""

    @function_tool
    async def status() -> str:
        return "shipped"

    other = playing.agent([playing.calls("status", "{}", "c2")], [playing.says("Done.")], name="Other", tools=[status])
    made = playing.agent([playing.calls("transfer_to_other", "{}", "c1")], name="Desk", handoffs=[other])
    return playing.one_record(lambda: playing.run(made))


NAMED: dict[str, tuple[Change, str]] = {
    "the run": (
        lambda record: record["agent"].update(name="Nobody"),
        "The run names Nobody as its agent; step 1 (scripted-1) is of Desk.",
    ),
    "the first answer": (
        lambda record: record["steps"][0].update(agent="Nobody"),
        "The run names Desk as its agent; step 1 (scripted-1) is of Nobody.",
    ),
    "the handoff": (
        lambda record: record["steps"][1]["handoff"].update({"from": "Nobody"}),
        "The handoff of step 2 (transfer_to_other) names Nobody as its agent; step 2 (transfer_to_other) is of Desk.",
    ),
    "a call": (
        lambda record: record["steps"][3].update(agent="Nobody"),
        "Step 4 (status) names Nobody as its agent; step 3 (scripted-1) is of Other.",
    ),
}


@pytest.mark.parametrize("place", NAMED)
def test_an_agent_has_one_name_in_the_run_its_steps_and_its_handoffs(place: str):
    record = _handed_over()
    assert assert_promise_kept(bytes_of(record)).reasons == ()
    change, message = NAMED[place]

    change(record)

    told = [(each.code, each.message) for each in assert_promise_kept(bytes_of(record)).reasons]
    assert told == [("agent_contradicted", message)]


def test_a_call_that_somebody_approved_is_of_the_agent_that_goes_on():
    record = _continued()
    record["steps"][0]["agent"] = "Nobody"

    told = [each.code for each in assert_promise_kept(bytes_of(record)).reasons]

    assert told == ["agent_contradicted"]


def test_answers_to_calls_of_several_kinds_are_told_in_the_order_of_the_sdk():
    record = _of_all_kinds()

    told = {step["tool_name"]: step["told_as"] for step in playing.steps_of(record, "tool")}

    assert told == {"local_shell": 2, "sql": 1}
    assert assert_promise_kept(bytes_of(record)).verdict == "replayable"


def test_an_answer_to_a_call_that_no_earlier_turn_makes_is_named():
    past = [*PAST[:3], {"role": "assistant", "content": "Shipped."}, PAST[3]]
    record = playing.one_record(lambda: playing.run(playing.agent([playing.says("Done.")]), past))
    del record["input_items"]
    record["prior"][2]["parts"][0]["tool_call_id"] = "c9"

    told = [each.message for each in assert_promise_kept(bytes_of(record)).reasons]

    assert told == ["In an earlier turn status answers a call that no answer makes."]


def _of_a_shell(given: Any) -> Record:
    """Items: the call, what the shell gave, the final message."""
    call = {"id": "s1", "type": "shell_call", "call_id": "c1", "status": "completed", "action": {"commands": ["ls"]}}
    shell = ShellTool(executor=lambda request: given)
    asked = ResponseFunctionShellToolCall.model_validate({**call, "environment": None})
    made = playing.agent([asked], [playing.says("Done.")], tools=[shell])
    return playing.one_record(lambda: playing.run(made))


SHELLS: list[Any] = [
    "a.txt",
    ShellResult(output=[ShellCommandOutput(stdout="a.txt", command="ls")]),
    ShellResult(output=[ShellCommandOutput(stderr="no", outcome=ShellCallOutcome(type="exit", exit_code=2))]),
    ShellResult(output=[ShellCommandOutput(stdout="a", outcome=ShellCallOutcome(type="timeout"))]),
]


@pytest.mark.parametrize("given", SHELLS, ids=str)
@pytest.mark.parametrize("change", [{"stdout": "b.txt"}, {"status": "late"}, {"outcome": "lost"}], ids=str)
def test_what_a_shell_gave_is_the_same_in_both_fields_of_its_item(given: Any, change: Record):
    record = _of_a_shell(given)
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    record["items"][1]["raw"]["shell_output"][0] |= change

    told = [each.message for each in assert_promise_kept(bytes_of(record)).reasons]
    assert told == ["The run's items[1] holds one thing as output, and another as shell_output."]


@output_guardrail
def allows(context: Any, agent: Any, asked: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info="fine", tripwire_triggered=False)


@output_guardrail
def trips(context: Any, agent: Any, asked: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info="bad", tripwire_triggered=True)


def _looked_at(guardrail: Any, *, is_traced: bool) -> Record:
    made = playing.agent([playing.says("Done.")], output_guardrails=[guardrail])
    config = RunConfig(tracing_disabled=not is_traced)
    return playing.one_record(lambda: playing.run(made, run_config=config))


def _other_decision(record: Record) -> None:
    row = record["output_guardrails"][0]
    row["triggered"] = not row["triggered"]


LOOKS: dict[str, Change] = {
    "another name in its row": lambda record: record["output_guardrails"][0].update(name="nobody"),
    "another decision in its row": _other_decision,
    "another name of its step": lambda record: _looks(record)[0].update(name="nobody"),
    "other words of its step": lambda record: _looks(record)[0].update(result="It did not look."),
    "no step": lambda record: record["steps"].remove(_looks(record)[0]),
}


def _looks(record: Record) -> list[Record]:
    return [step for step in record["steps"] if step.get("span") == "guardrail"]


@pytest.mark.parametrize("is_traced", [True, False])
@pytest.mark.parametrize("guardrail", [allows, trips], ids=["allows", "trips"])
@pytest.mark.parametrize("change", LOOKS)
def test_what_a_guardrail_decided_is_the_same_in_its_row_and_its_step(change: str, guardrail: Any, is_traced: bool):
    record = _looked_at(guardrail, is_traced=is_traced)
    said = "The run's guardrails are not those of its steps, or decided something else."
    assert said not in [each.message for each in judge(parse_native(bytes_of(record))).reasons]

    LOOKS[change](record)

    assert said in [each.message for each in judge(parse_native(bytes_of(record))).reasons]


FACTS: dict[str, Change] = {
    "model_name": lambda step: step.update(answered_model="another"),
    "provider_name": lambda step: step.update(provider="another"),
    "finish_reason": lambda step: step.update(finish_reason="another"),
}


@pytest.mark.parametrize("fact", FACTS)
def test_facts_that_a_step_takes_out_of_an_answer_are_those_of_the_answer(fact: str):
    record = _looked_up("fine")
    step = record["steps"][0]
    step |= {"answered_model": "m", "provider": "p", "finish_reason": "stop", "input_tokens": 7, "output_tokens": 8}
    step["response"] |= {"model_name": "m", "provider_name": "p", "finish_reason": "stop"}
    step["response"]["usage"] |= {"input_tokens": 7, "output_tokens": 8}
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    FACTS[fact](step)

    told = [(each.code, each.message) for each in assert_promise_kept(bytes_of(record)).reasons]
    assert told == [("facts_contradicted", f"The {fact} in the answer of step 1 (scripted-1) is not that of the step.")]


def test_an_answer_ended_as_its_provider_said():
    record = _looked_up("fine")
    record["steps"][0]["response"] |= {"finish_reason": "stop", "provider_details": {"finish_reason": "completed"}}
    assert assert_promise_kept(bytes_of(record)).reasons == ()

    record["steps"][0]["response"]["provider_details"]["finish_reason"] = "length"

    told = [(each.code, each.message) for each in assert_promise_kept(bytes_of(record)).reasons]
    assert told == [("facts_contradicted", "The answer of step 1 (scripted-1) gives two reasons why it ended.")]


def test_a_later_request_was_made_to_the_model_that_its_step_is_named_for():
    record = _looked_up("fine")

    record["steps"][2]["model"] = "another"

    told = [(each.code, each.message) for each in assert_promise_kept(bytes_of(record)).reasons]
    assert told == [("facts_contradicted", "Step 3 (scripted-1) says that another was asked.")]
