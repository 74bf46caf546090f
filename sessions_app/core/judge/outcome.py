"""Whether a replay can come to the recorded outcome by itself.

Only then "reproduced" may be said. A replay runs the agent's loop and none of the team's code: what that code made or
raised behind the last answer was recorded, but a replay that repeats it proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.ends_of_the_loop import (
    LIMIT_REACHED,
    OF_THE_LOOP,
    ends_before_tools,
    is_due,
    lack,
    may_be_outcome,
    said_in,
    spells_json,
)
from sessions_app.core.judge.last_calls import (
    asked_last,
    calls_in,
    is_settled,
    kinds_said,
    last_model,
    waiting,
    were_skipped,
)
from sessions_app.core.judge.openai_loop import ended_by_tools
from sessions_app.core.judge.reading import object_of, seen_message, step_name, value_of
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.outputs import same_output, typed_output
from sessions_app.core.run import (
    GRAPHS,
    ErrorInfo,
    ModelCall,
    Run,
    Step,
    ToolCall,
    broke_off_at,
    was_stopped,
)

OF_OTHER_CODE = frozenset(
    {
        "output_made_by_code", "output_differs", "error_outside_loop", "last_message_taken",
        "past_rewritten", "answer_contradicted", "call_of_no_answer",
    }
)  # fmt: skip
"""Reasons that do not hold where the team's own code is replayed: then it does run."""
MESSAGE_FROM_CODE = "message_from_code"
OF_TOOLS = frozenset({"output_function", MESSAGE_FROM_CODE})
"""Reasons that do not hold where its tools run as well."""
_DECIDED_BY_CODE = frozenset(
    {"output_function", "output_made_by_code", "output_differs", "error_outside_loop", "last_message_taken"}
)


def outcome_gaps(run: Run) -> Iterator[Reason]:
    last = last_model(run)
    if last is None or run.status == "running" or broke_off_at(run) is not None:
        return
    if last[1].response is None and last[0].error is None:
        return  # that answer is missing, which is said elsewhere
    has_failed = run.error is not None or run.status == "error"
    found = _of_error(run, *last) if has_failed else _of_answer(run, *last)
    found = found or _of_contradiction(run)
    if found is not None:
        yield found


def is_decided_by_code(run: Run) -> bool:
    """Whether code behind the model's last answer made the output, or ended the run."""
    return run.agent.output_function is not None or any(gap.code in _DECIDED_BY_CODE for gap in outcome_gaps(run))


def _of_contradiction(run: Run) -> Reason | None:
    """An outcome of two kinds, or one that the status does not speak of."""
    if run.error is not None and run.output is not None:
        return reason_at_end(run, "outcome_contradicts", "The run has both an error and an output.")
    if run.error is not None and run.status != "error":
        return reason_at_end(run, "outcome_contradicts", f"The run has an error, but its status is {run.status}.")
    if run.output is not None and run.status != "ok":
        return reason_at_end(run, "outcome_contradicts", f"The run has an output, but its status is {run.status}.")
    return None


# --- a run that failed -------------------------------------------------------------------------


def _of_error(run: Run, step: Step, call: ModelCall) -> Reason | None:
    error = run.error
    if error is None or (error.type is None and error.message is None):
        return reason_at_end(run, "error_missing", "The run failed, but its error was not recorded.")
    untold = [pair for pair in asked_last(run) if not is_settled(*pair)]
    if untold and not ends_before_tools(run, call, error):
        message = f"No result was recorded for {step_name(untold[0][0])}."
        return reason_at(run, "tool_answer_missing", message, untold[0][0])
    if is_openai_agents(run) and (error.type or "").startswith(_OF_TOOL_GUARDRAILS):
        message = f"The run ended with {error.type}, raised by a guardrail of a tool, which no replay runs."
        return _behind(run, untold, "error_outside_loop", message)
    if was_stopped(error) or _is_passed_on(run, step, error):
        return None
    lacking = lack(run, error)
    if lacking is None and error.type in OF_THE_LOOP:
        if not is_due(run, call, error):
            message = f"The recorded answers do not lead to the {error.type} with which the run ended."
            return _behind(run, untold, "model_answer_missing", message)
        if error.type == LIMIT_REACHED or not may_be_outcome(run, call):
            return None
    return _behind(run, untold, "error_outside_loop", lacking or _raised_by_code(step, error))


