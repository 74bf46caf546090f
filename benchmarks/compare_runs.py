"""Times of comparing two long runs, as JSON: `python -m benchmarks.compare_runs`.

`restamped` are runs with the same calls recorded at two times, so that every message differs in its
stamps; `diverged` also answers differently in the middle; `equal` shares every payload; `unrelated`
has no call in common. Ratios near 2 from one size to the next mean linear.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from sessions_app.core.compare.runs import compare_runs, first_divergence
from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ModelCall, Run, Step, ToolCall

SIZES = (500, 1000, 2000)
REPEATS = 5
_FILLER = "The order was packed in Porto and left the warehouse in the morning. " * 12


def make_run(steps: int, *, stamp: str, seed: int = 1, odd_one: int | None = None) -> Run:
    """Model and tool steps by turns; messages of about 1 KB."""
    made: list[Step] = []
    history: History | None = History(None, _prompt(stamp))
    choose = random.Random(seed)
    for turn in range(steps // 2):
        drawn = f"ORD-{choose.randrange(10_000_000)}"
        order = "ORD-none" if turn == odd_one else drawn
        answer = _answer(turn, order, stamp)
        result = {"id": order, "status": "shipped", "weight": 2.5, "note": _FILLER}
        made.append(_model_step(len(made) + 1, history, answer))
        made.append(_tool_step(len(made) + 1, turn, order, result))
        history = History(History(history, answer), _tool_return(turn, result, stamp))
    return Run(run_id=stamp, session_id=stamp, status="ok", steps=tuple(made), final=history)


def _prompt(stamp: str) -> Payload:
    part = {"content": "Where are my orders?", "timestamp": stamp, "part_kind": "user-prompt"}
    return Payload.of_json({"parts": [part], "timestamp": stamp, "kind": "request"})


def _answer(turn: int, order: str, stamp: str) -> Payload:
    call = {
        "tool_name": "lookup_order",
        "args": json.dumps({"order_id": order, "limit": turn % 7}),
        "tool_call_id": f"call_{turn}",
        "part_kind": "tool-call",
    }
    text = {"content": f"Looking at {order}. {_FILLER}", "part_kind": "text"}
    usage = {"input_tokens": 400 + turn, "output_tokens": 60, "details": {}}
    return Payload.of_json(
        {
            "parts": [text, call],
            "usage": usage,
            "model_name": "m",
            "timestamp": stamp,
            "kind": "response",
        }
    )


def _tool_return(turn: int, result: JsonObject, stamp: str) -> Payload:
    part: JsonObject = {
        "tool_name": "lookup_order",
        "content": result,
        "tool_call_id": f"call_{turn}",
        "timestamp": stamp,
        "part_kind": "tool-return",
    }
    return Payload.of_json({"parts": [part], "timestamp": stamp, "run_id": stamp, "kind": "request"})


def _model_step(index: int, history: History | None, answer: Payload) -> Step:
    return Step(index=index, name="m", call=ModelCall(history=history, response=answer, model="m"))


def _tool_step(index: int, turn: int, order: str, result: JsonObject) -> Step:
    call = ToolCall(
        tool_name="lookup_order",
        call_id=f"call_{turn}",
        arguments=Payload.of_text(json.dumps({"order_id": order, "limit": turn % 7})),
        result=Payload.of_json(result),
        outcome="success",
    )
    return Step(index=index, name="lookup_order", call=call)


Pair = tuple[Run, Run]

PAIRS: dict[str, Callable[[int], Pair]] = {
    "equal": lambda n: (make_run(n, stamp="10:00"), make_run(n, stamp="10:00")),
    "restamped": lambda n: (make_run(n, stamp="10:00"), make_run(n, stamp="11:30")),
    "diverged": lambda n: (make_run(n, stamp="10:00"), make_run(n, stamp="11:30", odd_one=n // 4)),
    "unrelated": lambda n: (make_run(n, stamp="10:00"), make_run(n, stamp="11:30", seed=2)),
}


def milliseconds(make: Callable[[], Pair], compare: Callable[[Run, Run], object]) -> float:
    """The best of some: other work on the machine only adds. Runs are made anew each time, so that
    nothing read before is reused."""
    times = []
    for _ in range(REPEATS):
        left, right = make()
        started = time.perf_counter()
        compare(left, right)
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


def measure() -> JsonValue:
    report: JsonObject = {}
    for name, make in PAIRS.items():
        whole = {n: milliseconds(partial(make, n), compare_runs) for n in SIZES}
        first = {n: milliseconds(partial(make, n), first_divergence) for n in SIZES}
        report[name] = {"compare_runs": _figures(whole), "first_divergence": _figures(first)}
    return report


def _figures(times: dict[int, float]) -> JsonObject:
    ratios = {f"{b}/{a}": round(times[b] / times[a], 2) for a, b in pairwise(SIZES)}
    return {"ms": {str(n): round(t, 1) for n, t in times.items()}, "ratios": ratios}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
