"""The report of a finished replay, as a page and as files."""

import base64
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from sessions_app.core.replay.isolation import HOOK_ONLY, OWN_MACHINE
from sessions_app.core.replay.proof import Part, not_comparable
from sessions_app.models import Replay, Run
from sessions_app.web.replays.report import linked_words
from tests.proofs import make_proof
from tests.web.browsing import arrive
from tests.web.making import HOSTILE, make_user, match
from tests.web.records import load_example, load_record, tool_step

pytestmark = pytest.mark.django_db

FACTS = {
    "proof": make_proof(1).to_json(),
    "sources": {"recorded": 3},
    "isolation": "namespaces, read-only root, seccomp and audit hook",
    "fence": {
        "kernel": ["namespaces", "read-only root", "seccomp"],
        "held": ["network", "local sockets", "disk", "programs"],
    },
    "clock": "2026-11-17T15:14:00+00:00",
    "fields_compared": 171,
    "volatile_fields": 14,
    "not_captured": ["parameters"],
    "played_back": ["prompt.build"],
    "tools_are_recorded": False,
}


LOOK, LOOKED = {"tools": {"live": ["look"]}}, {"live_tools": {"look": 2}}


def make_replay(run, **columns) -> Replay:
    fields: dict[str, Any] = {"state": "done", "verdict": "reproduced", "live_calls": 0, "facts": FACTS} | columns
    return Replay.objects.create(
        project=run.project, run=run, content=run.content, number=fields.pop("number", 1), **fields
    )


def page_of(client, replay):
    response = client.get(reverse("replay", args=["shop", replay.replay_id]))
    assert response.status_code == 200
    return response.content.decode()


def test_the_verdict_is_in_words_and_the_world_was_off(shop, bob):
    run = load_example(shop, "r_8821")
    produced = load_record(shop, run_id="r_8821_replay_1", steps=[tool_step()], origin="replay")

    page = page_of(bob, make_replay(run, produced_run=produced))

    assert "Reproduced: same 1 step, same answer" in page
    assert "isolated: 0 network calls, 0 writes" in page
    assert "namespaces, read-only root, seccomp and audit hook" in page
    assert "171 fields; 14 volatile fields ignored" in page
    assert "parameters" in page
    assert reverse("diff", args=["shop", "r_8821", "r_8821_replay_1"]) in page


@pytest.mark.parametrize(
    ("fence", "refused", "words"),
    [
        ({"kernel": [], "held": []}, 0, HOOK_ONLY),
        ({"kernel": [], "held": []}, 2, f"{HOOK_ONLY}; 2 attempts refused"),
        (
            {"kernel": ["network namespace"], "held": ["network", "local sockets", "programs"]},
            0,
            "0 network calls; native code is not kept from the disk",
        ),
    ],
)
def test_no_page_or_file_claims_what_the_kernel_did_not_keep_out(shop, bob, fence, refused, words):
    facts = {**FACTS, "fence": fence, "isolation": "what held"}
    replay = make_replay(load_example(shop, "r_8821"), facts=facts, refused_calls=refused)

    said = [page_of(bob, replay)]
    said += [
        bob.get(reverse("replay_report", args=["shop", replay.replay_id, suffix])).content.decode()
        for suffix in ("md", "txt", "json")
    ]

    for text in said:
        assert words in " ".join(text.split())
        assert "0 writes" not in text
    assert ("0 network calls" in said[0]) == ("network" in fence["held"])


def head_badges(page):
    return re.findall(r'<span class="badge badge-(world|amber) badge-wrap">.*?</svg>\s*(.*?)</span>', page, re.DOTALL)


