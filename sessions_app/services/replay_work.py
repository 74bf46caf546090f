"""Working on a claimed replay: the run goes to a child process, its result into the store."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from sessions_app.agents.own_code.commit import commit_of
from sessions_app.agents.process.code_sandbox import CodeChild, CodeCrashed
from sessions_app.agents.process.sandbox import ChildDied, ChildPool, ReplayChild
from sessions_app.core.errors import LeaseLost, StoredBytesMissing
from sessions_app.core.fork.order import Order, read_order
from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run
from sessions_app.mapping.load import load_content
from sessions_app.mapping.rows import storable
from sessions_app.models import Replay
from sessions_app.models.replays import ReplayQueue, ReplayState
from sessions_app.services import leases
from sessions_app.services.inner_records import inner_records
from sessions_app.services.observed_by_child import judged
from sessions_app.services.registered_agents import code_limits
from sessions_app.services.replay_questions import Questions
from sessions_app.services.replay_results import produced_run_id, store_result
from sessions_app.services.replays import HOW_TO_REGISTER
from sessions_app.services.samplings import Sampling

logger = logging.getLogger(__name__)
_POLL_SECONDS = 0.25
_BEAT_SECONDS = 0.5
"""How soon a wish to cancel is seen, both together."""


class Cancelled(Exception):
    """Somebody wants this replay to stop."""


class OutOfTime(Exception):
    """The replay took longer than it may."""


@dataclass
class _Progress:
    done: int = 0
    total: int = 0


def work_on(replay_id: int, *, worker: str, children: ChildPool) -> bool:
    """Take up a replay and see it through. False when there was nothing to take up."""
    replay = leases.claim(replay_id, worker)
    if replay is None:
        return False
    try:
        _run(replay, children)
    except LeaseLost:
        logger.warning("Replay %s was taken over by another worker.", replay.replay_id)
    except Exception as error:
        # Handed back at once. Its text may hold a payload, and the database may be away; then the lease does it.
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__} in {place.name}, line {place.lineno} of {Path(place.filename).name}"
        logger.error("The work on replay %s failed: %s.", replay.replay_id, reason)
        leases.give_up(replay, reason=f"The worker failed ({reason}).")
    return True


def _run(replay: Replay, children: ChildPool) -> None:
    agent = read_order(replay.order).agent
    if agent is not None and agent not in settings.REPLAY_AGENTS:
        _fail(replay, f"No agent {agent!r} is registered where this replay was taken up. {HOW_TO_REGISTER}")
        return
    try:
        run = load_content(replay.content)
    except StoredBytesMissing as error:
        _fail(replay, str(error))
        return
    questions = Questions(replay)
    try:
        if replay.is_sampled:
            _sample(replay, run, children, questions)
        else:
            record, run_id = _record(run), produced_run_id(replay)
            result = judged(replay, run, _replayed(replay, record, run_id, children, questions))
            facts = {**(result.get("facts") or {}), **({"live_model": questions.asked} if questions.asked else {})}
            live_calls = result["live_calls"] + questions.live_requests
            store_result(replay, {**result, "facts": facts, "live_calls": live_calls})
    except Cancelled:
        leases.finish(replay, state=ReplayState.CANCELLED, verdict="cancelled", **_outside(questions.live_requests))
    except OutOfTime:
        words = f"The replay took longer than {settings.REPLAY_TIME_LIMIT_SECONDS} s."
        _fail(replay, words, **_outside(questions.live_requests))
    except CodeCrashed as crash:  # it would do the same again
        live_calls = _outside(crash.live_calls + questions.live_requests)
        facts = {"commit": _commit(replay)} if crash.has_begun else {}
        leases.finish(
            replay, state=ReplayState.CRASHED, verdict="could_not_run", error=str(crash), facts=facts, **live_calls
        )
    except ChildDied as death:
        leases.give_up(replay, reason=f"The replay process died ({death}).")


def _record(run: Run) -> str:
    """What the child is given."""
    return encode_native(run).decode()


def _outside(calls: int) -> dict[str, int]:
    """Calls that were made before a replay was left; where there were none, nothing was measured."""
    return {"live_calls": calls} if calls else {}


def _sample(replay: Replay, run: Run, children: ChildPool, questions: Questions) -> None:
    """One fork after the other, each with the model's own answers."""
    sampling, record = Sampling(replay, run), _record(run)
    for run_id in sampling.run_ids():
        result = _replayed(replay, record, run_id, children, questions)
        sampling.add(run_id, result, live_requests=questions.live_requests, asked=questions.asked)
        leases.note(replay, facts=sampling.facts())
    sampling.finish()