def _raised_by_code(step: Step, error: ErrorInfo) -> str:
    name = error.type or "an error"
    if step.error is not None:
        return (
            f"S{step_name(step)[1:]} failed, and the run ended with {name}, worded differently; "
            "no replay runs the code that raised it."
        )
    return f"The run ended with {name} after the last answer; no replay runs the code that raised it."


_OF_TOOL_GUARDRAILS = ("ToolInputGuardrail", "ToolOutputGuardrail")


def _behind(run: Run, untold: list[tuple[Step, ToolCall]], code: str, message: str) -> Reason:
    """At the first call that the error kept from being made or answered: a replay, which does not come to the error,
    makes it and has no answer."""
    broken_off = [pair for pair in asked_last(run) if pair[1].outcome == "interrupted" and pair[1].result is None]
    unanswered = untold or broken_off
    return reason_at(run, code, message, unanswered[0][0]) if unanswered else reason_at_end(run, code, message)


def _is_passed_on(run: Run, step: Step, error: ErrorInfo) -> bool:
    """Whether a model call or a tool failed with this error; the loop hands that on as it is."""
    failed = (each.error for each in (step, *(one for one, _ in asked_last(run))) if each.error is not None)
    return any(error.allows(each) for each in failed)


_NO_LAST_ANSWER = "The model's answer to the last tool results was not recorded."


# --- a run that came to an answer, or waits ----------------------------------------------------


def _of_answer(run: Run, step: Step, call: ModelCall) -> Reason | None:
    if ended_by_tools(run):
        return None  # with what they gave, as is said elsewhere
    return _of_open_calls(run) or _of_last_answer(run, call) or _of_empty_answer(run, call) or _of_output(run, call)


def _of_open_calls(run: Run) -> Reason | None:
    """Calls that wait for somebody are an outcome of their own, and none beside an output."""
    waits = {step.index for step, _ in waiting(run)} if run.output is None else set()
    for step, call in asked_last(run):
        if step.index not in waits and not is_settled(step, call, or_waits=False):
            message = f"No result was recorded for {step_name(step)}."
            return reason_at(run, "tool_answer_missing", message, step)
    return None


def _of_last_answer(run: Run, call: ModelCall) -> Reason | None:
    """An answer that asks for tools is not the last: the loop goes on with what they give."""
    if not calls_in(call) or waiting(run) or may_be_outcome(run, call):
        return None
    if "text" in kinds_said(call) and (run.agent.entry_point == "run_stream" or were_skipped(run)):
        return None
    broken = next((step for step, _ in asked_last(run) if _is_broken(run, step)), None)
    if broken is not None:
        message = f"The run ended without making the call of {step_name(broken)}, whose arguments are not valid JSON."
        return reason_at_end(run, "call_not_made", f"{message} {_ASKS_AGAIN}")
    direct = next((step for step, tool in asked_last(run) if _is_output(run, tool)), None)
    if direct is not None:
        message = f"The run ended with what {step_name(direct)} returned, as `return_direct` has it."
        return reason_at_end(run, "ended_by_tools", f"{message} {_ASKS_AGAIN}")
    return reason_at_end(run, "model_answer_missing", _NO_LAST_ANSWER)


def _is_output(run: Run, call: ToolCall) -> bool:
    """Where a graph ends behind a tool, what the tool gave is its output."""
    is_graph, told = run.agent.framework in GRAPHS, call.result
    return is_graph and run.output is not None and told is not None and run.output.as_text() == told.as_text()


def _is_broken(run: Run, step: Step) -> bool:
    """LangChain ends where an answer has no call that could be made."""
    return run.agent.framework in GRAPHS and step.error is not None and step.error.type == "InvalidToolCall"


def _of_empty_answer(run: Run, call: ModelCall) -> Reason | None:
    """Pydantic AI's loop asks the model again behind one. What `run_stream` begins with is the output."""
    is_stream = run.agent.entry_point == "run_stream"
    if is_openai_agents(run) or is_stream or call.response is None:
        return None
    if object_of(call.response).get("state") == "suspended":
        return reason_at_end(run, "empty_answer", f"The last answer was suspended. {_ASKS_AGAIN}")
    if kinds_said(call) <= {"text"} and not said_in(call):
        return reason_at_end(run, "empty_answer", f"The last answer is empty. {_ASKS_AGAIN}")
    return None


