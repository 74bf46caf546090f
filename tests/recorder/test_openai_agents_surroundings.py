"""What is around a recorded run of the OpenAI Agents SDK: people, traces, hooks; and that nothing gets in its way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    GuardrailFunctionOutput,
    ModelTracing,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    SQLiteSession,
    custom_span,
    function_tool,
    input_guardrail,
    set_trace_processors,
    set_tracing_disabled,
    trace,
)
from agents.models.interface import Model
from agents.run import AgentRunner
from agents.tracing import TracingProcessor, get_trace_provider, set_trace_provider
from agents.tracing.provider import DefaultTraceProvider
from agents.usage import Usage

import replay_recorder
from replay_recorder.guard import FAULTS
from replay_recorder.hooks import openai_agents, openai_agents_calls, openai_agents_request, openai_agents_run
from replay_recorder.hooks.openai_agents import ReplayRunHooks, ReplayTracingProcessor
from replay_recorder.hooks.openai_agents_hooks import pass_on
from replay_recorder.hooks.openai_agents_models import current_attempts, watch_models
from replay_recorder.recorder import Recorder
from replay_recorder.redaction import mask
from replay_recorder.writing.run_writer import RunWriter
from tests.recorder.openai_playing import (
    WAYS,
    Scripted,
    agent,
    calls,
    lookup,
    one_record,
    recorded,
    records_in,
    run,
    says,
    steps_of,
    streamed,
)
from tests.recorder.replaying import verdict_of

TRACE_ID = "trace_" + "a" * 32


def one_lookup(call_id: str = "c1", **facts: Any) -> Agent[Any]:
    return agent([calls("lookup", '{"order": "A"}', call_id)], [says("It has shipped.")], tools=[lookup], **facts)


@pytest.fixture(autouse=True)
def fresh_traces() -> Iterator[None]:
    """Ids of traces are used again from test to test, and processors stay."""
    yield
    openai_agents_run._traces.clear()
    set_tracing_disabled(False)
    set_trace_processors([])


# --- whom it is for ----------------------------------------------------------------------------


def test_the_team_reads_facts_from_the_context_of_the_run():
    seen: list[Any] = []

    def facts(context: RunContextWrapper[Any]) -> dict[str, Any]:
        seen.append(context)
        return {"user_id": context.context["user"], "tier": "gold"}

    record = one_record(lambda: run(one_lookup(), context={"user": "u_1"}), context=facts)

    assert [type(context) for context in seen] == [RunContextWrapper]
    assert (record["user_id"], record["context.tier"]) == ("u_1", "gold")
    assert steps_of(record, "tool")[0]["user_id"] == "u_1"


def test_a_callback_that_fails_costs_only_its_facts():
    def facts(context: Any) -> dict[str, Any]:
        raise KeyError("user")

    record = one_record(lambda: run(one_lookup()), context=facts)

    assert ("user_id" in record, record["status"]) == (False, "ok")


def test_a_tool_step_carries_whom_the_tool_really_acted_for():
    @function_tool
    async def whoever() -> str:
        return str(
            (await run(agent([calls("lookup", '{"order": "A"}', "i1")], [says("Yes.")], tools=[lookup]))).final_output
        )

    async def acting() -> None:
        with replay_recorder.context(user_id="u_1", tenant_id="t_1"):
            await run(agent([calls("whoever", "{}", "c1")], [says("Done.")], tools=[whoever]))

    outer, inner = recorded(acting)

    assert (outer["user_id"], outer["tenant_id"]) == ("u_1", "t_1")
    for record in (outer, inner):
        assert [(step["user_id"], step["tenant_id"]) for step in steps_of(record, "tool")] == [("u_1", "t_1")]


@pytest.mark.parametrize(
    ("config", "ambient", "session_id"),
    [
        (RunConfig(group_id="g_1"), None, "g_1"),
        ({"group_id": "g_2"}, None, "g_2"),
        (None, "g_3", "g_3"),
        (None, None, "s_1"),
    ],
)
def test_the_session_is_the_group_of_the_trace_and_else_what_the_team_said(
    config: Any, ambient: str | None, session_id: str
):
    async def in_session() -> None:
        with replay_recorder.context(session_id="s_1"), trace("work", group_id=ambient):
            await run(one_lookup(), run_config=config)

    assert one_record(in_session)["session_id"] == session_id


def test_what_the_team_said_comes_before_the_session_of_the_sdk():
    async def said() -> None:
        with replay_recorder.context(session_id="s_1"):
            await run(one_lookup(), session=SQLiteSession("chat-7"))

    assert one_record(said)["session_id"] == "s_1"


# --- traces ------------------------------------------------------------------------------------


def test_a_run_is_called_by_the_id_of_its_trace_once():
    async def twice() -> None:
        config = RunConfig(trace_id=TRACE_ID, workflow_name="Support", trace_metadata={"env": "test"})
        await run(one_lookup(), run_config=config)
        await run(one_lookup(), run_config=config)

    first, second = recorded(twice)

    assert first["run_id"] == TRACE_ID
    assert second["run_id"] != TRACE_ID
    expected = {"id": TRACE_ID, "name": "Support", "group_id": None, "metadata": {"env": "test"}}
    assert (first["trace"], second["trace"]) == (expected, expected)


def test_spans_of_the_team_are_steps_where_they_began():
    @function_tool
    async def working() -> str:
        with custom_span("fetch", {"rows": 3}), custom_span("parse"):
            return "done"

    @input_guardrail
    async def polite(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    spanning = agent([calls("working", "{}", "c1")], [says("Done.")], tools=[working], input_guardrails=[polite])

    record = one_record(lambda: run(spanning))

    named = {step["name"]: (index, step) for index, step in enumerate(record["steps"], 1) if step["kind"] == "other"}
    tool = next(index for index, step in enumerate(record["steps"], 1) if step["kind"] == "tool")
    assert {name: (step["span"], step.get("parent")) for name, (_, step) in named.items()} == {
        "polite": ("guardrail", None),
        "fetch": ("custom", tool),
        "parse": ("custom", named["fetch"][0]),
    }
    assert (named["fetch"][1]["result"], named["polite"][1]["result"]) == ({"rows": 3}, "The guardrail let it pass.")
    assert verdict_of(record) == ("reproduced", None, None)


def test_a_span_that_failed_says_so():
    @function_tool
    async def working() -> str:
        with custom_span("fetch") as span:
            span.set_error({"message": "no rows", "data": {"rows": 0}})
        return "done"

    record = one_record(lambda: run(agent([calls("working", "{}", "c1")], [says("Done.")], tools=[working])))

    (step,) = steps_of(record, "other")
    assert step["error"] == {"type": None, "message": "no rows", "data": {"rows": 0}}


def test_spans_outside_of_a_run_are_nothing_of_ours():
    async def around() -> None:
        with trace("work"), custom_span("before"):
            await run(one_lookup())

    assert [step["kind"] for step in one_record(around)["steps"]] == ["model", "tool", "model"]


class Noting(TracingProcessor):
    """A processor of the team."""

    def __init__(self) -> None:
        self.spans: list[str] = []

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def on_span_end(self, span: Any) -> None:
        self.spans.append(span.span_data.type)

    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def processors() -> tuple[TracingProcessor, ...]:
    provider = get_trace_provider()
    assert isinstance(provider, DefaultTraceProvider)
    return provider._multi_processor._processors


def test_processors_of_the_team_stay_and_are_called():
    noting = Noting()
    set_trace_processors([noting])

    recorded(lambda: run(one_lookup()))
    recorded(lambda: run(one_lookup()))

    assert [type(each) for each in processors()] == [Noting, ReplayTracingProcessor]
    assert noting.spans.count("function") == 2


def test_our_processor_comes_back_when_the_team_has_set_its_own():
    async def spanning() -> None:
        await run(one_lookup())
        set_trace_processors([Noting()])
        await run(agent([calls("working", "{}", "c1")], [says("Done.")], tools=[working]))

    @function_tool
    async def working() -> str:
        with custom_span("fetch"):
            return "done"

    _, second = recorded(spanning)

    assert [step["name"] for step in steps_of(second, "other")] == ["fetch"]


def test_a_second_processor_of_ours_writes_nothing_twice():
    set_trace_processors([ReplayTracingProcessor(), ReplayTracingProcessor()])

    @function_tool
    async def working() -> str:
        with custom_span("fetch"):
            return "done"

    record = one_record(lambda: run(agent([calls("working", "{}", "c1")], [says("Done.")], tools=[working])))

    assert [step["name"] for step in steps_of(record, "other")] == ["fetch"]


class PlainProvider(DefaultTraceProvider):
    """A provider of the team's own, which does not say what processors it has."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["own"] = self.__dict__.pop("_multi_processor")
        self.added = 0

    def register_processor(self, processor: Any) -> None:
        self.added += 1


