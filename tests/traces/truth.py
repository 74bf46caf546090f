"""What a capture gave against what truly happened, fact by fact."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from sessions_app.core.conventions.attributes import parsed
from sessions_app.core.payload import canonical_json
from sessions_app.core.run import ModelCall, Run, Step, ToolCall
from tests.traces.captures import Capture

Truth = dict[str, Any]


def wrong_facts(capture: Capture) -> dict[str, tuple[Any, Any]]:
    """Facts that the capture's bodies hold and the runs do not tell: what is true, and what was told."""
    return {
        name: (true, told)
        for name, check in FACTS.items()
        if is_held(capture, name)
        for true, told in [check(capture)]
        if not _is_within(true, told)
    }


def is_held(capture: Capture, fact: str) -> bool:
    """Whether the bodies hold the fact at all."""
    held = capture.truth["facts_in_payload"]
    return all(held.get(name) is True for name in HELD_BY[fact])


def _is_within(true: Any, told: Any) -> bool:
    return not (true - told) if isinstance(true, Counter) else bool(true == told)


# --- the two sides -----------------------------------------------------------------------------


def _runs(capture: Capture) -> list[Run]:
    """Those that are runs of the agent: setting up may leave traces of its own."""
    known = {trace["trace_id"]: trace["run_index"] for trace in capture.truth["captured"].get("traces") or []}
    return [run for run in capture.runs if known.get(run.run_id, 0) is not None]


def _model_calls(capture: Capture) -> list[tuple[Step, ModelCall]]:
    return [pair for run in _runs(capture) for pair in run.model_calls]


def _tool_calls(capture: Capture) -> list[tuple[Step, ToolCall]]:
    return [pair for run in _runs(capture) for pair in run.tool_calls]


def _true_calls(capture: Capture) -> list[Truth]:
    return [call for run in capture.truth["runs"] for call in run["model_calls"]]


def _true_tools(capture: Capture) -> list[Truth]:
    return [call for run in capture.truth["runs"] for call in run["tool_calls"]]


def _requested(capture: Capture) -> list[Truth]:
    return [call for run in capture.truth["runs"] for call in run["requested_tool_calls"]]


def same(value: Any) -> str:
    """Equal for equal values, be they spelled as JSON, as text that holds it, or as Python prints them."""
    value = parsed(value)
    return str(value).strip() if isinstance(value, str) else canonical_json(value).decode()


# --- facts -------------------------------------------------------------------------------------


def _count_of_model_calls(capture: Capture) -> tuple[Any, Any]:
    return len(_true_calls(capture)), len(_model_calls(capture))


def _models(capture: Capture) -> tuple[Any, Any]:
    true = Counter(call["response_model"] for call in _true_calls(capture) if not call.get("error"))
    told = Counter(name for _, call in _model_calls(capture) for name in {call.model, call.answered_model} if name)
    return true, told


def _settings(name: str) -> Callable[[Capture], tuple[Any, Any]]:
    def fact(capture: Capture) -> tuple[Any, Any]:
        true = Counter(call["params"][name] for call in _true_calls(capture) if call["params"].get(name) is not None)
        settings = [call.settings.value for _, call in _model_calls(capture) if call.settings]
        return true, Counter(said[name] for said in settings if isinstance(said.get(name), int | float))

    return fact


def _tokens(side: str) -> Callable[[Capture], tuple[Any, Any]]:
    def fact(capture: Capture) -> tuple[Any, Any]:
        told = sum(getattr(call, f"{side}_tokens") or 0 for _, call in _model_calls(capture))
        return capture.truth["totals"][f"{side}_tokens"], told

    return fact


def _answers(capture: Capture) -> tuple[Any, Any]:
    """Texts that the models answered."""
    true = Counter(c["response_text"] for c in _true_calls(capture) if c["response_text"] and not c.get("error"))
    return true, Counter(_text(call) for _, call in _model_calls(capture))


def _text(call: ModelCall) -> str:
    parts = call.response.value["parts"] if call.response else []
    return "".join(part["content"] for part in parts if part["part_kind"] == "text")


def _requested_calls(capture: Capture) -> tuple[Any, Any]:
    """Which tools the models asked for, with which arguments."""
    true = Counter((call["name"], same(call["args"])) for call in _requested(capture))
    told = Counter(
        (part["tool_name"], same(part["args"]))
        for _, call in _model_calls(capture)
        if call.response
        for part in call.response.value["parts"]
        if part["part_kind"] == "tool-call"
    )
    return true, told


def _calls_of_tools(capture: Capture) -> tuple[Any, Any]:
    """Which tools ran, with which arguments."""
    true = Counter((call["name"], same(call["args"])) for call in _true_tools(capture))
    return true, Counter((c.tool_name, same(c.arguments.value)) for _, c in _tool_calls(capture) if c.arguments)


def _results(capture: Capture) -> tuple[Any, Any]:
    """What the tools answered: as the model was given it, or as the tool's span tells it."""
    true = Counter((call["name"], same(call["result"])) for call in _true_tools(capture) if "result" in call)
    told: Counter[Any] = Counter()
    for step, call in _tool_calls(capture):
        told.update((call.tool_name, spelled) for spelled in _spellings(step, call))
    return true, told


