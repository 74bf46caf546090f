"""Goldens drawn by lot from the example incidents: those that no code decides are warned of, the others are not.

The truth knows nothing of the rule: a golden is real if the code that went wrong and its repair come to
different results in its scene, and tautological if they come to the same one.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import Agent

from replay_goldens.checks import all_passed, judge, read_checks
from replay_goldens.trace import Trace
from replay_goldens.values import as_text
from replay_recorder.replaying.observing import Replay, Tools, observe
from replay_recorder.replaying.own_agent import load_agent
from replay_recorder.replaying.recording import read_recording
from sessions_app.core.goldens.proposals import Proposal, proposals
from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.run import Run as RecordedRun
from sessions_app.examples import agents as registered_agents
from sessions_app.mapping.load import load_run
from sessions_app.models import Golden, Run
from sessions_app.services.golden_runs import take_in_golden_run
from sessions_app.services.goldens import create_golden, warnings_of
from sessions_app.services.observed_replays import take_in_observed
from tests.agents.talking import example
from tests.builders import make_project
from tests.tasks.incidents import make_run

pytestmark = pytest.mark.django_db
EACH = 30
AGENTS = "sessions_app.examples.agents"
Check = dict[str, Any]


def searching_on() -> Agent[None, str]:
    """What was recorded as run_xyz789."""
    agent = Agent("test", name="docs-assistant", defer_model_check=True)

    @agent.tool_plain
    def search_docs(query: str) -> dict[str, Any]:
        return {"docs": [], "count": 0}

    return agent


@dataclass(frozen=True)
class Setting:
    """An incident, and two versions of its code that play it again."""

    incident: str
    mode: str
    bad: str
    good: str


VERSIONS = (
    ("cancel_bug", ("code", "tools"), f"{AGENTS}:order_desk", f"{AGENTS}:order_desk_repaired"),
    ("cancel_bug", ("code",), f"{AGENTS}:order_desk", f"{AGENTS}:order_desk_fixed"),
    ("run_xyz789", ("code", "tools"), f"{__name__}:searching_on", f"{AGENTS}:v2_with_empty_check"),
    ("r_8821", ("code", "tools"), f"{AGENTS}:order_lookup", f"{AGENTS}:order_lookup_scoped"),
)
SETTINGS = [Setting(incident, mode, bad, good) for incident, modes, bad, good in VERSIONS for mode in modes]


@dataclass(frozen=True)
class Scene:
    """What an incident and the two versions of its code did."""

    setting: Setting
    run: Run
    records: Mapping[str, bytes]
    by_code: Sequence[Trace]
    known: Sequence[RecordedRun]
    """The runs that checks are drawn from: recorded, made by code, and mutants of the recording."""

    def outcomes(self, check: Check) -> list[bool | None]:
        """What code ends with an error has failed."""
        checks = read_checks([check])
        return [False if trace.has_failed else all_passed(judge(checks, trace)) for trace in self.by_code]


def scene_of(setting: Setting, number: int, world: pytest.MonkeyPatch) -> Scene:
    project = make_project(f"shop-{number}")
    record = example(setting.incident)
    run = make_run(project, record)
    records = {name: played(record, target, setting, world) for name, target in versions(setting)}
    by_code = [handed_in(run, each, setting) for each in records.values()]
    mutants = [make_run(project, each, origin="fork", parent={"run_id": run.run_id}) for each in mutants_of(record)]
    recorded, *others = (load_run(each) for each in (run, *by_code, *mutants))
    traces = [trace_of(each, scene=recorded) for each in others[: len(by_code)]]
    return Scene(setting, run, records, traces, [recorded, *others])


def versions(setting: Setting) -> list[tuple[str, str]]:
    return [("bad", setting.bad), ("good", setting.good)]


def played(record: Check, target: str, setting: Setting, world: pytest.MonkeyPatch) -> bytes:
    world.setattr(registered_agents, "orders", copy.deepcopy(ORDERS))
    tools: Tools = "run" if setting.mode == "tools" else "frozen"
    recording = read_recording(record)
    return observe(Replay(recording, load_agent(target), tools, on_difference="play_on"))


ORDERS = copy.deepcopy(registered_agents.orders)


def order_of(setting: Setting) -> Check:
    return {"agent": "desk", "tools": {"run": setting.mode == "tools", "live": []}, "on_difference": "play_on"}


def handed_in(run: Run, record: bytes, setting: Setting) -> Run:
    made = take_in_observed(run, record, order_of(setting), is_golden=True).replay.produced_run
    assert made is not None
    return made


def mutants_of(record: Check) -> Iterator[Check]:
    """Another answer; another answer of a tool; another argument; an end after the first call of a tool."""
    tools = [place for place, step in enumerate(record["steps"]) if step["kind"] == "tool"]
    for name, change in (
        ("answer", {"output": "I don't have any documents. Order #4398 is not eligible."}),
        ("tool", {"steps": changed(record["steps"], tools[-1], result="not eligible, order #4398")}),
        ("argument", {"steps": changed(record["steps"], tools[-1], arguments={"query": "mine", "order_id": "ORD-1"})}),
        ("short", {"steps": record["steps"][: tools[0] + 1], "output": "That is all.", "final": None}),
    ):
        yield {**record, "status": "ok", "error": None, **change, "run_id": f"{record['run_id']} {name}"}


def changed(steps: list[Check], place: int, **fields: Any) -> list[Check]:
    return [*steps[:place], {**steps[place], **fields}, *steps[place + 1 :]]


def drawn(scene: Scene, dice: random.Random) -> Check:
    """A check as the form proposes it from any of the runs, with a value that some run has."""
    run = dice.choice(scene.known)
    proposal = dice.choice(proposals(run, trace_of(run)))
    return {**proposal.check, **valued(proposal, dice)}


def valued(proposal: Proposal, dice: random.Random) -> Check:
    if proposal.member is None:
        return {}
    if proposal.member == "contains":
        words = re.findall(r"[#\w']{3,}", as_text(proposal.value or "")) or ["order"]
        return {"contains": dice.choice(words)}
    moved = dice.choice((-1, 0, 1)) if proposal.member == "n" else 0
    return {proposal.member: max(1, proposal.value + moved) if moved else proposal.value}


def kept(scene: Scene, check: Check) -> Golden:
    mode = {"code": "code", "tools": "code_and_tools"}[scene.setting.mode]
    return create_golden(
        run=scene.run,
        wanted={"name": "drawn", "checks": [check], "replay": {"mode": mode, "on_difference": "play_on"}},
    )


def run_with_both(golden: Golden, scene: Scene, number: int) -> None:
    for name, record in scene.records.items():
        another = json.dumps({**json.loads(record), "run_id": f"{name} {number}"}).encode()
        take_in_golden_run(golden, another, order_of(scene.setting))
    golden.refresh_from_db()


@pytest.fixture
def scenes(monkeypatch) -> list[Scene]:
    return [scene_of(setting, number, monkeypatch) for number, setting in enumerate(SETTINGS)]


def goldens_by_truth(scenes: Sequence[Scene], dice: random.Random) -> dict[bool, list[tuple[Scene, Check]]]:
    """By whether they are real; of each the same number, and none twice."""
    found: dict[bool, dict[str, tuple[Scene, Check]]] = {True: {}, False: {}}
    for _ in range(4000):
        scene = dice.choice(scenes)
        check = drawn(scene, dice)
        outcomes = scene.outcomes(check)
        if None not in outcomes and len(found[is_real := len(set(outcomes)) == 2]) < EACH:
            found[is_real][f"{scene.setting} {check}"] = (scene, check)
        if all(len(each) == EACH for each in found.values()):
            break
    return {is_real: list(each.values()) for is_real, each in found.items()}


def test_tautological_goldens_are_warned_of_and_real_ones_are_not(scenes):
    seed = int(os.environ.get("REPLAY_TEST_SEED") or random.randrange(10**6))
    drawn = goldens_by_truth(scenes, random.Random(seed))
    warned: dict[bool, list[str]] = {True: [], False: []}
    for is_real, each in drawn.items():
        for number, (scene, check) in enumerate(each):
            golden = kept(scene, check)
            run_with_both(golden, scene, number + EACH * is_real)
            codes = [warning["code"] for warning in warnings_of(golden)]
            warned[is_real] += [f"{scene.setting} {check} {codes}"] if bool(codes) is is_real else []

    print(
        {("real" if is_real else "tautological"): len(each) for is_real, each in drawn.items()},
        f"REPLAY_TEST_SEED={seed}",
    )
    print("wrongly warned of:", *warned[True], sep="\n  ")
    print("not warned of:", *warned[False], sep="\n  ")
    assert {is_real: len(each) for is_real, each in drawn.items()} == {True: EACH, False: EACH}
    assert warned == {True: [], False: []}