def test_a_provider_of_the_team_gets_our_processor_once(monkeypatch: pytest.MonkeyPatch):
    usual, provider = get_trace_provider(), PlainProvider()
    set_tracing_disabled(True)
    set_trace_provider(provider)
    provider.set_disabled(True)
    try:
        recorded(lambda: run(one_lookup()))
        recorded(lambda: run(one_lookup()))
    finally:
        set_trace_provider(usual)

    assert provider.added == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_off_everywhere", [True, False])
def test_a_run_is_recorded_whole_when_tracing_is_off(way: str, is_off_everywhere: bool):
    set_tracing_disabled(is_off_everywhere)

    record = one_record(lambda: WAYS[way](one_lookup(), run_config=RunConfig(tracing_disabled=not is_off_everywhere)))

    assert "trace" not in record
    assert [step["kind"] for step in record["steps"]] == ["model", "tool", "model"]
    assert verdict_of(record) == ("reproduced", None, None)


def test_a_tool_that_fails_is_known_to_have_failed_when_tracing_is_off():
    @function_tool
    async def broken() -> str:
        raise ValueError("no")

    set_tracing_disabled(True)

    record = one_record(lambda: run(agent([calls("broken", "{}", "c1")], [says("Sorry.")], tools=[broken])))

    assert steps_of(record, "tool")[0]["error"] == {"type": "ValueError", "message": "no"}


