"""Loops over a client whose calls come as traces of their own, put together with the real database."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.formats.native import encode_native
from sessions_app.core.spans.span import Scope, Span
from sessions_app.mapping.load import load_run
from sessions_app.models import LoneCall, Note, Project, Run, Session, Trace
from sessions_app.services import lone_calls
from sessions_app.services.deletion import delete_run
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import join_calls, make_waiting_runs, spans_of
from sessions_app.services.verification import problems
from tests.builders import make_project
from tests.core.test_assembly import asks, chat, gives, text
from tests.traces.captures import CHOICE, Capture

QUESTION, DONE = text("user", "Where is order 7?"), text("assistant", "It is in Oslo by now.")


def call(trace: int, messages: list[Any], answer: Any, *, at: Any = 0, **attributes: Any) -> Span:
    """One call of a model in a trace of its own; `at` is when it began, by default the number of the trace."""
    span = chat(at or trace, messages, answer, **attributes)
    return replace(span, trace_id=f"{trace:032x}", span_id=f"{trace:016x}", parent_id=None)


def loop(first: int = 1, call_id: str = "c1", question: Any = QUESTION) -> list[Span]:
    """Two calls with a tool between them."""
    return [
        call(first, [question], asks(call_id, id="7")),
        call(first + 1, [question, asks(call_id, id="7"), gives("in Oslo", call_id)], DONE),
    ]


def runs(project: Project) -> list[tuple[str, str, int]]:
    """Their traces, by number, with status and model calls."""
    found = Run.objects.filter(project=project).order_by("run_id")
    return [(run.run_id.lstrip("0"), run.status, run.model_call_count) for run in found]


def stored(project: Project) -> list[bytes]:
    return [encode_native(load_run(run)) for run in Run.objects.filter(project=project).order_by("run_id")]


pytestmark = pytest.mark.django_db


def test_a_loop_is_one_run():
    project = make_project()

    for span in loop():
        receive(project, [span])

    run = Run.objects.get(project=project)
    assert (run.verdict, run.step_count, run.model_call_count, run.tool_call_count) == ("replayable", 3, 2, 1)
    assert run.run_id == f"{1:032x}"
    assert list(problems()) == []


def test_order_batches_and_repetition_make_no_difference():
    spans = [span for number in range(4) for span in long_loop(1 + 10 * number, f"q{number}")]
    one = make_project(slug="one")
    receive(one, spans)
    expected = stored(one)
    assert len(expected) == 4
    for seed in range(8):
        chance = random.Random(seed)
        project = make_project(slug=f"order-{seed}")
        shuffled = chance.sample(spans, len(spans)) + chance.sample(spans, 5)
        while shuffled:
            size = chance.randint(1, 4)
            receive(project, shuffled[:size])
            shuffled = shuffled[size:]

        assert stored(project) == expected, seed
        assert Session.objects.filter(project=project).count() == 4


def long_loop(first: int, name: str, length: int = 6) -> list[Span]:
    messages, spans = [text("user", f"Where are the orders of {name}?")], []
    for number in range(length):
        call_id = f"{name}-{number}"
        answer = asks(call_id, id=str(number)) if number < length - 1 else DONE
        spans.append(call(first + number, list(messages), answer))
        messages += [answer, gives(f"order {number}", call_id)]
    return spans


def test_two_conversations_with_the_same_first_message_stay_two():
    project = make_project()

    receive(project, [*loop(1, "c1"), *loop(11, "c2")])

    assert runs(project) == [("1", "ok", 2), ("b", "ok", 2)]


def test_what_could_belong_to_two_conversations_belongs_to_none():
    """Call ids that come again, as those of a cache do."""
    project, other = make_project(), make_project(slug="other")
    spans = [*loop(1, "c1"), *loop(11, "c1")]

    for span in spans:
        receive(project, [span])
    receive(other, spans[::-1])

    assert runs(project) == runs(other) == [
        ("1", "cut_off", 1), ("2", "ok", 1), ("b", "cut_off", 1), ("c", "ok", 1)
    ]  # fmt: skip
    assert list(problems()) == []


def test_a_conversation_of_somebody_else_is_another_one():
    project = make_project()
    first, second = loop()

    receive(project, [first, replace(second, attributes={**second.attributes, "gen_ai.conversation.id": "s_2"})])

    assert len(runs(project)) == 2


def test_calls_without_ids_are_not_joined():
    project = make_project()
    without = {"role": "assistant", "parts": [{"type": "tool_call", "name": "lookup", "arguments": {"id": "7"}}]}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "response": "in Oslo"}]}

    receive(project, [call(1, [QUESTION], without), call(2, [QUESTION, without, result], DONE)])

    assert len(runs(project)) == 2


def test_the_next_question_is_a_run_of_its_own():
    project = make_project()
    told = [QUESTION, asks("c1", id="7"), gives("in Oslo", "c1"), DONE, text("user", "Thank you.")]

    receive(project, [*loop(), call(3, told, text("assistant", "You are welcome."))])

    assert runs(project) == [("1", "ok", 2), ("3", "ok", 1)]


def test_a_request_that_failed_and_was_sent_again_is_in_the_run():
    project = make_project()
    first, second = loop()
    failed = replace(
        second,
        trace_id=f"{3:032x}",
        span_id=f"{3:016x}",
        status="error",
        status_message="overloaded",
        attributes={key: value for key, value in second.attributes.items() if "output" not in key},
    )

    for span in (second, first, failed):
        receive(project, [span])

    (run,) = Run.objects.filter(project=project)
    assert (run.status, run.model_call_count) == ("ok", 3)


def test_the_run_is_found_by_each_of_its_traces(admin_client):
    project = make_project()
    receive(project, loop())

    second = Trace.objects.get(trace_id=f"{2:032x}")
    assert (second.run, second.held_by) == (None, Run.objects.get())
    assert admin_client.get(f"/p/{project.slug}/traces/{second.trace_id}").status_code == 200
    assert len(spans_of(Trace.objects.get(trace_id=f"{1:032x}"))) == 2


def test_what_people_work_on_is_not_taken_apart():
    project = make_project()
    first, second = loop()
    receive(project, [second])
    Note.objects.create(run=Run.objects.get(), text="Look at this.")

    receive(project, [first])

    assert len(runs(project)) == 2
    assert Note.objects.count() == 1


def test_a_run_goes_with_all_its_traces():
    project = make_project()
    receive(project, loop())

    delete_run(Run.objects.get())

    assert not Trace.objects.exists()
    assert not LoneCall.objects.exists()
    receive(project, loop())
    assert runs(project) == [("1", "ok", 2)]


def test_what_a_killed_process_left_is_settled_by_a_worker(monkeypatch):
    project = make_project()
    with monkeypatch.context() as broken:
        broken.setattr("sessions_app.services.spans.join_calls", lambda project, longest: True)
        receive(project, loop())
    assert runs(project) == []

    make_waiting_runs()

    assert runs(project) == [("1", "ok", 2)]


def test_settled_calls_cost_one_question(django_assert_num_queries):
    project = make_project()
    receive(project, loop())

    with django_assert_num_queries(1):
        join_calls(project)


def test_a_call_more_takes_as_many_queries_in_a_long_loop_as_in_a_short_one():
    queries = []
    for length in (3, 18):
        project, spans = make_project(slug=f"of-{length}"), long_loop(1, "q", length)
        receive(project, spans[:-1])
        with CaptureQueriesContext(connection) as asked:
            receive(project, spans[-1:])
        queries.append(len(asked))

    assert queries[0] == queries[1]
    assert queries[0] < 100


def test_a_long_loop_is_left_to_a_worker(monkeypatch):
    monkeypatch.setattr("sessions_app.services.spans._SHORT", 4)
    project = make_project()
    for span in long_loop(1, "q", 8):
        receive(project, [span])
    assert runs(project) == [("1", "cut_off", 4)]

    make_waiting_runs()

    assert runs(project) == [("1", "ok", 8)]


# --- two instrumentations ------------------------------------------------------------------------

TWICE = Capture(CHOICE / "langgraph-openinference-anthropic" / "order_lookup")


def by_trace(spans: Sequence[Span]) -> list[list[Span]]:
    found: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        found[span.trace_id].append(span)
    return list(found.values())


@pytest.mark.parametrize("seed", range(4))
def test_what_the_client_tells_again_is_in_the_run_of_the_agent(seed):
    project, traces = make_project(), by_trace(TWICE.spans)
    agents_own = next(spans for spans in traces if len(spans) > 1)
    receive(alone := make_project(slug="alone"), agents_own)

    for spans in random.Random(seed).sample(traces, len(traces)):
        receive(project, spans)

    run, single = Run.objects.get(project=project), Run.objects.get(project=alone)
    assert (run.run_id, run.step_count, run.verdict) == (single.run_id, single.step_count, single.verdict)
    twins = [step for step in run.steps if len(step.span_ids) > 1]
    assert [step.kind for step in twins] == ["model"] * 3
    assert list(problems()) == []


def test_two_instrumentations_of_a_client_tell_of_one_call():
    project = make_project()
    said = {"gen_ai.response.id": "resp_1"}
    once = [call(1, [QUESTION], DONE, **said)]
    again = [replace(once[0], trace_id="f" * 32, span_id="f" * 16, scope=Scope(name="another"))]

    receive(project, once)
    receive(project, again)

    assert runs(project) == [("1", "ok", 1)]


def test_an_answer_from_a_cache_is_another_call():
    """The same id, at another time."""
    project = make_project()
    said = {"gen_ai.response.id": "resp_1"}
    later = replace(call(9, [QUESTION], DONE, **said), scope=Scope(name="another"))

    receive(project, [call(1, [QUESTION], DONE, **said), later])

    assert len(runs(project)) == 2


def test_only_as_many_calls_as_one_round_takes_are_settled_at_once(monkeypatch):
    monkeypatch.setattr(lone_calls, "_AT_ONCE", 2)
    project = make_project()

    receive(project, long_loop(1, "q")[::-1])

    assert runs(project) == [("1", "ok", 6)]
