"""Runs of the OpenAI Agents SDK: what the hook writes down, and that it replays where the loops agree."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    tool_input_guardrail,
)
from agents.extensions.handoff_filters import remove_all_tools
from agents.run import CallModelData, ModelInputData
from agents.tool import CustomTool, FileSearchTool, HostedMCPTool, LocalShellTool, ShellTool, WebSearchTool
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionWebSearch, ResponseReasoningItem
from openai.types.responses.response_output_item import LocalShellCall
from pydantic import BaseModel

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import judge
from tests.recorder.openai_playing import (
    WAYS,
    Record,
    agent,
    bytes_of,
    calls,
    lookup,
    one_record,
    recorded,
    run,
    says,
    steps_of,
    streamed,
)
from tests.recorder.replaying import assert_promise_kept, replayed, verdict_of


def assert_reproduced(record: Record) -> None:
    assert judge(parse_native(bytes_of(record))).verdict == "replayable"
    assert verdict_of(record) == ("reproduced", None, None)


def one_lookup(call_id: str = "c1", **facts: Any) -> Agent[Any]:
    return agent([calls("lookup", '{"order": "A"}', call_id)], [says("It has shipped.")], tools=[lookup], **facts)


# --- a run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_text_is_recorded_and_reproduced(way: str):
    record = one_record(lambda: WAYS[way](agent([says("In Lisbon.")])))

    assert {key: record[key] for key in ("input", "output", "status", "instructions", "model", "last_agent")} == {
        "input": "Where is it?",
        "output": "In Lisbon.",
        "status": "ok",
        "instructions": "Be kind.",
        "model": "scripted-1",
        "last_agent": "Support",
    }
    assert record["agent"] == {
        "name": "Support",
        "framework": "openai-agents",
        "framework_version": "0.24.0",
        "entry_point": way,
    }
    assert record["final"] == {"after": 1, "messages": []}
    assert_reproduced(record)


def test_a_changed_answer_is_found():
    record = one_record(lambda: run(agent([says("In Lisbon.")])))
    record["steps"][0]["response"]["parts"][0]["content"] = "In Lisbom."

    assert verdict_of(record) == ("diverged", 1, "output")


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_call_is_recorded_and_reproduced(way: str):
    record = one_record(lambda: WAYS[way](one_lookup()))

    asked, tool, answered = record["steps"]
    assert asked["request"] == {
        "messages": [
            {
                "kind": "request",
                "parts": [{"part_kind": "user-prompt", "content": "Where is it?"}],
                "instructions": "Be kind.",
            }
        ]
    }
    assert asked["response"]["parts"] == [
        {"part_kind": "tool-call", "tool_name": "lookup", "args": '{"order": "A"}', "tool_call_id": "c1"}
    ]
    assert {key: tool[key] for key in ("tool_name", "call_id", "arguments", "result", "outcome", "parent")} == {
        "tool_name": "lookup",
        "call_id": "c1",
        "arguments": '{"order": "A"}',
        "result": "A has shipped",
        "outcome": "success",
        "parent": 1,
    }
    assert answered["request"] == {
        "after": 1,
        "messages": [
            {
                "kind": "request",
                "parts": [
                    {
                        "part_kind": "tool-return",
                        "tool_name": "lookup",
                        "content": "A has shipped",
                        "tool_call_id": "c1",
                        "outcome": "success",
                    }
                ],
                "instructions": "Be kind.",
            }
        ],
    }
    assert_reproduced(record)


def test_one_changed_byte_of_a_tool_answer_is_found():
    record = one_record(lambda: run(one_lookup()))
    record["steps"][1]["result"] = "A has shippet"

    assert verdict_of(record) == ("diverged", 3, "messages[2].parts[0].content")


def test_tools_and_parameters_of_a_request_are_written_once():
    record = one_record(lambda: run(one_lookup(handoffs=[agent(name="Billing")])))

    assert [(tool["name"], tool["description"], tool["strict"]) for tool in record["tools"]] == [
        ("lookup", "Find one order.", True),
        ("transfer_to_billing", "Handoff to the Billing agent to handle the request. ", True),
    ]
    assert record["tools"][0]["parameters_json_schema"] == lookup.params_json_schema
    assert record["parameters"] == [
        {
            "function_tools": record["tools"],
            "hosted_tools": [],
            "prompt": None,
            "output_mode": "text",
            "output_object": None,
            "output_tools": [],
            "allow_text_output": True,
        }
    ]
    assert [(step["tools"], step["parameters"]) for step in steps_of(record, "model")] == [([0, 1], 0), ([0, 1], 0)]


def test_a_changed_tool_description_is_found():
    record = one_record(lambda: run(one_lookup()))
    record["tools"][0]["description"] = "Find an order."

    assert [reason.code for reason in judge(parse_native(bytes_of(record))).reasons] == ["tools_contradicted"]
    assert verdict_of(record)[0] == "could_not_run"


def test_run_sync_is_told_from_the_runs_inside_it():
    @function_tool
    async def ask() -> str:
        return str((await run(agent([says("Yes.")], name="Inner"))).final_output)

    outer = agent([calls("ask", "{}", "c1")], [says("Done.")], tools=[ask])

    async def in_thread() -> None:
        await asyncio.to_thread(run_sync_here, outer)

    records = recorded(in_thread)

    assert [(record["agent"]["name"], record["agent"]["entry_point"]) for record in records] == [
        ("Support", "run_sync"),
        ("Inner", "run"),
    ]


def run_sync_here(agent: Agent[Any]) -> None:
    """In a thread of its own, with a loop that is closed at the end."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        Runner.run_sync(agent, "Where is it?")
    finally:
        loop.close()


