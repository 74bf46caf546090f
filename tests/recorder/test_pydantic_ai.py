"""What the hook of Pydantic AI writes down beyond what a replay needs, and that it never gets in the way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic_ai import Agent, RunContext, ToolReturn, capture_run_messages
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
)
from pydantic_ai.models import CompletedStreamedResponse

import replay_recorder
from replay_recorder.guard import FAULTS
from replay_recorder.hooks import pydantic_ai_run
from replay_recorder.hooks.pydantic_ai import RecordRuns
from replay_recorder.hooks.pydantic_ai_messages import message_text
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import AgentCall, Retrieval
from tests.recorder.floor import ROOT
from tests.recorder.local_server import Answer, local_server
from tests.recorder.playing import WAYS, record_of, recorded
from tests.recorder.replaying import assert_reproduced, replayed
from tests.recorder.scenarios import SCENARIOS, Play, Scripted, call, parallel_tools, says, support_agent, thinking


def one_lookup(**arguments: Any) -> Agent[Any, Any]:
    return support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Shipped."), **arguments)


def one_record(play: Play, way: str = "run", **settings: Any) -> dict[str, Any]:
    (record,) = recorded(play, way, **settings)
    return dict(json.loads(record))


# --- the kit -----------------------------------------------------------------------------------


def test_the_kit_is_captured_but_for_what_nobody_set_or_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_COMMIT", "9f2c1e7")
    facts = {
        "user_id": "u_7710",
        "tenant_id": "t_north",
        "session_id": "s_301",
        "flags": {"beta": True},
        "region": "eu",
    }

    (record,) = recorded(Play(one_lookup(), "Where?"), context=lambda ctx: facts)

    kit = audit_kit(parse_native(record))
    lines = {line.key: line.status for line in kit.lines}
    # Nobody set a seed, and the tool sends no HTTP, so there are no bytes behind its values.
    assert lines == {**dict.fromkeys(lines, "captured"), "sampling": "partial", "tool_io": "partial"}
    assert_reproduced(record)


def test_the_kit_names_what_the_team_did_not_say(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("replay_recorder.recorder.commit_facts", dict)

    (record,) = recorded(Play(one_lookup(), "Where?"))

    missing = {line.key for line in audit_kit(parse_native(record)).lines if line.status != "captured"}
    assert missing == {"identity", "model", "sampling", "tool_io", "commit", "flags"}


def test_the_callback_reads_the_runs_own_dependencies_at_run_and_tool():
    agent = Agent(Scripted(says(call("lookup", {}, "a")), says("Done.")), deps_type=dict)

    @agent.tool
    def lookup(ctx: RunContext[dict[str, str]]) -> str:
        return ctx.deps["user"]

    play = Play(agent, "Who?", deps={"user": "u_1"})
    record = one_record(play, context=lambda ctx: {"user_id": ctx.deps["user"]})

    assert (record["user_id"], record["steps"][1]["user_id"]) == ("u_1", "u_1")


def test_a_context_around_the_run_says_the_same():
    with replay_recorder.context(user_id="u_2", flags={}, ticket="T-9"):
        record = one_record(Play(one_lookup(), "Where?"))

    assert (record["user_id"], record["flags"], record["context.ticket"]) == ("u_2", {}, "T-9")


def test_input_and_tool_answers_keep_every_byte():
    prompt = "  two  spaces,\ttab,\r\nlines, \u00a0 nbsp, 🙂 and \x00 "

    record = parse_native(recorded(Play(one_lookup(), prompt))[0])

    assert record.input is not None
    assert record.input.content == prompt.encode()


def test_settings_say_what_was_left_to_the_provider_and_hold_no_header():
    settings = {"temperature": 0.2, "extra_headers": {"Authorization": "Bearer planted-secret"}}

    record = one_record(Play(one_lookup(model_settings=settings), "Where?"))

    said = record["steps"][0]["settings"]
    assert (said["temperature"], said["top_p"], said["seed"]) == (0.2, None, None)
    assert said["extra_headers"] == {"Authorization": "[redacted]"}
    assert "planted-secret" not in json.dumps(record)


def test_chunks_of_a_tool_become_a_retrieval_under_it():
    agent = Agent(Scripted(says(call("search", {"query": "refunds"}, "a")), says("Within 30 days.")))

    @agent.tool_plain
    def search(query: str) -> ToolReturn:
        chunks = [{"id": "kb_1", "score": 0.8, "content": "Refunds within 30 days."}]
        return ToolReturn("one hit", metadata={"chunks": chunks, "embedding_version": "e5-2"})

    (record,) = recorded(Play(agent, "Refunds?"))

    retrieval = next(step for step in parse_native(record).steps if isinstance(step.call, Retrieval))
    assert (retrieval.parent, retrieval.call.embedding_version) == (2, "e5-2")
    assert [chunk.chunk_id for chunk in retrieval.call.chunks or ()] == ["kb_1"]
    assert_reproduced(record)


# --- order, times, thoughts --------------------------------------------------------------------


def test_parallel_tools_keep_their_true_order_of_finish():
    agent = Agent(Scripted(says(call("wait", {"turn": 1}, "slow"), call("wait", {"turn": 0}, "fast")), says("Done.")))
    turns = [asyncio.Event(), asyncio.Event()]

    @agent.tool_plain
    async def wait(turn: int) -> int:
        if turn == 1:
            await turns[0].wait()
        turns[turn].set()
        return turn

    slow, fast = parse_native(recorded(Play(agent, "Go"))[0]).steps[1:3]

    ends = [step.started_at.timestamp() * 1000 + (step.duration_ms or 0) for step in (slow, fast) if step.started_at]
    assert ends[1] < ends[0]


@pytest.mark.parametrize("way", ["run_stream", "run_stream_events"])
def test_a_streamed_answer_has_its_first_token(way: str):
    steps = parse_native(recorded(Play(one_lookup(), "Where?"), way)[0]).steps

    models = [step for step in steps if step.kind == "model"]
    assert all(step.started_at and step.first_token_at and step.started_at <= step.first_token_at for step in models)


def test_the_entry_point_is_the_method_that_was_called():
    said = {way: one_record(Play(one_lookup(), "Where?"), way)["agent"]["entry_point"] for way in WAYS}

    assert said == {way: way for way in WAYS}


def test_thinking_keeps_its_signature():
    parts = one_record(thinking())["steps"][0]["response"]["parts"]

    assert next(part for part in parts if part["part_kind"] == "thinking")["signature"]


# --- runs inside runs --------------------------------------------------------------------------


def delegating() -> Play:
    helper = Agent(Scripted(says("It is 24 °C.")), name="weather")
    agent = Agent(Scripted(says(call("ask_weather", {"city": "Lisbon"}, "a")), says("Warm.")), name="support")

    @agent.tool_plain
    async def ask_weather(city: str) -> str:
        return str((await helper.run(f"Weather in {city}?")).output)

    return Play(agent, "Is it warm?")


def test_a_sub_agent_is_a_run_of_its_own_under_the_tool_that_started_it():
    outer, inner = sorted(map(parse_native, recorded(delegating())), key=lambda run: run.agent.name or "")

    step = next(step for step in outer.steps if isinstance(step.call, AgentCall))
    assert isinstance(step.call, AgentCall)
    assert (step.parent, step.call.run_id, inner.session_id) == (2, inner.run_id, outer.session_id)
    assert inner.parent is not None
    assert (inner.parent.run_id, inner.parent.step) == (outer.run_id, 2)


def test_both_runs_are_reproduced():
    for record in recorded(delegating()):
        assert_reproduced(record)


def test_runs_at_the_same_time_do_not_mix():
    async def both() -> None:
        await asyncio.gather(*(one_lookup(name=f"agent-{i}").run(f"Question {i}") for i in range(8)))

    records = [json.loads(record) for record in record_of(both)]

    assert {(r["agent"]["name"], r["input"], len(r["steps"])) for r in records} == {
        (f"agent-{i}", f"Question {i}", 3) for i in range(8)
    }


def test_runs_in_threads_do_not_mix():
    def one(number: int) -> None:
        asyncio.run(one_lookup().run(f"Question {number}"))

    async def all_of_them() -> None:
        threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    records = [json.loads(record) for record in record_of(all_of_them)]

    assert sorted(record["input"] for record in records) == [f"Question {i}" for i in range(4)]
    assert all(len(record["steps"]) == 3 for record in records)


# --- histories ---------------------------------------------------------------------------------


def test_each_step_holds_only_what_is_new():
    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(20)]

    steps = one_record(Play(support_agent(*looks, says("Done.")), "Search"))["steps"]

    sizes = [len(step["request"]["messages"]) for step in steps if step["kind"] == "model"]
    assert sizes == [1] * 21


def test_a_message_changed_in_place_is_said():
    def shorten(messages: list[ModelMessage]) -> list[ModelMessage]:
        for part in (part for message in messages[:-1] if isinstance(message, ModelRequest) for part in message.parts):
            if isinstance(part, ToolReturnPart):
                part.content = "cut"
        return messages

    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(3)]
    agent = support_agent(*looks, says("Done."), capabilities=[ProcessHistory(shorten)])

    assert one_record(Play(agent, "Search"))["recorder.rewritten_in_place"] is True
    assert "recorder.rewritten_in_place" not in one_record(parallel_tools())


# --- how it is installed -----------------------------------------------------------------------


def test_the_capability_alone_records_and_both_together_record_once(tmp_path: Path):
    record = one_record(Play(one_lookup(capabilities=[RecordRuns()]), "Where?"))

    assert len(record["steps"]) == 3


def test_install_works_before_the_library_is_imported(tmp_path: Path):
    program = f"""
