"""Kit lines about what surrounded a run: tools, model, settings, time, code, flags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

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
    contradicting_model,
    count,
    is_framework_written,
    join_words,
    main_models,
    name_steps,
    object_of,
)
from sessions_app.core.judge.schemas import SchemaReader
from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.core.run import ModelCall, Run, Step, ToolCall, counted_steps, main_steps


def tool_schemas(run: Run) -> Finding:
    reader, models = SchemaReader(), main_models(run)
    by_step = {step.index: reader.schemas(call) for step, call in models}
    known = [schemas for schemas in by_step.values() if schemas is not None]
    if not known:
        return missing("No tool definitions were recorded.")
    names = {schema.name for schemas in known for schema in schemas}
    unknown = [step for step, call in _asked_tools(run) if call.tool_name not in names]
    if unknown and len(known) == len(models):
        return contradictory(f"{name_steps(unknown)} called a tool that is in no recorded list.")
    bare = {schema.name for schemas in known for schema in schemas if not schema.has_schema}
    return _schema_finding(names, bare, len(known), len(models))


def _asked_tools(run: Run) -> list[tuple[Step, ToolCall]]:
    """Tool steps of the loop whose tool must have been registered."""
    tools = [(step, step.call) for step in main_steps(run) if isinstance(step.call, ToolCall)]
    first = next((step.index for step, _ in run.model_calls), 0)
    return [(s, call) for s, call in tools if s.index > first and not is_framework_written(call)]


def _schema_finding(names: set[str], bare: set[str], known: int, total: int) -> Finding:
    if bare:
        shown = join_words(sorted(bare)[:3])
        return partial(f"{count(len(bare), 'tool')} without a schema: {shown}.")
    tools = count(len(names), "tool definition")
    return graded(f"{tools}, on {known} of {total} model steps.", have=known, total=total)


def model(run: Run) -> Finding:
    if (run.model and OBJECT_NAME.search(run.model)) or _looks_like_repr(run.model):
        return partial(f"The model is the name of an object, not an id: {run.model}.")
    if (asked := contradicting_model(run)) is not None:
        return contradictory(f"The run names {run.model}; its first request names {asked}.")
    facts = model_facts(run)
    absent = [name for name, value in facts.items() if value is None]
    there = [f"{name} {value}" for name, value in facts.items() if value is not None]
    words = [", ".join(there), ", ".join(f"no {name}" for name in absent)]
    detail = "; ".join(word for word in words if word) + "."
    return graded(detail, have=len(there), total=len(facts))


def _looks_like_repr(name: str | None) -> bool:
    return name is not None and re.fullmatch(r"\w+\(.*\)", name) is not None


def model_facts(run: Run) -> dict[str, str | None]:
    """Id, provider and region, each None unless the run or every model step has it."""
    calls = [call for _, call in main_models(run)]
    prefix = provider_in(run.model)
    return {
        "model": run.model or _everywhere(call.model or call.answered_model for call in calls),
        "provider": run.provider or _everywhere(call.provider for call in calls) or prefix,
        "region": run.region or _everywhere(call.region for call in calls),
    }


def provider_in(name: str | None) -> str | None:
    """`openai:gpt-4o` names its provider."""
    return name.split(":", 1)[0] if name and re.match(r"[a-z][\w.-]*:\w", name) else None


def _everywhere(values: Iterable[str | None]) -> str | None:
    found = list(values)
    if not found or not all(found):
        return None
    return " / ".join(dict.fromkeys(value for value in found if value))


SAMPLING: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "seed": ("seed", "random_seed"),
}
"""Settings by their name and the other spellings that providers use."""
NO_SEED = frozenset({"anthropic", "bedrock", "aws.bedrock", "aws_bedrock"})
"""Providers whose API takes no seed."""
BEST_EFFORT = frozenset(
    {
        *("openai", "azure", "azure_openai", "azure.ai.openai", "az.ai.openai", "mistral", "mistral_ai", "mistralai"),
        *("google", "google-gla", "google-vertex", "gcp.gemini", "gcp.vertex_ai", "gemini", "vertex_ai"),
        *("groq", "cohere", "ollama"),
    }
)
"""Providers that say that equal seeds mostly give equal answers; none promises it."""


def sampling(run: Run) -> Finding:
    models = main_models(run)
    wrong = [step for step, call in models if _differs_from_wire(step, call)]
    if wrong:
        return contradictory(f"{name_steps(wrong)} sent settings that differ from the recorded ones.")
    have = {name: sum(1 for pair in models if has_setting(run, *pair, name)) for name in SAMPLING}
    detail = ", ".join(setting_words(run, name) for name in SAMPLING)
    recorded = sum(1 for _, call in models if call.settings is not None)
    if not recorded:
        return missing("No sampling settings were recorded.")
    return graded(f"{detail}.", have=recorded + sum(have.values()), total=4 * len(models))


def setting(call: ModelCall, name: str) -> tuple[bool, JsonValue]:
    """Whether a setting is in the record, and its value."""
    settings = object_of(call.settings)
    found = [settings[key] for key in SAMPLING[name] if key in settings]
    return bool(found), found[0] if found else None


def is_set(call: ModelCall, name: str) -> bool:
    """Null says that nobody set it, so that the provider chose."""
    return setting(call, name)[1] is not None


def has_setting(run: Run, step: Step, call: ModelCall, name: str) -> bool:
    """A seed that the provider does not take is not missing."""
    return is_set(call, name) or (name == "seed" and has_no_seed(run, call))


def has_no_seed(run: Run, call: ModelCall) -> bool:
    return _provider_of(run, call) in NO_SEED


def _provider_of(run: Run, call: ModelCall) -> str:
    return (call.provider or run.provider or provider_in(call.model or run.model) or "").lower()


def setting_words(run: Run, name: str) -> str:
    """`temperature 0.7`, all values where they differ, and where it was not set or not captured."""
    models = main_models(run)
    values = [setting(call, name) for _, call in models]
    said = dict.fromkeys(str(value)[:40] for _, value in values if value is not None)
    unset = sum(1 for is_there, value in values if is_there and value is None)
    absent = sum(1 for is_there, _ in values if not is_there)
    if not said:
        unsupported = name == "seed" and any(has_no_seed(run, call) for _, call in models)
        why = "not supported by this provider" if unsupported else "not set" if unset else "not captured"
        return f"{name} {why}"
    gaps = [f"{words} on {count(n, 'step')}" for words, n in (("not set", unset), ("not captured", absent)) if n]
    tail = f" ({', '.join(gaps)})" if gaps else ""
    return f"{name} {' / '.join(said)}{tail}{_how_seeds_count(run) if name == 'seed' else ''}"


def _how_seeds_count(run: Run) -> str:
    """Whether the providers that were sent a seed do as it says."""
    providers = {_provider_of(run, call) for _, call in main_models(run) if is_set(call, "seed")}
    if providers & NO_SEED:
        return ", which this provider ignores"
    if providers <= BEST_EFFORT:
        return ", which this provider follows as far as it can"
    return ", and it is not known whether this provider follows it"


def _differs_from_wire(step: Step, call: ModelCall) -> bool:
    """The raw request shows what was really asked for."""
    if step.http is None or step.http.request_body is None or call.settings is None:
        return False
    sent = object_of(step.http.request_body)
    pairs = ((setting(call, name), sent.get(name)) for name in SAMPLING)
    return any(there and wire is not None and wire != value for (there, value), wire in pairs)


def timestamps(run: Run) -> Finding:
    odd = [step for step in run.steps if _runs_backwards(step)]
    if odd:
        return contradictory(f"The times of {name_steps(odd)} are out of order.")
    steps = counted_steps(run)
    starts = sum(1 for step in steps if step.started_at)
    ends = sum(1 for step in steps if step.duration_ms is not None)
    streamed = [step for step, call in run.model_calls if not _is_whole_answer(run, step, call)]
    firsts = sum(1 for step in streamed if step.first_token_at)
    total, models = len(steps), len(streamed)
    have = starts + ends + firsts + (run.started_at is not None)
    facts = [f"start on {starts} of {total} steps", f"end on {ends} of {total}"]
    facts += [f"first token on {firsts} of {models} model steps"] if streamed else []
    return graded(", ".join(facts) + ".", have=have, total=2 * total + models + 1)


def _is_whole_answer(run: Run, step: Step, call: ModelCall) -> bool:
    """An answer that was not streamed has no first token of its own. What was sent says it best, then what was set,
    then how the run was started; where none says it, the answer may have been streamed."""
    if step.first_token_at is not None:
        return False
    sent = object_of(step.http.request_body if step.http else None)
    for said in (sent, object_of(call.settings)):
        if isinstance(said.get("stream"), bool):
            return not said["stream"]
    return run.agent.entry_point in ("run", "run_sync")


def _runs_backwards(step: Step) -> bool:
    start, first, end = step.started_at, step.first_token_at, step.ended_at
    too_early = start is not None and first is not None and first < start
    too_late = first is not None and end is not None and first - end > timedelta(milliseconds=1)
    return too_early or too_late or (step.duration_ms or 0) < 0


def commit(run: Run) -> Finding:
    if run.code.commit and run.code.dirty:
        return partial(f"Commit {run.code.commit}, with changes that were not committed.")
    if run.code.commit:
        return captured(f"Commit {run.code.commit}.")
    if run.agent.version:
        return partial(f"Only the agent's version {run.agent.version}, no commit.")
    return missing("No commit of the agent's code was recorded.")


def flags(run: Run) -> Finding:
    if run.flags is None:
        return missing("No feature flags were recorded.")
    unset = [name for name, value in run.flags.items() if value is None]
    if unset:
        return partial(f"{len(unset)} of {len(run.flags)} flags have no value: {unset[0]}.")
    if not run.flags:
        return captured("No flags were active.")
    return captured(f"{count(len(run.flags), 'flag')}: {flag_words(run.flags)}.")


_MOST_FLAGS = 20


def flag_words(flags: JsonObject) -> str:
    """Names with their values."""
    shown = [f"{name} {_flag_value(value)}" for name, value in list(flags.items())[:_MOST_FLAGS]]
    more = len(flags) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _flag_value(value: JsonValue) -> str:
    return (value if isinstance(value, str) else compact_json(value).decode(errors="replace"))[:80]
