"""Side effects that happen once: again, after a restart, from two processes at once, and after a crash."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from replay_recorder import IdempotentTask, OutcomeUnknown
from replay_recorder.delivery.locks import try_lock
from replay_recorder.tools import idempotent
from replay_recorder.tools.operation_keys import comparable, operation_key
from tests.recorder.floor import ROOT

sent: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    sent.clear()


@pytest.fixture
def task(tmp_path: Path) -> IdempotentTask:
    return IdempotentTask("task_123", tmp_path / "store.sqlite3")


def send_email(to: str, subject: str = "Hello", **more: Any) -> dict[str, Any]:
    sent.append((to, subject))
    return {"id": len(sent), "to": to}


def charge(amount: Any) -> int:
    sent.append(amount)
    return len(sent)


async def send_async(to: str) -> int:
    sent.append(to)
    await asyncio.sleep(0.01)
    return len(sent)


def test_the_second_call_gives_the_first_result_and_sends_nothing(task: IdempotentTask):
    first = task.execute(send_email, to="user@example.com", subject="Reminder")
    second = task.execute(send_email, to="user@example.com", subject="Reminder")

    assert first == second == {"id": 1, "to": "user@example.com"}
    assert len(sent) == 1


def test_the_same_arguments_in_another_order_or_by_position_are_the_same_call(task: IdempotentTask):
    task.execute(send_email, to="a", subject="b", x=1, y=2)
    task.execute(send_email, y=2, subject="b", x=1, to="a")
    task.execute(send_email, "a", "b", y=2, x=1)

    assert len(sent) == 1


def test_other_arguments_another_operation_and_another_task_are_other_calls(task: IdempotentTask, tmp_path: Path):
    task.execute(send_email, "a")
    task.execute(send_email, "b")
    task.execute(charge, "a")
    IdempotentTask("task_456", tmp_path / "store.sqlite3").execute(send_email, "a")

    assert len(sent) == 4


def test_it_survives_a_restart(task: IdempotentTask, tmp_path: Path):
    task.execute(charge, 5)

    again = IdempotentTask("task_123", tmp_path / "store.sqlite3")

    assert again.execute(charge, 5) == 1
    assert sent == [5]


def test_none_is_a_result(task: IdempotentTask):
    def nothing() -> None:
        sent.append(1)

    assert task.execute(nothing) is None
    assert task.execute(nothing) is None
    assert sent == [1]


def test_a_result_comes_back_from_json(task: IdempotentTask):
    def pair() -> Any:
        return (1, Decimal("2.50"))

    assert task.execute(pair) == (1, Decimal("2.50"))
    assert task.execute(pair) == [1, "2.50"]


def test_an_exception_is_raised_and_the_next_call_tries_again(task: IdempotentTask):
    error = ValueError("no connection")

    def send(to: str) -> str:
        sent.append(to)
        if len(sent) == 1:
            raise error
        return "sent"

    with pytest.raises(ValueError, match="no connection") as caught:
        task.execute(send, "a")

    assert caught.value is error
    assert [task.execute(send, "a"), task.execute(send, "a")] == ["sent", "sent"]
    assert sent == ["a", "a"]


def test_two_threads_at_once_execute_once(task: IdempotentTask):
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> int:
        sent.append(1)
        inside.set()
        assert go_on.wait(10)
        return len(sent)

    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(task.execute(slow))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert inside.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)

    assert (sent, results) == ([1], [1, 1, 1])


PROGRAM = """
import os, sys, time
from pathlib import Path
from replay_recorder import IdempotentTask

folder = Path(sys.argv[1])

def effect():
    with (folder / "effects").open("a") as file:
        file.write("x")
    (folder / "inside").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    if sys.argv[2] == "die":
        os._exit(9)
    return os.getpid()

