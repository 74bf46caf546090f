"""Ten rows in three buckets: what a replay needs of input, environment and side effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.history import messages
from sessions_app.core.judge import kit_environment as environment
from sessions_app.core.judge import kit_side_effects
from sessions_app.core.judge.conventions import fix_for
from sessions_app.core.judge.grading import (
    Finding,
    captured,
    graded,
    missing,
    partial,
    retrievals_of,
)
from sessions_app.core.judge.reading import count, main_models, own_tools, seen_message, user_turns
from sessions_app.core.kept_turns import kept_turns
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, counted_steps

BucketName = Literal["input", "environment", "side_effects"]
Captured = Literal["yes", "partial", "no"]
Findings = Mapping[str, Finding]
Audit = Callable[[Run, Findings], Finding]
BUCKETS: tuple[BucketName, ...] = ("input", "environment", "side_effects")
_WORDS: dict[str, Captured] = {
    "captured": "yes",
    "partial": "partial",
    "contradictory": "partial",
    "missing": "no",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketRow:
    """Whether one thing was captured, and if not, what to do."""

    key: str
    title: str
    bucket: BucketName
    captured: Captured
    detail: str
    fix: str | None = None

    def to_json(self) -> JsonObject:
        names = ("key", "title", "bucket", "captured", "detail", "fix")
        return {name: getattr(self, name) for name in names}


def bucket_rows(run: Run, lines: Findings) -> tuple[BucketRow, ...]:
    """`lines` holds what was found for the kit's lines, by key."""
    return tuple(_row(entry, run, lines) for entry in BUCKET_ROWS)


def _prompt(run: Run, lines: Findings) -> Finding:
    return _worse_of(lines["input"], lines["instructions"])


def _worse_of(*findings: Finding) -> Finding:
    """All captured is captured, all missing is missing, anything else is partial."""
    detail = " ".join(found.detail for found in findings)
    states = {found.status for found in findings}
    return Finding(status=states.pop() if len(states) == 1 else "partial", detail=detail)


def _people(run: Run, lines: Findings) -> Finding:
    """On the run alone; the kit line also asks whether tools were told."""
    facts = {"user_id": run.user_id, "tenant_id": run.tenant_id}
    detail = ", ".join(f"{name} {value or 'not captured'}" for name, value in facts.items())
    return graded(f"{detail}.", have=sum(1 for value in facts.values() if value), total=2)


def _history_turns(run: Run, lines: Findings) -> Finding:
    """Turns that a record holds, against those it says there were (`history_turns`)."""
    first = next((call.history for _, call in main_models(run) if call.history), None)
    if first is None and run.prior is None:
        return missing("No message of the conversation was recorded.")
    held = max(user_turns(run.prior), user_turns(first))
    declared = run.extra.get("history_turns")
    if isinstance(declared, int) and declared > held:
        return partial(f"{held} of {count(declared, 'turn')}.")
    kept = kept_turns(run)
    if kept is not None:
        return partial(f"{count(held, 'turn')}; {kept}.")
    if _begins_in_the_middle(run):
        return partial(f"{count(held, 'turn')}; the first message answers one that was not kept.")
    return captured(f"{count(held, 'turn')}, from the first message on.")


def _begins_in_the_middle(run: Run) -> bool:
    """A conversation begins with a request that answers no tool call."""
    first = next((call.history for _, call in main_models(run) if call.history), None)
    longest = max((run.prior, first), key=lambda history: history.length if history else 0)
    opening = seen_message(messages(longest)[0], step=0)
    return opening.message.get("kind") == "response" or bool(opening.parts_of("tool-return"))


def _model_and_provider(run: Run, lines: Findings) -> Finding:
    facts = environment.model_facts(run)
    known = {name: facts[name] for name in ("model", "provider")}
    detail = ", ".join(f"{name} {value or 'not captured'}" for name, value in known.items())
    return graded(f"{detail}.", have=sum(1 for value in known.values() if value), total=2)


def _embedding_version(run: Run, lines: Findings) -> Finding:
    calls = [call for _, call in retrievals_of(run)]
    if not calls:
        return captured("Not used: the run has no retrieval step.")
    have = sum(1 for call in calls if call.embedding_version)
    if not have and any(call.index_version for call in calls):
        return partial("Only the version of the index was recorded.")
    searches = count(len(calls), "retrieval step")
    return graded(f"Recorded on {have} of {searches}.", have=have, total=len(calls))


def _rng_seed(run: Run, lines: Findings) -> Finding:
    models = main_models(run)
    have = sum(1 for pair in models if environment.has_setting(run, *pair, "seed"))
    words = environment.setting_words(run, "seed")
    return graded(f"{words}.", have=have, total=len(models))


def _utc_time(run: Run, lines: Findings) -> Finding:
    steps = counted_steps(run)
    starts = sum(1 for step in steps if step.started_at)
    have = starts + (run.started_at is not None)
    began = run.started_at.isoformat() if run.started_at else "not captured"
    detail = f"Run started {began}; start on {starts} of {count(len(steps), 'step')}."
    return graded(detail, have=have, total=1 + len(steps))


def _frozen_tools(run: Run, lines: Findings) -> Finding:
    """Requests and answers; a record that holds only one of them is partial. A frozen answer is the value that the
    tool gave: the bytes behind it are asked for by the kit line."""
    found = lines["tool_io"]
    asked, answered, expected = kit_side_effects.tool_counts(run)
    if found.status == "captured" or not own_tools(run):
        return found
    if found.status == "partial" and asked == len(own_tools(run)) and answered == expected:
        return captured(f"Arguments on {asked} and answers on {answered} of {count(asked, 'call')}.")
    if asked and not answered and expected:
        return partial(f"Requests only: {found.detail}")
    return partial(f"Answers only: {found.detail}") if answered and not asked else found


def _same_as(key: str) -> Audit:
    return lambda run, lines: lines[key]


BUCKET_ROWS: tuple[tuple[str, str, BucketName, str, Audit], ...] = (
    ("prompt", "Full prompt and system message", "input", "instructions", _prompt),
    ("people", "User and tenant", "input", "identity", _people),
    (
        "history_turns",
        "Earlier turns of the conversation",
        "input",
        "history_turns",
        _history_turns,
    ),
    ("model", "Model version and provider", "environment", "model", _model_and_provider),
    ("commit", "Commit of the agent's code", "environment", "commit", _same_as("commit")),
    (
        "embedding_version",
        "Version of the embedding model",
        "environment",
        "embedding_version",
        _embedding_version,
    ),
    ("rng_seed", "Seed", "environment", "sampling", _rng_seed),
    ("utc_time", "Time (UTC)", "environment", "timestamps", _utc_time),
    ("tool_io", "Tool requests and answers, frozen", "side_effects", "tool_io", _frozen_tools),
    ("retrieval", "Chunk ids and scores", "side_effects", "retrieval", _same_as("retrieval")),
)


def _row(entry: tuple[str, str, BucketName, str, Audit], run: Run, lines: Findings) -> BucketRow:
    key, title, bucket, fix, audit = entry
    found = audit(run, lines)
    return BucketRow(
        key=key,
        title=title,
        bucket=bucket,
        captured=_WORDS[found.status],
        detail=found.detail,
        fix=None if found.status == "captured" else fix_for(run, fix).sentence,
    )
