"""Kit lines about what went into a run: ids, people, the input, the instructions."""

from __future__ import annotations

import re

from sessions_app.core.checkpoints import prompt_version
from sessions_app.core.judge.anomalies.values.owners import TENANT_KEYS, USER_KEYS
from sessions_app.core.judge.grading import (
    OBJECT_NAME,
    Finding,
    captured,
    contradictory,
    graded,
    missing,
    partial,
)
from sessions_app.core.judge.reading import (
    count,
    first_requests,
    join_words,
    leaves,
    main_models,
    name_steps,
    own_tools,
    step_name,
    value_of,
)
from sessions_app.core.judge.saved_input import saved_input_contradicts
from sessions_app.core.judge.system_prompt import instructions_contradict
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import Run, Step, ToolCall

_MADE_UP_ID = re.compile(r"run-[0-9a-f]{16}")


def ids(run: Run) -> Finding:
    """A tool step stands under the model step that asked; carried-over calls come before any."""
    first = next((step.index for step, _ in run.model_calls), len(run.steps))
    children = [step for step, _ in run.tool_calls if step.index > first]
    stray = [step for step in run.steps if step.parent and not 0 < step.parent < step.index]
    if stray:
        return contradictory(f"{name_steps(stray)} names a parent that is not an earlier step.")
    loose = [step for step in children if step.parent is None]
    given = _MADE_UP_ID.fullmatch(run.run_id) is None
    facts = [_id_words(run, given), _tree_words(len(children), loose)]
    have = given + (not loose and bool(run.steps))
    return graded("; ".join(facts) + ".", have=have, total=2)


def _id_words(run: Run, given: bool) -> str:
    return f"run_id is {run.run_id}" if given else "no run_id was sent; it was derived from the content"


def _tree_words(children: int, loose: list[Step]) -> str:
    if loose:
        return f"{len(loose)} of {children} tool steps name no parent, first {step_name(loose[0])}"
    return "every tool step names its parent" if children else "no step needs a parent"


def identity(run: Run) -> Finding:
    strangers = [step for step in run.steps if _contradicts(run, step)]
    if strangers:
        return contradictory(f"{name_steps(strangers)} has a different user or tenant from the run.")
    on_run = {"user_id": bool(run.user_id), "tenant_id": bool(run.tenant_id)}
    tools = [(step, _carried(run, step, call)) for step, call in own_tools(run)]
    facts = [_on_run_words(on_run), *_on_tools_words(tools)]
    have = sum(on_run.values()) + sum(sum(carried.values()) for _, carried in tools)
    return graded("; ".join(facts) + ".", have=have, total=2 + 2 * len(tools))


def _contradicts(run: Run, step: Step) -> bool:
    pairs = ((run.user_id, step.user_id), (run.tenant_id, step.tenant_id))
    return any(on_run and on_step and on_run != on_step for on_run, on_step in pairs)


def _carried(run: Run, step: Step, call: ToolCall) -> dict[str, bool]:
    """Which of the two a tool step carries, on itself or in its arguments."""
    arguments = [(key, item) for key, item in leaves(value_of(call.arguments)) if item not in (None, "")]
    return {
        "user_id": bool(step.user_id) or _says(arguments, USER_KEYS, run.user_id),
        "tenant_id": bool(step.tenant_id) or _says(arguments, TENANT_KEYS, run.tenant_id),
    }


def _says(arguments: list[tuple[str | None, JsonValue]], keys: frozenset[str], owner: str | None) -> bool:
    return any(key in keys or (owner is not None and str(item) == owner) for key, item in arguments)


def _on_run_words(on_run: dict[str, bool]) -> str:
    there = join_words([name for name, is_there in on_run.items() if is_there])
    absent = join_words([name for name, is_there in on_run.items() if not is_there], "nor")
    if not there:
        return f"the run has no {absent.replace(' nor ', ' and no ')}"
    verb = "are" if " and " in there else "is"
    return f"{there} {verb} on the run" + (f", {absent} is not" if absent else "")


def _on_tools_words(tools: list[tuple[Step, dict[str, bool]]]) -> list[str]:
    """What the tool steps lack; steps that lack the same are named together."""
    lacking: dict[str, list[Step]] = {}
    for step, carried in tools:
        absent = [name for name, has in carried.items() if not has]
        if absent:
            lacking.setdefault(" and no ".join(absent), []).append(step)
    return [
        f"{name_steps(steps)} {'carries' if len(steps) == 1 else 'carry'} no {absent}"
        for absent, steps in lacking.items()
    ]


def input_message(run: Run) -> Finding:
    if run.input is not None:
        return _recorded_input(run)
    if run.prior is not None:
        turns = count(run.prior.length, "earlier message")
        return captured(f"No new input: the run continued from {turns}.")
    if any(call.history for _, call in main_models(run)):
        return partial("The run has no input; the first request contains a processed form of it.")
    return missing("No input was recorded.")


def _recorded_input(run: Run) -> Finding:
    assert run.input is not None
    if saved_input_contradicts(run):
        return contradictory("The saved input is not the prompt of the first request.")
    return captured(f"{run.input.size} bytes, SHA-256 {run.input.digest[:12]}.")


_BARE_NAME = re.compile(r"[A-Za-z_][\w./:@#-]{0,119}")


def instructions(run: Run) -> Finding:
    text = run.instructions
    if not text:
        return _no_instructions(run)
    if OBJECT_NAME.search(text):
        return partial("The recorded text is the name of an object in memory, not what was sent.")
    if _BARE_NAME.fullmatch(text.strip()):
        return partial(f"The recorded text looks like the name of a prompt: {text.strip()[:60]}.")
    if instructions_contradict(run):
        return contradictory("The run's instructions differ from the system prompt of its first request.")
    version = prompt_version(run)
    said = "no version recorded" if version is None else f"version {str(version)[:80]}"
    return captured(f"Full text, {len(text)} characters, SHA-256 {Payload.of_text(text).digest[:12]}, {said}.")


def _no_instructions(run: Run) -> Finding:
    says_none = any("instructions" in seen.message for seen in first_requests(run))
    if run.instructions == "" or says_none:
        return captured("The record says that no instructions were sent.")
    return missing("No system prompt and no instructions were recorded.")