def test_the_items_of_the_sdk_are_kept_as_structures():
    record = one_record(lambda: run(one_lookup()))

    assert [item["type"] for item in record["items"]] == [
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]
    assert record["items"][1]["raw"] == {"call_id": "c1", "output": "A has shipped", "type": "function_call_output"}


def test_the_kit_is_captured_but_for_what_nobody_set_or_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_COMMIT", "9f2c1e7")
    facts = {"user_id": "u_7710", "tenant_id": "t_north", "flags": {"beta": True}, "region": "eu"}

    record = one_record(lambda: streamed(one_lookup()), context=lambda context: facts)

    kit = audit_kit(parse_native(bytes_of(record)))
    lines = {line.key: line.status for line in kit.lines}
    # A scripted model is served by nobody, nobody set a seed, and the tool sends no HTTP.
    gaps = {"model": "partial", "sampling": "partial", "tool_io": "partial"}
    assert lines == dict.fromkeys(lines, "captured") | gaps


# --- requests and answers of models ------------------------------------------------------------


def test_a_streamed_run_has_first_tokens_and_what_the_provider_says_of_its_answer():
    record = one_record(lambda: streamed(one_lookup()))

    for step in steps_of(record, "model"):
        assert step["started_at"] <= step["first_token_at"]
        assert (step["answered_model"], step["finish_reason"]) == ("scripted-1-2026", "stop")
        assert (step["input_tokens"], step["output_tokens"]) == (11, 7)
        assert step["response"]["usage"] == {
            "input_tokens": 11,
            "output_tokens": 7,
            "cache_read_tokens": 4,
            "details": {"reasoning_tokens": 2},
        }
        assert step["response"]["provider_response_id"] == "resp_1"


def test_a_run_that_is_not_streamed_has_no_first_token():
    record = one_record(lambda: run(one_lookup()))

    assert ["first_token_at" in step for step in steps_of(record, "model")] == [False, False]


def test_settings_that_were_left_to_the_provider_are_said_as_null():
    record = one_record(lambda: run(agent([says("Hi.")])))

    assert record["steps"][0]["settings"] == {"temperature": None, "top_p": None, "seed": None}


def test_settings_are_those_of_the_request_and_hold_no_keys():
    settings = ModelSettings(
        temperature=0.5,
        tool_choice="required",
        extra_args={"seed": 3},
        extra_headers={"Authorization": "Bearer sk-secret"},
        retry=ModelRetrySettings(max_retries=1, policy=lambda context: True),
    )
    config = RunConfig(model_settings=ModelSettings(temperature=0.25))

    record = one_record(lambda: run(one_lookup(model_settings=settings), run_config=config))

    first, second = steps_of(record, "model")
    assert first["settings"] == {
        "temperature": 0.25,
        "top_p": None,
        "seed": 3,
        "tool_choice": "required",
        "extra_headers": {"Authorization": "[redacted]"},
    }
    # The SDK lets go of the choice once a tool was used.
    assert "tool_choice" not in second["settings"]
    assert_reproduced(record)


