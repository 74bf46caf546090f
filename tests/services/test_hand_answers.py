"""Answering by hand what a fork stopped at."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.order import read_course
from sessions_app.models import Replay, Run
from sessions_app.services.forks import answer_by_hand
from sessions_app.services.replays import cancel_replay, request_replay
from tests.agents.talking import example
from tests.builders import all_stored_bytes, make_project
from tests.services.forking import make_anew, make_fork, make_run, model_stop, pause, stop, tool_stop

pytestmark = pytest.mark.django_db
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
AT = {"at": 4, "asked": "ab" * 32}


@pytest.fixture
def run():
    return make_run(make_project())


@pytest.fixture
def fork(run):
    return stop(make_fork(run), tool_stop())


def stored(replay):
    return Replay.objects.get(pk=replay.pk)


def refused(replay, answer):
    before = stored(replay)
    with pytest.raises(ForkError) as caught:
        answer_by_hand(replay=replay, answer=answer)
    after = stored(replay)
    assert (after.state, after.course, after.stopped_at) == (before.state, before.course, before.stopped_at)
    return caught.value.field


def test_an_answer_lets_the_same_fork_go_on(fork):
    Replay.objects.filter(pk=fork.pk).update(attempt=3, divergence={"step": 2}, is_cancel_wanted=True, error="x")

    given = answer_by_hand(replay=fork, answer={"value": {"status": "lost"}})

    row = stored(fork)
    assert given == row
    assert (row.state, row.verdict, row.attempt, row.stopped_at) == ("queued", None, 0, None)
    assert (row.divergence, row.finished_at, row.error, row.is_cancel_wanted) == (None, None, None, False)
    assert row.course == {"answers": [{**AT, "value": {"status": "lost"}}], "passed": 4, "is_stepping": False}


@pytest.mark.parametrize("state", ["done", "paused"])
def test_a_run_that_was_made_anew_meanwhile_keeps_the_steps_of_the_fork(run, state):
    fork = (stop if state == "done" else pause)(make_fork(run), tool_stop())
    make_anew(run)

    answer_by_hand(replay=fork, answer={"value": 1})

    assert stored(fork).state == "queued"
    assert stored(fork).content == fork.content != Run.objects.get(pk=run.pk).content


def test_a_later_answer_stands_after_the_earlier_ones(fork):
    answer_by_hand(replay=fork, answer={"value": 1})
    again = stop(fork, model_stop())

    answer_by_hand(replay=again, answer={"answer": {"text": "Lost."}})

    [first, second] = stored(fork).course["answers"]
    assert (first["value"], second) == (1, {"at": 5, "asked": "cd" * 32, "answer": {"text": "Lost."}})


ANSWERS = {
    "value": ({"value": None}, {"value": None}),
    "error in words": ({"error": "late"}, {"error": "late"}),
    "error": ({"error": {"type": "E", "message": "late"}}, {"error": {"type": "E", "message": "late"}}),
    "not found": ({"not_found": True}, {"not_found": True}),
}


@pytest.mark.parametrize(("answer", "kept"), ANSWERS.values(), ids=ANSWERS)
def test_what_the_course_keeps_is_what_was_given(fork, answer, kept):
    answer_by_hand(replay=fork, answer=answer)

    assert stored(fork).course["answers"] == [{**AT, **kept}]
    assert read_course(stored(fork).course).answers[0].at == 4


WRONG = {
    "nothing": ({}, "answer"),
    "two at once": ({"value": 1, "error": "x"}, "answer"),
    "a model's answer": ({"answer": {"text": "x"}}, "answer"),
    "no error": ({"error": 5}, "error"),
    "found": ({"not_found": False}, "not_found"),
    "another stop": ({"value": 1, "at": 3}, "at"),
    "half a twin": ({"twin": {"run_id": "cancel_5521"}}, "twin"),
    "no twin": ({"twin": {"run_id": "nobody", "step": 2}}, "twin"),
    "twin NUL": ({"twin": {"run_id": "a\0", "step": 2}}, "twin"),
    "twin that is a model": ({"twin": {"run_id": "cancel_5521", "step": 1}}, "twin"),
    "NUL": ({"value": "\0"}, "value"),
}


@pytest.mark.parametrize(("answer", "field"), WRONG.values(), ids=WRONG)
def test_an_answer_that_does_not_fit_is_refused_with_its_field(fork, answer, field):
    assert refused(fork, answer) == field


@pytest.mark.parametrize("answer", [{"value": 1}, {"not_found": True}, {"answer": {}}, {"answer": {"tool_calls": [1]}}])
def test_a_request_to_the_model_needs_a_models_answer(run, answer):
    fork = stop(make_fork(run), model_stop())

    assert refused(fork, answer)
    answer_by_hand(replay=fork, answer={"answer": {"tool_calls": [{"name": "lookup_order", "arguments": {}}]}})
    assert stored(fork).state == "queued"


# --- twins -------------------------------------------------------------------------------------


def twin_of(project, **step):
    """A run whose second step ended as given; a result of None was not captured, and a crash ended the run."""
    ending: dict[str, Any] = {"final": None, "output": None} if step.get("outcome") == "crashed" else {}
    steps = example()["steps"][: 2 if ending else None]
    steps[1] = {name: value for name, value in {**steps[1], **step}.items() if (name, value) != ("result", None)}
    return {"twin": {"run_id": make_run(project, run_id="other", steps=steps, **ending).run_id, "step": 2}}


OUTCOMES = {
    "text": ({"result": "Shipped."}, {"value": "Shipped."}),
    "JSON": ({"result": {"b": 1.0, "a": []}}, {"value": {"a": [], "b": 1.0}}),
    "retried": ({"outcome": "retried", "result": "Which one?"}, {"error": {"message": "Which one?", "type": None}}),
    "crashed": (
        {"outcome": "crashed", "result": None, "error": {"type": "KeyError", "message": "4421"}},
        {"error": {"message": "4421", "type": "KeyError", "crashes": True}},
    ),
}


@pytest.mark.parametrize(("step", "kept"), OUTCOMES.values(), ids=OUTCOMES)
def test_a_twin_gives_what_the_recorded_call_gave(fork, step, kept):
    twin = twin_of(fork.project, **step)

    answer_by_hand(replay=fork, answer=twin)

    assert stored(fork).course["answers"] == [{**AT, **twin, **kept}]


@pytest.mark.parametrize("step", [{"result": None}, {"outcome": "deferred"}, {"result": "a\0b"}])
def test_a_twin_without_an_answer_that_could_be_given_is_refused(fork, step):
    assert refused(fork, twin_of(fork.project, **step)) == "twin"


def test_a_twin_of_another_project_is_nobodys(fork):
    theirs = twin_of(make_project("other"))

    assert refused(fork, theirs) == "twin"
    answer_by_hand(replay=fork, answer=twin_of(fork.project))


# --- when and by whom --------------------------------------------------------------------------


def test_a_fork_that_does_not_wait_takes_no_answer(run):
    fork = make_fork(run)

    assert refused(fork, {"value": 1}) == "answer"
    cancel_replay(fork)
    assert refused(fork, {"value": 1}) == "answer"


def test_a_replay_that_is_no_fork_takes_no_answer(run):
    replay = pause(request_replay(run=run), tool_stop())

    assert refused(replay, {"value": 1}) == "answer"


def test_an_answer_to_what_it_asked_before_is_not_given_to_what_it_asks_now(fork):
    later = stop(fork, tool_stop(at=9))

    assert refused(fork, {"value": 1}) == "answer"
    answer_by_hand(replay=later, answer={"value": 1})


@pytest.mark.django_db(transaction=True)
def test_of_five_who_answer_at_once_one_is_heard():
    fork = stop(make_fork(make_run(make_project())), tool_stop())

    def try_it(value):
        try:
            answer_by_hand(replay=Replay.objects.get(pk=fork.pk), answer={"value": value})
        except ForkError as error:
            return error.field
        finally:
            connection.close()
        return value

    with ThreadPoolExecutor(5) as threads:
        said = list(threads.map(try_it, range(5)))

    [heard] = [each for each in said if isinstance(each, int)]
    assert said.count("answer") == 4
    assert [each["value"] for each in stored(fork).course["answers"]] == [heard]


def test_a_secret_in_an_answer_is_never_stored(fork):
    answer_by_hand(replay=fork, answer={"value": {"note": f"The key is {SECRET}."}})

    assert "The key is" in json.dumps(stored(fork).course)
    assert not [place for place, value in all_stored_bytes() if SECRET.encode() in value]
    Replay.objects.filter(pk=fork.pk).update(course={"answers": [{"value": SECRET}]})
    assert [place for place, value in all_stored_bytes() if SECRET.encode() in value] == ["sessions_app_replay.course"]
