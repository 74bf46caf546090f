"""A recording that says something else after it was replayed, as when more spans came: nothing said of the replay is
said of what the run says now."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.reports.run_report import as_text
from sessions_app.core.search.query import parse_query
from sessions_app.models import Project, Replay, Run
from sessions_app.queries.search import matching_runs
from sessions_app.queries.turns import newest_replays
from sessions_app.services import replay_work
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of, report_of_run
from sessions_app.services.spans import receive
from tests.tasks.incidents import make_project
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db(transaction=True)
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool()
    yield pool
    pool.close()


@pytest.fixture
def project() -> Project:
    return make_project()


def replayed(run: Run, children: ChildPool) -> Replay:
    replay = request_replay(run=run)
    assert replay_work.work_on(replay.pk, worker="a", children=children)
    return Replay.objects.get(pk=replay.pk)


def newest(run: Run) -> Replay | None:
    return newest_replays([run.session_id]).get(run.pk)


def test_a_replay_says_nothing_of_what_the_run_says_since(project: Project, children: ChildPool):
    receive(project, ORDER.spans)
    run = Run.objects.get(project=project)
    replay = replayed(run, children)
    before = report_of_run(run)
    assert (replay.verdict, newest(run)) == ("reproduced", replay)

    tool = next(span for span in ORDER.spans if span.name.startswith("execute_tool"))
    receive(project, [replace(tool, span_id="f" * 16)])

    run, replay = Run.objects.get(project=project, origin="recorded"), Replay.objects.get()
    now, then = report_of_run(run), report_of(replay)
    assert [each.outcome for each in before.attempts] == ["reproduced"]
    assert [(each.outcome, each.matches_original) for each in now.attempts] == [("of_another_record", None)]
    assert (now.verdict, newest(run)) == (None, None)
    assert "Attempt 1: ○ Of another state of the recording" in as_text(now)
    assert before.verdict is not None
    assert then.verdict == f"{before.verdict}; the recording has changed since"


def test_a_search_for_what_was_reproduced_looks_at_what_the_run_says_now(project: Project, children: ChildPool):
    receive(project, ORDER.spans)
    replayed(Run.objects.get(project=project), children)
    assert found(project) == 1

    receive(project, [replace(ORDER.spans[-1], span_id="f" * 16)])

    assert found(project) == 0


def found(project: Project) -> int:
    return matching_runs(Run.objects.filter(project=project), parse_query("verdict:reproduced")).count()