def _replayed(replay: Replay, record: str, run_id: str, children: ChildPool, questions: Questions) -> JsonObject:
    with _child(replay, children) as child:
        result = _converse(replay, child, record, run_id, questions)
        if isinstance(child, CodeChild):
            if result.pop("ran_code", False):
                result["facts"]["commit"] = _commit(replay)
            result["live_calls"] = child.live_calls  # also those before what kept it from running to its end
        if result["verdict"] == "could_not_run":
            child.end()  # it may be out of memory, or halfway through something
    return result


@contextmanager
def _child(replay: Replay, children: ChildPool) -> Iterator[ReplayChild]:
    """The team's code has a process of its own. Another child that is left in any other way than well is not used
    again."""
    if replay.queue == ReplayQueue.CODE:
        child: ReplayChild = _code_child(read_order(replay.order), settings.REPLAY_AGENTS)
        try:
            yield child
        finally:
            child.end()
        return
    child = children.take()
    try:
        yield child
    except BaseException:
        child.end()
        raise
    if child.is_alive:
        children.give_back(child)


def _code_child(order: Order, agents: dict[str, str]) -> CodeChild:
    """Only a name comes from the database; the settings say where that agent is."""
    assert order.agent is not None
    return CodeChild(agents[order.agent], code_limits(), settings.REPLAY_AGENT_ENV, live=order.tools.live)


def _commit(replay: Replay) -> str | None:
    """Of the code that runs here."""
    agent = read_order(replay.order).agent
    return None if agent is None else storable(commit_of(settings.REPLAY_AGENTS[agent], settings.REPLAY_AGENT_ENV))


def _converse(replay: Replay, child: ReplayChild, record: str, run_id: str, questions: Questions) -> JsonObject:
    """Send the run, keep the lease while the child works, answer what it asks, return its result."""
    what = {"record": record, "run_id": run_id, "order": replay.order, "course": replay.course}
    what["inner"] = inner_records(replay, record)
    child.begin({"id": replay.replay_id, **what})
    progress, deadline = _Progress(total=replay.progress_total), _deadline()
    next_beat = 0.0
    for answer in child.answers(poll_seconds=_POLL_SECONDS):
        if answer is not None and answer.get("id") == replay.replay_id:
            if "result" in answer:
                return dict(answer["result"])
            if "ask" in answer:
                _reply(replay, child, answer, questions)
            else:
                progress.done, progress.total = answer["progress"]
        if time.monotonic() >= next_beat:
            _beat(replay, progress)
            next_beat = time.monotonic() + _BEAT_SECONDS
        if time.monotonic() > deadline:
            raise OutOfTime
    raise ChildDied("no answer")


def _reply(replay: Replay, child: ReplayChild, answer: JsonObject, questions: Questions) -> None:
    """In a thread: a live model may think for longer than a lease lasts, and somebody may cancel meanwhile."""

    def reply() -> None:
        try:
            found = _found(child, answer["ask"], questions)
        except Exception as error:
            logger.error("A question of replay %s could not be answered: %s.", replay.replay_id, type(error).__name__)
            child.end()
        else:
            child.send({"id": replay.replay_id, "n": answer["n"], "reply": found})
        finally:
            connection.close()

    threading.Thread(target=reply, daemon=True).start()


def _found(child: ReplayChild, question: JsonObject, questions: Questions) -> JsonValue:
    if question.get("what") == "live_tool" and isinstance(child, CodeChild):
        return child.run_live_tool(question)
    return questions.reply(question)


def _deadline() -> float:
    return time.monotonic() + settings.REPLAY_TIME_LIMIT_SECONDS


def _beat(replay: Replay, progress: _Progress) -> None:
    if leases.beat(replay, done=progress.done, total=progress.total):
        raise Cancelled


def _fail(replay: Replay, reason: str, **found: int) -> None:
    leases.finish(replay, state=ReplayState.FAILED, verdict="could_not_run", error=reason, **found)
