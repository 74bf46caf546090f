"""The reproduction report: facts of a run, attempts to reproduce it, three ways to write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sessions_app.core.base64_data import size_in_words, without_base64
from sessions_app.core.clipping import one_line, shortened, visible
from sessions_app.core.goldens.results import RESULT_WORDS, Result
from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd_step
from sessions_app.core.judge.budget import STATE_WORDS, BudgetRow, State, nondeterminism_budget
from sessions_app.core.judge.grading import Status, retrievals_of
from sessions_app.core.judge.kit import Kit
from sessions_app.core.judge.reading import TIMES, calls_made, count, value_of
from sessions_app.core.payload import JsonObject, JsonValue, Payload, compact_json
from sessions_app.core.replay.harness import HarnessStep, harness_in_words, harness_of
from sessions_app.core.replay.parts import Parts
from sessions_app.core.replay.words import Difference, LiveModel, ReplayFacts, next_action, proof_rows, verdict_in_words
from sessions_app.core.run import Run, message_count

Outcome = Literal["reproduced", "different", "partial", "unknown", "error", "cancelled", "of_another_record"]
TITLE = "Bug Reproduction Report"
EXCERPT = 80
LONGEST_BLOCK = 4_000
"""Characters of one recorded value in a report; the whole of it is a click away."""
OUTCOME_WORDS: dict[Outcome, str] = {
    "reproduced": "✅ Reproduced",
    "different": "❌ Different",
    "partial": "◐ In part",
    "unknown": "◌ Stopped: answer unknown",
    "error": "⚠ Error",
    "cancelled": "⊘ Cancelled",
    "of_another_record": "○ Of another state of the recording",
}


# --- the data ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One try to reproduce the run."""

    number: int
    """From 1."""
    outcome: Outcome
    """An attempt that raised is `error` and never `different`; one that somebody stopped is neither."""
    started_at: datetime | None = None
    output: Payload | None = None
    matches_original: bool | None = False
    """None where the outcomes could not be compared."""
    not_matched: str = "not compared"
    """What is said where they could not."""
    tool_calls: int = 0
    error: str | None = None
    replay_id: str | None = None
    parts: Parts | None = None
    state: str | None = None
    """What the proof says of the state, in words; None where there is no proof."""

    @property
    def ran(self) -> str:
        """The four parts in one line; empty where they are not known."""
        parts = [self.parts.brief] if self.parts else []
        return " · ".join([*parts, f"state: {self.state}"] if parts and self.state else parts)

    def to_json(self) -> JsonObject:
        return {
            "number": self.number,
            "outcome": self.outcome,
            "started_at": _iso(self.started_at),
            "output": value_of(self.output),
            "matches_original": self.matches_original,
            "tool_calls": self.tool_calls,
            "error": self.error,
            "replay_id": self.replay_id,
            "parts": dict(self.parts.rows) if self.parts else None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenVerdict:
    """Of a replay that is the run of a golden: what its checks came to, which the replay's own verdict does not say."""

    name: str
    result: Result
    words: str

    @property
    def sentence(self) -> str:
        return f"{RESULT_WORDS[self.result]}: {self.name}. {self.words}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReproductionReport:
    """All that a report says; the renderings add nothing."""

    run_id: str
    session_id: str
    input: Payload | None
    output: Payload | None
    model: str | None
    recorded_at: datetime | None
    messages: int
    tool_calls: tuple[JsonObject, ...]
    """Step, tool and arguments of each call."""
    anomalies: tuple[Anomaly, ...]
    attempts: tuple[Attempt, ...]
    kit: Kit
    budget: tuple[BudgetRow, ...]
    next_action: str
    commit: str | None = None
    """Of the code that was recorded."""
    replay: ReplayFacts | None = None
    golden: GoldenVerdict | None = None
    """None where the replay is no run of a golden, or was not judged yet."""
    links: tuple[tuple[str, str], ...] = ()
    """Name and address of pages about it, for who reads it elsewhere."""

    @property
    def headline(self) -> str | None:
        """The golden's verdict where there is one, and otherwise the replay's."""
        return f"Golden: {self.golden.sentence}" if self.golden else self.verdict

    @property
    def verdict(self) -> str | None:
        return None if self.replay is None else verdict_in_words(self.replay)

    @property
    def warnings(self) -> list[str]:
        """Messages of the anomalies, equal ones folded."""
        messages = Counter(a.message for a in self.anomalies if a.level == "warning")
        return [f"{m} {TIMES} {n}" if n > 1 else m for m, n in messages.items()]

    @property
    def harness(self) -> list[HarnessStep]:
        """The four things that a replay does, as this one did them; empty where none ran."""
        return harness_of(self.replay) if self.replay else []


def build_report(
    run: Run,
    *,
    anomalies: Iterable[Anomaly] = (),
    kit: Kit,
    attempts: Iterable[Attempt] = (),
    replay: ReplayFacts | None = None,
) -> ReproductionReport:
    """`replay` is the replay that the report is about, usually the last attempt."""
    found = tuple(anomalies)
    return ReproductionReport(
        run_id=run.run_id,
        session_id=run.session_id,
        input=run.input,
        output=run.output,
        model=run.model,
        recorded_at=run.started_at,
        messages=message_count(run),
        tool_calls=tuple(_calls(run)),
        anomalies=found,
        attempts=tuple(attempts),
        kit=kit,
        budget=_budget(run, replay),
        next_action=next_action(replay, has_odd_step=first_odd_step(found) is not None),
        commit=run.code.commit,
        replay=replay,
    )


def _budget(run: Run, replay: ReplayFacts | None) -> tuple[BudgetRow, ...]:
    """What never ran holds nothing still; a live model holds nothing of its own."""
    recorded = nondeterminism_budget(run, replayed=False)
    if replay is None or not replay.has_run:
        return recorded
    rows = nondeterminism_budget(run, replayed=True)
    pairs = zip(rows, recorded, strict=True)
    loose = _loose_in(run, replay)
    by_model = _OF_THE_MODEL if replay.has_live_model else ()
    held = ((before if row.key in by_model else _as_pinned(row, replay.clock), before) for row, before in pairs)
    return tuple(_asked_live(_let_loose(row, before, loose.get(row.key)), replay.live_model) for row, before in held)


def _as_pinned(row: BudgetRow, clock: str | None) -> BudgetRow:
    """A fork's clock does not stand at the start of the recording."""
    return replace(row, values=clock) if row.key == "clock" and clock else row


_OF_THE_MODEL = ("sampling", "seed", "model_version", "routing")
"""Rows that recorded answers hold still, and a live model does not."""


def _asked_live(row: BudgetRow, model: LiveModel | None) -> BudgetRow:
    """Of a setting that a live model was asked with, what was asked comes before what was recorded."""
    names = _SETTINGS.get(row.key, ())
    if model is None or not names:
        return row
    said = ", ".join(f"{name} {model.settings.get(name, 'not set')}" for name in names)
    state: State = "recorded" if any(name in model.settings for name in names) else "uncontrolled"
    return replace(row, state=state, values=f"the live model was asked with {said}; recorded: {row.values}")


_SETTINGS = {"sampling": ("temperature", "top_p"), "seed": ("seed",)}
"""Rows of the budget that are settings of the model."""


def _let_loose(row: BudgetRow, recorded: BudgetRow, why: str | None) -> BudgetRow:
    return row if why is None else replace(row, state="uncontrolled", values=f"{why}; {recorded.values}")


def _loose_in(run: Run, replay: ReplayFacts) -> dict[str, str]:
    """What this replay did not hold still although a replay could, by key, and why."""
    found: dict[str, str] = {}
    if replay.runs_tools and replay.tools_that_ran:
        keys = ("tool_results", "load", *(["retrieval"] if retrievals_of(run) else []))
        found |= dict.fromkeys(keys, f"your own code answered {count(replay.tools_that_ran, 'call')}")
    elif replay.live_tools:
        found["tool_results"] = ", ".join(f"{name} ran live {times} ×" for name, times in replay.live_tools.items())
    if replay.live_model is not None:
        found["model_version"] = f"a live model answered: {replay.live_model.words}"
    if replay.clock is None and run.started_at is not None:
        found["clock"] = "not pinned"
    return found


def _calls(run: Run) -> list[JsonObject]:
    return [
        {"step": step, "tool": call.tool_name, "arguments": value_of(call.arguments)} for step, call in calls_made(run)
    ]


# --- payloads in words -------------------------------------------------------------------------


def describe(payload: Payload | None) -> str:
    """Text as it is, other values as compact JSON, binary and base64 by their size."""
    if payload is None:
        return "not captured"
    if payload.is_text:
        return without_base64(payload.as_text())
    if payload.is_json:
        value = value_of(payload)
        return without_base64(value if isinstance(value, str) else compact_json(value).decode())
    return f"binary · {size_in_words(payload.size)}"


def _excerpt(payload: Payload | None) -> str:
    """The first characters on one line, ending in three dots; what is no text says what it is."""
    text = one_line(describe(payload)[:EXCERPT])
    is_words = payload is not None and (payload.is_text or payload.is_json)
    return f"{text}..." if is_words and not text.endswith("...") else text


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


# --- text --------------------------------------------------------------------------------------


def as_text(report: ReproductionReport, *, details: bool = True) -> str:
    """The classic block; with details also what was real, the first difference and what to do."""
    lines = [*_classic_lines(report), *_attempt_lines(report, with_parts=details)]
    if details:
        lines += ["", *_detail_lines(report)]
    return "\n".join(lines)


def _classic_lines(report: ReproductionReport) -> list[str]:
    return [
        TITLE,
        "=" * 40,
        *([f"Golden: {one_line(report.golden.sentence)}"] if report.golden else []),
        f"Input: {_excerpt(report.input)}",
        f"Original output: {_excerpt(report.output)}",
        f"Tool calls: {len(report.tool_calls)}",
        f"Anomalies: {_anomalies_in_words(report)}",
        "",
        f"Reproduction attempts: {len(report.attempts)}",
    ]


def _anomalies_in_words(report: ReproductionReport) -> str:
    return "; ".join(map(one_line, report.warnings)) or "None detected"


def _attempt_lines(report: ReproductionReport, *, with_parts: bool) -> list[str]:
    return [line for attempt in report.attempts for line in _attempt_in_words(attempt, with_parts=with_parts)]


def _attempt_in_words(attempt: Attempt, *, with_parts: bool) -> list[str]:
    lines = [f"  Attempt {attempt.number}: {OUTCOME_WORDS[attempt.outcome]}"]
    lines += [f"    {one_line(attempt.ran)}"] if with_parts and attempt.ran else []
    return lines + ([f"    Error: {shortened(attempt.error, 500)}"] if attempt.error else [])


def _detail_lines(report: ReproductionReport) -> list[str]:
    lines = [f"{name}: {words}" for name, words in _facts(report)]
    for title, listed in (("Outcomes", _outcome_lines(report)), ("Answers after the fork", _answer_lines(report))):
        lines += ["", f"{title}:", *(f"  {line}" for line in listed)] if listed else []
    return lines


def _facts(report: ReproductionReport) -> list[tuple[str, str]]:
    """What both the text and the page for chat say about the run and its replay."""
    facts = [
        ("Run", report.run_id),
        ("Model", report.model or "not captured"),
        ("Recorded at", _iso(report.recorded_at) or "not captured"),
        ("Messages", str(report.messages)),
        ("Replay kit", f"{report.kit.captured} of {report.kit.total} captured"),
        *_kit_gaps(report.kit),
    ]
    return [*((name, one_line(words)) for name, words in facts), *_replay_facts(report)]


def _kit_gaps(kit: Kit) -> list[tuple[str, str]]:
    """The lines that are not captured whole, by their names."""
    named = [
        (words, "; ".join(line.title for line in kit.lines if line.status == status)) for status, words in _GAPS.items()
    ]
    return [(words, titles) for words, titles in named if titles]


_GAPS: dict[Status, str] = {
    "partial": "Captured in part",
    "missing": "Not captured",
    "contradictory": "Contradictory",
}


def _replay_facts(report: ReproductionReport) -> list[tuple[str, str]]:
    replay = report.replay
    if replay is None:
        return [("Next", report.next_action)]
    parts, sources = replay.parts, _sources_in_words(replay)
    proof = proof_rows(replay.proof)
    facts = [
        ("Verdict", verdict_in_words(replay)),
        *([("What ran", parts.in_words(has_proof=bool(proof))), ("What that shows", parts.proves)] if parts else []),
        *((f"{name.capitalize()}", _state_in_words(state, why)) for name, state, why in proof),
        *([("Real and simulated", sources)] if sources else []),
    ]
    facts += [("Steps done", harness_in_words(report.harness))] if report.harness else []
    facts += _commits(report, replay)
    if replay.difference is not None:
        facts.append(("First difference", difference_in_words(replay.difference)))
    facts += [(name, one_line(words)) for name, words in replay.fork.rows] if replay.fork else []
    return [*facts, ("Next", report.next_action)]


def _commits(report: ReproductionReport, replay: ReplayFacts) -> list[tuple[str, str]]:
    """The code that ran beside the code that was recorded; an agent that is rebuilt has no code."""
    if replay.agent is None:
        return []
    ran = f"{replay.agent}, {commit_in_words(replay.commit)}"
    return [("Code that ran", one_line(ran)), ("Code recorded", one_line(commit_in_words(report.commit)))]


def commit_in_words(commit: str | None) -> str:
    return f"commit {commit}" if commit else "commit not known"


def _state_in_words(state: str, reason: str) -> str:
    return f"{state}: {one_line(reason)}" if reason else state


def _answer_lines(report: ReproductionReport) -> list[str]:
    """Who answered each step after a fork."""
    fork = report.replay.fork if report.replay else None
    return [one_line(words) for words in fork.answers] if fork else []


def _outcome_lines(report: ReproductionReport) -> list[str]:
    """How often samples with a live model came to which outcome."""
    samples = report.replay.all_samples if report.replay else None
    return [one_line(f"{number} {TIMES} {words}") for words, number in samples.outcomes] if samples else []


def _sources_in_words(replay: ReplayFacts) -> str:
    sources = [f"{number} {name.replace('_', ' ')}" for name, number in replay.sources.items()]
    world = [replay.world] if replay.world else []
    live = [] if replay.live_calls is None else [count(replay.live_calls, "live call")]
    return " · ".join([*sources, *live, *world])


def difference_in_words(found: Difference) -> str:
    left, right = found.sides
    place = one_line(found.path) if found.step is None else f"step {found.step}, {one_line(found.path)}"
    return f"{place}: recorded {left}, replayed {right}"


# --- Markdown ----------------------------------------------------------------------------------


def as_markdown(report: ReproductionReport) -> str:
    """For chat and tickets: what was recorded stands in code, where it has no meaning."""
    budget = _bullets([_markdown_budget(row) for row in report.budget])
    blocks = [
        f"## {TITLE}",
        *([f"**Golden:** {code(one_line(report.golden.sentence))}"] if report.golden else []),
        *_markdown_links(report.links),
        _bullets([(name, code(words)) for name, words in _facts(report)]),
        f"**Input**\n\n{fenced(describe(report.input))}",
        f"**Original output**\n\n{fenced(describe(report.output))}",
        f"**Tool calls: {len(report.tool_calls)}**{_markdown_calls(report.tool_calls)}",
        f"**Anomalies**{_markdown_anomalies(report)}",
        f"**Reproduction attempts: {len(report.attempts)}**{_markdown_attempts(report.attempts)}",
        *_markdown_list("Outcomes", _outcome_lines(report)),
        *_markdown_sources(report),
        f"**Sources of nondeterminism**\n\n{budget}",
    ]
    return "\n\n".join(blocks) + "\n"


def _markdown_links(links: Sequence[tuple[str, str]]) -> list[str]:
    return [" · ".join(f"[{name}](<{address}>)" for name, address in links)] if links else []


def _markdown_sources(report: ReproductionReport) -> list[str]:
    """A table of where answers came from, and of a fork the steps themselves."""
    if report.replay is None or not report.replay.sources:
        return []
    table = [f"| {name.replace('_', ' ')} | {number} |" for name, number in report.replay.sources.items()]
    blocks = ["\n".join(["**Answers from**\n", "| source | steps |", "|---|---:|", *table])]
    return [*blocks, *_markdown_list("Answers after the fork", _answer_lines(report))]


def _markdown_list(title: str, lines: Sequence[str]) -> list[str]:
    listed = "\n".join(f"- {code(line)}" for line in lines)
    return [f"**{title}**\n\n{listed}"] if listed else []


def _bullets(rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {words}" for name, words in rows)


def _markdown_calls(calls: Sequence[JsonObject], limit: int = 20) -> str:
    rows = [f"- {code(_call_in_words(call))}" for call in calls[:limit]]
    rows += [f"- and {len(calls) - limit} more"] if len(calls) > limit else []
    return "".join(["\n\n", "\n".join(rows)]) if rows else ""


def _call_in_words(call: JsonObject) -> str:
    arguments = without_base64(compact_json(call["arguments"]).decode())
    return f"{call['tool']} {arguments}"


def _markdown_anomalies(report: ReproductionReport) -> str:
    rows = [f"- {code(message)}" for message in report.warnings]
    return "\n\n" + "\n".join(rows) if rows else ": None detected"


def _markdown_attempts(attempts: Sequence[Attempt]) -> str:
    rows = [f"- Attempt {a.number}: {', '.join([OUTCOME_WORDS[a.outcome], *_markdown_details(a)])}" for a in attempts]
    return "\n\n" + "\n".join(rows) if rows else ""


def _markdown_details(attempt: Attempt) -> list[str]:
    """What ran and what went wrong, as code: both hold names of the team's."""
    return [code(words) for words in (attempt.ran, attempt.error) if words]


def _markdown_budget(row: BudgetRow) -> tuple[str, str]:
    return row.title, f"{STATE_WORDS[row.state]}, {code(row.values)}"


def code(text: str) -> str:
    """One line as a code span that no run of backticks inside it can close."""
    line = shortened(text, 300).strip() or "(empty)"
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fenced(text: str) -> str:
    """A block whose fence is longer than any run of backticks in it."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{visible(_cut(text.replace(chr(13), '')))}\n{fence}"


def _cut(text: str) -> str:
    more = len(text) - LONGEST_BLOCK
    return text if more <= 0 else f"{text[:LONGEST_BLOCK]}\n… {more} more characters"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


# --- JSON --------------------------------------------------------------------------------------


def as_json(report: ReproductionReport) -> JsonObject:
    return {
        "title": TITLE,
        "run_id": report.run_id,
        "session_id": report.session_id,
        "input": _json_value(report.input),
        "output": _json_value(report.output),
        "model": report.model,
        "recorded_at": _iso(report.recorded_at),
        "messages": report.messages,
        "tool_calls": list(report.tool_calls),
        "anomalies": [anomaly.to_json() for anomaly in report.anomalies],
        "attempts": [attempt.to_json() for attempt in report.attempts],
        "kit": {
            "captured": report.kit.captured,
            "total": report.kit.total,
            "gaps": list(report.kit.lacks),
            "partial": [line.key for line in report.kit.lines if line.status == "partial"],
        },
        "budget": [row.to_json() for row in report.budget],
        "commit": report.commit,
        "steps_done": [step.to_json() for step in report.harness],
        "replay": None if report.replay is None else _replay_json(report.replay),
        "next_action": report.next_action,
    }


def _replay_json(replay: ReplayFacts) -> JsonObject:
    return {
        "verdict": replay.verdict,
        "words": verdict_in_words(replay),
        "steps": replay.steps,
        "stopped_at": replay.stopped_at,
        "proof": replay.proof and replay.proof.to_json(),
        "parts": dict(replay.parts.rows) if replay.parts else None,
        "left_over": replay.left_over,
        "divergence": None if replay.difference is None else replay.difference.to_json(),
        "sources": dict(replay.sources),
        "live_calls": replay.live_calls,
        "world": replay.world or None,
        "agent": replay.agent,
        "commit": replay.commit,
        "error": replay.error,
        "run_id": replay.run_id,
        "samples": replay.all_samples and replay.all_samples.to_json(),
        "fork": replay.fork and replay.fork.to_json(),
    }


def _json_value(payload: Payload | None) -> JsonValue:
    """Binary has no JSON value and is described; the bytes are at their own address."""
    if payload is None:
        return None
    is_readable = payload.is_text or payload.is_json
    return value_of(payload) if is_readable else describe(payload)