(folder / f"begun-{sys.argv[3]}").touch()
print(IdempotentTask("t", folder / "store.sqlite3").execute(effect))
"""


def start(folder: Path, way: str, name: str) -> subprocess.Popen[str]:
    """A process that is about to make the call; the effect ends when there is a file `go`."""
    command = [sys.executable, "-c", PROGRAM, str(folder), way, name]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(folder / f"begun-{name}")
    return process


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, error = process.communicate(timeout=30)
    return process.returncode, out.strip(), error


def effects(folder: Path) -> int:
    return len((folder / "effects").read_text())


def test_two_processes_at_once_execute_once(tmp_path: Path):
    processes = [start(tmp_path, "live", name) for name in ("one", "other")]
    wait_for(tmp_path / "inside")
    (tmp_path / "go").touch()

    (one, first, _), (other, second, _) = [finished(process) for process in processes]

    assert (one, other) == (0, 0)
    assert first == second
    assert effects(tmp_path) == 1


def test_a_call_waits_for_one_that_dies_and_then_says_that_the_outcome_is_unknown(tmp_path: Path):
    dying = start(tmp_path, "die", "dying")
    wait_for(tmp_path / "inside")
    waiting = start(tmp_path, "live", "waiting")
    (tmp_path / "go").touch()

    assert finished(dying)[0] == 9
    code, _, error = finished(waiting)

    assert code == 1
    assert "OutcomeUnknown: __main__.effect was begun at 20" in error
    assert effects(tmp_path) == 1


def wait_for(path: Path) -> None:
    for _ in range(3000):
        if path.exists():
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{path} never came")


def interrupted_call(task: IdempotentTask, operation: Callable[..., Any], *args: Any) -> OutcomeUnknown:
    """What the next call raises after one that was interrupted half way."""
    with pytest.raises(KeyboardInterrupt):
        task.execute(operation, *args)
    with pytest.raises(OutcomeUnknown) as caught:
        task.execute(operation, *args)
    return caught.value


def interrupted_once(amount: int) -> str:
    sent.append(amount)
    if len(sent) == 1:
        raise KeyboardInterrupt
    return "charged"


def test_an_interrupted_call_is_of_unknown_outcome_until_somebody_says_it_has_happened(task: IdempotentTask):
    unknown = interrupted_call(task, interrupted_once, 5)

    task.settle(unknown.key, "charged, says the bank")

    assert task.execute(interrupted_once, 5) == "charged, says the bank"
    assert sent == [5]


def test_an_interrupted_call_that_has_not_happened_can_be_made_again(task: IdempotentTask):
    unknown = interrupted_call(task, interrupted_once, 5)

    task.forget(unknown.key)

    assert unknown.operation.endswith("interrupted_once")
    assert [task.execute(interrupted_once, 5), task.execute(interrupted_once, 5)] == ["charged", "charged"]
    assert sent == [5, 5]


def test_a_known_result_can_be_neither_forgotten_nor_replaced(task: IdempotentTask):
    task.execute(charge, 5)
    key = operation_key("task_123", charge, (5,), {})

    task.forget(key)
    task.settle(key, 99)

    assert task.execute(charge, 5) == 1
    assert sent == [5]


def test_a_running_call_can_be_neither_forgotten_nor_settled(task: IdempotentTask):
    refused: list[str] = []

    def running() -> str:
        key = operation_key("task_123", running, (), {})
        for end in (task.forget, partial(task.settle, result=1)):
            thread = threading.Thread(target=try_to_end, args=(end, key))
            thread.start()
            thread.join(10)
        return "done"

    def try_to_end(end: Callable[[str], None], key: str) -> None:
        with pytest.raises(BlockingIOError):
            end(key)
        refused.append(key)

    assert task.execute(running) == "done"
    assert len(refused) == 2


def test_a_result_that_cannot_be_kept_is_no_reason_to_do_it_again(
    task: IdempotentTask, monkeypatch: pytest.MonkeyPatch
):
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(task, "_settle", full)
        with pytest.raises(OSError, match="No space"):
            task.execute(charge, 5)

    with pytest.raises(OutcomeUnknown):
        task.execute(charge, 5)
    assert sent == [5]


def test_an_operation_that_executes_itself_is_refused_and_does_not_wait_for_ever(task: IdempotentTask):
    def itself() -> None:
        task.execute(itself)

    with pytest.raises(RuntimeError, match="executes itself"):
        task.execute(itself)


def test_an_operation_may_execute_another_one(task: IdempotentTask):
    def outer() -> int:
        return task.execute(charge, 1)

    assert [task.execute(outer), task.execute(outer)] == [1, 1]
    assert sent == [1]


def test_a_lock_file_that_its_last_owner_removed_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "lock"

    def too_late(descriptor: int) -> bool:
        path.unlink()
        return try_lock(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(idempotent, "try_lock", too_late)
        assert idempotent._lock(path) is None
    descriptor = idempotent._lock(path)

    assert descriptor is not None
    os.close(descriptor)


def test_nothing_is_left_of_locks(task: IdempotentTask):
    task.execute(charge, 1)

    assert list(task._locks.iterdir()) == []


# --- coroutines


def test_coroutine_functions_execute_once_also_at_once(task: IdempotentTask):
    async def work() -> list[int]:
        both = await asyncio.gather(task.execute_async(send_async, "a"), task.execute_async(send_async, "a"))
        return [*both, await task.execute_async(send_async, "a")]

    assert asyncio.run(work()) == [1, 1, 1]
    assert sent == ["a"]


def test_a_cancelled_coroutine_is_of_unknown_outcome(task: IdempotentTask):
    async def work() -> None:
        call = asyncio.create_task(task.execute_async(send_async, "a"))
        while not sent:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await task.execute_async(send_async, "a")

    with pytest.raises(OutcomeUnknown):
        asyncio.run(work())
    assert sent == ["a"]


def test_a_coroutine_function_is_not_executed_by_the_plain_method(task: IdempotentTask):
    untyped: Any = send_async

    with pytest.raises(TypeError, match="execute_async"):
        task.execute(untyped, "a")


# --- keys


class Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class Money:
    amount: int


VALUES = [
    1, 1.0, True, "1", None, [1], {"1": 1}, {1: 1}, {"1": None}, b"1", Decimal("1"), Decimal("1.0"), {1}, [1, 1], [[1]],
    Colour.RED, Money(1), ["dict", ["1", 1]], date(2026, 1, 1), datetime(2026, 1, 1), "2026-01-01", UUID(int=1),
    ["datetime.date", "2026-01-01"], Path("a"), "a",
]  # fmt: skip


def test_values_that_differ_have_keys_that_differ(task: IdempotentTask):
    for value in VALUES:
        task.execute(charge, value)

    assert len(sent) == len(VALUES)


def test_equal_values_have_one_key(task: IdempotentTask):
    for value in ({"a": {1, 2}, "b": (1,)}, {"b": [1], "a": frozenset({2, 1})}, {"b": [1], "a": {1, 2}}):
        task.execute(charge, value)

    assert len(sent) == 1


def test_arguments_without_a_value_to_compare_are_refused_before_anything_happens(task: IdempotentTask):
    with pytest.raises(TypeError, match="such as its id"):
        task.execute(charge, object())
    with pytest.raises(TypeError):
        task.execute(send_email)  # type: ignore[call-arg]

    assert sent == []


def test_operations_without_a_name_of_their_own_are_refused(task: IdempotentTask):
    for operation in (lambda: sent.append(1), partial(charge, 1)):
        with pytest.raises(TypeError, match="no name of its own"):
            task.execute(operation)

    assert sent == []


def test_comparable_values_are_the_same_after_a_restart():
    program = (
        "from replay_recorder.tools.operation_keys import comparable; "
        "print(comparable({'b': {'x', 'y', 'z'}, 'a': [1.5, b'0']}))"
    )
    texts = {
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for _ in range(3)
    }

    assert texts == {f"{comparable({'b': {'x', 'y', 'z'}, 'a': [1.5, b'0']})}\n"}


def test_the_default_store_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    IdempotentTask("t").execute(charge, 1)

    assert (tmp_path / "replay-recorder" / "idempotent.sqlite3").exists()


def test_a_store_that_cannot_be_written_is_said_at_once(tmp_path: Path):
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="file"):
        IdempotentTask("t", tmp_path / "file" / "store.sqlite3")