def _spellings(step: Step, call: ToolCall) -> set[str]:
    values = [call.result.value] if call.result else []
    values += [step.extra["tool_result"]] if "tool_result" in step.extra else []
    return {same(form) for value in values for form in _forms(value)}


def _forms(value: Any) -> Iterable[Any]:
    """Frameworks hand a value on in their own way: as Python prints it, or wrapped."""
    yield value
    inner = parsed(value)
    if isinstance(inner, dict):
        yield from (inner[key] for key in ("result", "output", "content", "text") if key in inner)
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
        yield from (inner[0][key] for key in ("text", "json") if key in inner[0])
    if isinstance(value, str):
        printed = _printed(value)
        if printed is not None:
            yield printed


def _printed(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _failed_tools(capture: Capture) -> tuple[Any, Any]:
    true = sum(1 for call in _true_tools(capture) if call.get("error"))
    told = sum(1 for step, call in _tool_calls(capture) if step.error or call.outcome in ("failed", "crashed"))
    return true, told


def _failed_models(capture: Capture) -> tuple[Any, Any]:
    true = sum(1 for call in _true_calls(capture) if call.get("error"))
    return true, sum(1 for step, _ in _model_calls(capture) if step.error)


def _inputs(capture: Capture) -> tuple[Any, Any]:
    true = {same(run["input"]) for run in capture.truth["runs"]}
    return true, true & {same(run.input.value) for run in _runs(capture) if run.input}


def _outputs(capture: Capture) -> tuple[Any, Any]:
    true = {same(run["output"]) for run in capture.truth["runs"] if run["output"] is not None}
    return true, true & {same(run.output.value) for run in _runs(capture) if run.output}


def _endings(capture: Capture) -> tuple[Any, Any]:
    true = any(run["error"] for run in capture.truth["runs"])
    return true, any(run.status == "error" for run in _runs(capture))


def _sessions(capture: Capture) -> tuple[Any, Any]:
    true = {run["session_id"] for run in capture.truth["runs"] if run["session_id"]}
    return true, true & {run.session_id for run in _runs(capture)}


def _users(capture: Capture) -> tuple[Any, Any]:
    true = {run["user_id"] for run in capture.truth["runs"] if run["user_id"]}
    return true, true & {run.user_id for run in _runs(capture)}


def _instructions(capture: Capture) -> tuple[Any, Any]:
    true = {text for call in _true_calls(capture) for text in call["system"]}
    told = "\n".join(text for run in _runs(capture) for text in _system_texts(run))
    return true, {text for text in true if text in told}


def _system_texts(run: Run) -> Iterable[str]:
    yield run.instructions or ""
    for _, call in run.model_calls:
        if call.history is not None:
            yield json.dumps(call.history.message.value.get("instructions") or "", ensure_ascii=False)
            yield call.history.message.value.get("instructions") or ""


def _offered(capture: Capture) -> tuple[Any, Any]:
    true = {name for call in _true_calls(capture) for name in call["tools_offered"]}
    tools = [tool.value["name"] for _, call in _model_calls(capture) for tool in call.tools or ()]
    outputs = [
        tool["name"]
        for _, call in _model_calls(capture)
        if call.parameters
        for tool in call.parameters.value["output_tools"]
    ]
    return true, true & {*tools, *outputs}


def _finish(capture: Capture) -> tuple[Any, Any]:
    true = sum(1 for call in _true_calls(capture) if call["finish_reason"] and not call.get("error"))
    return true, min(true, sum(1 for _, call in _model_calls(capture) if call.finish_reason))


def _documents(capture: Capture) -> tuple[Any, Any]:
    true = sum(len(run["retrievals"]) for run in capture.truth["runs"])
    told = [step for run in _runs(capture) for step in run.steps if step.kind in ("retrieval", "tool")]
    return true, min(true, len(told))


FACTS: dict[str, Callable[[Capture], tuple[Any, Any]]] = {
    "model calls": _count_of_model_calls,
    "models": _models,
    "input": _inputs,
    "output": _outputs,
    "instructions": _instructions,
    "tool schemas": _offered,
    "answers": _answers,
    "calls asked for": _requested_calls,
    "calls of tools": _calls_of_tools,
    "tool answers": _results,
    "tool errors": _failed_tools,
    "model errors": _failed_models,
    "error of the run": _endings,
    "temperature": _settings("temperature"),
    "seed": _settings("seed"),
    "input tokens": _tokens("input"),
    "output tokens": _tokens("output"),
    "finish reason": _finish,
    "session": _sessions,
    "user": _users,
    "retrieval": _documents,
}
HELD_BY: dict[str, tuple[str, ...]] = {
    "model calls": ("request_model",),
    "models": ("response_model",),
    "input": ("input",),
    "output": ("output",),
    "instructions": ("system_instructions",),
    "tool schemas": ("tool_definitions",),
    "answers": ("output",),
    "calls asked for": ("tool_names", "tool_args"),
    "calls of tools": ("tool_names", "tool_args"),
    "tool answers": ("tool_results",),
    "tool errors": ("tool_errors",),
    "model errors": ("model_error",),
    "error of the run": ("request_model",),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "input tokens": ("input_tokens",),
    "output tokens": ("output_tokens",),
    "finish reason": ("finish_reason",),
    "session": ("session_id",),
    "user": ("user_id",),
    "retrieval": ("retrieved_documents",),
}
"""Names of the facts in `facts_in_payload` of a capture's meta.json."""
