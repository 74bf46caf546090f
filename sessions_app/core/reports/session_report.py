"""All runs of a session, replayed in their order: what became of each, one verdict, three ways to write it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sessions_app.core.clipping import one_line
from sessions_app.core.judge.reading import count
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.words import (
    Difference,
    ReplayFacts,
    beside_state,
    next_action,
    verdict_in_words,
    why_in_part,
)
from sessions_app.core.reports.run_report import code, difference_in_words
from sessions_app.core.sessions.contradictions import Contradiction

TITLE = "Session Reproduction Report"


CONTRADICTORY = "contradictory"
"""The verdict on a session whose runs are all reproduced, and say otherwise of each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayedRun:
    """One run of the session and its replay."""

    run_id: str
    replay_id: str
    number: int
    """Which attempt at reproducing this run it is."""
    state: str
    verdict: str | None
    """`partial` where the replay ended as far as the recording reaches; None while it is open."""
    facts: ReplayFacts | None = None
    """None while it is open."""
    difference: Difference | None = None
    """The first, where there is one."""

    @property
    def is_over(self) -> bool:
        return self.facts is not None

    @property
    def words(self) -> str:
        return self.state if self.facts is None else verdict_in_words(self.facts)

    @property
    def same_steps(self) -> int:
        """Of a replay in part: how many steps came out as recorded."""
        proof = self.facts.proof if self.facts is not None and self.verdict == "partial" else None
        return proof.same_steps if proof is not None else 0

    @property
    def reason(self) -> str:
        """Why it is not reproduced, beside its state; empty while it is open, or where the state says all."""
        if self.facts is None or self.verdict in ("reproduced", "cancelled"):
            return ""
        return why_in_part(self.facts) or beside_state(self.facts)

    @property
    def next_action(self) -> str:
        return next_action(self.facts) if self.facts else ""

    @property
    def step(self) -> int | None:
        """Where it first went another way, or stopped."""
        return self.difference.step if self.difference else self.facts.stopped_at if self.facts else None

    def to_json(self) -> JsonObject:
        proof = self.facts.proof if self.facts else None
        return {
            "run_id": self.run_id,
            "replay_id": self.replay_id,
            "number": self.number,
            "state": self.state,
            "verdict": self.verdict,
            "words": self.words,
            "step": self.step,
            "divergence": self.difference and self.difference.to_json(),
            "proof": proof and proof.to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreproduced:
    """Runs that were not reproduced for one reason."""

    runs: tuple[ReplayedRun, ...]
    places: tuple[int, ...]
    """Their numbers in the session, from 1."""

    @property
    def first(self) -> ReplayedRun:
        return self.runs[0]

    @property
    def numbers(self) -> str:
        """`2–6, 8`."""
        spans: list[list[int]] = []
        for place in self.places:
            if spans and spans[-1][-1] == place - 1:
                spans[-1].append(place)
            else:
                spans.append([place])
        return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]}–{span[-1]}" for span in spans)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionReport:
    """What one order to replay a session came to."""

    session_replay_id: str
    session_id: str
    mode: str
    preset: str
    """The mode in words."""
    runs: tuple[ReplayedRun, ...]
    """In the order of the session."""
    contradictions: tuple[Contradiction, ...] = ()
    """Between the recordings of these runs, whatever their replays came to."""

    @property
    def over(self) -> int:
        return sum(run.is_over for run in self.runs)

    @property
    def is_over(self) -> bool:
        return self.over == len(self.runs)

    @property
    def state(self) -> str:
        """Of all together: it is paused where nothing goes on by itself."""
        states = {run.state for run in self.runs if not run.is_over}
        if not states:
            return "cancelled" if {run.state for run in self.runs} == {"cancelled"} else "done"
        if states == {"paused"}:
            return "paused"
        return "queued" if states == {"queued"} and not self.over else "running"

    @property
    def first_other(self) -> ReplayedRun | None:
        """The first run that was not reproduced; None before all are over."""
        return next((run for run in self.runs if run.verdict != "reproduced"), None) if self.is_over else None

    @property
    def first_place(self) -> tuple[ReplayedRun, int | None] | None:
        """The run that the verdict is about where it is not `reproduced`, and the step."""
        if self.first_other is not None:
            return self.first_other, self.first_other.step
        found = self.contradictions[0] if self.is_over and self.contradictions else None
        return (next(run for run in self.runs if run.run_id == found.run_id), found.step) if found else None

    @property
    def verdict(self) -> str | None:
        """`reproduced` only if every run is, and none contradicts another; else that of the first run that is not. None
        before all are over."""
        if not self.is_over or not self.runs:
            return None
        if self.first_other is not None:
            return self.first_other.verdict
        return CONTRADICTORY if self.contradictions else "reproduced"

    @property
    def unreproduced(self) -> list[Unreproduced]:
        """By their reasons, the commonest first; each reason is told once."""
        found: dict[tuple[str | None, str], list[int]] = {}
        for place, run in enumerate(self.runs, start=1):
            if run.is_over and run.verdict != "reproduced":
                found.setdefault((run.verdict, run.reason), []).append(place)
        places = sorted(found.values(), key=len, reverse=True)
        return [Unreproduced(runs=tuple(self.runs[at - 1] for at in each), places=tuple(each)) for each in places]

    @property
    def words(self) -> str:
        total = len(self.runs)
        if not self.is_over:
            return f"{self.over} of {count(total, 'run')} {'has' if self.over == 1 else 'have'} finished"
        if self.state == "cancelled":
            return "Cancelled"
        if self.first_other is not None:
            return self._other_words(self.first_other)
        if total == 0:
            return "No runs are left"
        if self.contradictions:
            more = f"; and {count(len(self.contradictions) - 1, 'more place')}" if len(self.contradictions) > 1 else ""
            return f"All {total} runs reproduced, but they contradict each other: {self.contradictory_places[0]}{more}"
        return f"Reproduced: all {total} runs" if total > 1 else "Reproduced: its only run"

    def _other_words(self, first: ReplayedRun) -> str:
        """One run is told by its own verdict, more are counted."""
        others = Counter(run.verdict or "" for run in self.runs if run.verdict != "reproduced")
        same = f"{len(self.runs) - others.total()} of {count(len(self.runs), 'run')} reproduced"
        if others.total() == 1:
            return f"{same}; run {self.runs.index(first) + 1}, {first.run_id}: {first.words}"
        counts = [f"{number} {_ENDED.get(verdict, verdict)}" for verdict, number in others.most_common()]
        return ", ".join([same, *counts])

    @property
    def contradictory_places(self) -> list[str]:
        """Each contradiction in words."""
        numbers = {run.run_id: number for number, run in enumerate(self.runs, start=1)}
        return [found.in_words(numbers) for found in self.contradictions]

    @property
    def places_beside_verdict(self) -> list[str]:
        """Those that the verdict in words does not tell."""
        is_told = self.verdict == CONTRADICTORY and len(self.contradictions) == 1
        return [] if is_told else self.contradictory_places

    @property
    def next_action(self) -> str | None:
        """What to do about the first run that was not reproduced, or about recordings that contradict each other."""
        if self.verdict == CONTRADICTORY:
            return self.contradictions[0].next_action
        first = self.first_other
        return next_action(first.facts) if first and first.facts and self.state != "cancelled" else None


