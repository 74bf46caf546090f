"""The seven steps: the state of each, what shows it, what is missing, what can be done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from sessions_app.core.judge.reading import count
from sessions_app.core.judge.story import ODD_AT
from sessions_app.core.run import Run, Step, answered, counted_steps, fixtures, main_model_calls
from sessions_app.core.workflow.attempts import (
    SAYS_NOTHING,
    Attempt,
    deciding,
    not_reproduced,
    outcome_words,
    reproduces,
)

StepState = Literal["open", "done", "not_possible", "not_needed"]
Action = Literal["session", "record", "replay", "breakpoints", "fork", "golden"]
SHOWN = 6
"""Attempts that a step names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptGolden:
    """A golden whose scene is the run, or a run that was made of it."""

    golden_id: str
    name: str
    fails_on: str | None
    """The first run that it is known to fail on; None where there is none."""
    last_run_id: str | None
    """Of the runs that were made last and together, the one that decides; None where it never ran."""
    last_result: str | None
    """The worst of those runs: `pass`, `fail` …; None while one is open."""
    passes_on: str | None = None
    """The first run that it is known to pass on."""
    last_deploy: str | None = None
    """What had been deployed before those runs, where they were for a deploy."""
    last_agents: tuple[str, ...] = ()
    """With which it came to that result, where with others it came to another one."""

    @property
    def is_green(self) -> bool:
        return self.fails_on is not None and self.last_result == "pass"


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """All that the seven steps are made of."""

    run: Run
    """Its histories are not looked at."""
    is_part: bool
    """Whether only the first steps of a long run were read, so that there may be more of everything."""
    story: str
    odd: int
    """Anomalies that were found."""
    first_odd: int | None
    """The step to look at first."""
    kit_captured: int
    kit_missing: tuple[str, ...]
    """Titles of the kit's lines that were not captured in full."""
    kit_total: int
    verdict: str
    """`replayable`, `replayable_to_step` or `cold`."""
    verdict_step: int | None
    reasons: tuple[str, ...]
    """Why it cannot be replayed, or only so far."""
    attempts: tuple[Attempt, ...]
    """In the order in which they were asked for."""
    goldens: tuple[KeptGolden, ...] = ()
    """The newest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What shows that something was done: a replay, a golden, or a step of the run."""

    words: str
    replay_id: str | None = None
    step: int | None = None
    golden_id: str | None = None
    golden_run_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowStep:
    """One of the seven."""

    number: int
    title: str
    state: StepState
    words: str
    missing: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    action: Action | None = None
    """What can be done next for it; None where nothing can."""
    is_next: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflow:
    """The seven steps, and the answer to the question between them."""

    reproduces: bool | None
    """None while no attempt says so or otherwise."""
    decided_by: Attempt | None
    steps: tuple[WorkflowStep, ...]

    @property
    def next_step(self) -> WorkflowStep | None:
        return next((step for step in self.steps if step.is_next), None)


def workflow(facts: Facts) -> Workflow:
    """Where the reproduction of a run stands."""
    decider = deciding(facts.attempts)
    answer = None if decider is None else reproduces(decider)
    steps = tuple(make(facts, answer) for make in _SEVEN)
    return Workflow(reproduces=answer, decided_by=decider, steps=_with_next(steps, answer))


def _with_next(steps: tuple[WorkflowStep, ...], answer: bool | None) -> tuple[WorkflowStep, ...]:
    """The first open one; where the run does not reproduce, the world is asked before anything is debugged."""
    order = (1, 2, 3, 4, 6, 5, 7) if answer is False else range(1, 8)
    found = next((number for number in order if steps[number - 1].state == "open"), None)
    return tuple(replace(step, is_next=step.number == found) for step in steps)


# --- what was recorded -------------------------------------------------------------------------


def _without_the_evidence(facts: Facts) -> str:
    """The story, but for where the first anomaly is, which a link below says."""
    return " · ".join(part for part in facts.story.split(" · ") if not (facts.odd and part.startswith(ODD_AT)))


def _gather(facts: Facts, answer: bool | None) -> WorkflowStep:
    run = facts.run
    ends = {"no input": run.input is None, "no answer and no error": run.output is None and run.error is None}
    state: StepState = "open" if run.status == "running" else "done"
    return WorkflowStep(
        number=1,
        title="Gather evidence",
        state=state,
        words=_without_the_evidence(facts) if state == "done" else "This run is still being received.",
        missing=tuple(words for words, is_missing in ends.items() if is_missing),
        evidence=_odd(facts),
        action="session",
    )


