"""Replays on a person's own machine: the real command, agents in modules of their own, a real server that judges."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agents import Runner, SQLiteSession
from django.urls import reverse

import replay_recorder
from replay_recorder.cli import main
from replay_recorder.replaying.own_agent import OwnAgent, is_openai_agents
from sessions_app.models import Replay
from tests.builders import SESSION_FILE, make_client, make_key, make_project, post_run
from tests.recorder.desks import DESKS, OPENAI_AGENTS, ORDERS, PYDANTIC_AI, Desk
from tests.recorder.floor import ROOT
from tests.recorder.local_server import Answer, LocalServer, local_server
from tests.recorder.openai_playing import recorded as openai_recorded
from tests.recorder.openai_playing import records_in
from tests.recorder.playing import last_record
from tests.recorder.reaching_desks import REACHING_DESKS, SHOP
from tests.recorder.scenarios import SCENARIOS
from tests.web.making import make_user

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(live_server, monkeypatch):
    """A server with a project; the variables say where it is."""
    monkeypatch.setenv("REPLAY_URL", live_server.url)
    monkeypatch.setenv("REPLAY_KEY", make_key(make_project()))
    return live_server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def write(folder: Path, name: str, source: str) -> str:
    (folder / f"{name}.py").write_text(source)
    importlib.invalidate_caches()
    sys.modules.pop(name, None)
    return f"{name}:make"


async def play(target: str, prompt: str) -> None:
    module, _, attribute = target.partition(":")
    made = getattr(importlib.import_module(module), attribute)()
    agent, deps = made if isinstance(made, tuple) else (made, None)
    if is_openai_agents(agent):
        await Runner.run(agent, prompt, context=deps)
    else:
        await agent.run(prompt, deps=deps)


def recorded(target: str, prompt: str, spool: Path, **settings: Any) -> dict[str, Any]:
    replay_recorder.install(spool=spool, **settings)
    try:
        asyncio.run(play(target, prompt))
    finally:
        replay_recorder.uninstall()
    return records_in(str(spool))[0]


def sent(folder: Path, desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch, *, http: bool = True) -> str:
    """The id of a run of this desk that the server has."""
    url = os.environ["REPLAY_URL"]
    monkeypatch.delenv("REPLAY_URL")
    record = recorded(write(folder, name, desk.source), desk.prompt, folder / "spool" / name, http=http)
    monkeypatch.setenv("REPLAY_URL", url)
    client = make_client(os.environ["REPLAY_KEY"])
    return str(post_run(client, record).json()["run_id"])


def replayed(run_id: str, target: str, *more: str) -> Replay:
    main(["replay", run_id, "--agent", target, "--yes", *more])
    return Replay.objects.select_related("produced_run").latest("pk")


def ended(replay: Replay) -> tuple[str | None, int | None, str | None]:
    found = replay.divergence or {}
    return replay.verdict, found.get("step"), found.get("path")


SOME = ("requests_dict", "httpx_file", "aiohttp_pydantic_model")
ALL_DESKS = DESKS | {name: desk for name, desk in REACHING_DESKS.items() if name.endswith(SOME)}


@pytest.fixture
def shop(monkeypatch):
    """What the tools of some desks ask; what it says changes each time."""
    with local_server() as shop:
        monkeypatch.setenv(SHOP, shop.url)
        shop_answers(shop)
        yield shop


def shop_answers(shop: LocalServer) -> None:
    """From the beginning."""
    counts = [json.dumps({"count": count}).encode() for count in range(7, 0, -1)]
    shop.answer("/stock", *(Answer(count, headers=JSON) for count in counts))
    shop.answer(
        "/orders",
        Answer(b'{"wait": 3}', 429, headers=JSON),
        *(Answer(json.dumps({"order": f"O-{number}"}).encode(), 201, headers=JSON) for number in range(5)),
    )


@pytest.mark.parametrize("name", ALL_DESKS)
def test_an_unchanged_agent_reproduces_its_run_and_a_changed_tool_is_found_where_it_changed(
    name, server, shop, folder, monkeypatch
):
    desk = ALL_DESKS[name]
    run_id = sent(folder, desk, f"desk_{name}", monkeypatch)
    asked = len(shop.received)
    assert desk.source.count(desk.line) == 1
    changed = write(folder, f"changed_{name}", desk.source.replace(desk.line, desk.changed))

    assert ended(replayed(run_id, f"desk_{name}:make")) == ("reproduced", None, None)
    assert ended(replayed(run_id, f"desk_{name}:make", "--tools", "run")) == ("reproduced", None, None)
    assert ended(replayed(run_id, changed)) == ("reproduced", None, None)  # its tools did not run
    assert ended(replayed(run_id, changed, "--tools", "run")) == ("diverged", desk.step, desk.path)
    assert asked == (4 if SHOP in desk.source else 0)
    assert len(shop.received) == asked


# --- what the server makes of it -----------------------------------------------------------------

BUG = Desk(ORDERS, DESKS["a_dict"].line, DESKS["a_dict"].changed, 4, "result")


@pytest.fixture
def run_id(server, folder, monkeypatch):
    return sent(folder, BUG, "orders", monkeypatch)


def fixed(folder: Path) -> str:
    return write(folder, "fixed", BUG.source.replace(BUG.line, BUG.changed))


def steps_of(replay: Replay, client: Any) -> list[dict[str, Any]]:
    return list(client.get(f"/api/v1/runs/{replay.produced_run.run_id}/steps").json()["items"])


def client_of(run_of: Replay) -> Any:
    return make_client(make_key(run_of.project))


def test_a_fix_takes_effect_where_its_tool_answers_and_is_never_called_reproduced(run_id, folder, capsys):
    replay = replayed(run_id, fixed(folder), "--tools", "run")

    assert ended(replay) == ("diverged", 4, "result")
    assert replay.divergence["recorded"] == "Order ORD-5521 cancelled. Reason: wrong item"
    assert replay.divergence["replayed"] == "Order ORD-5521 cannot be cancelled: it is delivered."
    said = capsys.readouterr()
    assert "really run on this machine" in said.err
    assert "The change takes effect at step 4: cancel_order now answers" in said.out
    assert f"/replays/{replay.replay_id}" in said.out
    assert "cannot be cancelled" in said.out
    assert "--on-difference play_on" in said.out


def test_a_tool_that_fails_today_is_named_with_its_exception(run_id, folder, capsys):
    failing = BUG.source.replace(
        BUG.line, BUG.line.replace(BUG.line.strip(), 'raise RuntimeError("the desk is closed")')
    )

    replay = replayed(run_id, write(folder, "failing", failing), "--tools", "run")

    assert ended(replay) == ("diverged", 4, "result")
    assert replay.divergence["replayed"] == "RuntimeError: the desk is closed"
    headline = "cancel_order now fails at step 4: RuntimeError: the desk is closed; recorded:"
    assert headline in capsys.readouterr().out


DELEGATING = (
    PYDANTIC_AI
    + """
