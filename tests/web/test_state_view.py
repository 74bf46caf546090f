"""The view of a run's state, snapshots, and the page of a run that was restored to a step."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from playwright.sync_api import expect

from replay_recorder import StatefulAgent, record
from sessions_app.core.checkpoints import checkpoint, state_digest
from sessions_app.core.formats.native import run_digest
from sessions_app.mapping.load import load_run
from sessions_app.services.ingest import ingest_document
from tests.builders import row_counts
from tests.losing import lose_payload
from tests.recorder.recordings import records_of
from tests.web.browsing import arrive, looks, press
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, long_run, loop_of, model_step, tool_step

pytestmark = pytest.mark.django_db


def page_of(client, row, /, **query):
    response = client.get(reverse("session", args=["shop", row.session.session_id]), query, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def state_page(client, row, /, **query):
    return page_of(client, row, view="state", **query)


def changing(*operations, **fields):
    return tool_step(state={"after": list(operations)}, **fields)


def replacing(path, value, **fields):
    return changing({"op": "replace", "path": path, "value": value}, **fields)


def snapshot_step(label, state, *, automatic=False):
    operations = [{"op": "add", "path": f"/{key}", "value": value} for key, value in state.items()]
    said = {"label": label, "automatic": automatic}
    return {"kind": "other", "name": label or "snapshot", "snapshot": said, "state": {"after": operations}}


def test_what_changed_stands_before_the_whole_state(shop, bob):
    run = load_example(shop, "cancel_bug")

    page = state_page(bob, run, step=4)

    assert page.index('id="changes-title"') < page.index('id="state-whole"') < page.index('id="checkpoint-title"')


@pytest.mark.parametrize("address", ["session", "step"])
def test_a_step_shows_the_value_before_a_change_of_the_state(shop, bob, address):
    added = changing({"op": "add", "path": "/a", "value": 3})
    steps = [model_step(), replacing("/orders", 1), replacing("/orders", 2), added]
    run = load_record(shop, initial_state={"orders": 0}, steps=steps)
    told = {}
    for n in (3, 4):
        page = bob.get(reverse("step", args=["shop", run.session.session_id, n])) if address == "step" else None
        told[n] = page.content.decode() if page else page_of(bob, run, step=n)

    rows = {n: re.sub(r"<[^>]+>", "", match(r'<table class="changes">(.*?)</table>', page)) for n, page in told.items()}

    assert rows == {3: "replace/orders1 → 2", 4: "add/a3"}


# --- the whole state ---------------------------------------------------------------------------


def test_the_state_after_a_step_is_rebuilt_from_the_changes(shop, bob):
    run = load_example(shop, "cancel_bug")

    before, after = (match(r'<h3 id="state-whole">(.*?)</section>', state_page(bob, run, step=n)) for n in (3, 4))

    assert "delivered" in before
    assert "cancelled" not in before
    assert "ORD-5521: cancelled" in after
    assert f'title="{state_digest(checkpoint(load_run(run), 4).state)}"' in after


def test_keys_walk_the_steps_and_keep_the_view_and_the_value(shop, bob):
    run = load_example(shop, "cancel_bug")

    page = state_page(bob, run, step=3, path="/memory")

    for key, step in (("K", 2), ("J", 4)):
        assert match(rf'href="([^"]*)"\s+data-key="{key}"', page) == f"?view=state&amp;path=%2Fmemory&amp;step={step}"
    assert 'data-key="J"' not in state_page(bob, run, step=5)
    assert 'data-key="K"' not in state_page(bob, run, step=1)


def test_each_operation_is_said_in_words(shop, bob):
    run = load_record(
        shop,
        initial_state={"plan": "wait", "orders": [{"status": "open"}]},
        steps=[
            changing({"op": "remove", "path": "/plan"}, {"op": "add", "path": "/docs", "value": [1, 2]}),
            changing({"op": "add", "path": "/docs/-", "value": 3}, {"op": "move", "from": "/docs", "path": "/kept"}),
            replacing("/orders/0/status", "closed"),
        ],
    )

    said = match(r'<h3 id="changes-title">(.*?)</section>', state_page(bob, run))

    words = " ".join(texts(said))
    assert '−plan "wait"' in words
    assert "+docs 2 items" in words
    assert "+docs[2] 3" in words
    assert "+kept 3 items moved from docs" in words
    assert '~orders[0].status "open" → "closed"' in words


def texts(html):
    """The words of each row of a table."""
    for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL):
        words = re.sub(r"<[^>]*>", " ", row).replace("&quot;", '"').replace("&#x27;", "'")
        yield re.sub(r"(?<=[−+~=]) ", "", " ".join(words.split()))


def test_a_run_without_state_says_how_to_capture_it(shop, bob):
    page = state_page(bob, load_record(shop, steps=[tool_step()]))

    assert '<em class="missing">not captured</em> The state of this run.' in page
    assert "replay_recorder.snapshot(" in page
    assert "replay_recorder.install(state=" in page
    assert 'id="changes"' not in page


def test_a_run_with_state_is_no_run_without(shop, bob):
    page = state_page(bob, load_record(shop, initial_state={}, steps=[tool_step()]))

    assert "The state of this run." not in page
    assert "{} empty object" in page


def test_before_its_first_change_there_is_no_state_yet(shop, bob):
    run = load_record(shop, steps=[tool_step(), changing({"op": "add", "path": "/a", "value": 1})])

    assert "No state had been recorded by then." in state_page(bob, run, step=1)
    assert "No state had been recorded by then." not in state_page(bob, run, step=2)


def test_a_change_that_does_not_fit_is_said_with_its_step(shop, bob):
    """As a record would be whose patch was tampered with: the path that it replaces is not there."""
    sound = [replacing("/n", 1), replacing("/n", 2), replacing("/n", 3)]
    tampered = [replacing("/n", 1), replacing("/m", 2), replacing("/n", 3)]
    run = load_record(shop, initial_state={"n": 0}, steps=tampered)
    good = load_record(shop, run_id="good", session_id="good", initial_state={"n": 0}, steps=sound)

    assert "The state is not known from step 2 on" in state_page(bob, run, step=3)
    assert "Unknown after this step." in state_page(bob, run, step=2)
    assert "on the state is not known" in state_page(bob, run, step=1)
    assert "Unknown after this step." not in state_page(bob, run, step=1)
    assert "Unknown after" not in state_page(bob, good, step=3)


def test_an_initial_state_whose_bytes_are_gone_is_said(shop, bob):
    run = load_record(shop, initial_state={"only": "here"}, steps=[tool_step()])
    lose_payload(b'{"only": "here"}')

    page = state_page(bob, run)

    assert "The state cannot be rebuilt" in page
    assert "Checkpoint at step 1" in page


def test_the_changes_of_a_step_stand_in_one_row(shop, bob):
    change = changing({"op": "add", "path": "/plan", "value": 1}, {"op": "add", "path": "/done", "value": 0})
    page = state_page(bob, load_record(shop, initial_state={}, steps=[change, changing()]))

    rows = re.findall(r"<tr.*?</tr>", match(r'<table class="state-changes">.*?<tbody>(.*?)</tbody>', page), re.DOTALL)
    assert [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows] == ["1 lookup +plan 1 +done 0"]


def test_a_run_without_a_state_is_not_offered_to_be_restored_and_folds_its_checkpoint(shop, bob):
    page = state_page(bob, load_record(shop, steps=[tool_step()]))

    assert "Restore to this step" not in page
    assert "<details" in page.partition("Checkpoint at step 1:")[0].rpartition("The state of this run.")[2]


def test_a_run_without_steps_has_a_page(shop, bob):
    assert "The state of this run." in state_page(bob, load_record(shop))


def test_hostile_names_and_values_stay_text(shop, bob):
    run = load_record(shop, steps=[changing({"op": "add", "path": "/<b>x", "value": HOSTILE}, name=HOSTILE)])

    page = state_page(bob, run, path="/<b>x")

    assert "<b>x" not in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "{{ 7|add:7 }}" in page


def test_a_state_that_grew_deeper_than_can_be_drawn_is_said(shop, bob):
    nested = json.loads('{"a":' * 90 + "1" + "}" * 90)
    run = load_record(
        shop,
        initial_state={},
        steps=[changing({"op": "add", "path": "/a" * (90 * i + 1), "value": nested}) for i in range(12)],
    )

    assert "It is nested too deeply to be shown." in state_page(bob, run)
    assert "It is nested too deeply to be shown." not in state_page(bob, run, step=1)


# --- one value ---------------------------------------------------------------------------------


def test_a_value_has_all_its_changes_and_ways_between_them(shop, bob):
    run = load_example(shop, "cancel_bug")

    page = state_page(bob, run, step=3, path="/memory")

    value = match(r'id="value"(.*?)</section>', page)
    assert "2 changes" in value
    assert "in the state that the run began with" in value
    assert "previous change of this value, step 2" in value
    assert "next change, step 4" in value
    assert [row.split() for row in texts(value)][1:] == [
        ["2", "[]", "1", "item"],
        ["4", "1", "item", "2", "items"],
    ]


def test_a_value_that_was_set_later_says_when(shop, bob):
    run = load_example(shop, "cancel_bug")

    value = match(r'id="value"(.*?)</section>', state_page(bob, run, step=2, path="/orders/ORD-5521/cancel_reason"))

    assert "set first at step" in value
    assert "There is no such value after this step." in value
    assert "1 change<" in value


def test_the_change_before_it_is_found_from_any_step(shop, bob):
    run = load_record(
        shop, initial_state={"n": 0, "m": 0}, steps=[replacing(f"/{key}", i) for i, key in enumerate("nmnnm", start=1)]
    )

    ways = {n: match(r'id="value"(.*?)</section>', state_page(bob, run, step=n, path="/n")) for n in (1, 3, 5)}

    assert "previous change" not in ways[1]
    assert "next change, step 3" in ways[1]
    assert "previous change of this value, step 1" in ways[3]
    assert "next change, step 4" in ways[3]
    assert "previous change of this value, step 4" in ways[5]
    assert "next change" not in ways[5]


def test_a_value_that_never_was_is_said(shop, bob):
    page = state_page(bob, load_example(shop, "cancel_bug"), path="/nowhere")

    assert "There is no such value in any known state of this run." in page


def test_a_path_that_is_none_is_refused_and_kept(shop, bob):
    page = state_page(bob, load_example(shop, "cancel_bug"), path="orders.x")

    assert "path: A path is a JSON Pointer" in page
    assert 'value="orders.x"' in page
    assert "A path is a JSON Pointer" not in state_page(bob, load_example(shop, "cancel_bug"), path="/orders")


def test_names_in_the_tree_lead_to_their_value(shop, bob):
    page = state_page(bob, load_example(shop, "cancel_bug"), step=4)

    assert 'href="?view=state&amp;step=4&amp;path=%2Forders%2FORD-5521%2Fstatus#value"' in page


# --- snapshots and checkpoints -----------------------------------------------------------------


FIVE = {
    "step_number": 3,
    "memory": ["asked for ORD-1"],
    "context_variables": {"tier": "gold"},
    "tool_results": [{"tool": "lookup", "result": "shipped"}],
    "iteration_count": 7,
}


def test_snapshots_are_listed_and_the_one_shown_has_its_five_fields(shop, bob):
    run = load_record(
        shop,
        steps=[
            tool_step(),
            snapshot_step("before cancel", FIVE),
            snapshot_step("automatic snapshot", {"memory": ["later"]}, automatic=True),
        ],
    )

    shown = match(r'<section id="snapshots"(.*?)</section>', state_page(bob, run, step=2))
    listed = match(r'<section id="snapshots"(.*?)</section>', state_page(bob, run, step=1))

    assert "before cancel" in listed
    assert listed.count('<span class="badge">by hand</span>') == 1
    assert listed.count('<span class="badge">automatic</span>') == 1
    assert "gold" not in listed
    for name in FIVE:
        assert f'<dt class="mono">{name}</dt>' in shown
    for value in ("asked for ORD-1", "gold", "shipped", ">3<", ">7<"):
        assert value in shown


def test_what_our_recorder_takes_is_listed(shop, bob):
    @record
    def desk():
        agent = StatefulAgent(object(), name="desk", snapshot_every=1)
        agent.memory.append("the customer is in a hurry")
        agent.add_tool_result("lookup", {"order": 1}, "shipped")
        agent.take_snapshot("before cancel")

    (document,) = records_of(desk)
    run = ingest_document(shop, document).run

    listed = match(r'<section id="snapshots"(.*?)</section>', state_page(bob, run, step=2))
    assert re.findall(r'<span class="badge">(.*?)</span>', listed) == ["automatic", "by hand"]
    assert "before cancel" in listed
    assert "the customer is in a hurry" in match(r'<dl class="snapshot">(.*?)</dl>', listed)
    assert "not captured" not in listed


def test_a_snapshot_says_which_of_its_fields_were_not_captured(shop, bob):
    page = state_page(bob, load_record(shop, steps=[snapshot_step("x", {"memory": []})]), step=1)

    fields = match(r'<dl class="snapshot">(.*?)</dl>', page)
    assert fields.count('<em class="missing">not captured</em>') == 4


def test_a_checkpoint_says_what_stood_beside_the_state(shop, bob):
    run = load_example(shop, "cancel_bug")
    point = checkpoint(load_run(run), 3)

    said = match(r'<h3 id="checkpoint-title">(.*?)</section>', state_page(bob, run, step=3))

    assert f">{point.history.length}</a>" in said
    assert "with the answer of step 3" in said
    for words in ("v1", "gpt-4o", "openai", "eu-west-1", "cancel_5521", "u_2071", "2026-11-16 09:41:12"):
        assert words in said
    assert re.search(r'temperature</dt>\s*<dd>\s*<span class="recorded">0.7</span>', said)
    assert "lookup_order" in said
    assert "cancel_order" not in said


def test_a_checkpoint_shows_failures_and_the_version_of_the_prompt(shop, bob):
    steps = [
        model_step(settings={"temperature": 0, "prompt_version": "refunds-12"}),
        tool_step("ask", error={"type": "Timeout", "message": "too late"}, result=None, duration_ms=1500),
    ]

    said = match(r'<h3 id="checkpoint-title">(.*?)</section>', state_page(bob, load_record(shop, steps=steps)))

    assert re.search(r'prompt version</dt>\s*<dd>\s*<span class="recorded">refunds-12</span>', said)
    assert "1, 1 failed, 1.50 s" in said
    assert "Timeout: too late" in said


def test_messages_that_were_not_captured_are_not_none(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    later = load_record(shop, run_id="later", session_id="later", steps=[tool_step(), model_step()])

    assert '<dt>messages</dt><dd><em class="missing">not captured</em></dd>' in state_page(bob, run)
    assert "<dt>messages</dt><dd>0</dd>" in state_page(bob, later, step=1)


def test_settings_are_those_of_the_agents_own_newest_request(shop, bob):
    inner = model_step(2, parent=2, model="small", settings={"temperature": 1})
    steps = [model_step(settings={"temperature": 0}), tool_step("ask"), inner]

    said = match(r'<h3 id="checkpoint-title">(.*?)</section>', state_page(bob, load_record(shop, steps=steps), step=3))

    assert '<span class="recorded">sonnet-4</span>' in said
    assert "with the answer of step 1" in said


# --- long runs ---------------------------------------------------------------------------------


def test_long_lists_of_changes_come_in_parts(shop, bob):
    steps = [replacing("/n", i) for i in range(1, 451)]
    run = load_record(shop, initial_state={"n": 0}, steps=steps)

    page = state_page(bob, run, step=300, path="/n")

    assert page.count("201–400 of 450") == 2
    assert "changes=400#changes" in page
    assert "rows=0#value" in page
    assert "401–450 of 450" in state_page(bob, run, step=300, changes=400)
    assert "401–450 of 450" in state_page(bob, run, step=300, changes=99999)
    assert len(page) < 300 * 1024


def test_the_number_of_queries_does_not_grow(shop, bob):
    def steps_of(turns):
        return [
            step | {"state": {"after": [{"op": "add", "path": "/n", "value": i}]}}
            for i, step in enumerate(loop_of(turns))
        ]

    short = load_record(shop, run_id="short", session_id="short", steps=steps_of(2))
    long = load_record(shop, run_id="long", session_id="long", steps=steps_of(300))
    state_page(bob, short)

    seen = []
    for run in (short, long):
        with CaptureQueriesContext(connection) as queries:
            state_page(bob, run, step=3, path="/n")
        seen.append([each["sql"] for each in queries])

    assert len(seen[0]) == len(seen[1])


def test_a_long_list_does_not_hide_what_stands_beside_it(shop, bob):
    run = load_record(shop, initial_state={"list": list(range(300)), "plan": {"kept": "in sight"}}, steps=[tool_step()])

    whole, alone = state_page(bob, run), state_page(bob, run, path="/list")

    assert "in sight" in whole
    assert "280 more" in whole
    assert 'path=%2Flist&amp;items=20#value"' in whole
    assert "280 more" in match(r'<h3 id="state-whole">(.*?)</section>', alone)
    assert "more</a>" not in match(r'id="value"(.*?)</section>', alone)
    assert "280 more" not in match(r'id="value"(.*?)</section>', state_page(bob, run, path="/list", items=20))


# --- restored ----------------------------------------------------------------------------------


def test_a_restored_run_says_where_it_stands(shop, bob):
    run = load_example(shop, "cancel_bug")

    page = page_of(bob, run, at_step=2)

    assert "Restored to step 2" in page
    assert f"canonical JSON: {state_digest(checkpoint(load_run(run), 2).state)}" in page
    assert 'data-shown="2"' in page
    assert page.count('<tr id="s') == 2
    assert match(r'href="([^"]*)"[^>]*>Show the whole run</a>', page) == "?view=steps&amp;step=2"


LATER = (
    "changed my mind for you",
    "Order ORD-5521 cancelled",
    "ve cancelled order",
    "cancel_reason",
    "ORD-5521: cancelled",
    'data-step="3"',
    "step=3",
    "step=4",
    "step=5",
    "5 steps",
)


@pytest.mark.parametrize("view", ["steps", "timeline", "messages", "state", "raw"])
@pytest.mark.parametrize("more", [{}, {"step": 5}, {"step": 1, "inner": "show"}, {"find": "cancelled", "step": 2}])
def test_nothing_of_what_came_later_is_on_a_restored_page(shop, bob, view, more):
    run = load_example(shop, "cancel_bug")

    page = page_of(bob, run, at_step=2, view=view, **more)

    assert "Restored to step 2" in page
    assert [words for words in LATER if words in page] == []


def test_the_whole_page_has_what_a_restored_one_leaves_out(shop, bob):
    run = load_example(shop, "cancel_bug")

    whole = "".join(page_of(bob, run, view=view, step=5) for view in ("steps", "timeline", "messages", "state", "raw"))

    assert {"Order ORD-5521 cancelled", "ve cancelled order", "cancel_reason", "ORD-5521: cancelled"} <= {
        words for words in LATER if words in whole
    }


def test_every_link_of_a_restored_page_keeps_the_mode_but_the_way_out(shop, bob):
    run = load_example(shop, "cancel_bug")

    for view in ("steps", "timeline", "messages", "state"):
        page = page_of(bob, run, at_step=2, view=view)
        leaving = [href for href in re.findall(r'href="(\?[^"]*)"', page) if "at_step=2" not in href]
        assert set(leaving) == {f"?view={view}&amp;step=2"}


def test_restoring_changes_nothing_that_is_stored(shop, bob):
    run = load_example(shop, "cancel_bug")
    before, rows = run_digest(load_run(run)), row_counts()

    for view in ("steps", "timeline", "messages", "state"):
        page_of(bob, run, at_step=2, view=view)

    assert (run_digest(load_run(run)), row_counts()) == (before, rows)


@pytest.mark.parametrize("asked", ["0", "99", "x", "-1", ""])
def test_a_step_that_is_not_there_cannot_be_restored_to(shop, bob, asked):
    page = page_of(bob, load_example(shop, "cancel_bug"), at_step=asked)

    assert f"cannot be restored to at_step={asked}: its steps are numbered 1 to 5" in page
    assert "Restored to step" not in page


def test_the_answer_of_a_call_that_went_on_is_not_known_yet(shop, bob):
    steps = [
        tool_step("ask", result="the final word", duration_ms=900),
        model_step(2, parent=1),
        model_step(3, parent=1),
    ]
    run = load_record(shop, steps=steps)

    restored, whole = page_of(bob, run, at_step=2, step=1), page_of(bob, run, step=1)

    assert "the final word" in whole
    assert "the final word" not in restored
    assert "not finished yet" in restored


def test_the_answer_of_a_call_that_had_ended_is_known(shop, bob):
    steps = [model_step(1), tool_step("ask", parent=1, result="the word"), tool_step("tell", parent=1)]

    restored = page_of(bob, load_record(shop, steps=steps), at_step=2)

    assert "the word" in restored
    assert "not finished yet" not in restored


def test_the_list_of_a_restored_run_ends_at_the_step(shop, bob):
    run = load_record(shop, steps=long_run(450))

    page, last = page_of(bob, run, at_step=250, step=10), page_of(bob, run, at_step=250)

    assert "next 50 of 250" in page
    assert match(r'data-shown="(\d+)"', last) == "250"
    assert "Steps 201 to 250 of 250" in last
    assert 'class="ruler"' in last
    assert "error 300" not in last
    assert "error 300" in page_of(bob, run, step=250)


def test_hidden_inner_steps_are_counted_up_to_the_step(shop, bob):
    inner = {"kind": "other", "name": "inner"}
    run = load_record(shop, steps=[tool_step(), inner, tool_step(), inner, inner, tool_step()])

    page = page_of(bob, run, at_step=4)

    assert "2 inner steps of the framework folded" in page
    assert page.count('<tr id="s') == 3
    assert 'id="s5"' not in page
    assert "inner=show&amp;at_step=4" in page or "at_step=4&amp;inner=show" in page


def test_the_state_view_offers_to_restore(shop, bob):
    page = state_page(bob, load_example(shop, "cancel_bug"), step=2)

    assert 'href="?at_step=2&amp;view=state&amp;step=2"' in page


def test_others_see_no_state(shop):
    run = load_example(shop, "cancel_bug")
    eve = client_of(make_user("eve", make_project("elsewhere")))

    assert eve.get(reverse("session", args=["shop", run.session.session_id]), {"view": "state"}).status_code == 404


# --- in a browser ------------------------------------------------------------------------------


@pytest.fixture
def signed_in(page, live_server, shop):
    make_user("ann", shop)
    arrive(page, f"{live_server.url}/p/shop/sessions", "ann")
    return page


@pytest.mark.django_db(transaction=True)
@looks
def test_every_state_of_the_view_is_accessible_and_fits(signed_in, live_server, shop, scheme, width):
    load_example(shop, "cancel_bug")
    long = {"note": HOSTILE * 9, "x" * 300: "y" * 300, "list": list(range(300))}
    load_record(
        shop, session_id="snap", run_id="snap", steps=[tool_step("t" * 90), snapshot_step(HOSTILE, FIVE | long)]
    )
    load_record(shop, session_id="none", run_id="none", steps=[tool_step()])
    load_record(shop, session_id="torn", run_id="torn", steps=[replacing("/n", 1)])
    complaints = []
    signed_in.on("console", lambda message: complaints.append(message.text))
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.emulate_media(color_scheme=scheme)

    for address in (
        "chat_2071_1116?view=state&step=4&path=/orders/ORD-5521/status",
        "chat_2071_1116?view=state&step=3&path=memory",
        "chat_2071_1116?at_step=2&step=2",
        "chat_2071_1116?at_step=2&step=2&view=state",
        "chat_2071_1116?at_step=99",
        "snap?view=state&step=2&path=/list",
        "none?view=state",
        "torn?view=state",
    ):
        signed_in.goto(f"{live_server.url}/p/shop/s/{address}")
        found = [(each["id"], each["nodes"][0]["html"]) for each in Axe().run(signed_in).response["violations"]]
        assert (address, found) == (address, [])
        assert signed_in.evaluate("document.documentElement.scrollWidth") <= width, address
    assert complaints == []


@pytest.mark.django_db(transaction=True)
def test_keys_lead_through_the_states_and_a_restored_run(signed_in, live_server, shop):
    load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/chat_2071_1116?step=3")

    press(signed_in, "4")
    expect(signed_in.locator("h2", has_text="State after step 3")).to_be_visible()
    press(signed_in, "J")
    expect(signed_in.locator("h2", has_text="State after step 4")).to_be_visible()
    signed_in.locator(".state-tree a", has_text="status").click()
    expect(signed_in.locator("#value")).to_contain_text("1 change")
    signed_in.get_by_role("link", name="Restore to this step").click()
    expect(signed_in.get_by_text("Restored to step 4")).to_be_visible()
    press(signed_in, "1")
    expect(signed_in.locator("#s4.is-picked")).to_be_visible()
    press(signed_in, "K")
    expect(signed_in.locator("#s3.is-picked")).to_be_visible()
    expect(signed_in.get_by_text("Restored to step 4")).to_be_visible()
    signed_in.get_by_role("link", name="Show the whole run").first.click()
    expect(signed_in.locator("#kit-title")).to_be_visible()
