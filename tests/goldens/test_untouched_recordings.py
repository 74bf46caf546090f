"""Goldens from the recording, made of a run itself: none fails that the run passes, and none passes on an outcome that
the replay did not come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from replay_goldens.checks import all_passed, judge, read_checks
from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.goldens.playing import played_of, samples_of
from sessions_app.core.goldens.proposals import proposals
from sessions_app.core.goldens.results import result_of
from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.proof import Proof, read_proof
from sessions_app.core.replay.words import ReplayFacts
from sessions_app.core.run import Run
from tests.recorder import openai_scenarios, playing, rare_agents
from tests.recorder.openai_playing import bytes_of
from tests.recorder.replaying import replayed
from tests.recorder.test_openai_agents_replays import played as openai_played
from tests.trials.recorded_runs import files, item_files, message_dumps, pydantic_ai_runs, session_files


def records() -> Iterator[tuple[str, bytes]]:
    for make in (*rare_agents.REPRODUCED, *rare_agents.JUDGED):
        yield from ((make.__name__, record) for record in playing.recorded(make()))
    for name in openai_scenarios.SCENARIOS:
        yield from ((name, bytes_of(record)) for record in openai_played(name, "run"))
    for source in (pydantic_ai_runs(("run",)), session_files(), message_dumps(), item_files(), files()):
        yield from ((each.name, each.content) for each in source)


def runs() -> Iterator[tuple[str, Run]]:
    for name, record in records():
        try:
            yield name, with_conversation(parse_document(record))
        except RecordError:
            continue  # a list of runs, as one of the files is


def checks_of(run: Run) -> Iterator[JsonObject]:
    """What the form proposes, with what the run did; and that it fails, in each kind that can be turned round."""
    said = "" if run.output is None else run.output.as_text()
    for proposal in proposals(run, trace_of(run)):
        value = said if proposal.member == "contains" and proposal.check["kind"] == "output" else proposal.value
        if proposal.member is None or value not in (None, ""):
            yield {**proposal.check, **({proposal.member: value} if proposal.member else {})}
    yield {"kind": "output", "matches": "^.*"}
    yield {"kind": "output", "contains": "(nobody says this)"}
    yield {"kind": "ends_within", "n": 1}


def result(run: Run, check: JsonObject, played: Result, made: Run | None) -> str:
    divergence, limit = played.divergence, played.facts.get("limit") or {}
    facts = ReplayFacts(
        verdict=played.verdict,  # type: ignore[arg-type]  # one of ours
        proof=read_proof(played.facts.get("proof")),
        stopped_at=divergence.step if divergence else None,
        limit=limit.get("reason"),
        limit_code=limit.get("code"),
        agents_not_played=played.facts.get("agents_not_played", ()),
    )
    produced = [] if made is None else [made]
    came_to = played_of(facts, produced)
    samples = samples_of(run, produced, read_checks([check]), came_to, mode="recording")
    return result_of(samples, came_to).result


def verdict(run: Run, check: JsonObject) -> bool | None:
    """Of the run alone."""
    return all_passed(judge(read_checks([check]), trace_of(run)))


def fault(run: Run, check: JsonObject, result: str, proof: Proof | None) -> str | None:
    passes = False if run.status == "error" else verdict(run, check)
    if result == "fail" and passes is not False:
        return f"{check} fails"
    is_proven = proof is not None and proof.outcome.state == "proven"
    without_outcome = replace(run, status="cut_off", output=None, error=None)
    if result == "pass" and not is_proven and verdict(without_outcome, check) is not True:
        return f"{check} passes"
    if is_proven and passes is not None and result != ("pass" if passes else "fail"):
        return f"{check} is {result} where the outcome was proven"
    return None


def test_a_golden_of_the_run_itself_says_of_it_what_its_replay_proved():
    faults: list[str] = []
    results: Counter[str] = Counter()
    for name, run in runs():
        played, made = replayed(encode_native(run))
        proof = read_proof(played.facts.get("proof"))
        for check in checks_of(run):
            found = result(run, check, played, made)
            results[found] += 1
            faults += [f"{name}: {each}" for each in (fault(run, check, found, proof),) if each is not None]

    assert not faults, "\n".join(faults)
    assert min(results[each] for each in ("pass", "fail", "could_not_run")) > 50, results