from pydantic_ai.models import check_allow_model_requests


class Provider(FunctionModel):
    async def request(self, *arguments):
        check_allow_model_requests()
        return await super().request(*arguments)


def make():
    helper = Agent(Provider(lambda messages, info: says("Checked."), model_name="helper-1"), name="helper")
    agent = Agent(scripted(call("delegate", "d1", task="check"), says("Done.")), name="orders")

    @agent.tool_plain
    async def delegate(task: str) -> str:
        try:
            return (await helper.run(task)).output
        except Exception as error:
            return f"failed: {error}"

    return agent
"""
)


def test_a_tool_that_runs_another_agent_could_not_be_tried_and_is_not_told_as_one_that_fails(
    server, folder, monkeypatch, capsys
):
    run_id = sent(folder, Desk(DELEGATING, "", "", 2, "result"), "delegating", monkeypatch)
    helper = records_in(str(folder / "spool" / "delegating"))[1]["run_id"]

    assert ended(replayed(run_id, "delegating:make")) == ("reproduced", None, None)
    assert main(["replay", run_id, "--agent", "delegating:make", "--yes", "--tools", "run"]) == 2
    assert Replay.objects.count() == 1  # nothing was sent
    said = capsys.readouterr().err
    assert "Step 2: delegate asks a model itself, and its answers are not in this recording." in said
    assert f"Replay this run with frozen tools, and the agent's own run, {helper}, by itself." in said


DEPENDS = """

@dataclass
class Desk:
    orders: dict


def make():
    return made, Desk({"ORD-1": "delivered"})

"""
OF_PYDANTIC_AI = """
made = Agent(scripted(call("look", "c1"), says("Done.")), deps_type=Desk)


@made.tool
def look(ctx: RunContext[Desk]) -> str:
    return ctx.deps.orders["ORD-1"]
"""
OF_THE_SDK = """
@function_tool(failure_error_function=None)
def look(ctx: RunContextWrapper[Desk]) -> str:
    return ctx.context.orders["ORD-1"]


made = Agent[Desk](name="desk", model=Scripted(call("look", "c1"), [message("Done.")]), tools=[look])
"""


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        (PYDANTIC_AI + DEPENDS + OF_PYDANTIC_AI, "dependencies (Desk)"),
        (OPENAI_AGENTS + DEPENDS + OF_THE_SDK, "a context (Desk)"),
    ],
    ids=["pydantic-ai", "openai-agents"],
)
def test_an_agent_without_its_dependencies_is_told_what_to_name(
    source, lacks, server, folder, monkeypatch, capsys, request
):
    module = f"depends_{request.node.callspec.id.replace('-', '_')}"
    run_id = sent(folder, Desk(source, "", "", 0, ""), module, monkeypatch)

    alone = replayed(run_id, f"{module}:made", "--tools", "run")
    said = capsys.readouterr()
    whole = replayed(run_id, f"{module}:make", "--tools", "run")

    assert f"{module}:made takes {lacks} and is given none" in said.err
    assert "look now fails at step 2: " in said.out
    assert "'NoneType' object has no attribute 'orders'" in said.out
    assert (ended(alone), ended(whole)) == (("diverged", 2, "result"), ("reproduced", None, None))
    assert "is given none" not in capsys.readouterr().err


def test_from_the_difference_on_every_recorded_answer_is_one_for_another_request(run_id, folder):
    replay = replayed(run_id, fixed(folder), "--tools", "run", "--on-difference", "play_on")

    assert ended(replay) == ("diverged", 4, "result")
    sources = [step["source"] for step in steps_of(replay, client_of(replay))]
    assert sources == ["recorded", "own_code", "recorded", "own_code", "recorded_for_another_request"]
    assert replay.produced_run.output_preview == "I've cancelled order ORD-5521 for you."


def test_another_prompt_differs_at_the_first_request_and_then_everywhere(run_id, folder):
    never = write(
        folder, "never", BUG.source.replace("with their orders.", "with their orders. NEVER cancel anything.")
    )

    stopped = replayed(run_id, never)
    played_on = replayed(run_id, never, "--on-difference", "play_on")

    assert ended(stopped) == ended(played_on) == ("diverged", 1, "messages[0].instructions")
    assert [step["source"] for step in steps_of(stopped, client_of(stopped))] == ["unknown"]
    sources = {step["source"] for step in steps_of(played_on, client_of(played_on))}
    assert sources == {"recorded_for_another_request"}


def test_what_nobody_sealed_is_said_and_nothing_is_claimed_of_it(run_id, folder):
    replay = replayed(run_id, "orders:make", "--tools", "run")
    client = client_of(replay)

    report = client.get(f"/api/v1/runs/{run_id}/report?format=txt").content.decode()
    body = client.get(f"/api/v1/replays/{replay.replay_id}").json()

    assert "ran on the person's own machine, without a seal" in report
    assert "0 writes" not in report
    assert "in isolation" not in report
    assert "0 live calls" not in report
    assert "0 network calls" not in report
    assert (body["live_calls"], body["agent"], body["mode"]) == (None, "orders:make", "code_and_tools")


KEEPS_STATE = """
import replay_recorder
orders = {"ORD-5521": "delivered"}


def make():
    orders.update({"ORD-5521": "delivered"})
    replay_recorder.install(state=lambda: {"orders": orders}, snapshot_every=1, spool=SPOOL)
    agent = Agent(scripted(call("cancel", "c1", order_id="ORD-5521"), says("Done.")))

    @agent.tool_plain
    def cancel(order_id: str) -> str:
        orders[order_id] = "cancelled"
        return "done"

    return agent
"""


def test_a_tool_that_leaves_another_state_behind_its_equal_answer_is_found(server, folder, monkeypatch, capsys):
    source = PYDANTIC_AI + f"SPOOL = {str(folder / 'spool' / 'keeps')!r}\n" + KEEPS_STATE
    run_id = sent(folder, Desk(source, "", "", 0, ""), "keeps", monkeypatch)
    forgets = write(folder, "forgets", source.replace('        orders[order_id] = "cancelled"\n', ""))

    same, other = replayed(run_id, "keeps:make", "--tools", "run"), replayed(run_id, forgets, "--tools", "run")

    assert ended(same) == ("reproduced", None, None)
    assert state_of(same) == ("proven", None)
    assert ended(other) == ("diverged", 4, 'state.orders["ORD-5521"]')
    assert (other.divergence["recorded"], other.divergence["replayed"]) == ("cancelled", "delivered")
    report = client_of(other).get(f"/api/v1/runs/{run_id}/report?format=txt").content.decode()
    assert "the step number includes 1 snapshot before it" in report
    assert "snapshots_before" not in same.facts
    assert state_of(other) == ("not_proven", 'differs at step 4, state.orders["ORD-5521"]')
    assert "--on-difference play_on" not in capsys.readouterr().out  # no request was another one
    sources = [step["source"] for step in steps_of(other, client_of(other)) if step["kind"] == "model"]
    assert sources == ["recorded", "recorded"]


def state_of(replay: Replay) -> tuple[str, str | None]:
    found = replay.facts["proof"]["state"]
    return found["state"], found["reason"]


SEARCHES = """
import replay_recorder
kept = {"found": [], "searches": 0}