_ASKS_AGAIN = "A replay would ask the model again."


def _of_output(run: Run, call: ModelCall) -> Reason | None:
    if run.agent.output_function is not None:
        made = f"The answer was made by {run.agent.output_function}, an output function that does not run in a replay."
        return reason_at_end(run, "output_function", made)
    if run.output is None:
        if waiting(run):
            return None
        return reason_at_end(run, "output_missing", "The outcome of the run was not recorded.")
    unchecked = run.agent.output_unchecked
    if is_openai_agents(run) and _is_last_of_several(run.output, call):
        told = "The last answer holds several messages. The OpenAI Agents SDK uses the last one as the output,"
        return reason_at_end(run, "last_message_taken", f"{told} the replay loop uses all of them.")
    if any(same_output(run.output, answer) for answer in _answers(run, call, is_unchecked=bool(unchecked))):
        return None
    if call.response is None or not (_is_structured(run, call) or run.agent.output_changed):
        return _of_other_output(run, call)
    if unchecked is None and any(same_output(run.output, each) for each in _answers(run, call, is_unchecked=True)):
        made = "The output is what the model returned, but by its schema the team's type would have changed it."
    else:
        made = "The output is not what the model returned: the team's type or check produced it from that."
    return reason_at_end(run, "output_made_by_code", made)


def _of_other_output(run: Run, call: ModelCall) -> Reason:
    """A recorder says where code made the output of an answer; others tell both, and nothing between. Of a file that is
    known where the answer is JSON, which a type of the team's reads; words are the output as they are."""
    differs = "The recorded output is not what the model's last answer says"
    if run.is_told_by_others or (run.source_format != "native" and spells_json(call)):
        made = f"{differs}; the recording does not show whether code produced it from that."
        return reason_at_end(run, "output_made_by_code", made)
    return reason_at_end(run, "output_differs", f"{differs}.")


def _is_last_of_several(output: Payload, call: ModelCall) -> bool:
    """A message may hold several texts; those of several have ids of their own, where the provider gave them any."""
    texts = seen_message(call.response, step=0).parts_of("text") if call.response else []
    if calls_in(call) or len(texts) < 2:
        return False
    last = str(texts[-1].get("content"))
    has_several = len({part.get("id") for part in texts}) > 1
    return has_several or any(same_output(output, answer) for answer in _readings(call, last))


def _is_structured(run: Run, call: ModelCall) -> bool:
    if calls_in(call) or object_of(call.parameters).get("output_object") is not None:
        return True
    # Spans do not tell that a schema went with the request.
    return run.is_told_by_others and spells_json(call)


def _answers(run: Run, call: ModelCall, *, is_unchecked: bool) -> Iterator[Payload]:
    """What the loop can make of the last answer: its text, or the arguments of a call that carries the output."""
    parameters = object_of(call.parameters)
    names = {one.call_id: one.tool_name for _, one in run.tool_calls if one.is_output}
    for part in calls_in(call):
        if part.get("tool_call_id") in names:
            arguments = value_of(Payload.of(part.get("args")))
            name = names[part.get("tool_call_id")]
            yield Payload.of(typed_output(parameters, name, arguments, is_unchecked=is_unchecked))
    yield from _first_image(parameters, _parts_of(call))
    yield from _readings(call, said_in(call), is_unchecked=is_unchecked)


def _first_image(parameters: JsonObject, parts: list[JsonObject]) -> list[Payload]:
    """The output of a run that was offered to end with one."""
    files = [object_of(Payload.of(part.get("content"))) for part in parts if part.get("part_kind") == "file"]
    images = [file for file in files if str(file.get("media_type")).startswith("image/")]
    return [Payload.of(image) for image in images[:1]] if parameters.get("allow_image_output") else []


def _parts_of(call: ModelCall) -> list[JsonObject]:
    parts = object_of(call.response).get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _readings(call: ModelCall, said: str, *, is_unchecked: bool = False) -> Iterator[Payload]:
    """A text as such, and as the recorded schema reads it."""
    parameters, text = object_of(call.parameters), Payload.of_text(said)
    yield text
    if parameters.get("output_object"):
        yield Payload.of(typed_output(parameters, None, value_of(text), is_unchecked=is_unchecked))