# --- places ------------------------------------------------------------------------------------


def test_what_a_tool_records_belongs_to_its_step_also_beside_another_one():
    both_are_there = asyncio.Barrier(2)

    @function_tool
    async def search(what: str) -> str:
        await both_are_there.wait()
        replay_recorder.record_retrieval(what, [{"id": what, "content": what}])
        return what

    @function_tool
    def search_in_thread(what: str) -> str:
        replay_recorder.record_retrieval(what, [])
        return what

    searching = agent(
        [
            calls("search", '{"what": "a"}', "c1"),
            calls("search", '{"what": "b"}', "c2"),
            calls("search_in_thread", '{"what": "c"}', "c3"),
        ],
        [says("Done.")],
        tools=[search, search_in_thread],
    )

    record = one_record(lambda: run(searching))

    asked = {index: step["result"] for index, step in enumerate(record["steps"], 1) if step["kind"] == "tool"}
    found = {asked[step["parent"]]: step["query"] for step in steps_of(record, "retrieval")}
    assert found == {"a": "a", "b": "b", "c": "c"}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_model_does_belongs_to_its_step(way: str):
    class Searching(Scripted):
        def _next(self) -> Any:
            replay_recorder.record_retrieval("shoes", [])
            return super()._next()

    asking = one_lookup(model=Searching([calls("lookup", '{"order": "A"}', "c1")], [says("Done.")]))

    record = one_record(lambda: WAYS[way](asking))

    models = [index for index, step in enumerate(record["steps"], 1) if step["kind"] == "model"]
    assert [step["parent"] for step in steps_of(record, "retrieval")] == models


def test_code_after_a_run_is_outside_of_it():
    async def after() -> None:
        model = Scripted(RuntimeError("503"), [says("Hi.")])
        await asyncio.gather(run(agent(model=model)), return_exceptions=True)
        replay_recorder.record_retrieval("shoes", [])
        await model.get_response(None, "", None, [], None, [], ModelTracing.DISABLED)

    record = one_record(after)

    assert [step["kind"] for step in record["steps"]] == ["model"]
    assert "response" not in record["steps"][0]