def make():
    kept.update(found=[], searches=0)
    replay_recorder.install(state=lambda: kept, snapshot_every=EVERY, spool=SPOOL)
    searches = [call("search", f"c{page}", page=page) for page in range(8)]
    agent = Agent(scripted(*searches, says("Done.")), instructions="Search.")

    @agent.tool_plain
    def search(page: int) -> str:
        kept["searches"] += 1
        kept["found"].append(page)
        return "nothing" if page < 5 else "little"

    return agent
"""


def searching(folder: Path, every: int) -> str:
    settings = f"SPOOL = {str(folder / 'spool' / 'searching')!r}\nEVERY = {every}\n"
    return PYDANTIC_AI + settings + SEARCHES


@pytest.mark.parametrize("every", [1, 5])
def test_states_are_compared_where_the_recording_has_them(every, server, folder, monkeypatch):
    source = searching(folder, every)
    run_id = sent(folder, Desk(source, "", "", 0, ""), "searching", monkeypatch)
    more_often = write(folder, "more_often", searching(folder, 3))
    odd = write(folder, "odd", source.replace(".append(page)", ".append(9 if page == 2 else page)"))
    bare = write(folder, "bare", source.replace("    replay_recorder.install", "    dict"))
    full = write(folder, "full", source.replace("found=[],", 'found=["old"],'))

    same = replayed(run_id, "searching:make", "--tools", "run")
    frozen = replayed(run_id, "searching:make")
    as_often = replayed(run_id, more_often, "--tools", "run")
    differs = replayed(run_id, odd, "--tools", "run")
    says_none = replayed(run_id, bare, "--tools", "run")
    begins_otherwise = replayed(run_id, full, "--tools", "run")

    assert [each.verdict for each in (same, frozen, as_often, says_none, begins_otherwise)] == ["reproduced"] * 5
    assert state_of(same) == state_of(as_often) == ("proven", None)
    assert state_of(frozen) == ("not_comparable", "carried over from the recording, not run")
    assert state_of(says_none)[0] == state_of(begins_otherwise)[0] == "not_comparable"
    assert "did not say its state" in str(state_of(says_none)[1])
    assert "began with another state: initial_state.found" in str(state_of(begins_otherwise)[1])
    # The third search is the sixth step of the loop; snapshots are steps as well.
    assert ended(differs) == ("diverged", 12, "state.found[2]")


def test_behind_a_fix_the_proof_names_the_state_that_differs(server, folder, monkeypatch):
    source = searching(folder, 1)
    run_id = sent(folder, Desk(source, "", "", 0, ""), "searching", monkeypatch)
    fix = source.replace(
        '        return "nothing"',
        '        if page == 2:\n            kept["found"].pop()\n'
        '            return "refused"\n        return "nothing"',
    )

    stopped = replayed(run_id, write(folder, "refusing", fix), "--tools", "run")
    played_on = replayed(run_id, "refusing:make", "--tools", "run", "--on-difference", "play_on")
    prompt = source.replace('instructions="Search."', 'instructions="Look."')
    at_once = replayed(run_id, write(folder, "looking", prompt), "--tools", "run")

    assert ended(stopped) == ended(played_on) == ("diverged", 11, "result")
    assert state_of(stopped) == state_of(played_on) == ("not_proven", "differs at step 12, state.found[2]")
    assert state_of(at_once) == ("not_proven", "the replay differs from its first step on")


@pytest.mark.parametrize("name", ["a_dict", "a_context_of_the_sdk"])
def test_a_replay_that_was_stopped_has_no_outcome(name, server, folder, monkeypatch):
    desk = DESKS[name]
    run_id = sent(folder, desk, "stops", monkeypatch)
    changed = write(folder, "changed", desk.source.replace(desk.line, desk.changed))

    stopped = replayed(run_id, changed, "--tools", "run")
    played_on = replayed(run_id, changed, "--tools", "run", "--on-difference", "play_on")

    proof, made = stopped.facts["proof"], stopped.produced_run
    assert ended(stopped) == ended(played_on) == ("diverged", desk.step, desk.path)
    assert proof["outcome"] == {
        "state": "not_proven",
        "reason": "the replay reached no outcome of its own",
    }
    assert (proof["outcome_kind"], made.status, made.output_preview) == (None, "cut_off", None)
    client = client_of(stopped)
    record = client.get(f"/api/v1/runs/{made.run_id}/record").content.decode()
    assert "RequestDiffers" not in record
    report = client.get(f"/api/v1/runs/{run_id}/report?format=json").json()
    assert report["attempts"][0]["matches_original"] is None
    assert played_on.produced_run.status == "ok"


REGISTERED = """
import copy

MAKE = make
given = []


def deps_of_state(state):
    given.append(copy.deepcopy(state))
    return state["orders"]


def registered():
    agent, _ = MAKE()
    return {"agent": agent, "deps_of_state": deps_of_state, "state_of_deps": lambda orders: {"orders": orders}}


def without_state():
    return {"agent": MAKE()[0], "deps_of_state": deps_of_state}


def with_all():
    agent, deps = MAKE()
    return {"agent": agent, "deps": deps, "arguments": {"output_type": str}, "deps_of_state": deps_of_state}


