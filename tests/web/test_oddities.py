"""Anomalies as people count them."""

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.web.sessions.oddities import folded_anomalies
from tests.core.test_judge_runs import make_run, model, tool


def test_a_loop_names_as_many_steps_as_times_and_the_times_add_up_to_the_count():
    found = find_anomalies(make_run(*[step for _ in range(18) for step in (model(), tool(arguments={"q": 1}))]))

    folded = folded_anomalies(found)

    (again,) = (each for each in folded if each.message.startswith("Duplicate call"))
    assert (again.times, len(again.steps), again.steps[0]) == (17, 17, 4)
    assert sum(each.times for each in folded) == len(found)