_ENDED = {
    "partial": "in part",
    "ran_past_recording": "ran past the recording",
    "answers_left_over": "with answers left over",
    "fixture_missing": "without a recorded answer",
    "could_not_run": "could not run",
    "unknown_from_step": "stopped",
}
"""Verdicts beside a number, where their own names are no words for it."""


# --- as JSON, text and Markdown ----------------------------------------------------------------


def as_json(report: SessionReport) -> JsonObject:
    place = report.first_place
    return {
        "title": TITLE,
        "session_replay_id": report.session_replay_id,
        "session_id": report.session_id,
        "mode": report.mode,
        "state": report.state,
        "progress": {"done": report.over, "total": len(report.runs)},
        "verdict": report.verdict,
        "words": report.words,
        "first_not_reproduced": place and _place(*place),
        "contradictions": [
            {**found.to_json(), "words": words}
            for found, words in zip(report.contradictions, report.contradictory_places, strict=True)
        ],
        "next_action": report.next_action,
        "runs": [run.to_json() for run in report.runs],
    }


def _place(run: ReplayedRun, step: int | None) -> JsonObject:
    return {"run_id": run.run_id, "replay_id": run.replay_id, "step": step}


def as_text(report: SessionReport) -> str:
    facts = [f"{name}: {one_line(words)}" for name, words in _facts(report)]
    runs = [f"  {place}. {one_line(run.run_id)} {_in_words(run)}" for place, run in enumerate(report.runs, start=1)]
    return "\n".join([TITLE, "=" * 40, *facts, "", f"Runs: {len(report.runs)}", *runs])


def as_markdown(report: SessionReport) -> str:
    """For a chat. Recorded text stands in code, where it has no meaning."""
    facts = "\n".join(f"- {name}: {code(words)}" for name, words in _facts(report))
    runs = "\n".join(
        f"{place}. {code(run.run_id)} {code(_in_words(run))}" for place, run in enumerate(report.runs, start=1)
    )
    return f"## {TITLE}\n\n{facts}\n\n**Runs: {len(report.runs)}**\n\n{runs}\n"


def _facts(report: SessionReport) -> list[tuple[str, str]]:
    action = report.next_action
    return [
        ("Session", report.session_id),
        ("Preset", report.preset),
        ("Verdict", report.words),
        *(("Runs " + group.numbers, group.first.reason) for group in report.unreproduced if len(group.runs) > 1),
        *(("Contradiction", words) for words in report.places_beside_verdict),
        *([("Next", action)] if action else []),
        ("Session replay", report.session_replay_id),
    ]


def _in_words(run: ReplayedRun) -> str:
    first = f"; first difference: {difference_in_words(run.difference)}" if run.difference else ""
    return f"attempt {run.number}, {run.replay_id}: {one_line(run.words)}{first}"
