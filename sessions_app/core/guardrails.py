"""Which guardrails of the OpenAI Agents SDK looked at a run."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject
from sessions_app.core.run import OPENAI_AGENTS, Run

GUARDED = {True: "The guardrail tripped and ended the run.", False: "The guardrail let it pass."}
"""What the step of a guardrail says, by whether it tripped."""
FIELDS = ("input_guardrails", "output_guardrails", "tool_input_guardrails", "tool_output_guardrails")


def guardrails_of(run: Run) -> JsonObject | None:
    """Their names by kind, in no order: they look at the same time. None where they are not known: the SDK tells of all
    of them when a run has ended well, together with its items."""
    told = {name: _names(run.extra[name]) for name in FIELDS if name in run.extra}
    is_known = run.agent.framework == OPENAI_AGENTS and run.status == "ok" and ("items" in run.extra or len(told) == 4)
    return {name.removesuffix("_guardrails"): told.get(name, []) for name in FIELDS} if is_known else None


def guardrail_fields(run: Run) -> JsonObject:
    """What a run that was made of this one says of them; a list for each kind, for it has no items."""
    return {} if guardrails_of(run) is None else {name: run.extra.get(name, []) for name in FIELDS}


def _names(told: object) -> list[str]:
    rows = told if isinstance(told, list) else []
    return sorted(str(row.get("name")) for row in rows if isinstance(row, dict))