def _odd(facts: Facts) -> tuple[Evidence, ...]:
    if facts.first_odd is None:
        return ()
    found = count(facts.odd, "anomaly", "anomalies")
    return (Evidence(words=f"{found}, first at step {facts.first_odd}", step=facts.first_odd),)


def _extract(facts: Facts, answer: bool | None) -> WorkflowStep:
    steps = len(counted_steps(facts.run))
    kit = f"{facts.kit_captured} of {facts.kit_total} lines of the replay kit captured"
    state: StepState = "open" if facts.run.status == "running" else "done"
    return WorkflowStep(
        number=2,
        title="Extract the session",
        state=state if steps else "not_possible",
        words=f"{_at_least(facts)}{count(steps, 'step')}, {kit}." if steps else "No steps were recorded.",
        missing=facts.kit_missing,
        action="record",
    )


def _build(facts: Facts, answer: bool | None) -> WorkflowStep:
    models = _answered(step for step, _ in main_model_calls(facts.run))
    tools = len([fixture for fixture in fixtures(facts.run) if fixture.call.result or fixture.error])
    stand_in = (
        f"{_at_least(facts)}{count(models, 'model answer')} and {count(tools, 'tool answer')} replace the outside world"
    )
    is_cold = facts.verdict == "cold"
    until = f", up to step {facts.verdict_step}" if facts.verdict == "replayable_to_step" else ""
    return WorkflowStep(
        number=3,
        title="Build the replay model",
        state="not_possible" if is_cold else "done",
        words="Too little was recorded to replace the outside world." if is_cold else f"{stand_in}{until}.",
        missing=facts.reasons,
    )


def _at_least(facts: Facts) -> str:
    return "at least " if facts.is_part else ""


def _answered(steps: Iterable[Step]) -> int:
    return sum(answered(step) is not None for step in steps)


# --- attempts ----------------------------------------------------------------------------------


def _run_replay(facts: Facts, answer: bool | None) -> WorkflowStep:
    replays = [attempt for attempt in facts.attempts if attempt.kind == "replay"]
    is_done = any(reproduces(attempt) is not None for attempt in replays)
    state: StepState = "done" if is_done else "not_possible" if facts.verdict == "cold" else "open"
    return WorkflowStep(
        number=4,
        title="Run a deterministic replay",
        state=state,
        words=_REPLAYED[state] if is_done or not replays else "No replay has reached a conclusive result.",
        evidence=_shown(replays),
        action=None if facts.verdict == "cold" else "replay",
    )


_REPLAYED: dict[StepState, str] = {
    "done": "Replayed from its recorded answers.",
    "open": "Not replayed yet.",
    "not_possible": "Too little was recorded to replay.",
}


def _debug(facts: Facts, answer: bool | None) -> WorkflowStep:
    tried = [attempt for attempt in facts.attempts if attempt.has_stops or attempt.kind == "fork"]
    ended = [attempt for attempt in tried if attempt.has_stops or _came_to_an_end(attempt)]
    state: StepState = "done" if ended else "not_possible" if facts.verdict == "cold" else "open"
    paused = sum(attempt.has_stops for attempt in tried)
    kinds = ((paused, "replay with breakpoints", "replays with breakpoints"), (len(tried) - paused, "fork", "forks"))
    told = " and ".join(count(*kind) for kind in kinds if kind[0]) + f" tried{'' if ended else ', none finished'}."
    waits = "Waiting for a replay that reproduces the run."
    ready = "Pause before a step, before a tool, or when a condition holds; or fork from a step with one thing changed."
    return WorkflowStep(
        number=5,
        title="Debug with breakpoints or forks",
        state=state,
        words=told if tried else ready if answer else waits,
        evidence=_shown(tried),
        action="breakpoints" if (answer or tried) and facts.verdict != "cold" else None,
    )


def _came_to_an_end(attempt: Attempt) -> bool:
    return attempt.is_over and attempt.verdict is not None and attempt.verdict not in SAYS_NOTHING


