"""Runs that came as spans with one thing changed: nothing reproduces that did not, and no promise is broken.

`TRIAL_SIZE=full` takes every run and up to three mutants of each kind; otherwise some runs of each kind.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.trials.bench import Bench, Doors, Said, faults_of, only_run, open_doors, said_of
from tests.trials.mutants import Expected, at
from tests.trials.span_mutants import SPAN_KINDS, SpanRun, captured_runs, exported_runs, mutants_of
from tests.trials.test_mutants import FULL, PROCESSES

RUNS_OF_A_KIND = 1_000_000 if FULL else 3
MUTANTS_OF_A_RUN = 3 if FULL else 1
BROKEN_BEFORE = {
    "pydantic-ai/text_output_function-run",
    "pydantic-ai/results_of_bytes-run",
    "pydantic-ai/beside_output_early-run",
    "pydantic-ai/validation_errors-run",
    "pydantic-ai/native_choice_of_objects-run",
    "pydantic-ai/prompted_list_output-run",
    "pydantic-ai/empty_response-run",
    "pydantic-ai/built_in_tool_parts-run",
    "pydantic-ai/approval_first-run",
    "pydantic-ai/outside_result_first-run",
    "openai-agents/bad_arguments-run",
    "openai-agents/structured_output-run",
    "openai-agents/unpacked_output-run",
    "openai-agents/approved",
    "openai-agents/denied",
}
"""Exports that were promised what their replays did not keep."""


@pytest.fixture(scope="module")
def span_runs() -> list[SpanRun]:
    return [*captured_runs(), *exported_runs()]


def test_one_change_in_the_spans_is_noticed_where_it_is(span_runs: list[SpanRun], capsys: pytest.CaptureFixture[str]):
    shares = [span_runs[number::PROCESSES] for number in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        bench = Bench.together(list(pool.map(_tried, shares)))

    with capsys.disabled():
        print(f"\n{bench.table()}\n" if FULL else "")
    assert set(bench.rows) == set(SPAN_KINDS)
    assert not bench.faults, "\n".join(map(str, bench.faults[:200]))


def _tried(runs: list[SpanRun]) -> Bench:
    bench = Bench()
    with open_doors() as doors:
        for name in SPAN_KINDS:
            left = RUNS_OF_A_KIND
            for run in Random(name).sample(runs, len(runs)):
                mutants = list(mutants_of(name, run)) if left else []
                chosen = Random(f"{name} {run.name}").sample(mutants, min(MUTANTS_OF_A_RUN, len(mutants)))
                left -= bool(chosen)
                if chosen:
                    bench.try_all(run.content, chosen, doors)
    return bench


def test_an_export_without_our_fields_is_what_the_judge_promised(span_runs: list[SpanRun]):
    unchanged = Expected(by="nobody")
    exported = [run for run in span_runs if run.name.startswith("export/")]
    chosen = [run for run in exported if FULL or run.name.removeprefix("export/") in BROKEN_BEFORE]

    with open_doors() as doors:
        said = [(run.name, _said(run, doors)) for run in chosen]

    assert len(chosen) >= len(BROKEN_BEFORE)
    assert [(name, *fault) for name, each in said for fault in faults_of(unchanged, each, each)] == []


def test_a_change_that_nobody_expects_is_found(span_runs: list[SpanRun]):
    """The bench itself: what is said of a mutant is not what is said of the run."""
    run = next(each for each in span_runs if each.name == "spans/pydantic-ai-v5/order_lookup")
    (mutant, *_) = mutants_of("spans: tool answer, everywhere", run)
    original = only_run(run.content)

    with open_doors() as doors:
        control, said = _said(run, doors), said_of(only_run(mutant.content), original, doors)

    assert list(faults_of(mutant.expected, control, said)) == []
    assert [found for found, _, _ in faults_of(Expected(by="nobody"), control, said)] == [
        "a difference where there is none"
    ]
    assert [found for found, _, _ in faults_of(Expected(by="comparison", compared=at(1)), control, said)] == [
        "wrong place in the comparison"
    ]


def _said(run: SpanRun, doors: Doors) -> Said:
    parsed = only_run(run.content)
    return said_of(parsed, parsed, doors)