@pytest.mark.parametrize(
    ("columns", "badges"),
    [
        ({"state": "queued", "verdict": None, "live_calls": None, "facts": {}}, []),
        ({"state": "running", "verdict": None, "live_calls": None, "facts": {}}, []),
        ({"state": "failed", "verdict": "could_not_run", "live_calls": None, "facts": {}}, []),
        ({}, [("world", "isolated")]),
        ({"facts": FACTS | {"fence": {"kernel": [], "held": []}}}, [("amber", "audit hook only")]),
        ({"facts": FACTS | {"fence": {"kernel": [], "held": ["network"]}}}, [("amber", "partly isolated")]),
        ({"order": LOOK, "state": "running", "verdict": None, "live_calls": None}, [("amber", "live tools: look")]),
        ({"order": LOOK}, [("world", "isolated")]),
        ({"order": LOOK, "live_calls": 2, "facts": FACTS | LOOKED}, [("amber", "live tools: look × 2")]),
        ({"order": LOOK, "live_calls": 2, "state": "crashed"}, [("amber", "2 live calls")]),
    ],
    ids=["queued", "running", "never ran", "all held", "nothing held", "some held", "may", "did not", "did", "crashed"],
)
def test_the_badge_says_what_held_and_not_what_was_asked_for(shop, bob, columns, badges):
    page = page_of(bob, make_replay(load_example(shop, "r_8821"), **columns))

    assert head_badges(page) == badges
    assert ("isolated" in page) is any("isolated" in words for _, words in badges)


def test_only_a_world_that_was_off_has_its_sign(shop, bob):
    run = load_example(shop, "r_8821")
    observed = FACTS | {"isolation": OWN_MACHINE, "fence": {}}

    off, own = (page_of(bob, make_replay(run, facts=facts, number=n)) for n, facts in enumerate((FACTS, observed), 1))

    assert ('class="how-world"' in off, 'class="how-world world-on"' in off) == (True, False)
    assert ('class="how-world"' in own, 'class="how-world world-on"' in own) == (False, True)


def test_how_it_was_run_is_folded_with_what_the_recording_does_not_hold(shop, bob):
    run = load_example(shop, "r_8821")
    facts = FACTS | {"fields_compared": 9, "not_captured": ["parameters.a", "parameters.b"]}

    page = page_of(bob, make_replay(run, facts=facts))

    how = match(r'<details class="section how" ?>(.*)</details>', page)
    assert all(words in how for words in ("Real and simulated", "Sources of nondeterminism"))
    assert "<summary>2 fields not recorded, so not compared</summary>" in how
    assert "Attempts" not in how


def test_a_sampling_says_how_many_calls_went_out(shop, bob):
    order = {"at_step": 2, "samples": 3}
    facts = FACTS | {"live_model": {"model": "gpt-4o", "settings": {}, "answered": None}}
    asked = make_replay(
        load_example(shop, "r_8821"), mode="sampling", verdict="diverged", order=order, live_calls=3, facts=facts
    )

    page = " ".join(page_of(bob, asked).split())

    assert "live model: 3 requests; 0 other network calls, 0 writes" in page


def test_the_four_steps_of_the_harness_and_the_nine_sources_of_chance(shop, bob):
    page = page_of(bob, finished(shop))

    for title in ("load run", "stub tools", "pin model", "diff output"):
        assert title in page
    assert page.count('<tr class="held-') == 9


def test_a_divergence_names_the_field_and_marks_the_words(shop, bob):
    found = {"step": 3, "path": "args.user_id", "recorded": "u_7710", "replayed": "u_3306"}

    page = page_of(bob, make_replay(load_example(shop, "r_8821"), verdict="diverged", divergence=found))

    assert "Diverged at step 3: argument user_id" in page
    assert "<del>u_7710</del>" in page
    assert "<ins>u_3306</ins>" in page


