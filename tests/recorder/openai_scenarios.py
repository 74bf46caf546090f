"""Agents of the OpenAI Agents SDK as teams write them, each with the script of its provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from agents import (
    Agent,
    AgentOutputSchema,
    GuardrailFunctionOutput,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    RunState,
    SQLiteSession,
    StopAtTools,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.agent import ToolsToFinalOutputResult
from agents.extensions.handoff_filters import remove_all_tools
from agents.run import CallModelData, ModelInputData
from agents.tool import HostedMCPTool, LocalShellTool, ToolOutputImage, WebSearchTool
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from pydantic import BaseModel, ConfigDict, Field, field_validator
from typing_extensions import TypedDict

from tests.recorder.local_server import Answer
from tests.recorder.openai_playing import run, streamed
from tests.recorder.openai_provider import Provider, call_item, calls, items, message_item, refuses, says

Way = Callable[..., Awaitable[Any]]
Scenario = Callable[[Provider, Way], Awaitable[None]]
WAYS: dict[str, Way] = {"run": run, "run_streamed": streamed}
SCENARIOS: dict[str, Scenario] = {}
LOOKUP = ("lookup", '{"order": "A"}', "c1")


def scenario(play: Scenario) -> Scenario:
    SCENARIOS[play.__name__] = play
    return play


@function_tool
async def lookup(order: str) -> str:
    """Find one order."""
    return f"{order} has shipped"


@function_tool
async def refund(order: str, amount: float) -> str:
    """Pay back."""
    return f"{amount} paid back for {order}"


@function_tool(needs_approval=True)
async def cancel(order: str) -> str:
    """Cancel one order."""
    return f"{order} is cancelled"


def agent(provider: Provider, name: str = "Support", **facts: Any) -> Agent[Any]:
    return Agent(**{"name": name, "instructions": f"You are {name}.", "model": provider.chat, **facts})


# --- handoffs ----------------------------------------------------------------------------------


@scenario
async def a_handoff_to_an_agent_with_a_new_tool(provider: Provider, way: Way) -> None:
    billing = agent(provider, "Billing", tools=[lookup, refund])
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    provider.will_answer(
        calls(LOOKUP),
        calls(("transfer_to_billing", "{}", "c2")),
        calls(("refund", '{"order": "A", "amount": 3.50}', "c3")),
        says("Paid back."),
    )
    await way(triage, "I want my money back.")


@scenario
async def nested_handoffs(provider: Provider, way: Way) -> None:
    fraud = agent(provider, "Fraud", tools=[lookup, refund])
    billing = agent(provider, "Billing", tools=[refund], handoffs=[fraud])
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    provider.will_answer(
        calls(("transfer_to_billing", "{}", "c1")),
        calls(("transfer_to_fraud", "{}", "c2")),
        calls(("lookup", '{"order": "B"}', "c3"), ("refund", '{"order": "B", "amount": 1}', "c4")),
        says("Done."),
    )
    await way(triage, "This was not me.")


@scenario
async def a_handoff_there_and_back(provider: Provider, way: Way) -> None:
    billing = agent(provider, "Billing", tools=[refund])
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    billing.handoffs.append(triage)
    provider.will_answer(
        calls(("transfer_to_billing", "{}", "c1")),
        calls(("transfer_to_support", "{}", "c2")),
        calls(("lookup", '{"order": "B"}', "c3")),
        says("It is on its way."),
    )
    await way(triage, "Where is it?")


@scenario
async def a_handoff_whose_filter_removes_tools(provider: Provider, way: Way) -> None:
    billing = agent(provider, "Billing", tools=[refund])
    triage = agent(provider, tools=[lookup], handoffs=[handoff(billing, input_filter=remove_all_tools)])
    provider.will_answer(
        calls(LOOKUP),
        calls(("transfer_to_billing", "{}", "c2")),
        calls(("refund", '{"order": "A", "amount": 2}', "c3")),
        says("Paid back."),
    )
    await way(triage, "I want my money back.")


@scenario
async def a_handoff_that_nests_its_history(provider: Provider, way: Way) -> None:
    billing = agent(provider, "Billing", tools=[refund])
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    provider.will_answer(
        calls(LOOKUP),
        calls(("transfer_to_billing", "{}", "c2")),
        calls(("refund", '{"order": "A", "amount": 2}', "c3")),
        says("Paid back."),
    )
    await way(triage, "I want my money back.", run_config=RunConfig(nest_handoff_history=True))


class Reason(BaseModel):
    reason: str


@scenario
async def a_handoff_with_a_reason(provider: Provider, way: Way) -> None:
    async def noted(context: RunContextWrapper[Any], data: Reason) -> None:
        return None

    billing = agent(provider, "Billing")
    triage = agent(provider, handoffs=[handoff(billing, on_handoff=noted, input_type=Reason)])
    provider.will_answer(calls(("transfer_to_billing", '{"reason": "money"}', "c1")), says("Yes?"))
    await way(triage, "Hello.")


@scenario
async def two_handoffs_in_one_answer(provider: Provider, way: Way) -> None:
    billing, sales = agent(provider, "Billing", tools=[refund]), agent(provider, "Sales")
    triage = agent(provider, handoffs=[billing, sales])
    provider.will_answer(
        calls(("transfer_to_billing", "{}", "c1"), ("transfer_to_sales", "{}", "c2")), says("Which of both?")
    )
    await way(triage, "Hello.")


@scenario
async def a_handoff_beside_a_tool(provider: Provider, way: Way) -> None:
    billing = agent(provider, "Billing", tools=[refund])
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    provider.will_answer(
        calls(("transfer_to_billing", "{}", "c2"), LOOKUP, text="One moment."), says("It has shipped.")
    )
    await way(triage, "Hello.")


class Refund(BaseModel):
    order: str
    amount: float = 0


@scenario
async def a_handoff_to_an_agent_with_structured_output(provider: Provider, way: Way) -> None:
    billing = agent(provider, "Billing", output_type=Refund)
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    provider.will_answer(
        calls(LOOKUP), calls(("transfer_to_billing", "{}", "c2")), says('{"order": "A", "amount": 3.5}')
    )
    await way(triage, "I want my money back.")


@scenario
async def a_handoff_from_structured_output_to_words(provider: Provider, way: Way) -> None:
    triage = agent(provider, output_type=Refund, handoffs=[agent(provider, "Billing")])
    provider.will_answer(calls(("transfer_to_billing", "{}", "c2")), says("Paid back."))
    await way(triage, "I want my money back.")


# --- errors of the provider --------------------------------------------------------------------

CUT = Answer(b"{", headers={"Content-Type": "application/json"}, promised=999)
BUSY = Answer(b'{"error": {"message": "slow down"}}', status=429)


@scenario
async def a_broken_connection_with_structured_output(provider: Provider, way: Way) -> None:
    provider.will_answer(CUT)
    await way(agent(provider, output_type=Refund))


@scenario
async def a_broken_connection_with_structured_output_after_a_tool(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), CUT)
    await way(agent(provider, output_type=Refund, tools=[lookup]))


@scenario
async def a_broken_connection_after_a_tool(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), CUT)
    await way(agent(provider, tools=[lookup]))


@scenario
async def a_provider_that_is_busy_after_a_handoff(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(("transfer_to_billing", "{}", "c1")), BUSY)
    await way(agent(provider, handoffs=[agent(provider, "Billing", tools=[refund], output_type=Refund)]))


# --- call ids ----------------------------------------------------------------------------------


@scenario
async def call_ids_that_come_again_over_turns(provider: Provider, way: Way) -> None:
    session = SQLiteSession("chat-1")
    for order in "AB":
        provider.will_answer(calls(("lookup", json.dumps({"order": order}), "call_1")), says(f"{order} has shipped."))
        await way(agent(provider, tools=[lookup]), f"Where is {order}?", session=session)


@scenario
async def a_call_id_that_comes_again_in_one_run(provider: Provider, way: Way) -> None:
    counted = iter(range(10))

    @function_tool
    async def count() -> str:
        return str(next(counted))

    provider.will_answer(*[calls(("count", "{}", "call_1"))] * 3, says("Three."))
    await way(agent(provider, tools=[count]))


@scenario
async def a_call_id_that_comes_again_for_another_tool(provider: Provider, way: Way) -> None:
    provider.will_answer(
        calls(("lookup", '{"order": "A"}', "call_1")),
        calls(("refund", '{"order": "A", "amount": 1}', "call_1")),
        says("Done."),
    )
    await way(agent(provider, tools=[lookup, refund]))


@scenario
async def two_calls_with_one_id_in_one_answer(provider: Provider, way: Way) -> None:
    provider.will_answer(
        calls(("lookup", '{"order": "A"}', "call_1"), ("lookup", '{"order": "B"}', "call_1")), says("Both.")
    )
    await way(agent(provider, tools=[lookup]))


# --- ends that are no answers ------------------------------------------------------------------


@scenario
async def too_many_turns(provider: Provider, way: Way) -> None:
    provider.will_answer(*(calls(("lookup", '{"order": "A"}', f"c{n}")) for n in range(3)))
    await way(agent(provider, tools=[lookup]), max_turns=2)


@scenario
async def too_many_turns_with_structured_output(provider: Provider, way: Way) -> None:
    provider.will_answer(*(calls(("lookup", '{"order": "A"}', f"c{n}")) for n in range(3)))
    await way(agent(provider, tools=[lookup], output_type=Refund), max_turns=1)


@scenario
async def too_many_turns_with_several_calls(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP, ("lookup", '{"order": "B"}', "c2")), calls(LOOKUP))
    await way(agent(provider, tools=[lookup]), max_turns=1)


@scenario
async def too_many_turns_that_a_handler_answers(provider: Provider, way: Way) -> None:
    provider.will_answer(*(calls(("lookup", '{"order": "A"}', f"c{n}")) for n in range(3)))
    handlers = {"max_turns": lambda data: "It takes too long."}
    await way(agent(provider, tools=[lookup]), max_turns=2, error_handlers=handlers)


@scenario
async def a_tool_that_does_not_exist(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(("nothing", "{}", "c1")))
    await way(agent(provider, tools=[lookup]))


@scenario
async def a_tool_that_does_not_exist_behind_one_that_does(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), calls(("lookup", '{"order": "B"}', "c2"), ("nothing", "{}", "c3")))
    await way(agent(provider, tools=[lookup]))


@scenario
async def a_tool_that_does_not_exist_as_the_model_is_told(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(("nothing", '{"a": 1}', "c1"), LOOKUP), says("Sorry."))
    await way(agent(provider, tools=[lookup]), run_config=RunConfig(tool_not_found_behavior="return_error_to_model"))


@scenario
async def the_first_tool_ends_the_run(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP))
    await way(agent(provider, tools=[lookup], tool_use_behavior="stop_on_first_tool"))


@scenario
async def the_first_of_several_tools_ends_the_run(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(("refund", '{"order": "A", "amount": 1}', "c0"), LOOKUP, text="I look."))
    await way(agent(provider, tools=[lookup, refund], tool_use_behavior="stop_on_first_tool"))


@scenario
async def a_named_tool_ends_the_run(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), calls(("refund", '{"order": "A", "amount": 1}', "c2")))
    await way(agent(provider, tools=[lookup, refund], tool_use_behavior=StopAtTools(stop_at_tool_names=["refund"])))


@scenario
async def a_function_of_the_team_ends_the_run(provider: Provider, way: Way) -> None:
    def decide(context: Any, results: Any) -> ToolsToFinalOutputResult:
        return ToolsToFinalOutputResult(is_final_output=True, final_output={"said": results[0].output.upper()})

    provider.will_answer(calls(LOOKUP))
    await way(agent(provider, tools=[lookup], tool_use_behavior=decide))


@scenario
async def an_answer_of_a_tool_that_is_no_text_ends_the_run(provider: Provider, way: Way) -> None:
    @function_tool
    async def status() -> dict[str, Any]:
        return {"shipped": True, "parcels": 2}

    provider.will_answer(calls(("status", "{}", "c1")))
    await way(agent(provider, tools=[status], tool_use_behavior="stop_on_first_tool"))


@scenario
async def a_refusal(provider: Provider, way: Way) -> None:
    provider.will_answer(refuses("I cannot help with that."))
    await way(agent(provider))


@scenario
async def a_refusal_of_structured_output(provider: Provider, way: Way) -> None:
    provider.will_answer(refuses("I cannot help with that."))
    await way(agent(provider, output_type=Refund))


# --- histories that are handed in --------------------------------------------------------------


@scenario
async def a_history_that_begins_at_the_answer_of_a_tool(provider: Provider, way: Way) -> None:
    provider.will_answer(says("It has shipped."))
    rows = [
        {"type": "function_call_output", "call_id": "c0", "output": "A has shipped"},
        {"role": "user", "content": "Where is it?"},
    ]
    await way(agent(provider, tools=[lookup]), rows)


@scenario
async def a_history_that_begins_at_the_answer_of_a_tool_and_goes_on(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says("It has shipped."))
    rows = [
        {"type": "function_call_output", "call_id": "c0", "output": "A has shipped"},
        {"role": "assistant", "content": "It has."},
        {"role": "user", "content": "Really?"},
    ]
    await way(agent(provider, tools=[lookup]), rows)


@scenario
async def a_history_that_ends_at_the_answer_of_a_tool(provider: Provider, way: Way) -> None:
    provider.will_answer(says("It has shipped."))
    rows = [
        {"role": "user", "content": "Where is it?"},
        {"type": "function_call", "call_id": "c0", "name": "lookup", "arguments": '{"order": "A"}'},
        {"type": "function_call_output", "call_id": "c0", "output": "A has shipped"},
    ]
    await way(agent(provider, tools=[lookup]), rows)


@scenario
async def a_history_that_is_cut_before_each_request(provider: Provider, way: Way) -> None:
    def newest(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData(input=data.model_data.input[-1:], instructions=data.model_data.instructions)

    provider.will_answer(calls(LOOKUP), calls(("lookup", '{"order": "B"}', "c2")), says("Both have."))
    await way(agent(provider, tools=[lookup]), run_config=RunConfig(call_model_input_filter=newest))


@scenario
async def a_history_that_ends_with_words_of_the_assistant(provider: Provider, way: Way) -> None:
    provider.will_answer(says("Lisbon."))
    await way(agent(provider), [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "It is in"}])


@scenario
async def two_messages_of_a_user(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says("It has shipped."))
    rows = [{"role": "user", "content": "Hello."}, {"role": "user", "content": "Where is it?"}]
    await way(agent(provider, tools=[lookup]), rows)


@scenario
async def two_calls_that_wait_and_one_that_does_not(provider: Provider, way: Way) -> None:
    waiting = [("cancel", f'{{"order": "{order}"}}', f"w{order}") for order in "AB"]
    provider.will_answer(calls(*waiting, LOOKUP))
    await way(agent(provider, tools=[lookup, cancel]))


@scenario
async def system_prompts_in_the_input(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says("It has shipped."))
    pieces = [{"type": "input_text", "text": "Be short."}]
    prompts = [{"role": "system", "content": "Be kind."}, {"role": "developer", "content": pieces}]
    await way(agent(provider, tools=[lookup]), [*prompts, {"role": "user", "content": "Where is it?"}])


async def answers_to(provider: Provider, way: Way, rows: list[Any]) -> None:
    """Over both protocols."""
    for model in (provider.chat, provider.responses):
        provider.will_answer(calls(LOOKUP), says("It has shipped."))
        await way(agent(provider, tools=[lookup], model=model), rows)


ANSWERED = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
DEVELOPER = {"role": "developer", "content": "Be short."}
SYSTEM = {"role": "system", "content": "Be kind."}
ASKS = {"role": "user", "content": "Where is it?"}
ASKS_IN_PIECES = {"role": "user", "content": [{"type": "input_text", "text": text} for text in ("Where", "is it?")]}


@scenario
async def a_developer_speaks_before_the_last_prompt(provider: Provider, way: Way) -> None:
    await answers_to(provider, way, [*ANSWERED, DEVELOPER, ASKS])


@scenario
async def a_developer_speaks_before_a_prompt_in_pieces(provider: Provider, way: Way) -> None:
    await answers_to(provider, way, [*ANSWERED, DEVELOPER, ASKS_IN_PIECES])


@scenario
async def system_prompts_before_the_last_prompt(provider: Provider, way: Way) -> None:
    await answers_to(provider, way, [SYSTEM, *ANSWERED, SYSTEM, DEVELOPER, ASKS])


@scenario
async def a_developer_speaks_behind_the_prompt(provider: Provider, way: Way) -> None:
    await answers_to(provider, way, [ASKS, DEVELOPER])


@scenario
async def a_system_prompt_behind_the_last_prompt(provider: Provider, way: Way) -> None:
    await answers_to(provider, way, [*ANSWERED, ASKS, SYSTEM])


@scenario
async def an_empty_input(provider: Provider, way: Way) -> None:
    await answers_to(provider, way, [])


# --- guardrails --------------------------------------------------------------------------------


@input_guardrail
async def never(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info={"found": "order"}, tripwire_triggered=True)


@input_guardrail(run_in_parallel=False)
async def never_before(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@output_guardrail
async def nothing_said(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@scenario
async def an_input_guardrail_that_trips(provider: Provider, way: Way) -> None:
    provider.will_answer(says("In Lisbon."))
    await way(agent(provider, input_guardrails=[never]))


@scenario
async def an_input_guardrail_that_trips_before_the_model(provider: Provider, way: Way) -> None:
    provider.will_answer(says("In Lisbon."))
    await way(agent(provider, input_guardrails=[never_before]))


@scenario
async def an_input_guardrail_that_trips_late(provider: Provider, way: Way) -> None:
    asked = asyncio.Event()

    @function_tool
    async def ask() -> str:
        asked.set()
        await asyncio.sleep(0.2)
        return "asked"

    @input_guardrail
    async def slow(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
        await asyncio.wait_for(asked.wait(), 0.5)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    provider.will_answer(calls(("ask", "{}", "c1")), says("Done."))
    await way(agent(provider, tools=[ask], input_guardrails=[slow]))


@scenario
async def an_output_guardrail_that_trips(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says("In Lisbon."))
    await way(agent(provider, tools=[lookup], output_guardrails=[nothing_said]))


@scenario
async def an_output_guardrail_that_trips_over_structured_output(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"order": "A", "amount": 1.0}'))
    await way(agent(provider, output_type=Refund, output_guardrails=[nothing_said]))


@scenario
async def a_guardrail_that_refuses_a_call(provider: Provider, way: Way) -> None:
    @tool_input_guardrail
    def refuse(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("Not today.")

    @function_tool(tool_input_guardrails=[refuse])
    async def guarded(order: str) -> str:
        raise AssertionError

    provider.will_answer(calls(("guarded", '{"order": "A"}', "c1"), (*LOOKUP[:2], "c2")), says("Sorry."))
    await way(agent(provider, tools=[guarded, lookup]))


@scenario
async def a_guardrail_that_replaces_an_answer(provider: Provider, way: Way) -> None:
    @tool_output_guardrail
    def hide(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("(hidden)")

    @function_tool(tool_output_guardrails=[hide])
    async def secret() -> str:
        return "4711"

    provider.will_answer(calls(("secret", "{}", "c1")), says("Sorry."))
    await way(agent(provider, tools=[secret]))


@scenario
async def a_guardrail_that_ends_the_run_at_a_call(provider: Provider, way: Way) -> None:
    @tool_input_guardrail
    def stop(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.raise_exception()

    @function_tool(tool_input_guardrails=[stop])
    async def guarded() -> str:
        raise AssertionError

    provider.will_answer(calls(("guarded", "{}", "c1")), says("Sorry."))
    await way(agent(provider, tools=[guarded]))


@scenario
async def a_guardrail_that_ends_the_run_behind_a_call(provider: Provider, way: Way) -> None:
    @tool_output_guardrail
    def stop(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.raise_exception()

    @function_tool(tool_output_guardrails=[stop])
    async def guarded() -> str:
        return "4711"

    provider.will_answer(calls(LOOKUP), calls(("guarded", "{}", "c2")), says("Sorry."))
    await way(agent(provider, tools=[guarded, lookup]))


# --- tools -------------------------------------------------------------------------------------


@scenario
async def a_tool_that_fails(provider: Provider, way: Way) -> None:
    @function_tool
    async def broken(order: str) -> str:
        raise ValueError(f"no {order}")

    provider.will_answer(calls(("broken", '{"order": "A"}', "c1")), says("Sorry."))
    await way(agent(provider, tools=[broken]))


@scenario
async def a_tool_whose_failure_the_team_puts_into_words(provider: Provider, way: Way) -> None:
    @function_tool(failure_error_function=lambda context, error: f"Try later ({error}).")
    async def broken(order: str) -> str:
        raise ValueError(f"no {order}")

    provider.will_answer(
        calls(("broken", '{"order": "A"}', "c1")), calls(("broken", '{"order": "A"}', "c2")), says("Sorry.")
    )
    await way(agent(provider, tools=[broken]))


@scenario
async def a_tool_that_crashes(provider: Provider, way: Way) -> None:
    @function_tool(failure_error_function=None)
    async def crashing(order: str) -> str:
        raise ValueError(f"no {order}")

    provider.will_answer(calls(LOOKUP), calls(("crashing", '{"order": "A"}', "c2")))
    await way(agent(provider, tools=[crashing, lookup]))


@scenario
async def a_tool_that_crashes_beside_another(provider: Provider, way: Way) -> None:
    @function_tool(failure_error_function=None)
    async def crashing() -> str:
        await asyncio.sleep(0.05)
        raise ValueError("no")

    provider.will_answer(calls(LOOKUP, ("crashing", "{}", "c2")))
    await way(agent(provider, tools=[crashing, lookup]))


@scenario
async def a_tool_that_takes_too_long(provider: Provider, way: Way) -> None:
    @function_tool(timeout=0.05)
    async def slow() -> str:
        await asyncio.sleep(5)
        return "never"

    provider.will_answer(calls(("slow", "{}", "c1")), says("Sorry."))
    await way(agent(provider, tools=[slow]))


@scenario
async def arguments_that_are_no_json(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(("lookup", '{"order": "A', "c1")), says("Sorry."))
    await way(agent(provider, tools=[lookup]))


@scenario
async def arguments_that_do_not_fit(provider: Provider, way: Way) -> None:
    provider.will_answer(
        calls(("refund", '{"order": "A", "amount": "much"}', "c1")),
        calls(("refund", '{"order": "A", "amount": 1}', "c2")),
        says("Done."),
    )
    await way(agent(provider, tools=[refund]))


@scenario
async def arguments_that_are_no_object(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(("lookup", '["A"]', "c1")), calls(("lookup", "", "c2")), says("Sorry."))
    await way(agent(provider, tools=[lookup]))


@scenario
async def answers_of_tools_that_are_no_texts(provider: Provider, way: Way) -> None:
    @function_tool
    async def nothing() -> None:
        return None

    @function_tool
    async def many() -> list[Any]:
        return [1, 1.0, True, None, {"b": 1, "a": 2}]

    @function_tool
    async def typed() -> Refund:
        return Refund(order="A", amount=2)

    @function_tool
    async def half() -> float:
        return 0.5

    asked = [(name, "{}", f"c_{name}") for name in ("nothing", "many", "typed", "half")]
    provider.will_answer(calls(*asked), says("Done."))
    await way(agent(provider, tools=[nothing, many, typed, half]))


@scenario
async def an_answer_of_a_tool_that_is_a_picture(provider: Provider, way: Way) -> None:
    @function_tool
    async def picture() -> ToolOutputImage:
        return ToolOutputImage(image_url="data:image/png;base64,iVBORw0KGgo=")

    provider.will_answer(calls(("picture", "{}", "c1")), says("A cat."))
    await way(agent(provider, model=provider.responses, tools=[picture]))


@scenario
async def parallel_calls_that_end_in_another_order(provider: Provider, way: Way) -> None:
    @function_tool
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return f"waited {seconds}"

    asked = [("wait", json.dumps({"seconds": seconds}), f"c{n}") for n, seconds in enumerate((0.05, 0.0, 0.02))]
    provider.will_answer(calls(*asked), says("Done."))
    await way(agent(provider, tools=[wait]))


@scenario
async def equal_calls_side_by_side(provider: Provider, way: Way) -> None:
    counted = iter(range(10))

    @function_tool
    async def count() -> str:
        return str(next(counted))

    provider.will_answer(calls(*(("count", "{}", f"c{n}") for n in range(3))), says("Three."))
    await way(agent(provider, tools=[count]))


@scenario
async def a_tool_that_comes_later(provider: Provider, way: Way) -> None:
    known: list[str] = []

    @function_tool
    async def login() -> str:
        known.append("me")
        return "Hello."

    @function_tool(is_enabled=lambda context, agent: bool(known))
    async def account() -> str:
        return "12 orders"

    provider.will_answer(calls(("login", "{}", "c1")), calls(("account", "{}", "c2")), says("12."))
    await way(agent(provider, tools=[login, account]))


@scenario
async def a_tool_that_goes_away(provider: Provider, way: Way) -> None:
    uses: list[str] = []

    @function_tool(is_enabled=lambda context, agent: not uses)
    async def once() -> str:
        uses.append("used")
        return "That was it."

    provider.will_answer(calls(("once", "{}", "c1")), says("Done."))
    await way(agent(provider, tools=[once, lookup]))


@scenario
async def a_tool_with_much_nesting(provider: Provider, way: Way) -> None:
    @function_tool(strict_mode=False)
    async def deep(value: dict[str, Any]) -> str:
        return json.dumps(value)

    arguments = '{"value": ' + '{"a": ' * 120 + "1" + "}" * 120 + "}"
    provider.will_answer(calls(("deep", arguments, "c1")), says("Deep."))
    await way(agent(provider, tools=[deep]))


@scenario
async def a_tool_with_a_deep_answer_that_ends_the_run(provider: Provider, way: Way) -> None:
    @function_tool
    async def deep() -> Any:
        value: Any = 1
        for _ in range(120):
            value = {"a": value}
        return value

    provider.will_answer(calls(("deep", "{}", "c1")))
    await way(agent(provider, tools=[deep], tool_use_behavior="stop_on_first_tool"))


@scenario
async def a_tool_with_a_deep_answer(provider: Provider, way: Way) -> None:
    @function_tool
    async def deep() -> Any:
        value: Any = 1
        for _ in range(120):
            value = [value]
        return value

    provider.will_answer(calls(("deep", "{}", "c1")), says("Deep."))
    await way(agent(provider, tools=[deep]))


@scenario
async def structured_output_with_much_nesting(provider: Provider, way: Way) -> None:
    class Tree(BaseModel):
        tree: Any

    provider.will_answer(says('{"tree": ' + '{"a": ' * 120 + "1" + "}" * 120 + "}"))
    await way(agent(provider, output_type=AgentOutputSchema(Tree, strict_json_schema=False)))


@scenario
async def a_shell_of_the_team(provider: Provider, way: Way) -> None:
    asked = {
        "id": "ls_1",
        "type": "local_shell_call",
        "call_id": "c1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
    provider.will_answer(items(asked), says("One file."))
    await way(agent(provider, model=provider.responses, tools=[LocalShellTool(executor=lambda request: "a.txt")]))


# --- approvals ---------------------------------------------------------------------------------

CANCEL = ("cancel", '{"order": "A"}', "c1")


async def decided(provider: Provider, way: Way, cancelling: Agent[Any], *, approve: bool, stored: bool = False) -> Any:
    """Runs, decides every open call alike, and goes on."""
    result = await way(cancelling, "Cancel A.")
    state = result.to_state()
    if stored:
        state = await RunState.from_json(cancelling, json.loads(json.dumps(state.to_json())))
    for item in state.get_interruptions():
        state.approve(item) if approve else state.reject(item)
    return await way(cancelling, state)


@scenario
async def a_call_that_waits_for_a_person(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(CANCEL))
    await way(agent(provider, tools=[cancel]))


@scenario
async def a_call_that_a_person_approves(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(CANCEL, ("lookup", '{"order": "B"}', "c2")), says("Done."))
    await decided(provider, way, agent(provider, tools=[cancel, lookup]), approve=True)


@scenario
async def a_call_that_a_person_rejects(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(CANCEL, ("lookup", '{"order": "B"}', "c2")), says("Not done."))
    await decided(provider, way, agent(provider, tools=[cancel, lookup]), approve=False)


@scenario
async def a_stored_state_that_goes_on(provider: Provider, way: Way) -> None:
    provider.will_answer(
        calls((*LOOKUP[:2], "c0")), calls(CANCEL), calls(("lookup", '{"order": "B"}', "c3")), says("Done.")
    )
    await decided(provider, way, agent(provider, tools=[cancel, lookup]), approve=True, stored=True)


@scenario
async def calls_that_wait_twice(provider: Provider, way: Way) -> None:
    cancelling = agent(provider, tools=[cancel])
    provider.will_answer(calls(CANCEL), calls(("cancel", '{"order": "B"}', "c2")), says("Both."))
    result = await decided(provider, way, cancelling, approve=True)
    state = result.to_state()
    for item in state.get_interruptions():
        state.reject(item, rejection_message="Enough.")
    await way(cancelling, state)


@scenario
async def one_call_approved_and_one_left_open(provider: Provider, way: Way) -> None:
    cancelling = agent(provider, tools=[cancel])
    provider.will_answer(calls(CANCEL, ("cancel", '{"order": "B"}', "c2")), says("Both."))
    state = (await way(cancelling, "Cancel both.")).to_state()
    state.approve(state.get_interruptions()[0])
    state = (await way(cancelling, state)).to_state()
    state.approve(state.get_interruptions()[0])
    await way(cancelling, state)


@scenario
async def one_call_approved_and_one_rejected(provider: Provider, way: Way) -> None:
    cancelling = agent(provider, tools=[cancel])
    provider.will_answer(calls(CANCEL, ("cancel", '{"order": "B"}', "c2")), says("One."))
    state = (await way(cancelling, "Cancel both.")).to_state()
    state.approve(state.get_interruptions()[0])
    state.reject(state.get_interruptions()[1])
    await way(cancelling, state)


@scenario
async def a_call_that_is_approved_for_good(provider: Provider, way: Way) -> None:
    cancelling = agent(provider, tools=[cancel])
    provider.will_answer(calls(CANCEL), calls(("cancel", '{"order": "B"}', "c2")), says("Both."))
    state = (await way(cancelling, "Cancel both.")).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    await way(cancelling, state)


@scenario
async def an_approved_call_that_ends_the_run(provider: Provider, way: Way) -> None:
    cancelling = agent(provider, tools=[cancel], tool_use_behavior="stop_on_first_tool")
    provider.will_answer(calls(CANCEL))
    await decided(provider, way, cancelling, approve=True)


@scenario
async def an_approval_behind_a_handoff(provider: Provider, way: Way) -> None:
    cancelling = agent(provider, "Cancelling", tools=[cancel])
    triage = agent(provider, tools=[lookup], handoffs=[cancelling])
    provider.will_answer(calls(("transfer_to_cancelling", "{}", "c0")), calls(CANCEL), says("Done."))
    await decided(provider, way, triage, approve=True)


@scenario
async def an_approval_inside_an_agent_as_tool(provider: Provider, way: Way) -> None:
    inner = agent(provider, "Cancelling", tools=[cancel])
    outer = agent(provider, tools=[inner.as_tool("ask", "Ask.")])
    provider.will_answer(calls(("ask", '{"input": "Cancel A."}', "c0")), calls(CANCEL), says("Done."), says("It is."))
    await decided(provider, way, outer, approve=True)


# --- what runs at the provider -----------------------------------------------------------------

SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "shoes"},
}


@scenario
async def a_search_of_the_provider(provider: Provider, way: Way) -> None:
    provider.will_answer(items(SEARCH, message_item("I looked."), call_item(*LOOKUP)), says("It has."))
    await way(agent(provider, model=provider.responses, tools=[WebSearchTool(), lookup]))


@scenario
async def only_a_search_of_the_provider(provider: Provider, way: Way) -> None:
    provider.will_answer(items(SEARCH, message_item("Shoes.")))
    await way(agent(provider, model=provider.responses, tools=[WebSearchTool()]))


@scenario
async def a_server_of_tools_at_the_provider(provider: Provider, way: Way) -> None:
    listed = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "docs", "tools": []}
    called = {
        "id": "mcp_1",
        "type": "mcp_call",
        "server_label": "docs",
        "name": "find",
        "arguments": "{}",
        "output": "x",
    }
    config: Any = {
        "type": "mcp",
        "server_label": "docs",
        "server_url": "https://docs.example",
        "require_approval": "never",
    }
    provider.will_answer(items(listed, called, message_item("Found.")))
    await way(agent(provider, model=provider.responses, tools=[HostedMCPTool(tool_config=config)]))


THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Look it up."}],
    "encrypted_content": "c2lnbmVk",
}


@scenario
async def reasoning(provider: Provider, way: Way) -> None:
    provider.will_answer(
        items(THOUGHT, call_item(*LOOKUP)),
        items({**THOUGHT, "id": "rs_2", "summary": []}, message_item("It has.")),
    )
    await way(agent(provider, model=provider.responses, tools=[lookup]))


@scenario
async def reasoning_and_nothing_else(provider: Provider, way: Way) -> None:
    provider.will_answer(items(THOUGHT), items(THOUGHT, message_item("It has.")))
    await way(agent(provider, model=provider.responses, tools=[lookup]))


@scenario
async def several_messages_in_one_answer(provider: Provider, way: Way) -> None:
    provider.will_answer(says("First.", "Second."))
    await way(agent(provider, model=provider.responses))


@scenario
async def messages_around_a_call_in_one_answer(provider: Provider, way: Way) -> None:
    provider.will_answer(
        items(message_item("I look."), call_item(*LOOKUP), message_item("One moment.")), says("It has.")
    )
    await way(agent(provider, model=provider.responses, tools=[lookup]))


@scenario
async def several_structured_messages_in_one_answer(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"order": "A", "amount": 1.0}', '{"order": "B", "amount": 2.0}'))
    await way(agent(provider, model=provider.responses, output_type=Refund))


# --- answers that hold little ------------------------------------------------------------------


@scenario
async def an_empty_text(provider: Provider, way: Way) -> None:
    provider.will_answer(says(""))
    await way(agent(provider))


@scenario
async def an_empty_text_after_a_tool(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says(""))
    await way(agent(provider, model=provider.responses, tools=[lookup]))


@scenario
async def an_empty_text_beside_a_call(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP, text=""), says("It has."))
    await way(agent(provider, model=provider.responses, tools=[lookup]))


@scenario
async def an_empty_text_in_place_of_structured_output(provider: Provider, way: Way) -> None:
    provider.will_answer(says(""), says('{"order": "A"}'))
    await way(agent(provider, model=provider.responses, output_type=Refund))


@scenario
async def an_answer_without_items(provider: Provider, way: Way) -> None:
    provider.will_answer(items())
    await way(agent(provider, model=provider.responses, tools=[lookup]))


@scenario
async def blanks_around_a_text(provider: Provider, way: Way) -> None:
    provider.will_answer(says("  \n "))
    await way(agent(provider))


# --- structured output -------------------------------------------------------------------------


@scenario
async def structured_output_with_keys_that_the_class_ignores(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says('{"order": "A", "amount": 1, "note": "x", "more": [1]}'))
    loose = AgentOutputSchema(Refund, strict_json_schema=False)
    await way(agent(provider, tools=[lookup], output_type=loose))


class Order(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    number: str
    lines: list[Refund] = []

    @field_validator("number")
    @classmethod
    def upper(cls, value: str) -> str:
        return value.upper()


@scenario
async def a_tool_with_an_answer_like_bytes(provider: Provider, way: Way) -> None:
    @function_tool(strict_mode=False)
    async def echo(x: Any) -> Any:
        return x

    value = {"base64": "YWJj", "media_type": "text/plain"}
    provider.will_answer(calls(("echo", json.dumps({"x": value}), "c1")), says(json.dumps(value)))
    await way(agent(provider, tools=[echo]))


@scenario
async def structured_output_that_the_class_changes(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"number": " a-1 ", "lines": [{"order": "A", "amount": 1, "x": 2}]}'))
    await way(agent(provider, output_type=AgentOutputSchema(Order, strict_json_schema=False)))


class Aliased(BaseModel):
    order_number: str = Field(alias="orderNumber")


@scenario
async def structured_output_with_other_names(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"orderNumber": "A"}'))
    await way(agent(provider, output_type=Aliased))


@dataclass
class Plain:
    order: str
    amount: float = 0


class Typed(TypedDict):
    order: str
    amount: float


@scenario
async def structured_output_as_a_dataclass(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"response": {"order": "A", "amount": 1}}'))
    await way(agent(provider, output_type=Plain))


@scenario
async def structured_output_as_a_typed_dict(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"response": {"order": "A", "amount": 1.0}}'))
    await way(agent(provider, output_type=Typed))


@scenario
async def structured_output_as_a_list(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"response": ["a", "b"]}'))
    await way(agent(provider, output_type=list[str]))


@scenario
async def structured_output_as_a_choice(provider: Provider, way: Way) -> None:
    provider.will_answer(says('{"response": "yes"}'))
    await way(agent(provider, output_type=Literal["yes", "no"]))


@scenario
async def structured_output_that_does_not_fit(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says('{"amount": 1}'))
    await way(agent(provider, tools=[lookup], output_type=Refund))


@scenario
async def structured_output_that_is_no_json(provider: Provider, way: Way) -> None:
    provider.will_answer(says("It is refunded."))
    await way(agent(provider, output_type=Refund))


@scenario
async def structured_output_beside_a_call(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP, text='{"order": "A"}'), says('{"order": "B", "amount": 2.5}'))
    await way(agent(provider, tools=[lookup], output_type=Refund))


# --- agents in agents --------------------------------------------------------------------------


@scenario
async def an_agent_as_tool(provider: Provider, way: Way) -> None:
    inner = agent(provider, "Billing", tools=[refund])
    provider.will_answer(
        calls(("ask", '{"input": "Refund A."}', "c1")),
        calls(("refund", '{"order": "A", "amount": 1}', "c1")),
        says("Refunded."),
        says("It is done."),
    )
    await way(agent(provider, tools=[inner.as_tool("ask", "Ask.")]))


@scenario
async def an_agent_as_tool_with_structured_output(provider: Provider, way: Way) -> None:
    inner = agent(provider, "Billing", output_type=Refund)
    provider.will_answer(
        calls(("ask", '{"input": "Refund A."}', "c1")), says('{"order": "A", "amount": 1}'), says("It is done.")
    )
    await way(agent(provider, tools=[inner.as_tool("ask", "Ask.")]))


@scenario
async def agents_as_tools_side_by_side(provider: Provider, way: Way) -> None:
    tools = [agent(provider, name).as_tool(f"ask_{name.lower()}", "Ask.", max_turns=3) for name in ("Billing", "Sales")]
    provider.will_answer(
        calls(("ask_billing", '{"input": "a"}', "c1"), ("ask_sales", '{"input": "b"}', "c2")),
        says("One of both."),
        says("The other."),
        says("Both said something."),
    )
    await way(agent(provider, tools=tools))


@scenario
async def an_agent_in_an_agent_in_an_agent(provider: Provider, way: Way) -> None:
    deepest = agent(provider, "Fraud", tools=[lookup])
    middle = agent(provider, "Billing", tools=[deepest.as_tool("ask_fraud", "Ask.")])
    provider.will_answer(
        calls(("ask_billing", '{"input": "a"}', "c1")),
        calls(("ask_fraud", '{"input": "b"}', "c1")),
        calls(LOOKUP),
        says("Fine."),
        says("All is fine."),
        says("It is fine."),
    )
    await way(agent(provider, tools=[middle.as_tool("ask_billing", "Ask.")]))


@scenario
async def an_agent_as_tool_that_hands_off(provider: Provider, way: Way) -> None:
    inner = agent(provider, "Billing", handoffs=[agent(provider, "Fraud", tools=[lookup])])
    provider.will_answer(
        calls(("ask", '{"input": "a"}', "c1")),
        calls(("transfer_to_fraud", "{}", "c1")),
        calls(("lookup", '{"order": "A"}', "c2")),
        says("Fine."),
        says("All is fine."),
    )
    await way(agent(provider, tools=[inner.as_tool("ask", "Ask.")]))


@scenario
async def an_agent_as_tool_with_too_many_turns(provider: Provider, way: Way) -> None:
    inner = agent(provider, "Billing", tools=[lookup])
    provider.will_answer(calls(("ask", '{"input": "a"}', "c1")), calls(LOOKUP), says("It did not answer."))
    await way(agent(provider, tools=[inner.as_tool("ask", "Ask.", max_turns=1)]))


# --- turns, sessions, surroundings -------------------------------------------------------------


@scenario
async def three_turns_of_a_session(provider: Provider, way: Way) -> None:
    session = SQLiteSession("chat-2")
    for n in range(3):
        provider.will_answer(calls(("lookup", json.dumps({"order": str(n)}), f"c{n}")), says(f"{n} has shipped."))
        await way(agent(provider, tools=[lookup]), f"Where is {n}?", session=session)


@scenario
async def a_session_over_a_handoff(provider: Provider, way: Way) -> None:
    session = SQLiteSession("chat-3")
    billing = agent(provider, "Billing", tools=[refund])
    triage = agent(provider, tools=[lookup], handoffs=[billing])
    provider.will_answer(calls(("transfer_to_billing", "{}", "c1")), says("Yes?"))
    result = await way(triage, "Hello.", session=session)
    provider.will_answer(calls(("refund", '{"order": "A", "amount": 1}', "c2")), says("Done."))
    await way(result.last_agent, "Refund A.", session=session)


@scenario
async def a_session_that_the_team_cuts(provider: Provider, way: Way) -> None:
    session = SQLiteSession("chat-4")
    config = RunConfig(session_input_callback=lambda history, new: [*history[-1:], *new])
    for n in range(2):
        provider.will_answer(calls(("lookup", json.dumps({"order": str(n)}), f"c{n}")), says(f"{n} has shipped."))
        await way(agent(provider, tools=[lookup]), f"Where is {n}?", session=session, run_config=config)


@scenario
async def a_session_behind_a_tool_that_ended_the_turn(provider: Provider, way: Way) -> None:
    session = SQLiteSession("chat-5")
    stopping = agent(provider, tools=[lookup], tool_use_behavior="stop_on_first_tool")
    provider.will_answer(calls(LOOKUP))
    await way(stopping, "Where is A?", session=session)
    provider.will_answer(says("Yes."))
    await way(stopping, "Sure?", session=session)


@scenario
async def a_conversation_that_the_provider_keeps(provider: Provider, way: Way) -> None:
    provider.will_answer(items(call_item(*LOOKUP)), says("It has."))
    keeping = agent(provider, model=provider.responses, tools=[lookup])
    await way(keeping, previous_response_id="resp_1", auto_previous_response_id=True)


@scenario
async def instructions_that_change(provider: Provider, way: Way) -> None:
    turns = iter(range(10))
    provider.will_answer(calls(LOOKUP), calls(("lookup", '{"order": "B"}', "c2")), says("Both."))
    await way(agent(provider, tools=[lookup], instructions=lambda context, agent: f"Turn {next(turns)}."))


@scenario
async def no_instructions(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says("It has."))
    await way(agent(provider, tools=[lookup], instructions=None))


@scenario
async def a_tool_that_must_be_used(provider: Provider, way: Way) -> None:
    provider.will_answer(calls(LOOKUP), says("It has."))
    await way(agent(provider, tools=[lookup], model_settings=ModelSettings(tool_choice="lookup", temperature=0.5)))


@scenario
async def many_turns(provider: Provider, way: Way) -> None:
    provider.will_answer(*(calls(("lookup", f'{{"order": "{n}"}}', f"c{n}")) for n in range(60)), says("All."))
    await way(agent(provider, tools=[lookup]), max_turns=80)