def test_failed_attempts_stand_beside_the_answer_that_came():
    settings = ModelSettings(
        retry=ModelRetrySettings(max_retries=1, policy=lambda context: True, backoff={"initial_delay": 0.001})
    )

    record = one_record(lambda: run(agent(RuntimeError("503"), [says("Hi.")], model_settings=settings)))

    (step,) = record["steps"]
    assert [(failed["type"], failed["message"]) for failed in step["failed_attempts"]] == [("RuntimeError", "503")]
    assert "error" not in step
    assert_reproduced(record)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_fails_fails_its_step_and_the_run(way: str):
    record = one_record(lambda: WAYS[way](agent(RuntimeError("503"))))

    assert record["status"] == "error"
    assert record["error"] == record["steps"][0]["error"] == {"type": "RuntimeError", "message": "503"}
    assert_reproduced(record)


def test_reasoning_is_thinking():
    thought = ResponseReasoningItem.model_validate(
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Look it up."}],
            "encrypted_content": "c2lnbmVk",
        }
    )
    looking = agent([thought, calls("lookup", '{"order": "A"}', "c1")], [says("It has.")], tools=[lookup])

    record = one_record(lambda: run(looking))

    assert record["steps"][0]["response"]["parts"][0] == {
        "part_kind": "thinking",
        "content": "Look it up.",
        "id": "rs_1",
        "signature": "c2lnbmVk",
        "provider_name": "openai",
    }
    assert record["steps"][2]["request"]["after"] == 1
    assert_reproduced(record)


def test_tools_of_the_provider_are_no_functions():
    search = ResponseFunctionWebSearch.model_validate(
        {
            "id": "ws_1",
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "search", "query": "shoes"},
        }
    )
    searching = agent(
        [search, calls("lookup", '{"order": "A"}', "c1")], [says("It has.")], tools=[WebSearchTool(), lookup]
    )

    record = one_record(lambda: run(searching))

    first = record["steps"][0]
    hosted = record["parameters"][first["parameters"]]["hosted_tools"]
    assert [(tool["type"], tool["name"]) for tool in hosted] == [("WebSearchTool", "web_search")]
    assert first["response"]["parts"][0] == {
        "part_kind": "builtin-tool-call",
        "tool_name": "web_search",
        "args": {"status": "completed", "action": {"type": "search", "query": "shoes"}},
        "tool_call_id": "ws_1",
    }
    assert [tool["name"] for tool in record["tools"]] == ["lookup"]
    assert_reproduced(record)


def test_a_tool_of_the_provider_is_recorded_with_all_that_it_is_told_but_its_secrets():
    config: Any = {
        "type": "mcp",
        "server_label": "docs",
        "server_url": "https://mcp.example/?api_key=sk-1",
        "authorization": "sk-2",
        "headers": {"X-Key": "sk-3"},
    }
    search = FileSearchTool(vector_store_ids=["v"], filters={"type": "eq", "key": "year", "value": 2026})

    secret = {"domain": "mcp.example", "name": "KEY", "value": "sk-4"}
    policy = {"type": "allowlist", "allowed_domains": ["mcp.example"], "domain_secrets": [secret]}
    environment: Any = {"type": "container_auto", "network_policy": policy}
    shell = ShellTool(environment=environment)

    record = one_record(lambda: run(agent([says("Hi.")], tools=[HostedMCPTool(tool_config=config), search, shell])))

    assert "sk-" not in json.dumps(record)
    mcp, files, _ = record["parameters"][0]["hosted_tools"]
    assert mcp["tool_config"] == {
        **config,
        "server_url": "https://mcp.example/?api_key=[redacted]",
        "authorization": "[redacted]",
        "headers": {"X-Key": "[redacted]"},
    }
    assert files == {
        "type": "FileSearchTool",
        "name": "file_search",
        "vector_store_ids": ["v"],
        "include_search_results": False,
        "filters": {"type": "eq", "key": "year", "value": 2026},
    }


@pytest.mark.parametrize(
    ("facts", "changed", "place"),
    [
        ({"tools": [WebSearchTool()]}, {"tools": [WebSearchTool(search_context_size="low")]}, "hosted_tools[0]"),
        ({"prompt": {"id": "pmpt_1"}}, {"prompt": {"id": "pmpt_2"}}, "prompt.id"),
    ],
)
def test_what_only_the_provider_is_told_is_taken_from_the_recording_and_compared_with_another(facts, changed, place):
    records = [one_record(partial(run, agent([says("Hi.")], **each))) for each in (facts, changed)]
    one, other = (parse_native(bytes_of(record)) for record in records)

    result, _ = replayed(encode_native(one))
    assert (result.verdict, result.facts["proof"]["parameters"]["state"]) == ("reproduced", "not_comparable")
    assert compare_runs(one, one).identical
    compared = compare_runs(one, other)
    assert compared.divergence is not None
    assert compared.divergence.path.startswith(f"parameters.{place}")


