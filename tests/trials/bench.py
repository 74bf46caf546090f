"""Puts a mutant through the doors of the product: ingest and judge, a replay in the real process, and comparisons."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sessions_app.agents.process.sandbox import ReplayChild
from sessions_app.core.compare.runs import Comparison, compare_runs
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.run import Run
from tests.trials.mutants import Expected, Mutant, Place

PATIENCE = 60.0  # seconds for one replay
ENDS = {"unknown_from_step", "fixture_missing", "ran_past_recording"}
"""How a replay may end where the judge said that it will."""
OUTCOME = ("output", "status", "error")


@dataclass(frozen=True, kw_only=True)
class Replayed:
    verdict: str
    step: int | None
    path: str | None
    error: str | None
    produced: Run | None
    same_steps: int = 0
    """As many steps as its proof claims to be the same."""

    def __str__(self) -> str:
        return f"{self.verdict} at step {self.step}, {self.path}" if self.step or self.path else self.verdict


class Doors:
    """One replay process for many recordings."""

    def __init__(self) -> None:
        self._child = ReplayChild()
        self._served = 0

    def close(self) -> None:
        self._child.end()

    def replay(self, run: Run) -> Replayed:
        self._served += 1
        number = str(self._served)
        self._child.begin({"id": number, "record": encode_native(run).decode(), "run_id": "replayed"})
        result = self._answer(number)
        found = result["divergence"] or {}
        record = result.get("record")
        return Replayed(
            verdict=result["verdict"],
            step=found.get("step"),
            path=found.get("path"),
            error=result["error"],
            produced=parse_native(record.encode()) if record else None,
            same_steps=(result["facts"].get("proof") or {}).get("same_steps", 0),
        )

    def _answer(self, number: str) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        for answer in self._child.answers(poll_seconds=0.5):
            if answer is not None and answer.get("id") == number and "result" in answer:
                return dict(answer["result"])
            if time.monotonic() > until:
                break
        raise AssertionError("the replay process does not answer")


@contextmanager
def open_doors() -> Iterator[Doors]:
    doors = Doors()
    try:
        yield doors
    finally:
        doors.close()


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the product says of one recording."""

    judged: Verdict
    contradictory: tuple[str, ...]
    replayed: Replayed
    to_original: Comparison | None
    to_replay: Comparison | None

    @property
    def judge_words(self) -> str:
        step = f" to step {self.judged.step}" if self.judged.step else ""
        kit = f" (contradictory: {', '.join(self.contradictory)})" if self.contradictory else ""
        return f"{self.judged.verdict}{step} {[reason.code for reason in self.judged.reasons]}{kit}"


def said_of(run: Run, original: Run | None, doors: Doors) -> Said:
    replayed = doors.replay(run)
    return Said(
        judged=judge(run),
        contradictory=tuple(line.key for line in audit_kit(run).lines if line.status == "contradictory"),
        replayed=replayed,
        to_original=compare_runs(original, run) if original else None,
        to_replay=compare_runs(run, replayed.produced) if replayed.produced else None,
    )


# --- faults --------------------------------------------------------------------------------------

FALSE_PASS = "false reproduced"
WRONG_PLACE = "wrong place"
FALSE_ALARM = "false alarm"
PROMISE = "promise broken"
NOT_SEEN = "not seen by the comparison"
WRONG_COMPARED = "wrong place in the comparison"
SEEN_NOTHING = "a difference where there is none"
DISAGREE = "replay and comparison disagree"
CRASH = "failure"
FAULTS = (FALSE_PASS, WRONG_PLACE, FALSE_ALARM, PROMISE, NOT_SEEN, WRONG_COMPARED, SEEN_NOTHING, DISAGREE, CRASH)


@dataclass(frozen=True, kw_only=True)
class Fault:
    fault: str
    mutant: Mutant
    said: str
    should: str

    def __str__(self) -> str:
        mutant = self.mutant
        return f"{self.fault}: {mutant.kind} | {mutant.run} | {mutant.what} | said: {self.said} | should: {self.should}"