def _check_world(facts: Facts, answer: bool | None) -> WorkflowStep:
    failed = not_reproduced(facts.attempts)
    state, words = _of_world(facts, answer, failed)
    return WorkflowStep(
        number=6, title="Check external factors", state=state, words=words, evidence=_shown(failed) if answer else ()
    )


def _of_world(facts: Facts, answer: bool | None, failed: list[Attempt]) -> tuple[StepState, str]:
    if answer is False:
        return "open", "It does not reproduce: check what may lie outside the recording, then try again."
    if answer:
        after = "An attempt that did not reproduce the run was followed by one that did."
        return ("done", after) if failed else ("not_needed", "It reproduces from the recording alone.")
    if facts.verdict == "cold":
        return "open", "It cannot be replayed: the recording is all there is to go on."
    return "open", "Needed when a replay does not reproduce the run."


def _fix(facts: Facts, answer: bool | None) -> WorkflowStep:
    decider = deciding(facts.attempts)
    proven = [each for each in facts.attempts if each.kind == "fork" and reproduces(each) and each is not decider]
    green = [golden for golden in facts.goldens if golden.is_green]
    told = green or list(facts.goldens)
    fork = "A fork ended as expected." if proven else "No fork has shown a fix yet."
    return WorkflowStep(
        number=7,
        title="Fix, and write a regression test",
        state="done" if green else "not_possible" if facts.verdict == "cold" and not told else "open",
        words=_golden_words(told[0]) if told else f"{fork} No golden guards against a regression yet.",
        evidence=(*_red(told[:SHOWN]), *_fixed(proven, told[:SHOWN]), *map(_last_run, told[:SHOWN])),
        action=_fix_action(answer, proven, told),
    )


def _fix_action(answer: bool | None, proven: list[Attempt], told: list[KeptGolden]) -> Action | None:
    """First a fix is looked for, then it is kept."""
    if told:
        return None
    return "golden" if proven else "fork" if answer else None


def _golden_words(golden: KeptGolden) -> str:
    if golden.is_green:
        after = f", after the deploy of {golden.last_deploy}" if golden.last_deploy else ""
        return f"Its golden fails on a bad run and passes on the latest code{after}."
    if golden.last_run_id is None:
        return "A golden was made but has not been run."
    if golden.last_result is None:
        return "Its golden is running on the latest code."
    if golden.fails_on is None:
        return "A golden was made, but it is not known to fail on any run."
    return f"Its golden does not pass on the latest code{_with_agents(golden)}."


def _with_agents(golden: KeptGolden) -> str:
    return f" with {', '.join(golden.last_agents)}" if golden.last_agents else ""


def _red(goldens: list[KeptGolden]) -> list[Evidence]:
    return [
        Evidence(words=f"red: golden {golden.name} fails on {golden.fails_on}", golden_id=golden.golden_id)
        for golden in goldens
        if golden.fails_on is not None
    ]


def _fixed(proven: list[Attempt], goldens: list[KeptGolden]) -> list[Evidence]:
    """Forks that ended as expected; else the runs on which goldens first passed."""
    forks = [replace(shown, words=f"fix: {shown.words}") for shown in _shown(proven)]
    passed = [(golden, golden.passes_on) for golden in goldens if golden.passes_on is not None]
    return forks or [
        Evidence(words=f"fix: golden {golden.name} passes on {run_id}", golden_id=golden.golden_id)
        for golden, run_id in passed
    ]


def _last_run(golden: KeptGolden) -> Evidence:
    result = _RESULTS.get(golden.last_result or "", "not run" if golden.last_run_id is None else "running")
    after = f" after the deploy of {golden.last_deploy}" if golden.last_deploy else ""
    green = "green: " if golden.is_green else ""
    words = f"{green}golden {golden.name}: {result}{_with_agents(golden)}{after}"
    return Evidence(words=words, golden_id=golden.golden_id, golden_run_id=golden.last_run_id)


_RESULTS = {
    "pass": "passed",
    "fail": "failed",
    "could_not_run": "could not run",
    "nothing_covered": "could not be judged",
}


def _shown(attempts: list[Attempt]) -> tuple[Evidence, ...]:
    """The newest first."""
    newest = attempts[: -SHOWN - 1 : -1]
    return tuple(Evidence(words=outcome_words(each), replay_id=each.replay_id) for each in newest)


_SEVEN = (_gather, _extract, _build, _run_replay, _debug, _check_world, _fix)
"""In the order of their numbers."""