def test_a_model_that_asks_another_one_is_one_request():
    class Fallback(Scripted):
        inner = Scripted([says("Hi.")])

        async def get_response(self, *args: Any, **named: Any) -> Any:
            return await self.inner.get_response(*args, **named)

    record = one_record(lambda: run(agent(model=Fallback())))

    assert [step["response"]["parts"][0]["content"] for step in record["steps"]] == ["Hi."]


# --- hooks of the team -------------------------------------------------------------------------


class NotingHooks(RunHooks[Any]):
    def __init__(self) -> None:
        self.called: list[tuple[str, ...]] = []

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self.called.append(("agent_start", agent.name))

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self.called.append(("agent_end", agent.name, output))

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        self.called.append(("llm_start", agent.name, system_prompt))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self.called.append(("llm_end", agent.name, response.output[0].type))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self.called.append(("tool_start", agent.name, tool.name))

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self.called.append(("tool_end", agent.name, tool.name, result))

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        self.called.append(("handoff", from_agent.name, to_agent.name))


def handing_off() -> Agent[Any]:
    billing = agent([says("Paid.")], name="Billing", instructions="You bill.")
    return agent(
        [calls("lookup", '{"order": "A"}', "c1")],
        [calls("transfer_to_billing", "{}", "c2")],
        tools=[lookup],
        handoffs=[billing],
    )


@pytest.mark.parametrize("way", WAYS)
def test_hooks_of_the_team_are_called_as_they_would_be(way: str):
    unrecorded, with_recorder = NotingHooks(), NotingHooks()
    asyncio.run(WAYS[way](handing_off(), hooks=unrecorded))

    record = one_record(lambda: WAYS[way](handing_off(), hooks=with_recorder))

    assert with_recorder.called == unrecorded.called
    assert {hook for hook, *_ in unrecorded.called} == {
        "agent_start", "agent_end", "llm_start", "llm_end", "tool_start", "tool_end", "handoff",
    }  # fmt: skip
    assert [step["kind"] for step in record["steps"]] == ["model", "tool", "model", "tool", "model"]