def test_a_missed_fixture_shows_the_call_and_the_nearest_ones(shop, bob):
    facts = FACTS | {
        "asked_for": {"tool": "lookup_order", "arguments": {"query": "my order"}, "call_id": "c1"},
        "nearest": [{"step": 3, "arguments": {"query": "my order", "user_id": "u_7710"}}],
    }
    replay = make_replay(
        load_example(shop, "r_8821"),
        verdict="fixture_missing",
        facts=facts,
        divergence={"step": 3, "path": "arguments"},
    )

    page = page_of(bob, replay)

    assert "fixture for step 3 missing" in page
    assert "<span>stopped: answer unknown</span>" in page
    assert "<span>could not run</span>" not in page
    assert "</strong>({&quot;query&quot;: &quot;my order&quot;})" in page
    assert "user_id" in page
    assert "<del>&quot;u_7710&quot;</del>" in page
    assert re.findall(r"data-next\s*>(?:<svg.*?</svg>)?\s*([^<]*)", page, re.DOTALL) == ["Answer it by hand, in a fork"]


def test_the_call_itself_is_none_that_comes_near_and_the_step_that_it_stopped_at_is_not_counted(shop, bob):
    run = load_example(shop, "r_8821")
    asked = {"tool": "lookup_order", "arguments": {"query": "my order"}, "call_id": "c1"}
    near = [{"step": 3, "arguments": {"query": "my order"}}]
    stop = {"facts": FACTS | {"asked_for": asked, "nearest": near}, "divergence": {"step": 3, "path": "arguments"}}
    made = load_record(shop, run_id="made", session_id="made", steps=[tool_step()] * 3)
    replay = make_replay(run, verdict="fixture_missing", produced_run=made, **stop)

    page = page_of(bob, replay)

    assert "Nearest recorded calls" not in page
    assert "No call of this tool" not in page
    assert "2, then stopped at step 3" in page


def test_a_request_of_a_tool_without_an_answer_is_named(shop, bob):
    sent = {"method": "GET", "url": f"https://shop/{HOSTILE}", "body": None, "reason": "it is another one"}
    facts = FACTS | {
        "asked_for": {
            "tool": "lookup_order",
            "arguments": {"query": "my order"},
            "call_id": "c1",
            "http": {**sent, "recorded": ["GET https://shop/recorded"]},
        },
        "nearest": [],
    }
    found = {"step": 3, "path": "http", "recorded": ["GET https://shop/recorded"], "replayed": "GET https://shop/now"}
    replay = make_replay(load_example(shop, "r_8821"), verdict="fixture_missing", facts=facts, divergence=found)

    page = page_of(bob, replay)

    assert "no recorded exchange answers" in page
    assert "The request without a recorded answer" in page
    assert "it is another one" in page
    assert "GET https://shop/recorded" in page
    assert "No call of this tool was recorded" not in page
    assert "<script>alert" not in page


def test_a_crash_is_an_error_and_not_a_difference(shop, bob):
    replay = make_replay(
        load_example(shop, "r_8821"), state="crashed", verdict="could_not_run", error=f"died {HOSTILE}", facts={}
    )

    page = page_of(bob, replay)

    assert "Could not run" in page
    assert "<span>could not run</span>" in page
    assert "<span>diverged</span>" not in page
    assert "<script>alert" not in page


def words_of(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_a_cancelled_attempt_is_no_error(shop, bob):
    run = load_example(shop, "r_8821")
    stopped = make_replay(run, state="cancelled", verdict="cancelled", live_calls=None, facts={})

    page = page_of(bob, stopped)

    assert "<span>cancelled</span>" in page
    assert "<span>could not run</span>" not in page
    assert "What was done" not in page
    assert "What this replay shows" not in page
    text = bob.get(reverse("replay_report", args=["shop", stopped.replay_id, "txt"])).content.decode()
    assert "Attempt 1: ⊘ Cancelled" in text
    assert not re.search("What ran|What that shows|Real and simulated|agent: rebuilt", text)
    assert "What was done" in page_of(bob, finished(shop))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "Cancelled before it started by ann"),
        ({"claimed_at": timezone.now()}, "Cancelled before its first step by ann"),
        (
            {"claimed_at": timezone.now(), "progress_done": 39, "progress_total": 181},
            "Cancelled at step 40 of 181 by ann",
        ),
    ],
)
def test_a_cancelled_replay_says_how_far_it_came_and_who_cancelled_it(shop, bob, columns, words):
    ann = make_user("ann", shop)
    stopped = make_replay(
        load_example(shop, "r_8821"), state="cancelled", verdict="cancelled", cancelled_by=ann, facts={}, **columns
    )

    page = words_of(page_of(bob, stopped))

    assert words in page
    assert words.removeprefix("Cancelled ") in words_of(bob.get("/p/shop/replays").content.decode())
    assert ("No worker took it: nothing ran, and nothing was called." in page) is (not columns)
    assert ("How this was run" in page) is bool(columns)
    assert "Queue the replay again" not in page