# --- tools -------------------------------------------------------------------------------------


def test_parallel_calls_begin_in_the_order_of_the_calls_and_end_when_they_end():
    fast_is_done = asyncio.Event()

    @function_tool
    async def slow() -> str:
        await fast_is_done.wait()
        return "slow"

    @function_tool
    async def fast() -> str:
        fast_is_done.set()
        return "fast"

    asking = agent([calls("slow", "{}", "c1"), calls("fast", "{}", "c2")], [says("Done.")], tools=[slow, fast])

    record = one_record(lambda: run(asking))

    first, second = steps_of(record, "tool")
    assert [(step["tool_name"], step["result"], step["parent"]) for step in (first, second)] == [
        ("slow", "slow", 1),
        ("fast", "fast", 1),
    ]
    assert first["duration_ms"] > second["duration_ms"]
    assert first["started_at"] < second["started_at"]
    assert_reproduced(record)
    first["result"], second["result"] = second["result"], first["result"]
    assert verdict_of(record) == ("diverged", 4, "messages[2].parts[0].content")


def test_an_answer_is_what_the_model_was_told_and_what_the_tool_gave():
    @function_tool
    def half() -> dict[str, Any]:
        return {"n": 1, "half": 0.5, "none": None}

    record = one_record(lambda: run(agent([calls("half", "{}", "c1")], [says("Done.")], tools=[half])))

    (tool,) = steps_of(record, "tool")
    assert tool["result"] == "{'n': 1, 'half': 0.5, 'none': None}"
    assert tool["returned"] == {"n": 1, "half": 0.5, "none": None}
    assert_reproduced(record)


@function_tool
async def broken(order: str) -> str:
    raise ValueError(f"no {order}")


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_fails_is_recorded_with_what_the_model_was_told(way: str):
    failing = agent([calls("broken", '{"order": "A"}', "c1")], [says("Sorry.")], tools=[broken])

    record = one_record(lambda: WAYS[way](failing))

    (tool,) = steps_of(record, "tool")
    assert (tool["outcome"], tool["error"]) == ("failed", {"type": "ValueError", "message": "no A"})
    assert tool["result"].startswith("An error occurred while running the tool.")
    assert record["status"] == "ok"
    assert_reproduced(record)


def test_arguments_that_do_not_fit_are_a_failure_of_the_call():
    failing = agent([calls("broken", '{"order": 7', "c1")], [says("Sorry.")], tools=[broken])

    record = one_record(lambda: run(failing))

    (tool,) = steps_of(record, "tool")
    assert (tool["arguments"], tool["outcome"], tool["error"]["type"]) == (
        '{"order": 7',
        "failed",
        "ModelBehaviorError",
    )


def test_arguments_that_lie_deep_are_given_to_the_tool():
    """The SDK reads what Pydantic AI's loop, in which its runs are replayed, refuses to read."""
    deep = "[" * 400 + "]" * 400
    asking = agent([calls("lookup", f'{{"order": {deep}}}', "c1")], [says("Sorry.")], tools=[lookup])

    record = one_record(lambda: run(asking))

    assert steps_of(record, "tool")[0]["arguments"] == f'{{"order": {deep}}}'
    assert_reproduced(record)


@function_tool(failure_error_function=None)
async def crashing(order: str) -> str:
    raise ValueError(f"no {order}")


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_crashes_ends_the_run(way: str):
    failing = agent([calls("crashing", '{"order": "A"}', "c1")], tools=[crashing])

    record = one_record(lambda: WAYS[way](failing))

    (tool,) = steps_of(record, "tool")
    raised = {"type": "UserError", "message": "Error running tool crashing: no A"}
    assert (tool["outcome"], tool["error"]) == (
        "crashed",
        {**raised, "cause": {"type": "ValueError", "message": "no A"}},
    )
    assert (record["status"], record["error"]) == ("error", raised)
    assert_reproduced(record)


