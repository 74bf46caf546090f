"""Facts about calls of models and tools."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.traces.captures import Capture
from tests.traces.sides import (
    answer_parts,
    answer_text,
    model_calls,
    same,
    spellings,
    tool_calls,
    true_calls,
    true_requests,
    true_tools,
)

if TYPE_CHECKING:
    from tests.traces.truth import Check


def count_of_models(capture: Capture) -> tuple[Any, Any]:
    return len(true_calls(capture)), len(model_calls(capture))


def order(capture: Capture) -> tuple[Any, Any]:
    """Each answer in its turn: its text, and the tools that it asks for."""
    true = [
        (call["response_text"] or "", *(each["name"] for each in call["tool_calls"]))
        for call in true_calls(capture)
        if not call.get("error")
    ]
    told = [
        (answer_text(call), *(part["tool_name"] for part in answer_parts(call, "tool-call")))
        for _, call in model_calls(capture)
        if call.response
    ]
    return true, told


def models(capture: Capture) -> tuple[Any, Any]:
    true = Counter(call["response_model"] for call in true_calls(capture) if not call.get("error"))
    told = Counter(name for _, call in model_calls(capture) for name in {call.model, call.answered_model} if name)
    return true, told


def setting(name: str) -> Check:
    def fact(capture: Capture) -> tuple[Any, Any]:
        true = Counter(call["params"][name] for call in true_calls(capture) if call["params"].get(name) is not None)
        settings = [call.settings.value for _, call in model_calls(capture) if call.settings]
        return true, Counter(said[name] for said in settings if isinstance(said.get(name), int | float))

    return fact


def tokens(side: str) -> Check:
    def fact(capture: Capture) -> tuple[Any, Any]:
        told = sum(getattr(call, f"{side}_tokens") or 0 for _, call in model_calls(capture))
        return capture.truth["totals"][f"{side}_tokens"], told

    return fact


def answers(capture: Capture) -> tuple[Any, Any]:
    """Texts that the models answered."""
    true = Counter(c["response_text"] for c in true_calls(capture) if c["response_text"] and not c.get("error"))
    return true, Counter(answer_text(call) for _, call in model_calls(capture))


def requested(capture: Capture) -> tuple[Any, Any]:
    """Which tools the models asked for, with which arguments."""
    true = Counter((call["name"], same(call["args"])) for call in true_requests(capture))
    asked = (part for _, call in model_calls(capture) for part in answer_parts(call, "tool-call"))
    return true, Counter((part["tool_name"], same(part["args"])) for part in asked)


def of_tools(capture: Capture) -> tuple[Any, Any]:
    """Which tools ran, with which arguments."""
    true = Counter((call["name"], same(call["args"])) for call in true_tools(capture))
    told = Counter((c.tool_name, same(c.arguments.value)) for _, c in tool_calls(capture) if c.arguments)
    return true, told


def results(capture: Capture) -> tuple[Any, Any]:
    """What the tools answered: as the model was given it, or as the tool's span tells it."""
    true = Counter((call["name"], same(call["result"])) for call in true_tools(capture) if "result" in call)
    told: Counter[Any] = Counter()
    for _, call in tool_calls(capture):
        if call.result:
            told.update((call.tool_name, spelled) for spelled in spellings(call.result.value))
    return true, told


def failed_tools(capture: Capture) -> tuple[Any, Any]:
    true = sum(1 for call in true_tools(capture) if call.get("error"))
    told = sum(1 for step, call in tool_calls(capture) if step.error or call.outcome in ("failed", "crashed"))
    return true, told


def failed_models(capture: Capture) -> tuple[Any, Any]:
    true = sum(1 for call in true_calls(capture) if call.get("error"))
    return true, sum(1 for step, _ in model_calls(capture) if step.error)


def finish(capture: Capture) -> tuple[Any, Any]:
    """How many answers say why they ended; each provider has words of its own for it."""
    true = sum(1 for call in true_calls(capture) if call["finish_reason"] and not call.get("error"))
    return true, sum(1 for step, call in model_calls(capture) if call.finish_reason and not step.error)


def offered(capture: Capture) -> tuple[Any, Any]:
    """Which tools models were offered, with their schemas."""
    true = {name for call in true_calls(capture) for name in call["tools_offered"]}
    offered = [tool.value for _, call in model_calls(capture) for tool in call.tools or ()]
    tools = [tool["name"] for tool in offered if tool.get("parameters_json_schema") is not None]
    parameters = [call.parameters.value for _, call in model_calls(capture) if call.parameters]
    return true, true & {*tools, *(tool["name"] for said in parameters for tool in said["output_tools"])}