import replay_recorder
replay_recorder.install(spool={str(tmp_path)!r})
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
Agent(TestModel()).run_sync("Hi")
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True)

    assert len(list((tmp_path / "ready").iterdir())) == 1


def test_nothing_is_recorded_after_uninstall(tmp_path: Path):
    replay_recorder.install(spool=tmp_path)
    replay_recorder.uninstall()

    assert asyncio.run(one_lookup().run("Where?")).output == "Shipped."
    assert list((tmp_path / "ready").iterdir()) == []


async def stopped(agent: Agent[Any, Any], began: asyncio.Event) -> None:
    """Run the agent and cancel it once it is where it was waited for."""
    running = asyncio.create_task(agent.run("Go"))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_a_cancelled_run_is_cut_off_with_what_it_did():
    agent, began = Agent(Scripted(says(call("hang", {}, "a")), says("Never."))), asyncio.Event()

    @agent.tool_plain
    async def hang() -> str:
        began.set()
        await asyncio.Event().wait()
        return "late"

    (record,) = record_of(lambda: stopped(agent, began))
    run = parse_native(record)
    assert (run.status, [step.kind for step in run.steps]) == ("cut_off", ["model", "tool"])


# --- faults ------------------------------------------------------------------------------------

HOOKS = [
    "run_began", "run_ended", "run_failed", "model_asked", "model_answered", "tool_called", "tool_started",
    "tool_answered", "tool_failed", "output_processed", "open", "place_of",
]  # fmt: skip
PLAYS = {"answer": lambda: Play(one_lookup(), "Where?"), "crash": lambda: Play(crashing(), "Note it")}


