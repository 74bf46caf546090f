"""Traces of which one span that only holds others never came: what was lost is said, and no run becomes another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sessions_app.core.assembly.run import assemble
from sessions_app.core.assembly.tree import forest, walk
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.replay.words import ReplayFacts, verdict_in_words
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span
from tests.recorder.replaying import replayed
from tests.traces.captures import CHOICE, Capture, captures
from tests.traces.test_promises import broken_promise, copied

CONTAINERS = ("agent", "chain", "other")
LOST = "1 span around its steps was lost"


def sent_traces(capture: Capture) -> list[list[Span]]:
    traces: dict[str, list[Span]] = {}
    for span in capture.spans:
        traces.setdefault(span.trace_id, []).append(span)
    return list(traces.values())


def without_a_container(spans: list[Span]) -> Iterator[Run]:
    """The trace without each of the spans that hold others, and are not the topmost one."""
    for node in walk(forest(spans)):
        if node.children and node.parent is not None and node.kind in CONTAINERS:
            yield assemble([span for span in spans if span is not node.span], is_closed=True)


def sentence_of(run: Run) -> str:
    result, _ = replayed(encode_native(run))
    assert result.verdict == "reproduced"
    return verdict_in_words(ReplayFacts(verdict="reproduced", proof=read_proof(result.facts["proof"])))


@pytest.mark.parametrize("capture", captures(), ids=str)
def test_a_trace_that_lost_a_span_around_others_keeps_what_is_said_of_it(capture: Capture):
    for run in [run for spans in sent_traces(capture) for run in without_a_container(spans)]:
        said = judge(run)
        assert broken_promise(run, said) is None
        if said.verdict == "replayable":
            assert sentence_of(run).endswith(LOST)


def test_what_is_whole_lost_nothing():
    run = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").runs[0]

    assert "lost" not in sentence_of(run)
    assert "spans_lost" not in [found.code for found in find_anomalies(run)]


def test_a_lost_span_is_named_with_the_steps_that_it_held():
    (spans,) = sent_traces(Capture(CHOICE / "langgraph-openinference" / "order_lookup"))
    run = next(without_a_container(spans))

    (found,) = [each for each in find_anomalies(run) if each.code == "spans_lost"]

    assert found.message.startswith("1 span around steps never arrived")
    assert [run.steps[index - 1].extra["span"]["is_orphan"] for index in found.steps] == [True] * len(found.steps)
    assert found.steps


def test_the_steps_of_an_agent_whose_span_was_lost_are_not_taken_for_those_of_the_run():
    """Two agents of one workflow, one behind the other."""
    spans = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").spans
    root = next(span for span in spans if span.parent_id is None)
    length = (root.end_ns or 0) - (root.start_ns or 0)
    top = replace(root, span_id="f" * 16, name="workflow", attributes={}, end_ns=(root.end_ns or 0) + 3 * length)
    second = [span for span in copied(spans, "02", 2 * length) if span.parent_id != top.span_id]

    run = assemble([top, *copied(spans, "01", 0), *second], is_closed=True)

    reason = judge(run).reasons[0]
    assert reason.code == "other_course"
    assert "was lost" in reason.message
    assert broken_promise(run, judge(run)) is None
