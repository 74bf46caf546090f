"""Runs in which several agents take turns, as the OpenAI Agents SDK hands a conversation from one to the next."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.run import OPENAI_AGENTS, OPENAI_ITEMS, PYDANTIC_AI, Run


def is_openai_agents(run: Run) -> bool:
    return run.agent.framework == OPENAI_AGENTS


def is_of_another_loop(run: Run) -> bool:
    """Whether another loop than Pydantic AI's made the run, as far as the recording tells."""
    is_of_sdk = is_openai_agents(run) or run.source_format == OPENAI_ITEMS
    return is_of_sdk or (run.is_told_by_others and run.agent.framework != PYDANTIC_AI)


def output_modes(answers: tuple[PlannedAnswer, ...]) -> dict[str | None, JsonObject]:
    """How each agent asks for its output, as its first request says: mode and schema. A mode that the library does not
    know cannot be taken over, and differs."""
    found: dict[str | None, JsonObject] = {}
    for answer in answers:
        parameters = answer.parameters.value if answer.parameters else None
        if isinstance(parameters, dict) and parameters.get("output_mode") in _MODES:
            found.setdefault(answer.agent, {key: parameters.get(key) for key in ("output_mode", "output_object")})
    return found


_MODES = ("text", "tool", "native", "prompted", "image", "auto")


def asks_in_several_ways(run: Run, answers: tuple[PlannedAnswer, ...]) -> bool:
    """Whether agents of one run want different kinds of output; no one agent can stand for them then."""
    return is_openai_agents(run) and len({mode["output_mode"] for mode in output_modes(answers).values()}) > 1


def handoff_calls(run: Run) -> dict[str, int]:
    """Calls that hand over, by their id. The SDK answers them behind those of tools, the ignored ones first."""
    return {
        call.call_id: 1 if handoff.get("ignored") else 2
        for step, call in run.tool_calls
        if call.call_id and isinstance(handoff := step.extra.get("handoff"), dict)
    }