as_dict = {"agent": MAKE()[0], "deps": MAKE()[1]}
unknown = {"agent": MAKE()[0], "dependencies": {}}
missing = {"deps": MAKE()[1]}
no_function = {"agent": MAKE()[0], "deps_of_state": {}}
"""


def test_an_agent_as_it_is_registered_begins_with_the_recorded_state(server, folder, monkeypatch):
    write(folder, "orders", ORDERS + REGISTERED)
    write(folder, "fixed", ORDERS.replace(BUG.line, BUG.changed) + REGISTERED)
    silent = BUG.line.replace("cancelled", "lost")
    write(folder, "silent", ORDERS.replace(BUG.line, silent) + REGISTERED)
    orders = {"ORD-5521": {"item": "2x Widget Pro", "status": "delivered"}}

    async def played() -> None:
        await importlib.import_module("orders").MAKE()[0].run(BUG.prompt, deps=orders)

    monkeypatch.delenv("REPLAY_URL")
    replay_recorder.install(spool=folder / "state", state=lambda: {"orders": orders}, snapshot_every=1)
    asyncio.run(played())
    replay_recorder.uninstall()
    monkeypatch.setenv("REPLAY_URL", server.url)
    run_id = posted(records_in(str(folder / "state"))[0])

    same = replayed(run_id, "orders:registered", "--tools", "run")
    frozen = replayed(run_id, "orders:registered")
    fix = replayed(run_id, "fixed:registered", "--tools", "run")
    other_state = replayed(run_id, "silent:registered", "--tools", "run")

    assert orders["ORD-5521"]["status"] == "cancelled"
    assert importlib.import_module("orders").given[0]["orders"]["ORD-5521"]["status"] == "delivered"
    assert (ended(same), state_of(same)) == (("reproduced", None, None), ("proven", None))
    assert ended(frozen) == ("reproduced", None, None)
    assert ended(fix) == ("diverged", 7, "result")
    assert state_of(fix) == ("not_proven", 'differs at step 8, state.orders["ORD-5521"].status')
    assert ended(other_state) == ("diverged", 8, 'state.orders["ORD-5521"].status')


def test_what_the_code_does_to_its_first_state_does_not_change_the_recorded_one():
    recorded_state = {"orders": {"A": "delivered"}}

    own = OwnAgent(None, deps_of_state=lambda state: state["orders"]).begun_with(recorded_state)
    own.deps["A"] = "cancelled"

    assert recorded_state == {"orders": {"A": "delivered"}}


@pytest.mark.parametrize("name", ["as_dict", "with_all"])
def test_a_dict_names_what_the_agent_is_run_with(name, run_id, folder):
    write(folder, "orders", ORDERS + REGISTERED)

    assert ended(replayed(run_id, f"orders:{name}", "--tools", "run")) == ("reproduced", None, None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unknown", "names 'dependencies'; known are agent, deps, arguments, deps_of_state, state_of_deps"),
        ("missing", "gives a dict without 'agent'"),
        ("no_function", "deps_of_state is no function but dict"),
        ("without_state", "no recorded state, so deps_of_state has nothing to begin with"),
    ],
)
def test_a_dict_that_does_not_fit_is_refused_in_words(name, words, run_id, folder, capsys):
    write(folder, "orders", ORDERS + REGISTERED)

    assert main(["replay", run_id, "--agent", f"orders:{name}"]) == 2

    assert words in capsys.readouterr().err
    assert Replay.objects.count() == 0


MAIL = "mara.quill" + "@planted-mail.com"  # put together here, so that no scanner takes this file for a leak
WRITES_TO = """
def make():
    agent = Agent(scripted(call("address_of", "a1", user="u_1"), says("Written.")))

    @agent.tool_plain
    def address_of(user: str) -> str:
        return f"The address of {user} is MAIL."

    return agent
