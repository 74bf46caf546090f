"""Tools recorded without a framework, and which of them change the world."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import replay_recorder
from replay_recorder import RecordedTool, ToolRecorder, ToolRegistry, context, record, recorded_tool
from replay_recorder.context import current_place
from replay_recorder.tools.recorded import REGISTRY
from replay_recorder.writing.run_writer import RunWriter
from sessions_app.core.run import Run, Step, ToolCall
from tests.recorder.recordings import BREAKING_POINTS, break_at, only_run_of, value


class OrderGone(Exception):
    pass


@recorded_tool(kind="read")
def lookup_order(order_id: str, *, limit: int = 5) -> dict[str, Any]:
    return {"id": order_id, "limit": limit}


@recorded_tool(kind="write")
def cancel_order(order_id: str) -> None:
    raise OrderGone(order_id)


@recorded_tool
async def search(text: str) -> list[str]:
    await asyncio.sleep(0)
    return [text]


def run_with(work: Callable[[], Any], **settings: Any) -> Run:
    """The run of a recorded function that does this work, and survives it."""

    @record
    def agent() -> None:
        try:
            work()
        except OrderGone:
            return

    return only_run_of(agent, **settings)


def tools(run: Run) -> list[tuple[Step, ToolCall]]:
    return [(step, step.call) for step in run.steps if isinstance(step.call, ToolCall)]


def test_a_call_is_a_step_with_name_arguments_result_and_times():
    run = run_with(lambda: lookup_order("ORD-1"))

    ((step, call),) = tools(run)
    assert (call.tool_name, value(call.arguments), value(call.result)) == (
        "lookup_order",
        {"order_id": "ORD-1"},
        {"id": "ORD-1", "limit": 5},
    )
    assert (call.outcome, step.error, step.extra) == ("success", None, {"tool_kind": "read"})
    assert step.started_at is not None
    assert step.duration_ms is not None


def test_a_failing_call_says_why_and_raises_the_same_exception():
    raised: list[BaseException] = []
    original = OrderGone("gone")

    @recorded_tool(kind="write")
    def failing() -> None:
        raise original

    def work() -> None:
        try:
            failing()
        except OrderGone as error:
            raised.append(error)

    ((step, call),) = tools(run_with(work))
    assert raised == [original]
    assert call.outcome == "crashed"
    assert call.result is None
    assert step.error is not None
    assert (step.error.type, step.error.message) == ("OrderGone", "gone")


def test_an_async_tool_is_recorded_and_stays_a_coroutine_function():
    run = run_with(lambda: asyncio.run(search("x")))

    ((_, call),) = tools(run)
    assert inspect.iscoroutinefunction(search)
    assert (value(call.arguments), value(call.result)) == ({"text": "x"}, ["x"])


def test_a_cancelled_tool_was_interrupted_and_did_not_crash():
    @recorded_tool
    async def forever() -> None:
        await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    ((_, call),) = tools(run_with(lambda: asyncio.run(cancelled())))
    assert call.outcome == "interrupted"


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        (None, b"null"),
        ("text", b"text"),
        ('{"a": 1}', b'{"a": 1}'),
        (b"\x00\xff", b"\x00\xff"),
        (1.0, b"1.0"),
        (True, b"true"),
        ({"base64": "aGk="}, b'{"base64":"aGk="}'),
    ],
)
def test_an_answer_is_kept_as_it_was(answer: Any, recorded: bytes):
    @recorded_tool
    def tool() -> Any:
        return answer

    ((_, call),) = tools(run_with(lambda: tool()))
    assert call.result is not None
    assert call.result.content == recorded


def test_what_only_will_be_an_answer_is_not_recorded_and_not_used_up():
    left: list[Any] = []

    @recorded_tool
    def tool() -> Any:
        return iter([1, 2])

    ((_, call),) = tools(run_with(lambda: left.extend(tool())))
    assert left == [1, 2]
    assert (call.outcome, call.result) == ("success", None)


def test_an_answer_that_cannot_be_written_down_harms_nobody():
    class Odd:
        def __str__(self) -> str:
            raise OrderGone

        __repr__ = __str__

    odd, got = Odd(), []

    @recorded_tool
    def tool(given: Any) -> Any:
        return odd

    ((_, call),) = tools(run_with(lambda: got.append(tool(odd))))
    assert got[0] is odd
    assert call.outcome == "success"


def test_arguments_are_those_before_the_call():
    @recorded_tool
    def tool(items: list[int]) -> None:
        items.clear()

    ((_, call),) = tools(run_with(lambda: tool([1, 2])))
    assert value(call.arguments) == {"items": [1, 2]}


def test_arguments_are_named_by_parameter_without_self_and_framework_contexts():
    class RunContext:
        __module__ = "pydantic_ai._run_context"

    class Shop:
        @recorded_tool
        def find(self, ctx: RunContext, first: int, *more: int, **options: int) -> None: ...

    ((_, call),) = tools(run_with(lambda: Shop().find(RunContext(), 1, 2, 3, size=4)))
    assert value(call.arguments) == {"first": 1, "more": [2, 3], "size": 4}


def test_arguments_that_do_not_fit_are_kept_by_position():
    untyped: Any = lookup_order

    def work() -> None:
        with pytest.raises(TypeError):
            untyped("a", "b", size=3)

    ((_, call),) = tools(run_with(work))
    assert value(call.arguments) == {"args": ["a", "b"], "kwargs": {"size": 3}}
    assert call.outcome == "crashed"


def test_a_tool_inside_a_tool_is_its_child():
    @recorded_tool
    def outer() -> None:
        lookup_order("1")

    def work() -> None:
        outer()
        lookup_order("2")

    assert [(step.name, step.parent) for step, _ in tools(run_with(work))] == [
        ("outer", None),
        ("lookup_order", 1),
        ("lookup_order", None),
    ]


def test_a_call_after_a_failed_one_names_the_attempt_before():
    def work() -> None:
        for _ in range(3):
            with pytest.raises(OrderGone):
                cancel_order("1")
        with pytest.raises(OrderGone):
            cancel_order("2")
        lookup_order("1")
        lookup_order("1")

    retries = [step.extra.get("retry_of") for step, _ in tools(run_with(work))]
    assert retries == [None, 1, 2, None, None, None]


def test_after_a_success_the_same_call_is_no_retry():
    outcomes: Iterator[Any] = iter([OrderGone(), "found", "found"])

    @recorded_tool
    def flaky() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return str(outcome)

    def work() -> None:
        with pytest.raises(OrderGone):
            flaky()
        flaky()
        flaky()

    assert [step.extra.get("retry_of") for step, _ in tools(run_with(work))] == [None, 1, None]


def test_a_call_carries_the_user_it_acted_for():
    def work() -> None:
        with context(user_id="u_1", tenant_id="t_1"):
            lookup_order("1")
        lookup_order("2")

    assert [(step.user_id, step.tenant_id) for step, _ in tools(run_with(work))] == [("u_1", "t_1"), (None, None)]


def test_a_name_and_static_methods():
    class Shop:
        @recorded_tool(name="find")
        @staticmethod
        def find_it(text: str) -> str:
            return text

    ((_, call),) = tools(run_with(lambda: Shop().find_it("x")))
    assert (call.tool_name, value(call.arguments)) == ("find", {"text": "x"})


def test_parallel_calls_are_steps_of_their_own():
    async def both() -> None:
        await asyncio.gather(search("a"), search("b"))

    run = run_with(lambda: asyncio.run(both()))

    assert [(step.parent, value(call.result)) for step, call in tools(run)] == [(None, ["a"]), (None, ["b"])]


def test_outside_a_run_the_function_just_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    began = break_at(monkeypatch, RunWriter, "begin")
    replay_recorder.install(spool=tmp_path)
    try:
        assert lookup_order("1") == {"id": "1", "limit": 5}
    finally:
        replay_recorder.uninstall()

    assert current_place() is None
    assert began == []


@pytest.mark.parametrize(("owner", "name"), BREAKING_POINTS)
def test_a_broken_recorder_changes_nothing(owner: type, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    times = break_at(monkeypatch, owner, name)
    calls = ToolRecorder()
    wrapped = RecordedTool(lookup_order, calls)
    answers: list[Any] = []

    @record
    def agent() -> None:
        answers.append(lookup_order("1"))
        answers.append(asyncio.run(search("x")))
        answers.append(wrapped("1", limit=2))
        with pytest.raises(OrderGone) as caught:
            cancel_order("2")
        answers.append(str(caught.value))

    replay_recorder.install(spool=tmp_path)
    try:
        agent()
    finally:
        replay_recorder.uninstall()

    assert answers == [{"id": "1", "limit": 5}, ["x"], {"id": "1", "limit": 2}, "2"]
    assert times != []
    assert len(calls.recordings) == 1


def test_a_broken_tool_recorder_changes_nothing():
    class Failing(ToolRecorder):
        def record(self, *args: Any, **kwargs: Any) -> None:
            raise OrderGone

    tool = RecordedTool(lambda: 3, Failing())

    assert tool() == 3


# --- RecordedTool and ToolRecorder


def test_recorded_tool_hands_every_call_to_its_recorder():
    calls = ToolRecorder()

    def add(one: int, other: int = 0) -> int:
        if other < 0:
            raise ValueError("negative")
        return one + other

    tool = RecordedTool(add, calls)

    assert tool(1, other=2) == 3
    with pytest.raises(ValueError, match="negative"):
        tool(1, -1)
    assert tool.__name__ == "add"
    assert calls.recordings == [
        {"tool_name": "add", "args": {"one": 1, "other": 2}, "result": 3},
        {
            "tool_name": "add",
            "args": {"one": 1, "other": -1},
            "result": None,
            "error": {"type": "ValueError", "message": "negative"},
        },
    ]


def test_a_tool_recorder_gets_what_only_will_be_an_answer_as_not_captured():
    calls = ToolRecorder()
    tool = recorded_tool(lambda: iter([1]), name="stream", recorder=calls)

    assert list(tool()) == [1]
    assert calls.recordings == [{"tool_name": "stream", "args": {}, "result": None, "captured": False}]


def test_a_tool_recorder_gets_the_arguments_as_they_were_before_the_call():
    calls = ToolRecorder()

    def clear(items: list[int]) -> None:
        items.clear()

    RecordedTool(clear, calls)([1, 2])

    assert calls.recordings == [{"tool_name": "clear", "args": {"items": [1, 2]}, "result": None}]


def test_a_tool_with_a_recorder_is_a_step_too():
    calls = ToolRecorder()
    tool = recorded_tool(lambda text: text, name="echo", recorder=calls)

    ((_, call),) = tools(run_with(lambda: tool("x")))

    assert call.tool_name == "echo"
    assert calls.recordings == [{"tool_name": "echo", "args": {"text": "x"}, "result": "x"}]


# --- the registry


def test_a_registry_knows_kinds_and_takes_the_unknown_for_a_write():
    registry = ToolRegistry()

    registry.register_read_tool("search_docs", len)
    registry.register_write_tool("charge_card", print)

    assert registry.is_write_tool("charge_card")
    assert not registry.is_write_tool("search_docs")
    assert registry.is_write_tool("never heard of it")
    assert [registry.kind(name) for name in ("search_docs", "charge_card", "other")] == ["read", "write", None]
    assert registry.tools() == {"search_docs": len, "charge_card": print}


def test_the_decorator_notes_the_kind():
    assert REGISTRY.kind("lookup_order") == "read"
    assert REGISTRY.kind("cancel_order") == "write"
    assert REGISTRY.kind("search") is None
    assert REGISTRY.is_write_tool("search")
    assert REGISTRY.tools()["lookup_order"] is lookup_order


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="read or write"):
        recorded_tool(kind="delete")(lambda: None)  # type: ignore[call-overload]


def test_a_registered_tool_can_be_recorded():
    registry = ToolRegistry()

    def weather(city: str) -> str:
        return "sunny"

    recorded = registry.register_read_tool("get_weather", weather, recorded=True)

    ((step, call),) = tools(run_with(lambda: recorded("Rome")))
    assert (call.tool_name, step.extra) == ("get_weather", {"tool_kind": "read"})
    assert registry.tools()["get_weather"] is recorded