def crashing() -> Agent[Any, Any]:
    return support_agent(says(call("crm_note", {"text": "x"}, "a")))


@pytest.fixture
def counted() -> Iterator[dict[str, int]]:
    before = FAULTS.counts
    seen: dict[str, int] = {}
    yield seen
    seen.update({place: n - before.get(place, 0) for place, n in FAULTS.counts.items()})


async def outcome(play: Play, way: str) -> str:
    try:
        return repr(await WAYS[way](play))[:60]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_fault_in_any_hook_never_reaches_the_agent(
    hook: str, play: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    expected = asyncio.run(outcome(PLAYS[play](), way))
    raised: list[str] = []

    def fail(*arguments: Any, **named: Any) -> None:
        raised.append(hook)
        raise RuntimeError("injected")

    monkeypatch.setattr(pydantic_ai_run.RunLog, hook, fail)
    replay_recorder.install(spool=tmp_path)
    try:
        assert asyncio.run(outcome(PLAYS[play](), way)) == expected
    finally:
        replay_recorder.uninstall()
    happens = {"run_ended", "output_processed"} if play == "crash" else {"run_failed", "tool_failed"}
    assert raised or hook in happens | {"tool_answered"}, "the fault was never injected"


def test_a_callback_that_raises_loses_only_its_facts():
    def context(ctx: Any) -> dict[str, str]:
        raise LookupError("no user")

    record = one_record(Play(one_lookup(), "Where?"), context=context)

    assert "user_id" not in record
    assert record["output"] == "Shipped."


# --- raw HTTP ----------------------------------------------------------------------------------


class Asking(Scripted):
    """Asks a server before each answer, as a real model does."""

    def __init__(self, url: str, *script: ModelResponse) -> None:
        super().__init__(*script)
        self._url = url

    async def request(self, *arguments: Any) -> ModelResponse:
        await self._ask()
        return await super().request(*arguments)

    @asynccontextmanager
    async def request_stream(self, *arguments: Any, **named: Any) -> AsyncIterator[CompletedStreamedResponse]:
        await self._ask()
        async with super().request_stream(*arguments, **named) as stream:
            yield stream

    async def _ask(self) -> None:
        async with httpx2.AsyncClient() as client:
            await client.post(self._url, json={"messages": []}, headers={"Authorization": "Bearer planted-secret"})


@pytest.mark.parametrize("way", WAYS)
def test_raw_http_belongs_to_the_model_or_tool_that_sent_it(way: str):
    with local_server() as server:
        server.answer("/model", Answer(b"{}"))
        server.answer("/orders/1", Answer(b'{"order": "ORD-1"}'))
        agent = Agent(Asking(f"{server.url}/model", says(call("fetch", {}, "a")), says("Done.")))

        @agent.tool_plain
        async def fetch() -> str:
            async with httpx2.AsyncClient() as client:
                return (await client.get(f"{server.url}/orders/1")).text

        record = one_record(Play(agent, "Where?"), way, http=True)

    exchanges = [(step["kind"], step["http"]) for step in record["steps"] if "http" in step]
    assert [(kind, http["url"].rsplit("/", 1)[-1], http["status"]) for kind, http in exchanges] == [
        ("model", "model", 200), ("tool", "1", 200), ("model", "model", 200),
    ]  # fmt: skip
    assert exchanges[1][1]["response_body"] == '{"order": "ORD-1"}'
    assert "planted-secret" not in json.dumps(record)
    assert_reproduced(json.dumps(record).encode())


# --- values that JSON does not know ------------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "kept"),
    [(float("nan"), None), ("half \ud83d pair", "half \ufffd pair"), ({"n": float("inf")}, {"n": None})],
    ids=["nan", "surrogate", "infinity"],
)
def test_an_answer_that_is_no_json_does_not_cost_the_recording(odd: Any, kept: Any):
    agent = Agent(Scripted(says(call("odd", {}, "a")), says("Odd.")))

    @agent.tool_plain
    def odd_one() -> Any:
        return odd

    agent.tool_plain(name="odd")(odd_one)
    (record,) = recorded(Play(agent, "Go"))

    steps = parse_native(record).steps
    assert steps[-1].kind == "model"
    assert json.loads(record)["steps"][1]["result"] == kept


