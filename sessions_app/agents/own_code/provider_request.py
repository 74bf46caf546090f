"""A request as the provider gets it: spans tell that, and not what the agent's loop held before.

On its way the library chooses how a structured output is asked for, by what the model can do, and writes the schema of
a prompted one behind the instructions. The model of then is not here, so what it came to is taken from the recording,
and only where nothing but the model decides it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.profiles import DEFAULT_PROMPTED_OUTPUT_TEMPLATE

from sessions_app.agents.loop.library import dump_parameters
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.plan import PlannedAnswer

Request = tuple[list[ModelMessage], JsonObject]


def as_sent(seen: list[ModelMessage], parameters: ModelRequestParameters, planned: PlannedAnswer | None) -> Request:
    """Messages and parameters; `planned` is what was recorded at this place."""
    told: Any = planned.asked_with.get("output_mode") if planned is not None else None
    if planned is None or told not in ("tool", "native", "prompted"):
        return seen, dump_parameters(parameters)
    sent = parameters.with_default_output_mode(told)
    if sent.output_mode != "tool":
        sent = replace(sent, output_tools=[])
    return _with_schema(seen, sent, planned), dump_parameters(sent)


def _with_schema(
    seen: list[ModelMessage], parameters: ModelRequestParameters, planned: PlannedAnswer
) -> list[ModelMessage]:
    """The schema is part of the instructions where it was then, written as the library writes it today."""
    newest, recorded = (seen[-1] if seen else None), (planned.newest or {}).get("instructions")
    if not isinstance(newest, ModelRequest) or not isinstance(recorded, str) or parameters.output_mode == "tool":
        return seen
    template = parameters.prompted_output_template or DEFAULT_PROMPTED_OUTPUT_TEMPLATE
    schema = replace(parameters, prompted_output_template=template).prompted_output_instructions
    whole = "\n\n".join(part for part in (newest.instructions, schema) if part)
    is_same = whole.strip() == recorded.strip()
    return [*seen[:-1], replace(newest, instructions=recorded)] if is_same else seen
