"""Recordings with one thing changed: what replay, judge and comparison must notice, they notice, and where it is.

`TRIAL_SIZE=full` takes every run and at least 5,000 mutants; otherwise a few of each kind.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from random import Random

import pytest

from tests.recorder import playing
from tests.trials.bench import Bench, Doors, Said, faults_of, only_run, open_doors, said_of
from tests.trials.kinds import KINDS, SAVED_KINDS
from tests.trials.mutants import Expected, Kind, Mutant, at
from tests.trials.recorded_runs import RecordedRun, all_runs

FULL = os.environ.get("TRIAL_SIZE") == "full"
RUNS_OF_A_KIND = None if FULL else 1
MUTANTS_OF_A_RUN = 1
WAYS = tuple(playing.WAYS) if FULL else ("run", "run_stream")
PROCESSES = 2


@pytest.fixture(scope="module")
def runs() -> list[RecordedRun]:
    return all_runs(WAYS)


def test_one_change_is_noticed_where_it_is(runs: list[RecordedRun], capsys: pytest.CaptureFixture[str]):
    chosen = _chosen(runs)

    bench = _tried(chosen)

    with capsys.disabled() if FULL else nullcontext():
        print(f"\n{bench.table()}\n")
    assert set(bench.rows) == {kind.name for kind in [*KINDS, *SAVED_KINDS]}
    assert not bench.faults, "\n".join(map(str, bench.faults[:200]))
    if FULL:
        assert sum(row.mutants for row in bench.rows.values()) >= 5000
        assert len(chosen) >= 60


def _chosen(runs: list[RecordedRun]) -> list[tuple[RecordedRun, list[Mutant]]]:
    """Mutants by the run that they are made of; of each kind the same ones every time."""
    found: dict[str, list[Mutant]] = defaultdict(list)
    for kind in [*KINDS, *SAVED_KINDS]:
        left = RUNS_OF_A_KIND
        for run in _shuffled(runs, kind):
            mutants = _some_mutants(kind, run)
            found[run.name] += mutants
            if left is not None and mutants:
                left -= 1
                if left == 0:
                    break
    return [(run, found[run.name]) for run in runs if found[run.name]]


def _shuffled(runs: list[RecordedRun], kind: Kind) -> list[RecordedRun]:
    fitting = [run for run in runs if run.is_native == (kind in KINDS)]
    return fitting if FULL else Random(kind.name).sample(fitting, len(fitting))


def _some_mutants(kind: Kind, run: RecordedRun) -> list[Mutant]:
    found = list(kind.mutants(run.record, run.name))
    return Random(f"{kind.name} {run.name}").sample(found, min(MUTANTS_OF_A_RUN, len(found)))


def _tried(chosen: list[tuple[RecordedRun, list[Mutant]]]) -> Bench:
    """Each thread has a replay process of its own, which does nearly all of the work."""
    shares = [chosen[number::PROCESSES] for number in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        return Bench.together(list(pool.map(_share, shares)))


def _share(chosen: list[tuple[RecordedRun, list[Mutant]]]) -> Bench:
    bench = Bench()
    with open_doors() as doors:
        for run, mutants in chosen:
            bench.try_all(run.content, mutants, doors)
    return bench


HARD_TO_PLACE = [
    ("model step said twice", "pydantic-ai/empty_response-run_stream", "step 2"),
    ("outcome of a tool", "pydantic-ai/multimodal_tool_results-run", "step 2: failed"),
    ("field that nobody knows, in an answer", "pydantic-ai/native_output_retry-run_stream", "step 1"),
    ("step inside of a tool changed", "pydantic-ai/multimodal_tool_results-run_stream", "step 5, chunks"),
    ("arguments, a blank at the end, in both", "pydantic-ai/token_limit-run_stream", "step 4: .query"),
    ("tool no longer registered at a step", "pydantic-ai/approval_second-run", "step 3"),
    ("final messages, one added", "openai-agents/stop_on_first_tool-run", "a prompt"),
    ("final messages, one added", "openai-agents/too_many_turns", "a prompt"),
    ("saved: arguments, spelling of a number, in both", "session-file/output_tool", "call 0: .amount"),
    ("finish reason", "pydantic-ai/cut_calls-run_stream", "step 1"),
    ("prompt, in both", "openai-agents/second_turn", "step 1"),
]
"""No sample need hold them: what a search found, a refused output of a stream, what stands beside an answer, a loop
that asks on, an answer that was cut off then, items beside the input."""


@pytest.mark.parametrize(
    ("name", "run_name", "what"), HARD_TO_PLACE, ids=[f"{run}: {kind}" for kind, run, _ in HARD_TO_PLACE]
)
def test_what_is_hard_to_place(name: str, run_name: str, what: str, runs: list[RecordedRun], doors: Doors):
    run = _named(runs, run_name)
    (mutant,) = (
        each
        for kind in [*KINDS, *SAVED_KINDS]
        if kind.name == name
        for each in kind.mutants(run.record, run.name)
        if each.what == what
    )
    said = said_of(only_run(mutant.content), only_run(run.content), doors)

    assert list(faults_of(mutant.expected, _said(run, doors), said)) == []


# --- controls ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with open_doors() as opened:
        yield opened


def test_a_mutant_is_another_document_and_the_control_is_not(runs: list[RecordedRun]):
    run = _named(runs, "pydantic-ai/numbers_and_nesting-run")
    same = [
        kind.name
        for kind in KINDS
        for mutant in kind.mutants(run.record, run.name)
        if _spelled(mutant.content) == _spelled(run.content)
    ]

    assert same == ["spaces between values", "nothing"]


def _spelled(content: bytes) -> str:
    """Without the spaces, and with every number and key as it stands."""
    return json.dumps(json.loads(content))


def test_nothing_changed_is_what_the_judge_promised(runs: list[RecordedRun], doors: Doors):
    """A run that is judged whole is reproduced, and each is the same as itself."""
    unchanged = Expected(by="nobody")
    broken = []
    for run in runs if FULL else runs[::7]:
        said = _said(run, doors)
        broken += [(run.name, *fault) for fault in faults_of(unchanged, said, said)]

    assert broken == []


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        (Expected(by="replay"), "false reproduced"),
        (Expected(by="judge"), "false reproduced"),
        (Expected(by="nobody", compared=at(1)), "not seen by the comparison"),
    ],
)
def test_the_bench_finds_what_was_not_noticed(expected: Expected, fault: str, runs: list[RecordedRun], doors: Doors):
    """Nothing was changed, so that nothing is said where something should have been."""
    said = _said(_named(runs, "pydantic-ai/one_tool-run"), doors)

    assert [found for found, _, _ in faults_of(expected, said, said)] == [fault]


def test_the_bench_finds_a_wrong_place_and_a_false_alarm(runs: list[RecordedRun], doors: Doors):
    run = _named(runs, "pydantic-ai/one_tool-run")
    control = _said(run, doors)
    changed = next(kind for kind in KINDS if kind.name == "tool answer, text, in the step")
    (mutant, *_) = changed.mutants(run.record, run.name)
    said = said_of(only_run(mutant.content), only_run(run.content), doors)

    elsewhere = Expected(by="replay", place=at(1), compared=at(9))
    assert {found for found, _, _ in faults_of(mutant.expected, control, said)} == set()
    assert [found for found, _, _ in faults_of(elsewhere, control, said)] == [
        "wrong place",
        "wrong place in the comparison",
    ]
    assert [found for found, _, _ in faults_of(Expected(by="nobody"), control, said)] == [
        "false alarm",
        "promise broken",
        "a difference where there is none",
    ]


def _said(run: RecordedRun, doors: Doors) -> Said:
    parsed = only_run(run.content)
    return said_of(parsed, parsed, doors)


def _named(runs: list[RecordedRun], name: str) -> RecordedRun:
    return next(run for run in runs if run.name == name)