"""


def test_what_the_server_redacted_is_no_difference_and_another_secret_is_one(server, folder, monkeypatch):
    source = PYDANTIC_AI + WRITES_TO.replace("MAIL", MAIL)
    run_id = sent(folder, Desk(source, "", "", 0, ""), "writes", monkeypatch)
    other = write(folder, "writes_elsewhere", source.replace("mara", "nora"))

    same = replayed(run_id, "writes:make", "--tools", "run")
    differs = replayed(run_id, other, "--tools", "run")

    assert ended(same) == ("reproduced", None, None)
    assert ended(differs) == ("diverged", 2, "result")
    assert MAIL not in json.dumps(differs.divergence)


def test_it_is_an_attempt_like_any_other(run_id, folder):
    first, second = replayed(run_id, "orders:make"), replayed(run_id, fixed(folder), "--tools", "run")
    client = client_of(second)

    assert [first.number, second.number] == [1, 2]
    listed = client.get(f"/api/v1/runs/{run_id}/report?format=json").json()["attempts"]
    assert [(each["number"], each["outcome"]) for each in listed] == [(1, "reproduced"), (2, "different")]
    pair = {"left": run_id, "right": second.produced_run.run_id}
    comparison = client.get("/api/v1/comparisons", pair).json()
    assert (comparison["divergence"]["left_step"], comparison["divergence"]["path"]) == (4, "result")
    same = client.get("/api/v1/comparisons", {**pair, "right": first.produced_run.run_id}).json()
    assert same["identical"], same["divergence"]
    assert first.produced_run.session_id == second.produced_run.session_id == first.run.session_id


def observed_body(replay: Replay, client: Any, **changes: Any) -> dict[str, Any]:
    record = client.get(f"/api/v1/runs/{replay.run.run_id}/record").json()
    return {"mode": "code", "agent": "orders:make", "record": {**record, "run_id": "again-1", **changes}}


def post(client: Any, run_id: str, body: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/runs/{run_id}/replays/observed", json.dumps(body), content_type="application/json")


def test_the_same_observation_again_is_the_same_replay(run_id, folder):
    client = client_of(replayed(run_id, "orders:make"))
    body = observed_body(Replay.objects.get(), client)

    first, again = post(client, run_id, body), post(client, run_id, body)
    other = post(client, run_id, observed_body(Replay.objects.earliest("pk"), client, output="Something else."))

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.json()["replay_id"] == again.json()["replay_id"]
    assert other.json()["error"]["code"] == "run_conflict"
    assert Replay.objects.count() == 2


def test_the_server_judges_and_not_the_machine(run_id, folder):
    client = client_of(replayed(run_id, "orders:make"))
    body = observed_body(Replay.objects.get(), client, output="I've cancelled everything.")

    refused = post(client, run_id, {**body, "verdict": "reproduced"})
    said = post(client, run_id, body).json()

    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "verdict")
    assert (said["verdict"], said["divergence"]["path"]) == ("diverged", "output")
    assert said["proof"]["outcome"]["state"] == "not_proven"


@pytest.mark.parametrize(
    ("change", "field"),
    [({"mode": "live"}, "mode"), ({"agent": None}, "agent"), ({"record": None}, "record"), ({"record": {}}, "format")],
)
def test_what_is_no_observation_is_refused_by_its_field(change, field, run_id, folder):
    client = client_of(replayed(run_id, "orders:make"))

    answer = post(client, run_id, observed_body(Replay.objects.get(), client) | change)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert Replay.objects.count() == 1


def test_a_recording_that_cannot_be_replayed_is_refused_with_the_reason(run_id, folder):
    client = client_of(replayed(run_id, "orders:make"))
    cold = {"format": "agent-replay.run", "version": 1, "run_id": "cold", "input": "Hello?"}
    post_run(client, cold)

    said = post(client, "cold", observed_body(Replay.objects.get(), client)).json()

    assert (said["verdict"], said["state"], said["run_id"]) == ("could_not_run", "failed", None)
    assert said["error"]


def test_the_page_says_what_ran_where(run_id, folder, client):
    replay = replayed(run_id, fixed(folder), "--tools", "run")
    client.force_login(make_user("bob", replay.project))

    page = client.get(f"/p/{replay.project.slug}/replays/{replay.replay_id}").content.decode()

    assert "ran on the person&#x27;s own machine, without a seal" in page
    assert "on a person&#x27;s own machine" in page
    assert "fixed:make" in page
    assert "0 writes" not in page
    assert "isolated" not in page
    assert "Order ORD-5521 cannot be cancelled" in page


def test_the_page_sends_whoever_wants_it_again_back_to_that_machine(run_id, folder, client):
    replay = replayed(run_id, "orders:make")
    client.force_login(make_user("bob", replay.project))
    again = reverse("replay_again", args=[replay.project.slug, replay.replay_id])

    page = client.post(again, follow=True).content.decode()

    assert f"replay-recorder replay {run_id} --agent orders:make" in page
    assert Replay.objects.count() == 1


# --- HTTP that tools send ------------------------------------------------------------------------

ASKING = pytest.mark.parametrize("name", ["pydantic_ai_requests_dict", "openai_agents_httpx_dict"])


def elsewhere(folder: Path, desk: Desk, *more: tuple[str, str]) -> str:
    """The same agent, whose tool asks at another address."""
    source = desk.source
    for now, then in [('sent("GET", f"/stock?', 'sent("GET", f"/stock/now?'), *more]:
        assert now in source
        source = source.replace(now, then)
    return write(folder, "elsewhere", source)


@ASKING
def test_a_request_without_a_recorded_exchange_stops_is_named_and_never_sent(
    name, server, shop, folder, monkeypatch, capsys
):
    desk = REACHING_DESKS[name]
    run_id = sent(folder, desk, "asks", monkeypatch)
    asked = len(shop.received)

    replay = replayed(run_id, elsewhere(folder, desk), "--tools", "run")

    assert ended(replay) == ("fixture_missing", 2, "http")
    assert replay.divergence["recorded"] == [f"GET {shop.url}/stock?item=lamp"] * 2
    assert replay.divergence["replayed"] == f"GET {shop.url}/stock/now?item=lamp"
    assert len(shop.received) == asked
    said = capsys.readouterr().out
    assert f"GET {shop.url}/stock/now?item=lamp" in said
    assert "It was not sent." in said
    assert "install(http=True)" not in said


def test_a_recording_without_the_http_of_its_tools_says_how_to_record_it(server, shop, folder, monkeypatch, capsys):
    name = next(name for name in REACHING_DESKS if name in ALL_DESKS)
    run_id = sent(folder, REACHING_DESKS[name], "quiet", monkeypatch, http=False)

    replay = replayed(run_id, "quiet:make", "--tools", "run")

    assert ended(replay) == ("fixture_missing", 2, "http")
    assert "No HTTP was recorded for this call. Record with install(http=True)." in capsys.readouterr().out


@ASKING
def test_a_tool_makes_no_answer_of_a_request_that_was_stopped(name, server, shop, folder, monkeypatch):
    desk = REACHING_DESKS[name]
    run_id = sent(folder, desk, "asks", monkeypatch)
    line = "    return await answer if hasattr(answer"
    swallowing = "    answer = send(*request)\n", "    answer = kept(*request)\n"
    desk_that_swallows = Desk(
        desk.source.replace(
            "async def sent(",
            "def kept(*request):\n"
            "    try:\n"
            "        return send(*request)\n"
            "    except BaseException:\n"
            '        return 200, {"count": 7}\n\n\n'
            "async def sent(",
        ),
        "",
        "",
        0,
        "",
    )
    assert line in desk.source

    replay = replayed(run_id, elsewhere(folder, desk_that_swallows, swallowing), "--tools", "run")

    assert ended(replay) == ("fixture_missing", 2, "http")


def test_without_recorded_http_the_first_request_stops_and_says_how_it_is_recorded(server, shop, folder, monkeypatch):
    desk = REACHING_DESKS["pydantic_ai_requests_dict"]
    run_id = sent(folder, desk, "asks", monkeypatch, http=False)
    asked = len(shop.received)

    replay = replayed(run_id, "asks:make", "--tools", "run")

    assert ended(replay) == ("fixture_missing", 2, "http")
    assert "record with http=True" in replay.facts["asked_for"]["http"]["reason"]
    assert len(shop.received) == asked


@ASKING
@pytest.mark.parametrize("on_difference", ["stop", "play_on"])
def test_a_request_that_is_no_longer_sent_is_a_difference_at_its_tool(
    name, on_difference, server, shop, folder, monkeypatch
):
    desk = REACHING_DESKS[name]
    line = "    kept[item] = count\n"
    asks_more = replace(desk, source=desk.source.replace(line, '    await sent("DELETE", "/stock?item=old")\n' + line))
    assert asks_more != desk
    run_id = sent(folder, asks_more, "asks", monkeypatch)
    write(folder, "silent", desk.source)

    same = replayed(run_id, "asks:make", "--tools", "run")
    silent = replayed(run_id, "silent:make", "--tools", "run", "--on-difference", on_difference)

    assert ended(same) == ("reproduced", None, None)
    verdict, step, path = ended(silent)
    assert (verdict, path) == ("diverged", "http")
    assert silent.divergence["recorded"] == [f"DELETE {shop.url}/stock?item=old"]
    record = make_client(os.environ["REPLAY_KEY"]).get(f"/api/v1/runs/{run_id}/record").json()
    assert step is not None
    assert record["steps"][step - 1]["tool_name"] == "order"


@ASKING
def test_requests_go_out_where_the_person_says_so(name, server, shop, folder, monkeypatch, capsys):
    desk = REACHING_DESKS[name]
    run_id = sent(folder, desk, "asks", monkeypatch)
    asked = len(shop.received)

    replay = replayed(run_id, "asks:make", "--tools", "run", "--http", "live")

    assert replay.verdict == "diverged"  # the shop has fewer by now
    assert replay.divergence["step"] == 2
    assert len(shop.received) == asked + 2
    assert "networks" in capsys.readouterr().err


@ASKING
@pytest.mark.parametrize(
    ("change", "recorded", "now"),
    [
        (None, None, None),
        ("more", None, ["DELETE", "/stock?item=old"]),
        ("fewer", ["DELETE", "/stock?item=old"], None),
    ],
)
def test_requests_that_go_out_are_held_against_the_recording(
    name, change, recorded, now, server, shop, folder, monkeypatch
):
    desk, line = REACHING_DESKS[name], "    kept[item] = count\n"
    more = replace(desk, source=desk.source.replace(line, '    await sent("DELETE", "/stock?item=old")\n' + line))
    then, today = {None: (desk, desk), "more": (desk, more), "fewer": (more, desk)}[change]
    run_id = sent(folder, then, "asks", monkeypatch)
    write(folder, "today", today.source)
    asked = len(shop.received)
    shop_answers(shop)

    replay = replayed(run_id, "today:make", "--tools", "run", "--http", "live")

    assert len(shop.received) > asked
    found = replay.divergence
    said = None if found is None else (found["path"], found["recorded"], found["replayed"])
    words = [None if each is None else [f"{each[0]} {shop.url}{each[1]}"] for each in (recorded, now)]
    assert said == (None if change is None else ("http", *words))
    assert replay.verdict == ("reproduced" if change is None else "diverged")


@pytest.mark.parametrize("http", ["recorded", "live"])
def test_another_body_names_the_first_place_that_differs(http, server, shop, folder, monkeypatch, capsys):
    desk = REACHING_DESKS["pydantic_ai_requests_dict"]
    line = '"/orders", {"item": item, "count": count}'
    more = replace(desk, source=desk.source.replace(line, line.replace("count}", "count + 1}")))
    assert more.source != desk.source
    run_id = sent(folder, desk, "asks", monkeypatch)
    write(folder, "today", more.source)
    shop_answers(shop)

    replay = replayed(run_id, "today:make", "--tools", "run", *(["--http", "live"] if http == "live" else []))

    found = replay.divergence
    assert (replay.verdict, found["path"]) == ("diverged" if http == "live" else "fixture_missing", "http.body.count")
    assert found["replayed"] == found["recorded"] + 1
    if http == "recorded":
        assert f"POST {shop.url}/orders" in capsys.readouterr().out


ASKS_BEFOREHAND = """
without = make


