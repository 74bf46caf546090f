"""Recorded runs as rows of a dataset, in the forms of tools for evals: one JSON object each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.core.run import Run

DatasetFormat = Literal["rows", "openai-evals", "inspect"]
FORMATS: tuple[DatasetFormat, ...] = get_args(DatasetFormat)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenFacts:
    """What a golden demands of its scene."""

    golden_id: str
    name: str
    description: str
    expected_outcome: str
    checks: list[JsonObject]


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A run to be run again elsewhere."""

    run: Run
    golden: GoldenFacts | None = None
    """None for a run that is no scene."""


def as_jsonl(examples: Iterable[Example], format: DatasetFormat) -> bytes:
    """A line for each."""
    return b"".join(compact_json(_WRITERS[format](example)) + b"\n" for example in examples)


def _row(example: Example) -> JsonObject:
    """Everything: what went in, what came out, and what should have come."""
    run, golden = example.run, example.golden
    trace = trace_of(run)
    return {
        "id": _id(example),
        "run_id": run.run_id,
        "session_id": run.session_id,
        "agent": run.agent.name,
        "model": run.model,
        "status": run.status,
        "instructions": run.instructions,
        "input": run.input.value if run.input else None,
        "output": trace.output,
        "error": trace.error,
        "tool_calls": [{"tool": call.tool, "args": call.arguments, "result": call.result} for call in trace.calls],
        "name": golden.name if golden else None,
        "description": golden.description if golden else None,
        "expected_outcome": golden.expected_outcome if golden else None,
        "checks": list(golden.checks) if golden else [],
    }


def _openai_evals(example: Example) -> JsonObject:
    """https://github.com/openai/evals: `input` as chat messages, `ideal` for its basic templates. A row without one is
    for evals that a model grades."""
    ideal = _targets(example)
    return {"input": _messages(example.run), **({"ideal": ideal} if ideal else {}), "id": _id(example)}


def _inspect(example: Example) -> JsonObject:
    """https://inspect.aisi.org.uk/datasets.html: a Sample as `json_dataset` reads it."""
    golden = example.golden
    metadata = {
        "run_id": example.run.run_id,
        "agent": example.run.agent.name,
        "checks": list(golden.checks) if golden else [],
        "expected_outcome": golden.expected_outcome if golden else None,
    }
    targets: JsonValue = list(_targets(example))
    return {"id": _id(example), "input": _messages(example.run), "target": targets or "", "metadata": metadata}


_WRITERS: dict[DatasetFormat, Callable[[Example], JsonObject]] = {
    "rows": _row,
    "openai-evals": _openai_evals,
    "inspect": _inspect,
}


def _id(example: Example) -> str:
    return example.golden.golden_id if example.golden else example.run.run_id


def _messages(run: Run) -> list[JsonObject]:
    """What the agent was asked, without earlier turns of the conversation."""
    said = (("system", run.instructions), ("user", run.input.as_text() if run.input else None))
    return [{"role": role, "content": text} for role, text in said if text]


def _targets(example: Example) -> list[str]:
    """Texts of which the answer has to be, or to hold, one; else the outcome that people expect, in words."""
    golden = example.golden
    if golden is None:
        return []
    wanted = [text for check in golden.checks if _is_of_whole_answer(check) for text in _texts(check)]
    return wanted or [golden.expected_outcome] * bool(golden.expected_outcome)


def _is_of_whole_answer(check: JsonObject) -> bool:
    return check.get("kind") == "output" and not check.get("path")


def _texts(check: JsonObject) -> list[str]:
    several = check.get("contains_any")
    found = [check.get("equals"), check.get("contains"), *(several if isinstance(several, list) else ())]
    return [text for text in found if isinstance(text, str)]
