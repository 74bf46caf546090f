"""A finished replay for its page: the report's facts, put into the words and tables that the page shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.goldens.results import Result
from sessions_app.core.judge.budget import STATE_WORDS as BUDGET_WORDS
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.proof import STATE_WORDS
from sessions_app.core.replay.words import proof_rows
from sessions_app.core.reports.run_report import ReproductionReport, describe
from sessions_app.core.reports.session_report import CONTRADICTORY
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import FORK_MODES, OPEN_STATES, ReplayState
from sessions_app.queries.comparable_runs import comparable_runs
from sessions_app.queries.goldens import golden_of
from sessions_app.services.fork_facts import written_outcome
from sessions_app.web.badges import SOURCE_MEANS
from sessions_app.web.forks.report import ShownStep, fork_context
from sessions_app.web.render import spelled
from sessions_app.web.render.changes import Field, field_of
from sessions_app.web.replays.stops import argument_fields, run_page
from sessions_app.web.replays.words import agent_of, cancelled_words, is_fork, never_started
from sessions_app.web.run_pages import run_address

NEAREST = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where answers came from, and how many."""

    key: str
    means: str
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Nearest:
    """A recorded call that comes near the one that was asked for, and what differs."""

    step: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One thing that recording and replay both have."""

    what: str
    original: str | None
    replayed: str | None
    proof: str = STATE_WORDS["proven"]
    """Whether it counts that they are equal."""

    @property
    def equal_words(self) -> str:
        """Empty where they are not equal."""
        if self.original != self.replayed:
            return ""
        return "the same" if self.proof == STATE_WORDS["proven"] else f"the same text, {self.proof}"


def report_context(project: Project, replay: Replay, report: ReproductionReport) -> dict[str, Any]:
    facts = replay.facts
    proof = [_told_once(row, report.verdict or "") for row in proof_rows(report.replay.proof)] if report.replay else []
    fork = fork_context(project, replay, report.replay.fork if report.replay else None)
    pairs = _pairs(replay, report)
    told, because = _headline(replay, report.verdict or "")
    return {
        **fork,
        "report": report,
        "told": told,
        "because": because,
        "is_never_started": never_started(replay),
        "css": _GOLDEN_CSS[report.golden.result] if report.golden else verdict_css(replay),
        "reads_run": replay.verdict == "reproduced" and not is_fork(replay),
        "pairs": [] if _are_told(pairs, fork.get("forked_steps", [])) else pairs,
        "next_words": linked_words(_next_action(report.next_action, replay), _ways(project, replay)),
        "has_proof": bool(proof),
        "proof": proof,
        "proof_in_short": _in_short(proof),
        "is_proof_open": any(state == STATE_WORDS["not_proven"] for _, state, _ in proof),
        "told_parts": len({attempt.ran for attempt in report.attempts}) > 1,
        "parts": report.replay.parts if report.replay else None,
        "unfinished": _unfinished(replay),
        "sources": _sources(facts),
        "facts": facts,
        "budget": [{"row": row, "word": BUDGET_WORDS[row.state]} for row in report.budget],
        "is_all_pinned": all(row.state == "pinned" for row in report.budget),
        "difference": None if _is_told(replay, pairs, fork.get("forked_steps", [])) else _difference(replay),
        "asked_for": facts.get("asked_for"),
        "asked_arguments": spelled.compact(spelled.of_value((facts.get("asked_for") or {}).get("arguments"))),
        "nearest": _nearest(replay),
        "left_over": facts.get("left_over") or [],
        "step_link": _step_link(project, replay),
        "diff_link": _diff_link(project, replay),
        "produced_link": run_address(replay.produced_run, project) if replay.produced_run else None,
        "fork_link": _fork_link(project, replay),
        "forks_link": run_page("forks", project, replay.run),
        "agent": agent_of(replay),
    }


def _headline(replay: Replay, verdict: str) -> tuple[str, str]:
    """The verdict, and what makes it a long sentence: that stands below it."""
    if replay.state == ReplayState.CANCELLED:
        return f"Cancelled {cancelled_words(replay)}", ""
    told, _, because = verdict.partition(": ") if replay.is_in_part else (verdict, "", "")
    return told, f"{because[:1].upper()}{because[1:]}." if because else ""


def _in_short(proof: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """`Proven`, and the parts that are: each state once, in the order of the parts."""
    states = dict.fromkeys(state for _, state, _ in proof)
    return [(state, ", ".join(part for part, own, _ in proof if own == state)) for state in states]


def _told_once(row: tuple[str, str, str], verdict: str) -> tuple[str, str, str]:
    """Without the reason that is in the verdict already."""
    part, state, why = row
    is_told = why and verdict.casefold().rstrip(".").endswith(why.casefold().rstrip("."))
    return (part, state, "") if is_told else row


def linked_words(text: str, ways: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    """The text in parts, each with its address where it is one of the ways."""
    known = {words: address for words, address in ways.items() if address}
    if not known:
        return [(text, None)]
    parts = re.split(f"({'|'.join(map(re.escape, known))})", text, flags=re.IGNORECASE)
    return [(part, known.get(part.lower())) for part in parts if part]


def _next_action(text: str, replay: Replay) -> str:
    """A comparison is advised only where something went wrong in the run, and there is something to compare it with."""
    if replay.state == ReplayState.CANCELLED:
        return ""
    has_trouble = replay.run.failure_group is not None
    if "healthy run" not in text or (has_trouble and any(each.is_good for each in comparable_runs(replay.run))):
        return text
    return "" if text.startswith("Compare") else f"{text.partition(', or compare')[0].removesuffix('.')}."


def _ways(project: Project, replay: Replay) -> dict[str, str | None]:
    """What the next thing to do is called in the report, and where it is done."""
    diff = _diff_link(project, replay)
    twins = run_page("good_twins", project, replay.run)
    return {
        "read the run": run_address(replay.run, project),
        "compare with a healthy run": twins,
        "compare it with a healthy run": twins,
        "read the outcome": "#outcomes",
        "open the diff": diff,
        "the nearest recorded ones": "#nearest",
    }


def report_links(request: HttpRequest, project: Project, replay: Replay) -> tuple[tuple[str, str], ...]:
    """Back to the pages, from wherever the report is pasted."""
    golden = golden_of(replay)
    pages = (
        ("The golden", reverse("golden", args=[project.slug, golden.golden_id]) if golden else None),
        ("This report", reverse("replay", args=[project.slug, replay.replay_id])),
        ("The recorded run", run_address(replay.run, project)),
        ("Full diff", _diff_link(project, replay)),
    )
    return tuple((name, request.build_absolute_uri(address)) for name, address in pages if address)


_GOLDEN_CSS: dict[Result, str] = {
    "pass": "reproduced",
    "fail": "failed",
    "could_not_run": "stopped",
    "nothing_covered": "stopped",
}


def verdict_css(replay: Replay) -> str:
    """Of a fork the expectation tells, where it is proven; of any other replay the verdict."""
    if is_fork(replay) and replay.verdict in ("reproduced", "diverged"):
        if replay.unproven_source if replay.expectation_met is not None else written_outcome(replay):
            return "unproven"
        return {True: "reproduced", False: "failed", None: "diverged"}[replay.expectation_met]
    return "unproven" if replay.is_in_part else css_of(replay.verdict)


def css_of(verdict: str | None) -> str:
    if verdict == "reproduced":
        return "reproduced"
    return "diverged" if verdict in _DIVERGED else "stopped"


_DIVERGED = ("diverged", "ran_past_recording", "answers_left_over", CONTRADICTORY)


def _pairs(replay: Replay, report: ReproductionReport) -> list[Pair]:
    """The outcome and the number of steps; each step has its row in the diff, and that there are as many as then is in
    the verdict. A cancelled replay came to nothing."""
    produced, told = replay.produced_run, report.replay
    if produced is None or told is None or not told.has_run:
        return []
    output = describe(told.output) if told.output else produced.error_preview
    original = describe(report.output) if report.output else replay.run.error_preview
    state = STATE_WORDS[told.proof.outcome.state if told.proof and not told.fork else "proven"]
    steps = Pair(what="steps", original=str(replay.run.step_count), replayed=_steps_in_words(replay, produced))
    is_told = steps.equal_words and not told.fork
    return [Pair(what="outcome", original=original, replayed=output, proof=state), *([] if is_told else [steps])]


def _are_told(pairs: Sequence[Pair], forked: Sequence[ShownStep]) -> bool:
    """Whether the last of the steps of a fork shows both outcomes, and as many steps were recorded."""
    last = forked[-1] if forked else None
    if last is None or last.row is None or last.recorded is None or len(pairs) < 2 or not pairs[1].equal_words:
        return False
    return (pairs[0].original, pairs[0].replayed) == (last.recorded.result_preview, last.row.result_preview)


def _steps_in_words(replay: Replay, produced: Run) -> str:
    """A step whose answer nobody knew is none that was replayed."""
    stopped = replay.stopped_at or (replay.shown_divergence if replay.facts.get("asked_for") else None) or {}
    step = stopped.get("step")
    return f"{step - 1}, then stopped at step {step}" if step else str(produced.step_count)


def _is_told(replay: Replay, pairs: Sequence[Pair], forked: Sequence[ShownStep]) -> bool:
    """Whether what differs first is what both came to, or an answer whose differing words are marked already."""
    found = replay.shown_divergence or {}
    is_answer = str(found.get("path")).startswith(("result", "response", "output"))
    if is_answer and any(each.sides and each.step.index == found.get("step") for each in forked):
        return True
    return any((pair.original, pair.replayed) == (found.get("recorded"), found.get("replayed")) for pair in pairs)


def _unfinished(replay: Replay) -> list[Replay]:
    """Other attempts at the run that go on or wait; the table has those that are over."""
    attempts = replay.run.replays.filter(is_golden=False, state__in=list(OPEN_STATES)).exclude(mode__in=FORK_MODES)
    return list(attempts.order_by("number"))


def _sources(facts: JsonObject) -> list[Source]:
    """Those that were used, and live always: that nothing was live is the point."""
    counts = facts.get("sources") or {}
    return [
        Source(key=key, means=means, count=counts.get(key, 0))
        for key, means in SOURCE_MEANS.items()
        if counts.get(key) or key == "live"
    ]


def _difference(replay: Replay) -> Field | None:
    """The first field that differs, with the words around it. None where one side was never there, or what the code
    did by itself says it already."""
    found = replay.shown_divergence
    if not found or "path" not in found or found.get("recorded") is found.get("replayed") is None:
        return None
    if replay.verdict == "ran_past_recording" or _is_own_act(replay, found):
        return None
    absent = replay.facts.get("absent")
    recorded, replayed = (MISSING if absent == name else found.get(name) for name in ("recorded", "replayed"))
    return field_of(str(found["path"]), recorded, replayed)


def _is_own_act(replay: Replay, found: JsonObject) -> bool:
    told = (found.get("step"), found.get("recorded"), found.get("replayed"))
    acts = replay.facts.get("own_code") or []
    return any((act.get("step"), act.get("recorded"), act.get("now")) == told for act in acts)


def _nearest(replay: Replay) -> list[Nearest]:
    """The very call, at the step where it is asked for, is none that comes near."""
    facts, at = replay.facts, (replay.shown_divergence or {}).get("step")
    asked = (facts.get("asked_for") or {}).get("arguments")
    found = [
        Nearest(step=near["step"], fields=argument_fields(near.get("arguments"), asked))
        for near in (facts.get("nearest") or [])[:NEAREST]
    ]
    return [near for near in found if near.fields or near.step != at]


def _step_link(project: Project, replay: Replay) -> str | None:
    step = (replay.shown_divergence or {}).get("step")
    return run_address(replay.run, project, step=step) if step and replay.run.step(step) else None


def _fork_link(project: Project, replay: Replay) -> str:
    """A fork is forked again where it was forked, a replay of a recording where it went another way."""
    if is_fork(replay) and replay.produced_run is not None:
        return run_page("fork", project, replay.produced_run, step=replay.order.get("at_step") or 1)
    return run_page("fork", project, replay.run, step=(replay.shown_divergence or {}).get("step") or 1)


def _diff_link(project: Project, replay: Replay) -> str | None:
    if replay.produced_run is None or replay.state == ReplayState.CANCELLED:
        return None
    return reverse("diff", args=[project.slug, replay.run.run_id, replay.produced_run.run_id])
