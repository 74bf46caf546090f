"""The last answer of a streamed run as the model gave it.

`run_stream` hands out the text as it comes. A hook behind the request that changes the answer does so later: the
recorded answer is what the hook made of it, and the output is what the model said.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.ran_with import is_told
from sessions_app.core.replay.plan import ReplayPlan


def as_streamed(plan: ReplayPlan) -> ReplayPlan:
    """The plan with that answer, which the team's own hook gets to change again; the same where none was changed."""
    run = plan.run
    is_of_stream = run.agent.entry_point == "run_stream" and is_told(run) and not run.agent.output_changed
    last = plan.answers[-1] if plan.answers else None
    text = run.output.value if run.output is not None and run.output.is_text else None
    if not is_of_stream or last is None or last.response is None or not isinstance(text, str):
        return plan
    if run.agent.output_function is not None or last.asked_with.get("output_object") is not None:
        return plan
    response = _with_text(last.response.value, text)
    answers = (*plan.answers[:-1], replace(last, response=Payload.of_json(response)))
    return plan if response == last.response.value else replace(plan, answers=answers)


def _with_text(response: JsonObject, text: str) -> JsonObject:
    """Of an answer that is one text."""
    parts = response.get("parts") or []
    if [part.get("part_kind") for part in parts] != ["text"]:
        return response
    return {**response, "parts": [{**parts[0], "content": text}]}
