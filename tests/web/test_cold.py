"""Cold cases: marking with a reason, taking back, and the board."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.models import ColdCase, Replay, Run
from sessions_app.queries.cold_cases import MissingThing, cheapest_fixes, cold_board
from sessions_app.services.cold_cases import mark_cold
from tests.web.making import HOSTILE, client_of, make_session, make_user, match
from tests.web.records import load_record, tool_step

pytestmark = pytest.mark.django_db


def thing(key: str, missing_in: int) -> MissingThing:
    return MissingThing(key=key, title=key, missing_in=missing_in)


def lack(run, *keys: str) -> None:
    """Make it a run that the judge calls cold, and that lacks these kit lines."""
    Run.objects.filter(pk=run.pk).update(verdict="cold", verdict_reasons=[], kit_lacks=list(keys))


def test_marking_needs_a_reason(shop, bob):
    make_session(shop, "a/b")

    refused = bob.post("/p/shop/s/a%252Fb/cold", {"reason": "  "})
    accepted = bob.post("/p/shop/s/a%252Fb/cold", {"reason": "the vendor deleted the log"})

    assert refused.status_code == 422
    assert "A reason is required" in refused.content.decode()
    assert accepted["Location"] == "/p/shop/s/a%252Fb?run=a%2Fb"
    assert ColdCase.objects.get().reason == "the vendor deleted the log"
    assert str(ColdCase.objects.get().marked_by) == "bob"


def test_the_mark_can_be_taken_back(shop, bob):
    mark_cold(run=make_session(shop, "s"), reason="gone")

    bob.post("/p/shop/s/s/cold/take-back")

    assert not ColdCase.objects.exists()


def test_viewers_may_not_mark_and_are_told_who_can_change_that(shop, bob):
    make_session(shop, "s")
    make_user("ann", shop, "admin")
    viewer = client_of(make_user("eve", shop, "viewer"))

    response = viewer.post("/p/shop/s/s/cold", {"reason": "x"})

    page = response.content.decode()
    assert response.status_code == 403
    assert "You need the Member role." in page
    assert "ask ann to change your role." in page
    assert not ColdCase.objects.exists()


def test_others_cannot_tell_a_project_from_none(shop, bob):
    charlie = client_of(make_user("charlie"))
    make_session(shop, "s")

    theirs = charlie.post("/p/shop/s/s/cold", {"reason": "x"})
    none = charlie.post("/p/nope/s/s/cold", {"reason": "x"})

    assert (theirs.status_code, none.status_code) == (404, 404)
    assert theirs.content.decode().count("csrf") == none.content.decode().count("csrf")
    pages = [re.sub(r'value="\w{64}"', "", each.content.decode()) for each in (theirs, none)]
    assert pages[0] == pages[1].replace("nope", "shop")


def test_board_without_cases_says_none(shop, bob):
    before = bob.get("/p/shop/cold").content.decode()
    make_session(shop, "s", verdict="replayable")

    after = bob.get("/p/shop/cold").content.decode()

    assert ("No runs yet, so none is cold." in before, "can be replayed" in before) == (True, False)
    assert ("No cold cases." in after, "can be replayed" in after) == (True, True)


def test_a_case_whose_failure_came_again_in_a_replayable_run_says_so_and_its_own_run_is_none(shop, bob):
    alone = make_session(shop, "alone", verdict="replayable", failure_group="aaaa")
    again = make_session(shop, "again", verdict="replayable", failure_group="bbbb")
    make_session(shop, "twin", verdict="replayable", failure_group="bbbb")
    for run in (alone, again):
        mark_cold(run=run, reason="gone")

    page, now = (bob.get(address).content.decode() for address in ("/p/shop/cold", "/p/shop/"))

    assert page.count("failed again in a replayable run") == 1
    assert ("group%3Abbbb+replay%3Aready" in page, "group%3Abbbb+replay%3Aready" in now) == (True, True)
    assert "group%3Aaaaa+replay%3Aready" not in page + now


def test_where_people_marked_all_cases_they_are_said_to_be_replayable(shop, bob):
    for name in ("a", "b"):
        mark_cold(run=make_session(shop, name, kit=lines("Record the input."), verdict="replayable"), reason="gone")
    ColdCase.objects.update(missing=["input"])

    page = bob.get("/p/shop/cold").content.decode()

    said = " ".join(page.split())
    assert "2 runs are marked cold by hand. Both can be replayed; neither has been yet." in said
    assert "Record the input." not in page
    assert "would have made" not in page


def test_what_was_never_replayed_is_replayed_with_one_button(shop, bob):
    for name in ("a", "b"):
        mark_cold(run=make_session(shop, name, verdict="replayable"), reason="gone")
    lack(make_session(shop, "lacking"), "tool_io")
    viewer = client_of(make_user("vera", shop, role="viewer"))

    page = bob.get("/p/shop/cold").content.decode()
    form = match(r'(?s)<form[^>]*action="/p/shop/sessions/bulk">(.*?)</form>', page)
    bob.post("/p/shop/sessions/bulk", {"do": "replay", "run": re.findall(r'name="run" value="(\w+)"', form)})

    assert "Replay both" in form
    assert sorted(Replay.objects.values_list("run__run_id", flat=True)) == ["a", "b"]
    assert "Replay both" not in viewer.get("/p/shop/cold").content.decode()
    assert page.index('id="groups"') < page.index('id="fixes"')


def test_board_groups_by_what_was_missing(shop):
    lack(make_session(shop, "a"), "commit", "flags")
    lack(make_session(shop, "b"), "commit", "flags")
    lack(make_session(shop, "c"), "commit")
    make_session(shop, "fine", verdict="replayable")

    board = cold_board(shop)

    assert board.total == 3
    assert [([thing.key for thing in group.things], group.count) for group in board.groups] == [
        (["commit", "flags"], 2),
        (["commit"], 1),
    ]
    assert {found.key: found.missing_in for found in board.fixes.things} == {"commit": 3, "flags": 2}
    assert board.fixes.completes == 3


def test_a_replayable_run_that_a_person_marked_is_grouped_by_that(shop, bob):
    """And not by what its kit lacks, which is not why."""
    run = make_session(shop, "s", verdict="replayable")
    mark_cold(run=run, reason="The index is gone.")
    ColdCase.objects.filter(run=run).update(missing=["commit"])

    (group,) = cold_board(shop).groups
    page = bob.get("/p/shop/cold").content.decode()

    assert ([thing.key for thing in group.things], [thing.key for thing in group.kit]) == ([], ["commit"])
    assert "Marked by hand" in page
    assert re.search(r"the replay kit (is|are) missing</summary><p[^>]*>Commit", page)


def test_what_people_marked_is_grouped_by_what_they_said_and_can_be_replayed_or_taken_back_there(shop, bob):
    for name, reason in (("a", "index gone"), ("b", "index gone"), ("c", "flaky")):
        mark_cold(run=make_session(shop, name, verdict="replayable"), reason=reason)
    viewer = client_of(make_user("vera", shop, role="viewer"))

    page = bob.get("/p/shop/cold").content.decode()

    assert [(group.mark, group.count) for group in cold_board(shop).groups] == [("index gone", 2), ("flaky", 1)]
    assert page.count('action="/p/shop/s/a/replay"') == page.count('action="/p/shop/s/a/cold/take-back"') == 1
    assert page.count("state-replayable") == 3
    assert "/take-back" not in viewer.get("/p/shop/cold").content.decode()


def test_rows_say_who_was_asked_what_and_how_it_went_those_that_started_last_first(shop, bob):
    reason = {"code": "tool_answers_missing", "message": "No answers.", "step": 1, "fix": "Record them."}
    for run_id, day in {"early": 2, "late": 9, "marked": 5}.items():
        steps = [{"kind": "tool", "tool_name": "cancel_order", "arguments": {}}]
        agent, at = {"name": "desk"}, f"2026-01-0{day}T00:00:00+00:00"
        facts = {"input": f"Cancel {run_id}", "agent": agent, "started_at": at, "steps": steps}
        load_record(shop, run_id=run_id, session_id=run_id, **facts)
    Run.objects.update(verdict="cold", verdict_reasons=[reason])
    mark_cold(run=Run.objects.get(run_id="marked"), reason="The index is gone.")

    judged, marked = cold_board(shop).groups
    page = bob.get("/p/shop/cold").content.decode()

    assert [case.run.run_id for case in judged.runs] == ["late", "early"]
    assert (judged.reason, judged.places) == ("No answers.", ("cancel_order of desk",))
    assert ([case.run.run_id for case in marked.runs], marked.reason) == (["marked"], None)
    assert page.count("No answers.") == 2  # once for a group; beside the mark that does not hide it
    assert "Cancel late" in page


def lines(*fixes: str) -> dict[str, object]:
    return {"lines": [{"key": "input", "title": "Input", "fix": fix, "code": None} for fix in fixes]}


def test_each_framework_has_its_own_advice(shop, bob):
    for name, agent, fix in (
        ("a", "refunds", "Let Traceloop record message contents."),
        ("b", "orders", "Let Pydantic AI record message contents."),
        ("c", "orders", "Let Pydantic AI record message contents."),
    ):
        lack(make_session(shop, name, kit=lines(fix), agent_name=agent), "input")

    (thing,) = cold_board(shop).fixes.things
    page = bob.get("/p/shop/cold").content.decode()

    assert [(advice.sentence, advice.runs, advice.agents) for advice in thing.advice] == [
        ("Let Pydantic AI record message contents.", 2, ("orders",)),
        ("Let Traceloop record message contents.", 1, ("refunds",)),
    ]
    assert "2 runs of orders" in page
    assert "Let Traceloop record message contents." in page


def test_runs_judged_cold_are_on_the_board_with_the_judges_reason(shop, bob):
    make_session(shop, "s", verdict="cold", verdict_reasons=[{"code": "no_steps", "message": "Only the final output."}])

    page = bob.get("/p/shop/cold").content.decode()

    assert "Only the final output." in page
    assert "marked by" not in page


def test_a_mark_does_not_hide_what_the_judge_found(shop, bob):
    for name, day in (("late", 18), ("early", 17)):
        run = load_record(shop, run_id=name, session_id=name, output=None, started_at=f"2026-11-{day}T10:00:00Z")
    mark_cold(run=run, reason="prompts were lost")

    judged, marked = cold_board(shop).groups

    assert marked.runs[0].reason == judged.runs[0].reason
    assert "prompts were lost" in bob.get(reverse("cold", args=["shop"])).content.decode()


def test_the_fixes_are_those_that_make_these_runs_replayable(shop, bob):
    """Not what most of their kits lack."""
    fix = "Record the answer of every model call."
    kit = {"lines": [{"key": "identity", "title": "User", "fix": "Name the user.", "code": None}]}
    kit["lines"].append({"key": "input", "title": "Input", "fix": fix, "code": "capture = True"})
    reason = {"code": "model_answers_missing", "message": "No model answer was recorded.", "step": None, "fix": fix}
    for name in ("a", "b"):
        make_session(
            shop, name, verdict="cold", verdict_reasons=[reason], kit=kit, kit_lacks=["identity", "input", "commit"]
        )

    board = cold_board(shop)
    page = bob.get("/p/shop/cold").content.decode()

    assert [(thing.title, thing.missing_in) for thing in board.fixes.things] == [("Model answers missing", 2)]
    assert [(each.sentence, each.code) for each in board.fixes.things[0].advice] == [(fix, "capture = True")]
    assert board.fixes.completes == 2
    assert [thing.key for thing in board.groups[0].kit] == ["identity", "input", "commit"]
    assert '<a href="#fixes">The fix below</a> would have made 2 of them replayable.' in page


def test_board_escapes_reasons(shop, bob):
    mark_cold(run=make_session(shop, "s"), reason=HOSTILE)

    page = bob.get("/p/shop/cold").content.decode()

    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_cheapest_fixes_are_the_pair_that_completes_most():
    missing = [("a", "b", "c"), ("a", "b", "c"), ("a", "b", "c"), ("d",), ("d", "e")]
    things = {key: thing(key, count) for key, count in [("a", 3), ("b", 3), ("c", 3), ("d", 2), ("e", 1)]}

    fixes = cheapest_fixes(missing, things)

    assert {found.key for found in fixes.things} == {"d", "e"}
    assert fixes.completes == 2


def test_cheapest_fixes_are_the_most_frequent_where_none_completes():
    things = {key: thing(key, 3) for key in ("a", "b", "c")}

    fixes = cheapest_fixes([("a", "b", "c")] * 3, things)

    assert len(fixes.things) == 2
    assert fixes.completes == 0


@pytest.mark.parametrize("things", [{}, {"a": thing("a", 1)}])
def test_cheapest_fixes_may_be_fewer_than_two(things):
    assert len(cheapest_fixes([tuple(things)], things).things) == len(things)


def test_board_costs_the_same_for_one_case_and_for_many(shop, bob):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            bob.get("/p/shop/cold")
        return len(queries)

    mark_cold(run=make_session(shop, "s"), reason="gone")
    one = cost()
    for number in range(12):
        mark_cold(run=make_session(shop, f"s{number}"), reason="gone")

    assert cost() == one


def test_runs_that_people_marked_are_not_said_to_be_impossible_to_replay(shop, bob):
    lack(make_session(shop, "lacking"), "tool_io")
    tried, untried, failed = (make_session(shop, name) for name in ("tried", "untried", "failed"))
    for run in (tried, untried, failed):
        mark_cold(run=run, reason="withdrawn")
    for run, verdicts in {tried: ("reproduced", "diverged"), failed: ("could_not_run",)}.items():
        for number, verdict in enumerate(verdicts, start=1):
            state = "failed" if verdict == "could_not_run" else "done"
            Replay.objects.create(
                project=shop, run=run, content=run.content, number=number, state=state, verdict=verdict
            )

    page = bob.get("/p/shop/cold").content.decode()

    story = " ".join(match(r'<p class="story">(.*?)</p>', page).split())
    assert story.startswith(
        "1 run cannot be replayed because too little was recorded. 3 others are marked cold by hand."
    )
    marks = [" ".join(re.sub(r"<[^>]+>", " ", text).split()) for text in re.findall(r"cold-mark(.*?)</td>", page, re.S)]
    ends = [re.split("[·;] ", text)[-1] for text in marks]
    assert sorted(ends) == ["could not run", "never replayed", "reproduced"]
    assert "cannot be reproduced" not in page


def test_a_reason_that_is_a_code_is_shown_in_words_and_the_kit_is_folded(shop, bob):
    mark_cold(run=make_session(shop, "untried"), reason="cannot_reproduce")

    page = bob.get("/p/shop/cold").content.decode()

    for address in ("/p/shop/cold", "/p/shop/s/untried", "/p/shop/sessions", "/p/shop/sessions?peek=untried"):
        assert "cannot_reproduce" not in bob.get(address).content.decode(), address
    assert '<strong class="recorded words">cannot reproduce</strong>' in page
    assert "never replayed" in page
    assert re.search(r"<summary[^>]*>\d+ lines of the replay kit are missing</summary>", page)
    assert re.search(r'<span class="group-when[^>]*>started ', page)


def test_tools_of_a_group_are_those_of_all_its_runs_and_not_of_the_ten_that_are_shown(shop, bob):
    for number in range(12):
        steps = [tool_step("old_tool" if number == 0 else "new_tool")]
        at = f"2026-11-17T15:{number:02}:00Z"
        run = load_record(shop, run_id=f"r{number}", session_id=f"s{number}", steps=steps, started_at=at)
        reasons = [{"code": "tool_io", "message": "gone", "step": 1, "fix": None}]
        Run.objects.filter(pk=run.pk).update(verdict="cold", verdict_reasons=reasons)

    (group,) = cold_board(shop).groups

    assert len(group.runs) == 10
    assert group.places == ("new_tool", "old_tool")