def make():
    agent, deps = without()

    @agent.instructions
    async def greeting() -> str:
        return str((await sent("GET", "/stock?item=greeting"))[1])

    return agent, deps
"""


def test_what_is_sent_outside_of_a_call_is_named_and_not_sent(server, shop, folder, monkeypatch, capsys):
    desk = REACHING_DESKS["pydantic_ai_requests_dict"]
    run_id = sent(folder, desk, "asks", monkeypatch)
    asked = len(shop.received)
    target = write(folder, "beforehand", desk.source + ASKS_BEFOREHAND)

    replay = replayed(run_id, target, "--tools", "run")

    assert replay.verdict not in ("reproduced", None)
    assert len(shop.received) == asked
    assert f"GET {shop.url}/stock?item=greeting was sent outside of a tool's call" in capsys.readouterr().err


def not_installed(name: str) -> str:
    raise PackageNotFoundError(name)


@pytest.mark.parametrize("version", [not_installed, lambda name: "8.0.0"])
def test_without_what_answers_http_no_tool_runs(version, server, shop, folder, monkeypatch, capsys):
    run_id = sent(folder, REACHING_DESKS["pydantic_ai_requests_dict"], "asks", monkeypatch)
    asked = len(shop.received)
    monkeypatch.setattr("replay_recorder.replaying.tool_http.version", version)

    assert main(["replay", run_id, "--agent", "asks:make", "--yes", "--tools", "run"]) == 2

    assert "pip install -U vcrpy" in capsys.readouterr().err
    assert (Replay.objects.count(), len(shop.received)) == (0, asked)
    assert main(["replay", run_id, "--agent", "asks:make"]) == 0  # frozen tools send nothing


# --- the debugger ------------------------------------------------------------------------------


def debugged(folder: Path, typed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as in a terminal."""
    command = [sys.executable, "-m", "replay_recorder", "replay", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    return subprocess.run(
        command, cwd=folder, env=environment, input=typed, capture_output=True, text=True, timeout=120
    )


def test_a_breakpoint_in_a_tool_stops_with_its_arguments_in_scope(run_id, folder):
    write(folder, "stopping", BUG.source.replace(BUG.line, "        breakpoint()\n" + BUG.line))

    done = debugged(folder, "p order_id, reason\nc\n", run_id, "--agent", "stopping:make", "--tools", "run", "--yes")

    assert "('ORD-5521', 'wrong item')" in done.stdout
    assert "Reproduced: same 5 steps" in done.stdout, done.stderr
    assert done.returncode == 0


def in_a_terminal(folder: Path, typed: list[str], *arguments: str) -> str:
    """All that stood in the terminal; each line is typed at the next prompt."""
    command = [sys.executable, "-m", "replay_recorder", "replay", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # what Linux raises where the terminal is at its end
        while more := os.read(ours, 4096):
            shown += more
            if typed and shown.endswith((b"(Pdb) ", b"[y/N] ")):
                os.write(ours, f"{typed.pop(0)}\n".encode())
    os.close(ours)
    assert child.wait(timeout=60) == 0, shown.decode()
    return shown.decode()


@pytest.mark.parametrize("name", ["a_dict", "a_context_of_the_sdk"])
def test_a_breakpoint_stops_in_a_terminal_once_tools_may_run(name, server, folder, monkeypatch):
    desk = DESKS[name]
    run_id = sent(folder, desk, "desk", monkeypatch)
    stop = desk.line.replace(desk.line.strip(), "breakpoint()")
    write(folder, "stopping", desk.source.replace(desk.line, stop + desk.line))

    shown = in_a_terminal(folder, ["y", "p order_id", "c"], run_id, "--agent", "stopping:make", "--tools", "run")

    assert "really run on this machine" in shown
    assert "(Pdb) p order_id\r\n'ORD-5521'" in shown
    assert "Reproduced: same 5 steps" in shown


@pytest.mark.parametrize("tools", ["run", "frozen"])
def test_break_stops_at_a_tool_with_its_arguments_in_scope(tools, run_id, folder):
    arguments = [run_id, "--agent", "orders:make", "--tools", tools, "--yes", "--break", "cancel_order"]

    done = debugged(folder, "p order_id, reason\nc\n", *arguments)

    assert done.stdout.count("('ORD-5521', 'wrong item')") == 1
    assert ("def cancel_order" in done.stdout or 'ctx.deps[order_id]["status"]' in done.stdout) == (tools == "run")
    assert "Reproduced: same 5 steps" in done.stdout, done.stderr


PARALLEL = """
def make():
    @function_tool
    def weather(city: str) -> str:
        return city + ": sunny"

    asked = [*call("weather", "c1", city="Paris"), *call("weather", "c2", city="London")]
    return Agent(name="bot", model=scripted(asked, says("Fine.")), tools=[weather])
"""
WEATHER = Desk(OPENAI_AGENTS + PARALLEL, "", "", 2, "result", "Weather in Paris and London")


def test_break_stops_in_the_function_of_an_sdk_tool_and_calls_of_one_answer_stop_in_turn(server, folder, monkeypatch):
    """Control: frozen, the function does not run, and there is no line of it to stop at."""
    run_id = sent(folder, WEATHER, "weather", monkeypatch)
    arguments = [run_id, "--agent", "weather:make", "--yes", "--break", "weather"]

    ran = debugged(folder, "p city\nn\nc\n" * 2, *arguments, "--tools", "run")
    frozen = debugged(folder, "p city\nc\n" * 2, *arguments)

    said = [line.removeprefix("(Pdb) ") for line in ran.stdout.splitlines()]
    assert sorted(line for line in said if line in ("'Paris'", "'London'")) == ["'London'", "'Paris'"]
    assert [line for line in said if line in ("-> return city + \": sunny\"", "--Return--")] == [
        "-> return city + \": sunny\"", "--Return--", "-> return city + \": sunny\""
    ] * 2  # fmt: skip
    assert "return city" not in frozen.stdout
    assert ran.stdout.count("Reproduced") == frozen.stdout.count("Reproduced") == 1, ran.stderr


def test_break_stops_in_the_call_of_a_step_alone(server, folder, monkeypatch):
    run_id = sent(folder, WEATHER, "weather", monkeypatch)
    arguments = [run_id, "--agent", "weather:make", "--yes", "--tools", "run", "--break", "3"]

    done = debugged(folder, "p 'at ' + city\nc\n", *arguments)

    assert "'at London'" in done.stdout
    assert "Reproduced: same" in done.stdout, done.stderr


@pytest.mark.parametrize("place", ["cancel_ordr", "99"])
def test_a_place_that_the_replay_never_comes_to_is_refused_with_those_that_there_are(place, run_id, folder, capsys):
    assert main(["replay", run_id, "--agent", "orders:make", "--break", place]) == 2

    has = "has model steps 1, 3, 5 and calls of tools: lookup_order (step 2), cancel_order (step 4)."
    assert capsys.readouterr().err == f"--break {place}: {run_id} {has}\n"
    assert Replay.objects.count() == 0


@pytest.mark.parametrize("tools", ["run", "frozen"])
def test_break_stops_at_a_tool_of_an_agent_that_was_handed_over_to(tools, server, folder, monkeypatch):
    run_id = sent(folder, DESKS["a_handoff_of_the_sdk"], "triage", monkeypatch)
    arguments = [run_id, "--agent", "triage:make", "--tools", tools, "--yes", "--break", "refund"]

    done = debugged(folder, "p order, amount\nc\n", *arguments)

    assert done.stdout.count("('A', 2.5)") == 1
    assert "Reproduced: same" in done.stdout, done.stderr


def test_break_stops_before_a_model_step_and_leaving_sends_nothing(run_id, folder):
    done = debugged(folder, "p step, len(messages)\nq\n", run_id, "--agent", "orders:make", "--break", "3")

    assert "(3, 3)" in done.stdout, done.stderr
    assert done.returncode == 2
    assert "nothing was sent" in done.stderr
    assert Replay.objects.count() == 0


def test_leaving_the_debugger_in_a_tool_sends_nothing(run_id, folder):
    arguments = [run_id, "--agent", "orders:make", "--tools", "run", "--yes", "--break", "cancel_order"]

    done = debugged(folder, "q\n", *arguments)

    assert (done.returncode, "nothing was sent" in done.stderr) == (2, True)
    assert Replay.objects.count() == 0


def test_tools_do_not_run_before_somebody_says_so(run_id, folder):
    done = debugged(folder, "", run_id, "--agent", "orders:make", "--tools", "run")

    assert (done.returncode, "Say --yes" in done.stderr) == (2, True)
    assert Replay.objects.count() == 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere:make", "No module named 'nowhere'"),
        ("orders:nothing", "has no 'nothing'"),
        ("orders:ModelResponse", "is no agent"),
        ("orders", "REPLAY_AGENTS"),  # without a colon: an agent that the server registers
    ],
)
def test_an_agent_that_is_not_there_is_told(target, words, run_id, folder, capsys):
    assert main(["replay", run_id, "--agent", target]) == 2

    assert words in capsys.readouterr().err


