"""Talking with a replay process as a worker does."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sessions_app.agents.process.sandbox import ReplayChild
from tests.agents.probing_child import PROBE, ProbingChild

EXAMPLES = Path("sessions_app/examples")


def example(name: str = "cancel_bug") -> dict[str, Any]:
    record: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_bytes())
    return record


def ask(child: ReplayChild, record: dict[str, Any], run_id: str = "again", patience: float = 30) -> dict[str, Any]:
    """Have a record replayed; the child's result."""
    number = f"request {child.served}"
    child.send({"id": number, "run_id": run_id, "record": json.dumps(record)})
    until = time.monotonic() + patience
    for answer in child.answers(poll_seconds=0.5):
        if answer is not None and answer.get("id") == number and "result" in answer:
            result: dict[str, Any] = answer["result"]
            return result
        assert time.monotonic() < until, "the child does not answer"
    raise AssertionError


def probe(child: ReplayChild, command: str) -> dict[str, Any]:
    return ask(child, example() | {"input": PROBE + command})


@contextmanager
def running(kind: type[ReplayChild] = ProbingChild) -> Iterator[ReplayChild]:
    child = kind()
    try:
        yield child
    finally:
        child.end()