def test_messages_are_written_as_the_library_writes_them():
    for scenario in SCENARIOS:
        play = scenario.make()
        for message in asyncio.run(messages_of(play)):
            assert json.loads(message_text(message)) == json.loads(ModelMessagesTypeAdapter.dump_json([message]))[0]


async def messages_of(play: Play) -> list[ModelMessage]:
    with capture_run_messages() as messages, suppress(Exception):
        await play.agent.run(play.prompt, **play.arguments)
    return messages


def test_an_object_that_looks_like_bytes_is_no_bytes():
    agent = Agent(Scripted(says(call("odd", {}, "a")), says("Odd.")))

    @agent.tool_plain
    def odd() -> Any:
        return {"base64": "not base64"}

    (record,) = recorded(Play(agent, "Go"))

    answer = parse_native(record).tool_calls[0][1].result
    assert answer is not None
    assert answer.value == {"base64": "not base64"}
    assert_reproduced(record)


def test_one_wrong_fact_costs_only_itself():
    record = one_record(Play(one_lookup(), "Where?"), context=lambda ctx: {"user_id": "u1", "flags": ["a"]})

    assert (record["user_id"], record["input"], record.get("flags")) == ("u1", "Where?", None)


@pytest.mark.parametrize("where", ["tool", "model"])
def test_a_run_that_was_stopped_is_the_same_up_to_there(where: str):
    began = asyncio.Event()
    agent = Agent(Stalling(began, says(call("hang", {}, "a")), stalls=where == "model"))

    @agent.tool_plain
    async def hang() -> str:
        if where == "tool":
            began.set()
            await asyncio.Event().wait()
        return "done"

    (record,) = record_of(lambda: stopped(agent, began))

    last = 2 if where == "tool" else 3
    assert judge(parse_native(record)).step == last - 1
    assert replayed(record)[0].verdict == "unknown_from_step"
    assert replayed(record)[0].facts["limit"]["step"] == last


class Stalling(Scripted):
    """Does not answer once its script is at its end."""

    def __init__(self, began: asyncio.Event, *script: ModelResponse, stalls: bool) -> None:
        super().__init__(*script, *(() if stalls else [says("Never.")]))
        self._began = began
        self._stalls = stalls

    async def request(self, *arguments: Any) -> ModelResponse:
        if self._stalls and not self._script:
            self._began.set()
            await asyncio.Event().wait()
        return await super().request(*arguments)


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_without_words_is_recorded_by_its_type():
    agent = Agent(Scripted(says(call("fail", {}, "a"))))

    @agent.tool_plain
    def fail() -> str:
        raise Speechless

    record = one_record(Play(agent, "Go"))

    assert (record["status"], record["error"]) == ("error", {"type": "Speechless", "message": ""})