def test_an_unknown_run_is_told_in_the_words_of_the_server(server, folder, capsys):
    write(folder, "orders", ORDERS)

    assert main(["replay", "unknown", "--agent", "orders:make"]) == 2

    assert "answers 404: There is no such run in this project." in capsys.readouterr().err


# --- runs that begin with more than a prompt -----------------------------------------------------


def posted(record: Any) -> str:
    client = make_client(os.environ["REPLAY_KEY"])
    return str(post_run(client, record).json()["run_id"])


@pytest.fixture
def of_scenario(server, monkeypatch):
    """Takes in the last run of a scenario of Pydantic AI, whose agent the module `scene` then makes."""

    def send(name: str, way: str = "run") -> tuple[str, str]:
        scenario = next(each for each in SCENARIOS if str(each) == name)
        url = os.environ["REPLAY_URL"]
        monkeypatch.delenv("REPLAY_URL")
        record = last_record(scenario, way)
        monkeypatch.setenv("REPLAY_URL", url)
        module = ModuleType("scene")
        play = scenario.make()
        given = {k: v for k, v in play.arguments.items() if k not in ("message_history", "deferred_tool_results")}
        given.pop("usage_limits", None)
        module.make = lambda: (play.agent, None, given)
        monkeypatch.setitem(sys.modules, "scene", module)
        return posted(record), "scene:make"

    return send


@pytest.mark.parametrize(
    "name",
    ["multi_turn_with_repeated_ids", "approval_second", "denial_beside_another_call", "request_limit"],
)
def test_earlier_turns_approvals_and_limits_are_those_of_the_recording(name, of_scenario):
    run_id, target = of_scenario(name)

    assert ended(replayed(run_id, target)) == ("reproduced", None, None)


def test_an_approval_may_be_decided_otherwise(of_scenario, capsys):
    """Control: the decisions of the recording reproduce it, above."""
    run_id, target = of_scenario("approval_second")

    denied = replayed(run_id, target, "--deny", "1")
    approved = replayed(run_id, target, "--tools", "run", "--approve", "2")

    assert ended(denied) == ("diverged", 1, "result")
    assert denied.divergence["replayed"] == "The tool call was denied."
    assert ended(approved) == ("diverged", 2, "result")
    assert (approved.divergence["recorded"], approved.divergence["replayed"]) == ("No.", "paid back ORD-2")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--approve", "2"], "--approve needs --tools run"),
        (["--deny", "3"], "The recording shows no approval decision for step 3"),
    ],
)
def test_a_decision_that_cannot_be_is_said(of_scenario, capsys, more, words):
    run_id, target = of_scenario("approval_second")

    code = main(["replay", run_id, "--agent", target, *more])

    assert (code, words in capsys.readouterr().err, Replay.objects.exists()) == (2, True, False)


