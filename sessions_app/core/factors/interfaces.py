"""Whether what a run called was another thing than it was taken for: models, tools, libraries."""

from __future__ import annotations

from itertools import pairwise

from sessions_app.core.factors.checks import RATE_STATUSES, Check, indexes, statuses
from sessions_app.core.judge.reading import count, join_words, value_of
from sessions_app.core.model_names import is_same_model
from sessions_app.core.payload import JsonValue, canonical_json
from sessions_app.core.run import ModelCall, Run, Step

_ERRORS = frozenset(range(400, 600)) - RATE_STATUSES
NO_REQUEST = "No request to a model was recorded."
Definitions = dict[str, bytes]
"""Tools by name, each in one spelling."""


def model_version(run: Run) -> Check:
    title = "Model other than requested"
    bare = [step for step, call in run.model_calls if not _asked(run, call) or not call.answered_model]
    if other := _other_answers(run):
        return Check(title=title, sight="seen", words=_said_models(run), steps=indexes(other))
    if not run.model_calls:
        return Check(title=title, sight="not_captured", words=NO_REQUEST)
    if bare:
        words = f"{len(bare)} of {count(len(run.model_calls), 'request')} without the requested or responding model."
        return Check(title=title, sight="not_captured", words=words, steps=indexes(bare))
    return Check(title=title, sight="not_seen", words=_said_models(run))


def _asked(run: Run, call: ModelCall) -> str | None:
    return call.model or run.model


def _other_answers(run: Run) -> list[Step]:
    """Steps answered by another model than the one asked for, or than the one before."""
    told = [(step, _asked(run, call), call.answered_model) for step, call in run.model_calls if call.answered_model]
    other = {step.index: step for step, asked, got in told if asked and got and not is_same_model(asked, got)}
    other |= {step.index: step for (_, _, before), (step, _, got) in pairwise(told) if before != got}
    return [other[index] for index in sorted(other)]


def _said_models(run: Run) -> str:
    pairs = dict.fromkeys((_asked(run, call), call.answered_model) for _, call in run.model_calls)
    said = (f"requested {asked or 'not captured'}, {got or 'not captured'} answered" for asked, got in pairs)
    return f"{'; '.join(said)}."


def tool_schemas(run: Run) -> Check:
    title = "Tool schemas that changed"
    known = [(step, found) for step, call in run.model_calls if (found := _definitions(call)) is not None]
    changed = [(step, names) for (_, a), (step, b) in pairwise(known) if (names := _changed(a, b))]
    if changed:
        names = sorted({name for _, found in changed for name in found})
        words = f"Changed within the run: {join_words(names)}."
        return Check(title=title, sight="seen", words=words, steps=indexes(step for step, _ in changed))
    if not run.model_calls:
        return Check(title=title, sight="not_captured", words=NO_REQUEST)
    if len(known) < len(run.model_calls):
        words = f"Recorded on {len(known)} of {count(len(run.model_calls), 'request')}."
        return Check(title=title, sight="not_captured", words=words)
    return Check(title=title, sight="not_seen", words=f"The same on {count(len(known), 'request')}.")


def _definitions(call: ModelCall) -> Definitions | None:
    """None when the tools of the request were not captured."""
    listed = _sent(call)
    if listed is None:
        return None
    return {str(tool.get("name")): canonical_json(tool) for tool in listed if isinstance(tool, dict)}


def _sent(call: ModelCall) -> list[JsonValue] | None:
    sent = value_of(call.parameters)
    listed = sent.get("function_tools") if isinstance(sent, dict) else None
    if isinstance(listed, list):
        return listed
    return None if call.tools is None else [value_of(tool) for tool in call.tools]


def _changed(before: Definitions, after: Definitions) -> list[str]:
    """A tool that is offered at some requests only did not change its interface."""
    return [name for name in before.keys() & after.keys() if before[name] != after[name]]


def versions(run: Run) -> Check:
    title = "Another provider, or versions unknown"
    providers = list(dict.fromkeys(call.provider for _, call in run.model_calls if call.provider))
    if len(providers) > 1:
        return Check(title=title, sight="seen", words=f"Several providers answered: {join_words(providers)}.")
    framework = run.agent.framework_version
    provider = run.provider or (providers[0] if providers else None)
    known = {"provider": provider, "framework version": framework, "commit": run.code.commit}
    if bare := [name for name, value in known.items() if not value]:
        words = f"No {join_words(bare, 'or')}: whether they are the same today cannot be determined."
        return Check(title=title, sight="not_captured", words=words)
    said = ", ".join(f"{name} {value}" for name, value in known.items())
    return Check(title=title, sight="not_seen", words=f"One throughout the run: {said}.")


def refusals(run: Run) -> Check:
    """Errors of the other side that do not come from its load."""
    return statuses(run, "HTTP errors, except rate limits", _ERRORS)


CHECKS = (model_version, tool_schemas, versions, refusals)