def test_the_crash_of_one_call_interrupts_the_other():
    @function_tool
    async def waiting() -> str:
        await asyncio.Event().wait()
        return "never"

    failing = agent(
        [calls("waiting", "{}", "c1"), calls("crashing", '{"order": "A"}', "c2")], tools=[waiting, crashing]
    )

    record = one_record(lambda: run(failing))

    assert [(step["tool_name"], step["outcome"]) for step in steps_of(record, "tool")] == [
        ("waiting", "interrupted"),
        ("crashing", "crashed"),
    ]
    assert ["duration_ms" in step for step in record["steps"]] == [True, True, True]


def test_a_call_that_a_guardrail_refuses_has_its_answer():
    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("Not today.")

    @function_tool(tool_input_guardrails=[never])
    async def guarded() -> str:
        raise AssertionError

    record = one_record(lambda: run(agent([calls("guarded", "{}", "c1")], [says("Sorry.")], tools=[guarded])))

    (tool,) = steps_of(record, "tool")
    assert (tool["tool_name"], tool["arguments"], tool["result"], tool["parent"]) == ("guarded", "{}", "Not today.", 1)
    assert "outcome" not in tool
    assert record["tool_input_guardrails"][0]["behavior"] == {"type": "reject_content", "message": "Not today."}
    assert_reproduced(record)


def test_a_tool_that_the_sdk_does_not_know_leaves_no_call():
    record = one_record(lambda: run(agent([calls("nothing", "{}", "c1")], tools=[lookup])))

    assert [step["kind"] for step in record["steps"]] == ["model"]
    assert record["error"] == {"type": "ModelBehaviorError", "message": "Tool nothing not found in agent Support"}
    assert record["steps"][0]["response"]["parts"][0]["tool_name"] == "nothing"


