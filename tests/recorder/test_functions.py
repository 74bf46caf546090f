"""Functions recorded as runs."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import replay_recorder
from replay_recorder import context, record, record_retrieval, recorded_tool, snapshot
from replay_recorder.context import current_identity, current_place, surroundings
from replay_recorder.functions import Said
from sessions_app.core.run import AgentCall, Run
from tests.recorder.recordings import BREAKING_POINTS, break_at, only_run_of, runs_of, value


@recorded_tool(kind="read")
def lookup(order_id: str) -> str:
    return "shipped"


def answering(text: str) -> Agent[None, str]:
    return Agent(TestModel(custom_output_text=text, call_tools=[]), name="inner")


def failing_agent() -> Agent[None, str]:
    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ValueError("no model")

    return Agent(FunctionModel(fail))


def names(run: Run) -> list[str]:
    return [f"{step.kind} {step.name}" for step in run.steps]


# --- what a run holds


def test_a_function_is_a_run_with_input_output_steps_and_name():
    @record
    def support(question: str) -> str:
        return "It has " + lookup("ORD-1")

    run = only_run_of(lambda: support("Where is it?"))

    assert (value(run.input), value(run.output), run.status) == ("Where is it?", "It has shipped", "ok")
    assert run.agent.name == "support"
    assert run.session_id == run.run_id
    assert names(run) == ["tool lookup"]
    assert run.duration_ms is not None
    assert run.started_at is not None
    assert run.started_at <= run.steps[0].started_at  # type: ignore[operator]


def test_a_function_without_steps_is_a_run_too():
    @record
    def nothing() -> None: ...

    run = only_run_of(nothing)

    assert (value(run.input), run.status, run.steps) == ({}, "ok", ())


@pytest.mark.parametrize(
    ("call", "recorded"),
    [
        (lambda f: f("text"), b"text"),
        (lambda f: f(b"\x00"), b"\x00"),
        (lambda f: f(7), b'{"first":7}'),
        (lambda f: f("a", second=None), b'{"first":"a","second":null}'),
        (lambda f: f({"a": 1}), b'{"first":{"a":1}}'),
    ],
)
def test_the_input_is_a_single_text_or_all_arguments(call: Callable[[Any], Any], recorded: bytes):
    @record
    def function(first: Any, second: Any = "default") -> None: ...

    run = only_run_of(lambda: call(function))

    assert run.input is not None
    assert run.input.content == recorded


def test_a_method_is_recorded_without_its_object():
    class Bot:
        @record
        def answer(self, question: str) -> str:
            return question

        @record
        @classmethod
        def make(cls, question: str) -> str:
            return f"{cls.__name__} {question}"

        @record
        @staticmethod
        def static(question: str) -> str:
            return question

    def work() -> None:
        assert (Bot().answer("a"), Bot.make("b"), Bot.static("c")) == ("a", "Bot b", "c")

    assert [value(run.input) for run in runs_of(work)] == ["a", "b", "c"]


def test_the_same_input_twice_is_two_runs():
    @record
    def answer(question: str) -> str:
        return "yes"

    def work() -> None:
        answer("same")
        answer("same")

    one, other = runs_of(work)
    assert one.run_id != other.run_id
    assert one.session_id != other.session_id


def test_a_name_and_facts():
    @record(name="support", context={"tenant_id": "t_1"})
    def fixed(question: str) -> None:
        lookup("1")

    @record(context=lambda question, user: {"user_id": user, "session_id": "chat-1", "plan": "gold"})
    def asked(question: str, user: str) -> None: ...

    def work() -> None:
        fixed("a")
        asked("b", user="u_1")

    one, other = runs_of(work)
    assert (one.agent.name, one.tenant_id, one.steps[0].tenant_id) == ("support", "t_1", "t_1")
    assert (other.agent.name, other.user_id, other.session_id) == ("asked", "u_1", "chat-1")
    assert other.extra["context.plan"] == "gold"


def test_facts_that_cannot_be_had_do_not_stop_the_function_nor_the_recording():
    @record(context=lambda: {})
    def function(question: str) -> str:
        return "fine"

    run = only_run_of(lambda: function("a"))

    assert value(run.output) == "fine"


def test_all_that_is_recorded_by_hand_is_a_step():
    @record
    def agent(question: str) -> None:
        record_retrieval("docs", [{"id": "d1", "score": 0.5, "text": "…"}])
        lookup("1")
        snapshot("done", memory=[1])

    assert names(only_run_of(lambda: agent("x"))) == ["retrieval retrieval", "tool lookup", "other done"]


# --- kinds of functions


def test_a_coroutine_function_is_recorded_and_stays_one():
    @record
    async def answer(question: str) -> str:
        await asyncio.sleep(0)
        return lookup("1")

    run = only_run_of(lambda: asyncio.run(answer("x")))

    assert inspect.iscoroutinefunction(answer)
    assert (value(run.output), names(run)) == ("shipped", ["tool lookup"])


def test_an_object_with_an_async_call_is_recorded():
    class Bot:
        async def __call__(self, question: str) -> str:
            return "yes"

    run = only_run_of(lambda: asyncio.run(record(Bot())("x")))

    assert (run.agent.name, value(run.input), value(run.output)) == ("Bot", "x", "yes")


def test_a_generator_is_one_run_with_all_it_said():
    @record
    def stream(question: str) -> Iterator[str]:
        yield "It has "
        yield lookup("1")

    run = only_run_of(lambda: list(stream("x")))

    assert inspect.isgeneratorfunction(stream)
    assert (value(run.output), run.status, names(run)) == ("It has shipped", "ok", ["tool lookup"])


def test_items_that_are_not_all_text_are_a_list_as_they_were_when_they_were_said():
    @record
    def stream() -> Iterator[Any]:
        item: list[Any] = ["a"]
        yield item
        item.append("b")
        yield "c"

    assert value(only_run_of(lambda: list(stream())).output) == [["a"], "c"]


def test_an_async_generator_is_one_run_with_all_it_said():
    @record
    async def stream(question: str) -> AsyncIterator[str]:
        yield "It has "
        await asyncio.sleep(0)
        yield lookup("1")

    async def work() -> list[str]:
        return [item async for item in stream("x")]

    run = only_run_of(lambda: asyncio.run(work()))

    assert inspect.isasyncgenfunction(stream)
    assert (value(run.output), run.status, names(run)) == ("It has shipped", "ok", ["tool lookup"])


def test_a_stream_that_its_reader_leaves_is_cut_off_with_what_it_had_said():
    @record
    def stream() -> Iterator[str]:
        yield "first"
        yield "second"

    run = only_run_of(lambda: stream().__next__())

    assert (run.status, value(run.output), run.error) == ("cut_off", "first", None)


def test_an_async_stream_that_its_reader_leaves_is_cut_off():
    @record
    async def stream() -> AsyncIterator[str]:
        yield "first"
        yield "second"

    async def work() -> None:
        reading: Any = stream()
        assert await reading.__anext__() == "first"
        await reading.aclose()

    run = only_run_of(lambda: asyncio.run(work()))

    assert (run.status, value(run.output), run.error) == ("cut_off", "first", None)


def test_what_a_stream_does_when_it_is_left_belongs_to_its_run():
    @record
    def stream() -> Iterator[str]:
        try:
            yield "first"
        finally:
            lookup("1")

    run = only_run_of(lambda: next(stream()))

    assert (run.status, names(run)) == ("cut_off", ["tool lookup"])


def test_a_stream_that_is_too_long_is_not_kept_and_says_so():
    said = Said(10)
    for _ in range(5):
        said.add("four")
    assert said.whole == '"fourfourfour"'

    @record
    def stream() -> Iterator[str]:
        yield from ["x" * 100] * 100

    run = only_run_of(lambda: list(stream()), max_run_bytes=5000)
    assert (run.status, run.output) == ("cut_off", None)
    assert "longer than 5000 bytes" in str(run.extra["recorder.lost"])


def test_a_generator_that_is_never_begun_is_no_run():
    @record
    def stream() -> Iterator[str]:
        yield "first"

    assert runs_of(stream) == []


def generators() -> list[Callable[[], Any]]:
    """One generator as it is and one that is recorded."""

    def talk() -> Any:
        said: list[Any] = []
        while True:
            try:
                said.append((yield len(said)))
            except ValueError as error:
                said.append(str(error))
                if len(said) > 3:
                    return said

    return [talk, record(talk)]


def test_send_throw_and_the_value_of_a_generator_are_as_without_recording():
    def conversation(talk: Callable[[], Any]) -> list[Any]:
        generator = talk()
        heard = [next(generator), generator.send("a"), next(generator), generator.throw(ValueError("b"))]
        with pytest.raises(StopIteration) as end:
            generator.throw(ValueError("c"))
        return [*heard, end.value.value]

    plain, recorded = generators()
    assert conversation(plain) == conversation(recorded) == [0, 1, 2, 3, ["a", None, "b", "c"]]
    assert only_run_of(lambda: conversation(recorded)).status == "ok"


def test_send_and_throw_of_an_async_generator_are_as_without_recording():
    async def talk() -> Any:
        said: list[Any] = []
        while len(said) < 3:
            try:
                said.append((yield list(said)))
            except ValueError as error:
                said.append(str(error))

    async def conversation(talk: Callable[[], Any]) -> list[Any]:
        generator = talk()
        heard = [await generator.__anext__(), await generator.asend("a"), await generator.athrow(ValueError("b"))]
        with pytest.raises(StopAsyncIteration):
            await generator.asend("c")
        return heard

    plain = asyncio.run(conversation(talk))
    recorded: list[Any] = []
    run = only_run_of(lambda: recorded.extend(asyncio.run(conversation(record(talk)))))

    assert plain == recorded == [[], ["a"], ["a", "b"]]
    assert run.status == "ok"


def test_between_its_turns_a_generator_is_nowhere_and_finds_its_surroundings_again():
    seen: list[Any] = []

    @record(context={"tenant_id": "t_1"})
    def stream() -> Iterator[int]:
        with context(user_id="inside"):
            yield 1
            seen.append(current_identity().user_id)
            lookup("1")
            yield 2
        seen.append(current_identity().user_id)

    def work() -> None:
        before = surroundings()
        with context(user_id="outside"):
            for _ in stream():
                seen.append(current_identity().user_id)
        assert surroundings() == before

    run = only_run_of(work)

    assert seen == ["outside", "inside", "outside", "outside"]
    assert [(step.user_id, step.tenant_id) for step in run.steps] == [("inside", "t_1")]


def test_generators_that_take_turns_do_not_mix():
    @record
    def stream(name: str) -> Iterator[str]:
        yield lookup(name)
        yield lookup(name)

    def work() -> None:
        for _ in zip(stream("a"), stream("b"), strict=True):
            pass

    one, other = runs_of(work)
    assert (value(one.input), names(one)) == ("a", ["tool lookup"] * 2)
    assert (value(other.input), names(other)) == ("b", ["tool lookup"] * 2)


# --- how it ends


@contextmanager
def raising(error: BaseException) -> Iterator[None]:
    """Just this exception comes out, and not one that is like it."""
    with pytest.raises(type(error)) as caught:
        yield
    assert caught.value is error


def test_an_exception_is_recorded_and_raised_again():
    error = ValueError("wrong")

    @record
    def function(question: str) -> None:
        raise error

    def work() -> None:
        with raising(error):
            function("x")

    run = only_run_of(work)
    assert run.status == "error"
    assert run.error is not None
    assert (run.error.type, run.error.message) == ("ValueError", "wrong")


def test_an_exception_of_a_coroutine_and_of_both_kinds_of_streams_is_recorded():
    error = ValueError("wrong")

    @record
    async def coroutine() -> None:
        raise error

    @record
    def stream() -> Iterator[str]:
        yield "so far"
        raise error

    @record
    async def async_stream() -> AsyncIterator[str]:
        yield "so far"
        raise error

    async def read() -> None:
        async for _ in async_stream():
            pass

    def work() -> None:
        with raising(error):
            asyncio.run(coroutine())
        with raising(error):
            list(stream())
        with raising(error):
            asyncio.run(read())

    found = [(run.status, value(run.output), run.error and run.error.message) for run in runs_of(work)]
    assert found == [("error", None, "wrong"), ("error", "so far", "wrong"), ("error", "so far", "wrong")]


def test_a_cancelled_function_is_cut_off():
    @record
    async def forever() -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run = only_run_of(lambda: asyncio.run(work()))

    assert (run.status, run.error and run.error.type) == ("cut_off", "CancelledError")


def test_without_a_recorder_the_function_just_runs():
    def stream() -> Iterator[int]:
        yield 1

    async def async_stream() -> AsyncIterator[int]:
        yield 2

    async def coroutine() -> int:
        return 3

    async def work() -> list[int]:
        return [*record(stream)(), *[item async for item in record(async_stream)()], await record(coroutine)()]

    assert asyncio.run(work()) == [1, 2, 3]
    assert record(lambda: 4)() == 4


@pytest.mark.parametrize(("owner", "name"), BREAKING_POINTS)
def test_a_broken_recorder_changes_nothing(owner: type, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    times = break_at(monkeypatch, owner, name)
    error = ValueError("wrong")

    @record
    def function() -> str:
        return lookup("1")

    @record
    async def coroutine() -> str:
        return lookup("1")

    @record
    def stream() -> Iterator[str]:
        yield lookup("1")
        raise error

    @record
    async def async_stream() -> AsyncIterator[str]:
        yield lookup("1")
        raise error

    async def read() -> None:
        async for item in async_stream():
            heard.append(item)

    heard: list[str] = []
    replay_recorder.install(spool=tmp_path)
    try:
        heard += [function(), asyncio.run(coroutine())]
        with raising(error):
            heard.extend(stream())
        with raising(error):
            asyncio.run(read())
    finally:
        replay_recorder.uninstall()

    assert heard == ["shipped"] * 4
    assert times != []


# --- around agents whose framework is recorded


def test_around_one_agent_the_session_shows_just_the_agents_run():
    @record
    async def support(question: str) -> str:
        return (await answering("fine").run(question)).output

    run = only_run_of(lambda: asyncio.run(support("How are you?")))

    assert (run.agent.name, value(run.input), value(run.output)) == ("inner", "How are you?", "fine")
    assert run.parent is None


def test_two_agents_in_one_function_are_two_runs_of_one_session():
    @record
    async def support(question: str) -> str:
        await answering("one").run(question)
        return (await answering("two").run(question)).output

    one, other = runs_of(lambda: asyncio.run(support("x")))

    assert [value(one.output), value(other.output)] == ["one", "two"]
    assert one.session_id == other.session_id
    assert (one.parent, other.parent) == (None, None)


def test_a_step_of_its_own_gives_the_function_a_run_with_the_agents_as_steps():
    @record
    async def support(question: str) -> str:
        await answering("before").run(question)
        lookup("1")
        return (await answering("after").run(question)).output

    before, around, after = runs_of(lambda: asyncio.run(support("x")))

    assert [value(run.output) for run in (before, around, after)] == ["before", "after", "after"]
    assert names(around) == ["agent agent", "tool lookup", "agent inner"]
    assert [step.call.run_id for step in around.steps if isinstance(step.call, AgentCall)] == [
        before.run_id,
        after.run_id,
    ]
    assert around.steps[0].duration_ms == before.duration_ms
    assert (before.parent, around.parent) == (None, None)
    assert after.parent is not None
    assert (after.parent.run_id, after.parent.step) == (around.run_id, None)
    assert {run.session_id for run in (before, around, after)} == {before.session_id}


def test_an_exception_that_the_agents_run_ended_with_needs_no_second_run():
    @record
    async def support(question: str) -> None:
        await failing_agent().run(question)

    def work() -> None:
        with pytest.raises(ValueError, match="no model"):
            asyncio.run(support("x"))

    run = only_run_of(work)
    assert (run.status, run.agent.framework) == ("error", "pydantic-ai")


def test_an_exception_of_its_own_gives_the_function_a_run():
    @record
    async def support(question: str) -> None:
        await answering("fine").run(question)
        raise ValueError("after that")

    def work() -> None:
        with pytest.raises(ValueError, match="after that"):
            asyncio.run(support("x"))

    inner, around = runs_of(work)
    assert (inner.status, around.status, names(around)) == ("ok", "error", ["agent agent"])
    assert around.started_at < inner.started_at  # type: ignore[operator]
    assert around.session_id == inner.session_id


def test_another_exception_than_that_of_the_agents_run_gives_the_function_a_run():
    @record
    async def support(question: str) -> None:
        try:
            await failing_agent().run(question)
        except ValueError:
            raise ValueError("of its own") from None

    def work() -> None:
        with pytest.raises(ValueError, match="of its own"):
            asyncio.run(support("x"))

    inner, around = runs_of(work)
    assert [run.error and run.error.message for run in (inner, around)] == ["no model", "of its own"]


def test_the_first_run_inside_says_the_session_unless_the_team_does():
    @record
    async def support(question: str) -> None:
        await answering("one").run(question)
        with context(session_id="chat-1"):
            await answering("two").run(question)
        await answering("three").run(question)

    one, two, three = runs_of(lambda: asyncio.run(support("x")))

    assert two.session_id == "chat-1"
    assert one.session_id == three.session_id != "chat-1"


def test_a_result_object_of_a_framework_is_recorded_as_its_output():
    @record
    async def support(question: str) -> Any:
        lookup("1")
        return await answering("fine").run(question)

    around, _ = runs_of(lambda: asyncio.run(support("x")))

    assert value(around.output) == "fine"


def test_a_function_that_outlives_the_failure_of_its_agent_needs_no_run():
    @record
    async def support(question: str) -> str:
        try:
            await failing_agent().run(question)
        except ValueError:
            return "sorry"
        return "fine"

    assert [run.status for run in runs_of(lambda: asyncio.run(support("x")))] == ["error"]


def test_a_streamed_agent_in_an_async_generator_is_one_run_and_its_tools_are_its_own():
    agent = Agent(TestModel(call_tools=["find"]), name="inner")

    @agent.tool_plain
    def find() -> str:
        return lookup("1")

    @record
    async def support(question: str) -> AsyncIterator[str]:
        async with agent.run_stream(question) as run:
            async for text in run.stream_text(delta=True, debounce_by=None):
                yield text

    async def work() -> str:
        return "".join([text async for text in support("x")])

    run = only_run_of(lambda: asyncio.run(work()))
    assert run.agent.framework == "pydantic-ai"
    assert [name for name in names(run) if name.startswith("tool")] == ["tool find", "tool lookup"]


def test_a_function_inside_a_function_is_a_run_inside_its_run():
    @record
    def inner(question: str) -> str:
        return "inner answer"

    @record
    def outer(question: str) -> str:
        return inner("from outer")

    one, other = sorted(runs_of(lambda: outer("x")), key=lambda run: run.agent.name or "")

    assert (one.agent.name, other.agent.name, names(other)) == ("inner", "outer", ["agent inner"])
    assert one.parent is not None
    assert one.parent.run_id == other.run_id
    assert one.session_id == other.session_id
    call = other.steps[0].call
    assert isinstance(call, AgentCall)
    assert (call.run_id, value(call.arguments), value(call.result)) == (one.run_id, "from outer", "inner answer")


def test_functions_around_functions_around_an_agent_show_just_the_agents_run():
    @record
    async def inner(question: str) -> str:
        return (await answering("fine").run(question)).output

    @record
    async def outer(question: str) -> str:
        return await inner(question)

    assert only_run_of(lambda: asyncio.run(outer("x"))).agent.name == "inner"


def test_a_function_in_a_tool_of_an_agent_belongs_to_that_tool():
    agent = Agent(TestModel(), name="outer")

    @record
    def helper(question: str) -> str:
        return lookup("1")

    @agent.tool_plain
    def ask() -> str:
        return helper("from tool")

    outer, inner = runs_of(lambda: asyncio.run(agent.run("x")))

    assert names(outer)[1:3] == ["tool ask", "agent helper"]
    assert inner.parent is not None
    assert (inner.parent.run_id, inner.parent.step, outer.steps[2].parent) == (outer.run_id, 2, 2)
    assert inner.session_id == outer.session_id


def test_an_agent_in_a_function_in_a_tool_belongs_to_that_tool():
    agent = Agent(TestModel(), name="outer")

    @record
    async def helper(question: str) -> str:
        return (await answering("fine").run(question)).output

    @agent.tool_plain
    async def ask() -> str:
        return await helper("from tool")

    outer, inner = runs_of(lambda: asyncio.run(agent.run("x")))

    assert names(outer)[1:3] == ["tool ask", "agent inner"]
    assert inner.parent is not None
    assert inner.parent.run_id == outer.run_id


def test_a_task_that_outlives_the_function_adds_nothing_to_its_run():
    @record
    async def support(question: str) -> asyncio.Task[str]:
        async def later() -> str:
            await asyncio.sleep(0)
            return lookup("2")

        lookup("1")
        return asyncio.create_task(later())

    async def work() -> None:
        assert await (await support("x")) == "shipped"

    run = only_run_of(lambda: asyncio.run(work()))

    assert names(run) == ["tool lookup"]


def test_a_task_that_outlives_a_function_without_a_run_opens_none():
    @record
    async def support(question: str) -> asyncio.Task[str]:
        async def later() -> str:
            await asyncio.sleep(0)
            return lookup("2")

        await answering("fine").run(question)
        return asyncio.create_task(later())

    async def work() -> None:
        assert await (await support("x")) == "shipped"

    assert only_run_of(lambda: asyncio.run(work())).agent.name == "inner"


def test_a_run_is_free_to_go_when_it_is_over():
    runs: list[weakref.ref[Any]] = []

    @record
    def support(question: str) -> None:
        snapshot(memory=[1])
        with pytest.raises(ValueError, match="failed"):
            recorded_tool(_fail)()
        place = current_place()
        assert place is not None
        runs.append(weakref.ref(place.run))

    runs_of(lambda: support("x"))
    gc.collect()

    assert [run() for run in runs] == [None]


def _fail() -> None:
    raise ValueError("failed")