@pytest.mark.parametrize("way", ["run_stream", "run_stream_events"])
def test_a_streamed_run_is_streamed_again(way, of_scenario):
    run_id, target = of_scenario("text_beside_a_call", way)

    replay = replayed(run_id, target)

    assert ended(replay) == ("reproduced", None, None)


def test_the_earlier_turns_of_a_session_of_the_sdk_are_given_again(server, folder, monkeypatch):
    source = (
        OPENAI_AGENTS
        + """
def make():
    return Agent(name="talks", instructions="Be brief.", model=scripted(says("One."), says("Two."), says("Three.")))
"""
    )
    target = write(folder, "talks", source)

    async def three_turns() -> None:
        talking, session = importlib.import_module("talks").make(), SQLiteSession("talk")
        for prompt in ("First?", "Second?", "Third?"):
            await Runner.run(talking, prompt, session=session)

    url = os.environ["REPLAY_URL"]
    monkeypatch.delenv("REPLAY_URL")
    records = openai_recorded(three_turns)
    monkeypatch.setenv("REPLAY_URL", url)

    for record in records:
        assert ended(replayed(posted(record), target)) == ("reproduced", None, None)


@pytest.mark.parametrize("kept", [{"auto_previous_response_id": True}, {"previous_response_id": "resp_0"}])
def test_what_the_provider_kept_of_a_conversation_is_not_sent_again(kept, server, folder, monkeypatch):
    desk = DESKS["a_context_of_the_sdk"]
    target = write(folder, "orders", desk.source)
    changed = write(folder, "changed", desk.source.replace(desk.line, desk.changed))

    async def asked() -> None:
        agent, context = importlib.import_module("orders").make()
        await Runner.run(agent, desk.prompt, context=context, **kept)

    url = os.environ["REPLAY_URL"]
    monkeypatch.delenv("REPLAY_URL")
    (record,) = openai_recorded(asked)
    monkeypatch.setenv("REPLAY_URL", url)
    run_id = posted(record)

    assert ended(replayed(run_id, target)) == ("reproduced", None, None)
    assert ended(replayed(run_id, target, "--tools", "run")) == ("reproduced", None, None)
    assert ended(replayed(run_id, changed, "--tools", "run")) == ("diverged", desk.step, desk.path)


TOLD_TO_PROVIDER = (
    OPENAI_AGENTS
    + """
from agents import FileSearchTool, HostedMCPTool
from openai.types.responses import ResponseFileSearchToolCall

FOUND = ResponseFileSearchToolCall(
    id="fs_1", type="file_search_call", queries=["orders"], status="completed", results=None
)


def make():
    config = {"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example", "require_approval": "never"}
    tools = [HostedMCPTool(tool_config=config), FileSearchTool(vector_store_ids=["v"])]
    prompt = {"id": "pmpt_1", "version": "2"}
    return Agent(name="finds", model=scripted([FOUND, *says("Found.")]), tools=tools, prompt=prompt)
"""
)


@pytest.mark.parametrize(
    ("line", "changed", "place"),
    [
        ("https://mcp.example", "https://evil.example", "hosted_tools[0].tool_config.server_url"),
        ('"never"', '"always"', "hosted_tools[0].tool_config.require_approval"),
        (', FileSearchTool(vector_store_ids=["v"])]', "]", "hosted_tools[1]"),
        ('["v"]', '["v"], ranking_options={"ranker": "auto"}', "hosted_tools[1].ranking_options"),
        ('"version": "2"', '"version": "3"', "prompt.version"),
        (", prompt=prompt", "", "prompt"),
    ],
)
def test_what_todays_code_tells_the_provider_alone_is_compared(line, changed, place, server, folder, monkeypatch):
    assert TOLD_TO_PROVIDER.count(line) == 1
    desk = Desk(TOLD_TO_PROVIDER, line, changed, 1, f"parameters.{place}")
    run_id = sent(folder, desk, "finds", monkeypatch)
    todays = write(folder, "todays", desk.source.replace(desk.line, desk.changed))

    for more in ((), ("--tools", "run")):
        assert ended(replayed(run_id, "finds:make", *more)) == ("reproduced", None, None)
        assert ended(replayed(run_id, todays, *more)) == ("diverged", desk.step, desk.path)


def test_a_recording_that_does_not_say_what_the_provider_alone_was_told_is_not_called_proven(
    server, folder, monkeypatch
):
    url = os.environ["REPLAY_URL"]
    monkeypatch.delenv("REPLAY_URL")
    record = recorded(write(folder, "finds", TOLD_TO_PROVIDER), "Go", folder / "spool")
    monkeypatch.setenv("REPLAY_URL", url)
    for name in ("hosted_tools", "prompt"):
        del record["parameters"][0][name]

    replay = replayed(posted(record), "finds:make")

    assert ended(replay) == ("reproduced", None, None)
    parameters = replay.facts["proof"]["parameters"]
    assert (parameters["state"], parameters["reason"]) == (
        "not_comparable",
        "parameters that the recording does not show: hosted_tools, prompt",
    )


# --- recordings that another hand wrote down -----------------------------------------------------


def test_a_saved_session_is_replayed_with_the_tools_that_it_tells_of(server, folder):
    source = ORDERS.replace('"delivered"', '"shipped"')
    write(folder, "orders", source)
    write(folder, "fixed", source.replace(BUG.line, BUG.changed.replace("delivered", "shipped")))
    run_id = posted(SESSION_FILE.read_bytes().replace(b"openai:gpt-4o", b"openai:scripted-1"))

    frozen = replayed(run_id, "orders:make")
    run = replayed(run_id, "orders:make", "--tools", "run")
    fix = replayed(run_id, "fixed:make", "--tools", "run")

    assert (ended(frozen), ended(run)) == (("reproduced", None, None),) * 2
    assert ended(fix) == ("diverged", 4, "result")


def test_a_message_dump_is_replayed(server, folder, monkeypatch):
    async def dumped() -> list[Any]:
        agent, deps = importlib.import_module("orders").make()
        result = await agent.run(BUG.prompt, deps=deps)
        return list(json.loads(result.all_messages_json()))

    target = write(folder, "orders", ORDERS)
    run_id = posted(asyncio.run(dumped()))

    assert ended(replayed(run_id, target, "--tools", "run")) == ("reproduced", None, None)