def test_a_shell_call_finds_its_answer():
    call = LocalShellCall.model_validate(
        {
            "id": "ls_1",
            "type": "local_shell_call",
            "call_id": "c1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        }
    )
    shell = LocalShellTool(executor=lambda request: "a.txt")

    record = one_record(lambda: run(agent([call], [says("One file.")], tools=[shell])))

    (tool,) = steps_of(record, "tool")
    assert (tool["tool_name"], tool["call_id"], tool["result"], tool["outcome"]) == (
        "local_shell",
        "c1",
        "a.txt",
        "success",
    )
    assert tool["arguments"]["action"]["command"] == ["ls"]
    assert_reproduced(record)


def test_a_tool_that_is_given_free_text_has_the_arguments_of_its_call():
    async def ran(context: Any, said: str) -> str:
        return f"ran {said}"

    call = ResponseCustomToolCall(type="custom_tool_call", call_id="c1", name="sql", input="SELECT 1")
    sql = CustomTool(name="sql", description="Ask the database.", on_invoke_tool=ran)

    record = one_record(lambda: run(agent([call], [says("One.")], tools=[sql])))

    (tool,) = steps_of(record, "tool")
    assert (tool["arguments"], tool["result"]) == ({"input": "SELECT 1"}, "ran SELECT 1")
    assert_reproduced(record)
    tool["arguments"] = {"input": "DROP TABLE orders"}
    judged = judge(parse_native(bytes_of(record)))
    assert [reason.code for reason in judged.reasons] == ["call_contradicted"]


# --- agents ------------------------------------------------------------------------------------


def billing(**facts: Any) -> Agent[Any]:
    script = [calls("lookup", '{"order": "B"}', "b1")], [says("Paid.")]
    return agent(*script, name="Billing", instructions="You bill.", tools=[lookup], **facts)


@pytest.mark.parametrize("way", WAYS)
def test_a_handoff_is_a_call_that_the_loop_answers(way: str):
    triage = agent([calls("transfer_to_billing", "{}", "c1")], handoffs=[billing()])

    record = one_record(lambda: WAYS[way](triage))

    assert [(step.get("tool_name") or step["name"], step["agent"]) for step in record["steps"]] == [
        ("scripted-1", "Support"),
        ("transfer_to_billing", "Support"),
        ("scripted-1", "Billing"),
        ("lookup", "Billing"),
        ("scripted-1", "Billing"),
    ]
    moved = record["steps"][1]
    assert (moved["handoff"], moved["result"], moved["outcome"], moved["parent"]) == (
        {"from": "Support", "to": "Billing", "instructions": "You bill."},
        '{"assistant": "Billing"}',
        "success",
        1,
    )
    assert record["steps"][2]["request"]["messages"][0]["instructions"] == "You bill."
    assert (record["instructions"], record["agent"]["name"], record["last_agent"]) == ("Be kind.", "Support", "Billing")
    assert_reproduced(record)


def test_a_handoff_that_rewrites_the_history_begins_it_anew():
    target = handoff(billing(), input_filter=remove_all_tools)
    triage = agent(
        [calls("lookup", '{"order": "A"}', "c0")],
        [calls("transfer_to_billing", "{}", "c1")],
        tools=[lookup],
        handoffs=[target],
    )

    record = one_record(lambda: run(triage))

    histories = [step["request"] for step in steps_of(record, "model")]
    assert [history.get("after") for history in histories] == [None, 1, None, 5]
    assert [part["part_kind"] for message in histories[2]["messages"] for part in message["parts"]] == ["user-prompt"]
    # Nobody was told of it; it is known all the same.
    assert record["steps"][3]["result"] == '{"assistant": "Billing"}'
    verdict = judge(parse_native(bytes_of(record)))
    assert (verdict.verdict, verdict.step) == ("replayable_to_step", 4)
    assert verdict_of(record) == ("unknown_from_step", 5, "steps[5]")


def test_an_agent_as_tool_is_a_run_of_its_own():
    asking = agent([calls("ask", '{"input": "Paid?"}', "c1")], [says("Yes.")], tools=[billing().as_tool("ask", "Ask.")])

    outer, inner = recorded(lambda: run(asking))

    assert [step["kind"] for step in outer["steps"]] == ["model", "tool", "agent", "model"]
    tool, sub = outer["steps"][1:3]
    assert (sub["parent"], sub["run_id"], sub["arguments"], sub["result"]) == (2, inner["run_id"], "Paid?", "Paid.")
    assert tool["result"] == "Paid."
    assert inner["parent"] == {"run_id": outer["run_id"], "step": 2}
    assert inner["session_id"] == outer["session_id"]
    assert (inner["input"], inner["agent"]["name"]) == ("Paid?", "Billing")
    assert_reproduced(outer)
    assert_reproduced(inner)


def test_an_agent_as_tool_that_fails_is_a_failed_call():
    failing = agent(RuntimeError("503"), name="Billing").as_tool("ask", "Ask.")

    outer, inner = recorded(lambda: run(agent([calls("ask", '{"input": "?"}', "c1")], [says("No.")], tools=[failing])))

    tool, sub = outer["steps"][1:3]
    error = {"type": "RuntimeError", "message": "503"}
    assert (tool["outcome"], tool["error"], sub["error"], inner["error"]) == ("failed", error, error, error)
    assert_reproduced(outer)


# --- output ------------------------------------------------------------------------------------


class Refund(BaseModel):
    order: str
    amount: float = 0


@pytest.mark.parametrize("way", WAYS)
def test_structured_output_is_recorded_and_reproduced(way: str):
    refunding = agent(
        [calls("lookup", '{"order": "A"}', "c1")], [says('{"order": "A"}')], tools=[lookup], output_type=Refund
    )

    record = one_record(lambda: WAYS[way](refunding))

    assert record["output"] == {"order": "A", "amount": 0.0}
    parameters = record["parameters"][0]
    assert (parameters["output_mode"], parameters["output_object"]["name"]) == ("native", "Refund")
    assert parameters["output_object"]["json_schema"]["required"] == ["order", "amount"]
    assert_promise_kept(bytes_of(record))
    record["output"]["order"] = "B"
    assert verdict_of(record) == ("unknown_from_step", 4, "output.order")


def test_output_that_the_sdk_unpacks_is_kept_unpacked():
    record = one_record(lambda: run(agent([says('{"response": ["a", "b"]}')], output_type=list[str])))

    assert record["output"] == ["a", "b"]
    assert "output_function" not in record["agent"]
    assert_reproduced(record)


def test_a_tool_that_ends_the_run_stands_at_the_end():
    ending = agent([calls("lookup", '{"order": "A"}', "c1")], tools=[lookup], tool_use_behavior="stop_on_first_tool")

    record = one_record(lambda: run(ending))

    assert (record["output"], record["steps"][1]["result"]) == ("A has shipped", "A has shipped")
    (message,) = record["final"]["messages"]
    assert (record["final"]["after"], message["parts"][0]["content"]) == (1, "A has shipped")


# --- ends that are no answers ------------------------------------------------------------------


@input_guardrail
async def no_orders(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info={"found": "order"}, tripwire_triggered=True)


@output_guardrail
async def no_places(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info={"found": "place"}, tripwire_triggered=True)


@pytest.mark.parametrize("is_traced", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_tripped_input_guardrail_ends_the_run(way: str, is_traced: bool):
    config = RunConfig(tracing_disabled=not is_traced)

    record = one_record(lambda: WAYS[way](agent([says("In Lisbon.")], input_guardrails=[no_orders]), run_config=config))

    assert (record["status"], record["error"]["type"]) == ("error", "InputGuardrailTripwireTriggered")
    (tripped,) = record["input_guardrails"]
    assert (tripped["name"], tripped["triggered"], tripped["output_info"]) == ("no_orders", True, {"found": "order"})
    spans = [(step["name"], step["result"]) for step in steps_of(record, "other")]
    assert spans == [("no_orders", "The guardrail tripped and ended the run.")]


@pytest.mark.parametrize("is_traced", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_tripped_output_guardrail_ends_the_run_after_its_answer(way: str, is_traced: bool):
    config = RunConfig(tracing_disabled=not is_traced)

    record = one_record(
        lambda: WAYS[way](agent([says("In Lisbon.")], output_guardrails=[no_places]), run_config=config)
    )

    spans = [(step["name"], step["result"]) for step in steps_of(record, "other")]
    assert spans == [("no_places", "The guardrail tripped and ended the run.")]
    assert record["error"]["type"] == "OutputGuardrailTripwireTriggered"
    assert record["steps"][0]["response"]["parts"][0]["content"] == "In Lisbon."
    assert [(each["name"], each["triggered"]) for each in record["output_guardrails"]] == [("no_places", True)]
    assert [reason.code for reason in assert_promise_kept(bytes_of(record)).reasons] == ["error_outside_loop"]


@pytest.mark.parametrize("way", WAYS)
def test_too_many_turns_end_the_run(way: str):
    looking = agent(*[[calls("lookup", '{"order": "A"}', f"c{n}")] for n in range(3)], tools=[lookup])

    record = one_record(lambda: WAYS[way](looking, max_turns=2))

    assert (record["status"], record["error"]) == (
        "error",
        {"type": "MaxTurnsExceeded", "message": "Max turns (2) exceeded"},
    )
    assert [step["kind"] for step in record["steps"]] == ["model", "tool", "model", "tool"]
    assert len(record["items"]) == 4


def test_a_cancelled_run_is_cut_off_where_it_stood():
    entered = asyncio.Event()

    @function_tool
    async def waiting() -> str:
        entered.set()
        await asyncio.Event().wait()
        return "never"

    async def cancelled() -> None:
        task = asyncio.create_task(run(agent([calls("waiting", "{}", "c1")], tools=[waiting])))
        await entered.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    record = one_record(cancelled)

    assert (record["status"], record["error"]["type"]) == ("cut_off", "CancelledError")
    assert (record["steps"][1]["outcome"], "result" in record["steps"][1]) == ("interrupted", False)


def test_a_stream_that_is_cancelled_is_cut_off():
    async def cancelled() -> None:
        result = Runner.run_streamed(one_lookup(), "Where is it?")
        async for event in result.stream_events():
            if event.type == "run_item_stream_event":
                result.cancel()

    record = one_record(cancelled)

    assert (record["status"], record["error"]["type"]) == ("cut_off", "CancelledError")
    assert record["steps"][0]["response"]["parts"][0]["tool_name"] == "lookup"


# --- several turns -----------------------------------------------------------------------------


def test_a_session_gives_the_earlier_turns_and_the_session():
    async def two_turns() -> None:
        session = SQLiteSession("chat-7")
        await run(one_lookup(), session=session)
        await run(one_lookup("c2"), "Again?", session=session)

    first, second = recorded(two_turns)

    assert (first["session_id"], second["session_id"]) == ("chat-7", "chat-7")
    assert "prior" not in first
    assert [message["kind"] for message in second["prior"]] == ["request", "response", "request", "response"]
    assert (second["input"], second["steps"][0]["request"]["after"]) == ("Again?", 0)
    assert_reproduced(first)
    assert_reproduced(second)


def test_a_list_of_items_gives_the_earlier_turns():
    async def two_turns() -> None:
        result = await run(one_lookup())
        again = {"role": "user", "content": [{"type": "input_text", "text": "Again?"}]}
        await run(one_lookup("c2"), [*result.to_input_list(), again])

    _, second = recorded(two_turns)

    assert (second["input"], len(second["prior"]), len(second["input_items"])) == ("Again?", 4, 5)
    assert_reproduced(second)
    second["prior"][2]["parts"][0]["content"] = "A is lost"
    assert [reason.code for reason in judge(parse_native(bytes_of(second))).reasons] == ["items_contradicted"]
    second["steps"][0]["request"]["messages"][0]["parts"][0]["content"] = "And?"
    assert verdict_of(second) == ("could_not_run", None, None)


def test_files_and_links_are_the_content_of_the_prompt():
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "https://pictures.example/a.png", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
        {"type": "input_file", "file_id": "file_1"},
    ]
    messages = [{"role": "developer", "content": "Look well."}, {"role": "user", "content": content}]

    record = one_record(lambda: run(agent([says("A cat.")]), messages))

    assert record["input"] == [
        "What is this?",
        {"kind": "image-url", "url": "https://pictures.example/a.png"},
        {"kind": "binary", "media_type": "image/png", "data": "iVBORw0KGgo="},
        {"kind": "uploaded-file", "file_id": "file_1", "provider_name": "openai"},
    ]
    assert [part["part_kind"] for part in record["steps"][0]["request"]["messages"][0]["parts"]] == [
        "system-prompt",
        "user-prompt",
    ]
    assert_reproduced(record)


def test_two_new_messages_are_kept_as_they_are():
    messages = [{"role": "user", "content": "Hello."}, {"role": "user", "content": "Where is it?"}]

    record = one_record(lambda: run(agent([says("In Lisbon.")]), messages))

    assert record["input"] == messages
    assert_reproduced(record)


def test_a_history_that_the_team_cuts_begins_anew():
    def newest(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData(input=data.model_data.input[-2:], instructions=data.model_data.instructions)

    looking = agent(
        [calls("lookup", '{"order": "A"}', "c1")],
        [calls("lookup", '{"order": "B"}', "c2")],
        [says("Both have.")],
        tools=[lookup],
    )

    record = one_record(lambda: run(looking, run_config=RunConfig(call_model_input_filter=newest)))

    histories = [step["request"] for step in steps_of(record, "model")]
    assert [history.get("after") for history in histories] == [None, None, None]
    assert [message["kind"] for message in histories[2]["messages"]] == ["response", "request"]
    assert_reproduced(record)


def test_a_conversation_that_the_provider_keeps_is_written_whole():
    record = one_record(lambda: run(one_lookup(), conversation_id="conv_1"))

    histories = [step["request"] for step in steps_of(record, "model")]
    assert [history.get("after") for history in histories] == [None, 1]
    assert (record["conversation_id"], record["session_id"]) == ("conv_1", "conv_1")
    assert_reproduced(record)


# --- approvals ---------------------------------------------------------------------------------


@function_tool(needs_approval=True)
async def cancel_order(order: str) -> str:
    return f"{order} is cancelled"


async def decided(is_approved: bool) -> None:
    cancelling = agent(
        [calls("cancel_order", '{"order": "A"}', "c1"), calls("lookup", '{"order": "B"}', "c2")],
        [says("Done.")],
        tools=[cancel_order, lookup],
    )
    state = (await run(cancelling)).to_state()
    for item in state.get_interruptions():
        state.approve(item) if is_approved else state.reject(item)
    await run(cancelling, state)


def test_a_run_that_waits_for_a_person_ends_open():
    first, _ = recorded(lambda: decided(True))

    assert (first["status"], "output" in first) == ("cut_off", False)
    assert [(step["tool_name"], step["outcome"]) for step in steps_of(first, "tool")] == [
        ("lookup", "success"),
        ("cancel_order", "unapproved"),
    ]
    assert_reproduced(first)


@pytest.mark.parametrize(
    ("is_approved", "outcome", "answer"),
    [(True, "success", "A is cancelled"), (False, "denied", "Tool execution was not approved.")],
)
def test_a_run_goes_on_with_what_a_person_decided(is_approved: bool, outcome: str, answer: str):
    _, second = recorded(lambda: decided(is_approved))

    assert second["deferred"] == {"c1": outcome}
    assert [(step["kind"], step.get("outcome"), step.get("result")) for step in second["steps"]] == [
        ("tool", outcome, answer),
        ("model", None, None),
    ]
    assert [message["kind"] for message in second["prior"]] == ["request", "response", "request"]
    assert_reproduced(second)


def test_records_are_json_that_the_server_takes():
    for record in recorded(lambda: decided(True)):
        assert parse_native(json.dumps(record).encode()).agent.framework == "openai-agents"