def test_a_hook_of_the_team_that_raises_ends_the_run():
    class Refusing(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            raise PermissionError("not this tool")

    async def refused() -> None:
        with pytest.raises(Exception, match="not this tool"):
            await run(one_lookup(), hooks=Refusing())

    record = one_record(refused)

    assert record["status"] == "error"
    assert "not this tool" in record["error"]["message"]


def test_what_is_no_run_hook_is_refused_by_the_sdk():
    async def refused() -> None:
        with pytest.raises(TypeError, match="Run hooks must be instances of RunHooks"):
            await run(one_lookup(), hooks=AgentHooks())

    assert one_record(refused)["error"]["type"] == "TypeError"


def test_hooks_that_this_version_does_not_have_go_to_the_team():
    class Newer(RunHooks[Any]):
        def on_dream(self, context: Any, *, depth: int) -> str:
            return f"{context} {depth}"

    class Ours(ReplayRunHooks):
        """Of its own, so that the real one stays as it is."""

    pass_on(Ours, Newer)

    assert Ours(Newer()).on_dream("deep", depth=2) == "deep 2"


# --- given explicitly --------------------------------------------------------------------------


class OwnRunner(AgentRunner):
    """A runner that the recorder does not know."""

    run = getattr(AgentRunner.run, "__wrapped__", AgentRunner.run)


def test_hooks_that_are_given_explicitly_record_the_run_of_an_own_runner():
    inner = NotingHooks()

    async def own() -> None:
        with ReplayRunHooks(inner) as hooks:
            await OwnRunner().run(one_lookup(), "Where is it?", hooks=hooks)

    record = one_record(own)

    assert (record["status"], record["input"], record["output"]) == ("ok", "Where is it?", "It has shipped.")
    assert record["final"] == {"after": 3, "messages": []}
    assert len(inner.called) == 8
    assert verdict_of(record) == ("reproduced", None, None)


def test_hooks_that_are_given_explicitly_see_a_failure_at_the_end_of_their_block():
    async def own() -> None:
        with ReplayRunHooks() as hooks:
            await OwnRunner().run(agent(RuntimeError("503")), "Where is it?", hooks=hooks)

    record = one_record(own)

    assert (record["status"], record["error"]) == ("error", {"type": "RuntimeError", "message": "503"})


def test_hooks_that_are_given_explicitly_to_the_usual_runner_write_one_record():
    async def usual() -> None:
        with ReplayRunHooks(NotingHooks()) as hooks:
            await run(one_lookup(), hooks=hooks)

    assert one_record(usual)["status"] == "ok"


# --- nothing gets in the way -------------------------------------------------------------------


def test_after_uninstall_nothing_is_recorded():
    with tempfile.TemporaryDirectory() as folder:
        replay_recorder.install(spool=folder)
        replay_recorder.uninstall()

        result = asyncio.run(run(one_lookup()))

        assert (result.final_output, records_in(folder)) == ("It has shipped.", [])


def test_a_run_that_ends_after_uninstall_ends_well():
    @function_tool
    async def leaving() -> str:
        replay_recorder.uninstall()
        return "left"

    async def leave() -> None:
        result = await run(agent([calls("leaving", "{}", "c1")], [says("Bye.")], tools=[leaving]))
        assert result.final_output == "Bye."

    assert one_record(leave)["output"] == "Bye."


def test_patching_again_changes_nothing():
    import agents.run

    before = (AgentRunner.run, AgentRunner.run_sync, AgentRunner.run_streamed)

    openai_agents.patch(agents.run)

    assert (AgentRunner.run, AgentRunner.run_sync, AgentRunner.run_streamed) == before


def test_a_module_of_somebody_else_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    class AgentRunner:
        def run(self) -> str:
            return "away"

    other = ModuleType("agents.run")
    openai_agents.patch(other)
    other.AgentRunner = AgentRunner
    monkeypatch.setattr(openai_agents, "version", lambda: None)
    openai_agents.patch(other)

    assert AgentRunner().run() == "away"


class OldRunner:
    """A runner whose streams do not say what runs them."""

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> str:
        return "ran"

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> str:
        return "ran"

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> str:
        return "streams"


def test_a_stream_whose_end_nobody_tells_is_cut_off_and_not_left_open():
    old = ModuleType("agents.run")
    old.AgentRunner = OldRunner
    openai_agents.patch(old)

    async def old_stream() -> None:
        assert OldRunner().run_streamed(one_lookup(), "Where is it?") == "streams"

    assert one_record(old_stream)["status"] == "cut_off"


@pytest.mark.parametrize(
    "order",
    [
        "replay_recorder.install(spool=folder); import agents",
        "import agents; replay_recorder.install(spool=folder)",
        "replay_recorder.install(spool=folder); from replay_recorder.hooks.openai_agents import ReplayRunHooks",
        "from replay_recorder.hooks.openai_agents import ReplayRunHooks; replay_recorder.install(spool=folder)",
    ],
)
def test_it_does_not_matter_what_is_loaded_first(order: str, tmp_path: Path):
    script = f"""
import sys, replay_recorder
folder = sys.argv[1]
{order}
import asyncio
from tests.recorder.openai_playing import agent, run, says
print(asyncio.run(run(agent([says("Hi.")]))).final_output)
assert replay_recorder.stats()["faults"] == {{}}, replay_recorder.stats()
replay_recorder.uninstall()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "Hi.\n"), done.stderr
    assert [record["output"] for record in records_in(str(tmp_path))] == ["Hi."]


BREAKING_POINTS = [
    (openai_agents, "_hooks"),
    *[(openai_agents_run.RunLog, name) for name in (
        "open", "_put_facts", "trace_began", "enter", "model_asked", "model_answered", "tool_started", "tool_ended",
        "handed_off", "succeeded", "failed", "stream_ended", "agent_ended", "_put_items", "_put_last", "_close",
    )],
    *[(openai_agents_calls.CallLog, name) for name in ("started", "ended", "settle", "asked_for", "_end", "close")],
    *[(openai_agents_request.ModelRequest, name) for name in (
        "began", "_put_tools", "streamed", "noted", "answered", "failed", "settled", "given_up",
    )],
    *[(RunWriter, name) for name in ("begin", "end", "put", "amend", "row", "_encoded")],
    (Recorder, "begin"),
    (Recorder, "end"),
    (openai_agents_run, "current_place"),
]  # fmt: skip


@function_tool
async def broken() -> str:
    raise ValueError("no")


def every_way() -> list[Any]:
    """What a team sees of runs that use every hook: results and errors."""

    async def all_of_them() -> list[Any]:
        failing = agent([calls("broken", "{}", "c1")], RuntimeError("503"), tools=[broken])
        found = await asyncio.gather(
            run(handing_off()), streamed(handing_off()), run(failing), streamed(one_lookup()), return_exceptions=True
        )
        return [_seen(result) for result in found]

    return asyncio.run(all_of_them())


def _seen(result: Any) -> Any:
    if isinstance(result, BaseException):
        return type(result), str(result)
    usage: Usage = result.context_wrapper.usage
    return result.final_output, result.to_input_list(), usage.requests, result.last_agent.name


@pytest.mark.parametrize(("owner", "name"), BREAKING_POINTS)
def test_a_fault_of_the_recorder_leaves_the_run_as_it_is(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    unrecorded = every_way()
    times: list[str] = []

    def fail(*args: Any, **named: Any) -> Any:
        times.append(name)
        raise RuntimeError("the recorder failed")

    monkeypatch.setattr(owner, name, fail)
    monkeypatch.setattr(FAULTS, "_counts", type(FAULTS._counts)())
    replay_recorder.install(spool=tmp_path)
    try:
        with_faults = every_way()
    finally:
        replay_recorder.uninstall()

    assert with_faults == unrecorded
    assert times or name in NOT_REACHED
    assert sum(FAULTS.counts.values()) > 0 or name in NOT_REACHED


NOT_REACHED = {"noted"}
"""By scripted models, which ask no client."""


def test_a_run_is_closed_although_its_result_cannot_be_read(monkeypatch: pytest.MonkeyPatch):
    def fail(*args: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(openai_agents_run, "row_of", fail)

    record = one_record(lambda: run(one_lookup()))

    assert (record["status"], record["output"], "items" in record) == ("ok", "It has shipped.", False)


class Stream:
    """Just what the SDK needs of a stream, and that it can be closed."""

    def __init__(self, events: Any, closed: list[str]) -> None:
        self._events = events
        self._closed = closed

    async def __anext__(self) -> Any:
        return await self._events.__anext__()

    async def aclose(self) -> None:
        self._closed.append("closed")


def test_the_sdk_closes_the_stream_of_a_model_as_it_would():
    closed: list[str] = []

    class Client(Scripted):
        def stream_response(self, *args: Any, **named: Any) -> Any:
            return Stream(super().stream_response(), closed)

    asyncio.run(streamed(agent(model=Client([says("Hi.")]))))
    unrecorded = len(closed)
    record = one_record(lambda: streamed(agent(model=Client([says("Hi.")]))))

    assert (record["output"], unrecorded, len(closed)) == ("Hi.", 1, 2)


def test_a_stream_can_be_read_as_an_iterable_too():
    class Lines:
        async def __aiter__(self) -> Any:
            yield "a"
            yield "b"

    class Lining(Scripted):
        def stream_response(self, *args: Any, **named: Any) -> Any:
            return Lines()

    seen: list[str] = []

    async def read() -> None:
        attempts = NotingAttempts(seen)
        current_attempts.set(attempts)
        watch_models(Model)
        seen.extend([f"read {line}" async for line in Lining().stream_response()])

    asyncio.run(read())

    assert seen == ["began", "streamed a", "streamed b", "read a", "read b"]


class NotingAttempts:
    is_busy = False

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def began(self, model: Any, given: Any) -> None:
        self._seen.append("began")

    def streamed(self, event: Any) -> None:
        self._seen.append(f"streamed {event}")

    def answered(self, response: Any) -> None: ...
    def failed(self, error: BaseException) -> None: ...
    def noted(self, answer: Any) -> None: ...


def test_the_redaction_hook_sees_what_was_said():
    record = one_record(lambda: run(one_lookup()), redact=mask("shipped"))

    assert (record["output"], record["steps"][1]["result"]) == ("It has [redacted].", "A has [redacted]")
    assert "shipped" not in str(record)