def test_who_cancels_a_replay_is_kept(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"), state="queued", verdict=None)

    bob.post(reverse("cancel_replay", args=["shop", replay.replay_id]))

    replay.refresh_from_db()
    assert replay.cancelled_by.username == "bob"


def test_one_attempt_is_folded_and_several_are_not(shop, bob):
    replay = finished(shop)

    assert re.search(r'<details class="section attempts-fold"\s*>', page_of(bob, replay))

    make_replay(replay.run, verdict="reproduced", number=2)

    assert re.search(r'<details class="section attempts-fold"\s+open>', page_of(bob, replay))


def test_where_answers_came_from_stands_below_the_verdict(shop, bob):
    told = words_of(match(r'<p class="report-sources">(.*?)</p>', page_of(bob, finished(shop))))

    assert re.fullmatch(r" *\d+ recorded +0 live +Steps of the replay *", told)


def test_a_cancelled_replay_claims_nothing_of_what_it_left_behind(shop, bob):
    """Control: the same replay, once it came to its end, has both outcomes and what it compared."""
    claims = ("Original and replayed", "What was done", "171 fields", "Full diff", "pinned by the recorded answers")
    stopped = finished(shop, state="cancelled", verdict="cancelled", facts={**FACTS, "proof": None})

    page = words_of(page_of(bob, stopped))
    Replay.objects.update(state="done", verdict="reproduced", facts=FACTS)
    control = words_of(page_of(bob, stopped))

    assert [claim for claim in claims if claim in page] == []
    assert [claim for claim in claims if claim in control] == list(claims)
    assert page.count("not compared") == 0


def test_the_markdown_leads_back_to_its_pages(shop, bob):
    replay = finished(shop)

    text = bob.get(reverse("replay_report", args=["shop", replay.replay_id, "md"])).content.decode()

    links = dict(re.findall(r"\[([^]]+)\]\(<([^>]+)>\)", text))
    assert list(links) == ["This report", "The recorded run", "Full diff"]
    assert [bob.get(address).status_code for address in links.values()] == [200, 200, 200]


def test_no_outcome_shows_base64(shop, bob):
    picture = base64.b64encode(bytes(range(256)) * 200).decode()
    run = load_record(shop, run_id="drawn", input=f"See data:image/png;base64,{picture} please", steps=[tool_step()])
    replay = make_replay(
        run, verdict="diverged", divergence={"step": 1, "path": "args", "recorded": picture, "replayed": 1}
    )

    page = page_of(bob, replay)
    text = bob.get(reverse("replay_report", args=["shop", replay.replay_id, "txt"])).content.decode()

    assert "Diverged at step 1: the arguments: &quot;base64 · 50 KiB · application/octet-stream&quot; → 1" in page
    assert "Input: See base64 · 50 KiB · image/png please" in text


def finished(shop, **columns):
    """A replay that produced a run."""
    run = load_record(shop, run_id="ran", session_id="ran", steps=[tool_step()], code={"commit": "0a0b0c"})
    made = load_record(shop, run_id="ran_replay_1", session_id="ran", steps=[tool_step()], origin="replay")
    return make_replay(run, produced_run=made, **columns)


@pytest.mark.parametrize(("commit", "words"), [("1f2e3d", "1f2e3d"), (None, "not known")])
def test_the_commit_that_ran_stands_beside_the_recorded_one(shop, bob, commit, words):
    facts = FACTS | {"commit": commit}

    page = words_of(page_of(bob, finished(shop, mode="code", order={"agent": "shop"}, facts=facts)))

    assert f"your code ran: shop commit that ran {words} commit recorded 0a0b0c" in page


def test_code_that_never_ran_is_not_said_to_have_run(shop, bob):
    columns = {"state": "failed", "verdict": "could_not_run", "live_calls": None, "facts": {}}
    queued = make_replay(load_example(shop, "r_8821"), mode="code", order={"agent": "shop"}, **columns)

    page = words_of(page_of(bob, queued))

    assert "your code did not run" in page
    assert "commit that ran" not in page


def test_tools_that_ran_were_not_stubbed(shop, bob):
    order = {"agent": "shop", "tools": {"run": True}}
    facts = FACTS | {"sources": {"recorded": 2, "own_code": 1}, "commit": None}

    page = words_of(page_of(bob, finished(shop, mode="code_and_tools", order=order, facts=facts)))

    assert "stub tools not done: your own code answered 1 call" in page
    assert "pin model : done" in page


def test_attempts_are_counted_from_one(shop, bob):
    run = load_example(shop, "r_8821")
    make_replay(run)
    second = Replay.objects.create(
        project=shop, run=run, content=run.content, number=2, state="done", verdict="diverged", facts=FACTS
    )

    page = page_of(bob, second)

    assert "<span>reproduced</span>" in page
    assert "<span>diverged</span>" in page


@pytest.mark.parametrize(
    ("suffix", "media_type"),
    [("md", "text/plain; charset=utf-8"), ("txt", "text/plain; charset=utf-8"), ("json", "application/json")],
)
def test_the_report_as_a_file_is_never_markup(shop, bob, suffix, media_type):
    run = load_record(shop, input=HOSTILE, steps=[tool_step()])
    replay = make_replay(run)

    response = bob.get(reverse("replay_report", args=["shop", replay.replay_id, suffix]))

    assert response.status_code == 200
    assert response["Content-Type"] == media_type
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"].startswith("sandbox")


def test_the_report_in_json_holds_the_verdict(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"))

    report = json.loads(bob.get(reverse("replay_report", args=["shop", replay.replay_id, "json"])).content)

    assert report["run_id"] == "r_8821"
    assert report["replay"]["verdict"] == "reproduced"
    assert len(report["budget"]) == 9


@pytest.mark.parametrize(("verdict", "words"), [("reproduced", "Read the run"), ("diverged", "Full diff")])
def test_what_to_do_next_is_the_main_button(shop, bob, verdict, words):
    replay = finished(shop, verdict=verdict)

    main = match(r'<a class="btn btn-main"[^>]*data-next>(.*?)</a>', page_of(bob, replay))

    assert words in main


def test_the_next_thing_to_do_is_a_link_where_the_report_names_it():
    ways = {"read the run": "/run", "open the diff": None}

    assert linked_words("Read the run, or open the diff.", ways) == [
        ("Read the run", "/run"), (", or open the diff.", None),
    ]  # fmt: skip


def test_what_cannot_be_compared_is_a_row_of_the_proof_with_its_reason(shop, bob):
    part = Part(state="not_comparable", reason="no state was recorded")
    replay = finished(shop, facts={**FACTS, "proof": make_proof(1, outcome=part).to_json()})

    page = page_of(bob, replay)

    table = match(r'<table class="plain proof">(.*?)</table>', page)
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
    assert len(rows) == 7
    short = re.findall(r'<span class="proof-short">(.*?)</span>', page)
    assert [" ".join(re.sub(r"<[^>]+>", " ", words).split()) for words in short] == [
        "Proven: requests to the model, tools and output schema, model and settings, tool arguments, state",
        "Not comparable: outcome",
    ]
    assert rows[-1] == "outcome not comparable no state was recorded"


def test_equal_outcomes_that_cannot_be_compared_are_not_said_to_be_the_same(shop, bob):
    """The table of attempts says of them what the proof says."""
    run = load_record(shop, run_id="a", steps=[tool_step()])
    made = load_record(shop, run_id="made", origin="replay", steps=[tool_step()])
    part = Part(state="not_comparable", reason="nobody knows the instructions")
    limit = {"step": 2, "code": "x", "reason": "Nobody knows the instructions.", "fix": None}
    facts = {**FACTS, "proof": make_proof(1, outcome=part).to_json(), "limit": limit}

    page = page_of(bob, make_replay(run, produced_run=made, verdict="unknown_from_step", facts=facts))

    outcome = match(r'<table class="plain ends-of-both">(.*?)</table>', page)
    assert "the same text, not comparable" in outcome
    assert page.casefold().count("nobody knows the instructions") == 1
    assert '<span class="soft">not comparable</span>' in match(r'<table class="plain attempts">(.*?)</table>', page)
    assert "agent: rebuilt" not in page


def test_attempts_that_are_not_over_are_named_below_those_that_are(shop, bob):
    replay = finished(shop)
    Replay.objects.create(project=shop, run=replay.run, content=replay.content, number=2, state="paused")

    assert re.search(r"Not finished: <a [^>]*>#2</a>", page_of(bob, replay))


def test_a_run_to_compare_with_is_advised_only_where_there_is_one(shop, bob):
    asked = {"agent": {"name": "desk"}, "input": "Where is my order 7?", "output": "done"}
    run = load_record(shop, run_id="bad", session_id="bad", steps=[tool_step()], **asked)
    replay = make_replay(run, verdict="reproduced")

    assert "healthy run" not in page_of(bob, replay)

    load_record(shop, run_id="good", session_id="good", steps=[tool_step()], **asked)

    assert "healthy run" not in page_of(bob, replay)  # nothing went wrong in it

    Run.objects.filter(pk=run.pk).update(failure_group="f")

    assert re.search(r'<a href="/p/shop/s/bad/twins[^"]*">[^<]*healthy run</a>', page_of(bob, replay))


def test_what_became_of_the_state_is_told_once(shop, bob):
    """A run without states has none to carry over."""
    proof = make_proof(1)
    without = replace(proof, parts={**proof.parts, "state": not_comparable("no state was recorded")})
    run = load_record(shop, run_id="r", steps=[tool_step()])

    page = page_of(bob, make_replay(run, produced_run=run, facts=FACTS | {"proof": without.to_json()}))

    assert "Tools: frozen" in page
    assert "no state was recorded" in page
    assert "carried over" not in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("bob")
def test_a_printed_report_keeps_to_one_margin_opens_what_is_folded_and_ends_with_its_address(
    page: Page, shop, live_server
):
    replay = make_replay(load_example(shop, "r_8821"))
    address = reverse("replay", args=["shop", replay.replay_id])
    arrive(page, f"{live_server.url}{address}")

    page.emulate_media(media="print")

    lefts = [page.locator(shown).first.bounding_box() for shown in (".head h1", ".report-verdict", ".print-only")]
    assert len({box["x"] for box in lefts if box}) == 1
    expect(page.get_by_text("namespaces, read-only root, seccomp and audit hook").first).to_be_visible()
    expect(page.locator(".print-only")).to_contain_text(address)
    expect(page.locator("main .no-print").first).to_be_hidden()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("bob")
def test_a_printed_session_leaves_its_kit_folded(page: Page, shop, live_server):
    load_example(shop, "r_8821")
    arrive(page, f"{live_server.url}/p/shop/s/chat_7710_1117")

    page.emulate_media(media="print")

    assert page.locator(".kit-fold").evaluate("fold => fold.getBoundingClientRect().height") < 60