@dataclass
class Row:
    mutants: int = 0
    noticed: int = 0
    refused: int = 0
    """Not taken in at all."""
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, other: Row) -> None:
        self.mutants += other.mutants
        self.noticed += other.noticed
        self.refused += other.refused
        self.faults += other.faults


@dataclass
class Bench:
    """What was found, by kind."""

    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))
    faults: list[Fault] = field(default_factory=list)

    def try_all(self, original: bytes, mutants: Iterable[Mutant], doors: Doors) -> None:
        """All mutants of one recording."""
        run = only_run(original)
        control = said_of(run, run, doors)
        for mutant in mutants:
            self._try(run, control, mutant, doors)

    def _try(self, original: Run, control: Said, mutant: Mutant, doors: Doors) -> None:
        row = self.rows[mutant.kind]
        row.mutants += 1
        try:
            run = only_run(mutant.content)
        except RecordError:
            row.refused += 1
            return
        said = said_of(run, original, doors)
        row.noticed += said.replayed.verdict != "reproduced" or said.judged.verdict != "replayable"
        for fault, words, should in faults_of(mutant.expected, control, said):
            row.faults[fault] += 1
            self.faults.append(Fault(fault=fault, mutant=mutant, said=words, should=should))

    @classmethod
    def together(cls, benches: Iterable[Bench]) -> Bench:
        whole = cls()
        for bench in benches:
            whole.faults += bench.faults
            for name, row in bench.rows.items():
                whole.rows[name].add(row)
        return whole

    def table(self) -> str:
        head: list[str | int] = ["kind", "mutants", "refused", "noticed", *FAULTS]
        lines: list[list[str | int]] = [
            [name, row.mutants, row.refused, row.noticed, *(row.faults[fault] for fault in FAULTS)]
            for name, row in sorted(self.rows.items())
        ]
        total: list[str | int] = ["all", *(sum(int(line[column]) for line in lines) for column in range(1, len(head)))]
        rows = [head, *lines, total]
        widths = [max(len(str(row[column])) for row in rows) for column in range(len(head))]
        return "\n".join(
            "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        )


def only_run(content: bytes) -> Run:
    parsed = parse_document(content)
    return parsed if isinstance(parsed, Run) else parsed[0]


def faults_of(expected: Expected, control: Said, said: Said) -> Iterator[tuple[str, str, str]]:
    yield from _of_replay(expected, control, said)
    yield from _of_promise(expected, said)
    yield from _of_comparison(expected, said)
    yield from _of_agreement(said)
    yield from _of_claim(said)


def _of_claim(said: Said) -> Iterator[tuple[str, str, str]]:
    """What no replay plays must not be claimed."""
    produced = said.replayed.produced
    if said.replayed.verdict != "reproduced" or produced is None:
        return
    steps = {step.index: step for step in produced.steps}
    inside = [each for each in produced.steps if each.parent and steps[each.parent].kind == "tool"]
    most = sum(step.kind in ("model", "tool") for step in produced.steps if step not in inside)
    if said.replayed.same_steps > most:
        yield FALSE_PASS, f"the same {said.replayed.same_steps} steps", f"at most {most}"


def _of_replay(expected: Expected, control: Said, said: Said) -> Iterator[tuple[str, str, str]]:
    verdict = said.replayed.verdict
    words = f"judge {said.judge_words}; replay {said.replayed}"
    if expected.by == "replay" and verdict == "reproduced":
        yield FALSE_PASS, words, f"not reproduced; {expected.place}"
    elif expected.by == "replay" and not _is_right_place(expected.place, control, said):
        yield WRONG_PLACE, words, str(expected.place)
    if expected.by == "judge":
        if said.judged.verdict == "replayable" and not said.contradictory:
            yield FALSE_PASS if verdict == "reproduced" else PROMISE, words, "noticed at ingest"
        elif verdict == "reproduced" and said.judged.verdict != "replayable":
            yield PROMISE, words, "not reproduced"
        elif verdict not in ("reproduced", "could_not_run") and not _is_right_place(expected.place, control, said):
            yield WRONG_PLACE, words, str(expected.place)
    if expected.by in ("comparison", "nobody") and not _is_like(control, said):
        yield FALSE_ALARM, words, f"as without the change: {control.replayed}"


def _is_right_place(place: Place, control: Said, said: Said) -> bool:
    """The expected one; or one before it, where the judge said beforehand that the replay ends; or cold."""
    found, judged = said.replayed, said.judged
    if found.verdict == "could_not_run":
        return judged.verdict == "cold"
    if place.holds(found.step, found.path):
        return True
    if judged.verdict == "replayable_to_step" and judged.step is not None and found.step == judged.step + 1:
        return not place.steps or found.step <= max(place.steps)
    own = control.replayed
    return own.verdict != "reproduced" and (found.verdict, found.step, found.path) == (own.verdict, own.step, own.path)


def _is_like(control: Said, said: Said) -> bool:
    own, found = control.replayed, said.replayed
    return (own.verdict, own.step, _fact(own)) == (found.verdict, found.step, _fact(found))


def _fact(found: Replayed) -> str | None:
    """Where it ended; an outcome that was another one already may now differ in another of its fields."""
    return next((name for name in OUTCOME if (found.path or "").startswith(name)), found.path)


def _of_promise(expected: Expected, said: Said) -> Iterator[tuple[str, str, str]]:
    """What the judge says at ingest and the replay has to keep, where the record does not contradict itself."""
    judged, found = said.judged, said.replayed
    words = f"judge {said.judge_words}; replay {found}"
    if expected.verdicts and judged.verdict not in expected.verdicts:
        yield PROMISE, words, f"judged {' or '.join(sorted(expected.verdicts))}"
    if judged.verdict == "cold" and found.verdict != "could_not_run":
        yield PROMISE, words, "refused"
    if judged.verdict == "replayable_to_step" and found.verdict == "reproduced":
        yield PROMISE, words, f"ends at step {(judged.step or 0) + 1}"
    if expected.by in ("comparison", "nobody", "anybody", "judge"):
        if judged.verdict == "replayable" and found.verdict != "reproduced":
            yield PROMISE, words, "reproduced"
        if judged.verdict == "replayable_to_step" and not _is_kept(expected, said):
            yield PROMISE, words, f"ends at step {(judged.step or 0) + 1}"


def _is_kept(expected: Expected, said: Said) -> bool:
    """The replay ends behind the step that the judge named; or says what contradicts itself in this record."""
    found = said.replayed
    if expected.by in ("judge", "anybody") and found.verdict == "diverged" and (found.path or "").startswith(OUTCOME):
        return expected.place.holds(found.step, found.path)
    return found.verdict in ENDS and found.step == (said.judged.step or 0) + 1


def _of_comparison(expected: Expected, said: Said) -> Iterator[tuple[str, str, str]]:
    comparison = said.to_original
    if comparison is None or not expected.is_comparable:
        return
    words = f"original and mutant: {compared_words(comparison)}"
    if expected.compared is None:
        if not comparison.identical:
            yield SEEN_NOTHING, words, "identical"
    elif comparison.identical:
        yield NOT_SEEN, words, f"another one at {expected.compared}"
    elif not expected.compared.holds(*_place(comparison)):
        yield WRONG_COMPARED, words, str(expected.compared)


def _of_agreement(said: Said) -> Iterator[tuple[str, str, str]]:
    if said.to_replay is None:
        return
    words = f"replay {said.replayed}; mutant and its replay: {compared_words(said.to_replay)}"
    # What was not captured is not identical to anything, and no divergence either.
    if said.replayed.verdict == "reproduced" and said.to_replay.divergence is not None:
        yield DISAGREE, words, "identical"
    if said.replayed.verdict == "diverged" and said.to_replay.identical:
        yield DISAGREE, words, "not identical"


def _place(comparison: Comparison) -> tuple[int | None, str | None]:
    found = comparison.divergence
    if found is None:
        return None, None
    step = found.left_step or found.right_step
    return step.index if step else None, found.path


def compared_words(comparison: Comparison) -> str:
    if comparison.identical:
        ignored = {each.rule.key: each.count for each in comparison.ignored if each.count}
        return f"identical (ignored {json.dumps(ignored)})"
    step, path = _place(comparison)
    return f"another one at step {step}, {path}"
