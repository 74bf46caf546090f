"""Asking for replays and cancelling them."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.errors import NotReplayable, StillRunning
from sessions_app.core.fork.changes import ForkError, NewModel, read_model
from sessions_app.core.fork.order import Order, read_order
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import (
    FORK_MODES,
    HELD_STATES,
    OF_CODE,
    OPEN_STATES,
    ReplayMode,
    ReplayQueue,
    ReplayState,
)
from sessions_app.queries.code_places import why_not_replayed
from sessions_app.services.live_models import live_model
from sessions_app.services.typed_json import without_secrets
from sessions_app.services.wakeups import wake

MODES = (ReplayMode.RECORDING, ReplayMode.CODE, ReplayMode.CODE_AND_TOOLS, ReplayMode.LIVE)
_LONGEST_RUN_ID = 512
HOW_TO_REGISTER = (
    "To register it, set REPLAY_AGENTS=name=package.module:attribute for the server and for the worker or runner that "
    "has its code, and start them again."
)


class RequestKeyUsed(ForkError, NotReplayable):
    """The key names another replay already."""


def request_replay(
    *,
    run: Run,
    user: User | None = None,
    mode: str = "recording",
    request_key: str | None = None,
    order: JsonObject | None = None,
) -> Replay:
    """Queue a replay that changes nothing. The same `request_key` again gives the replay that it gave before.

    `order` may hold breakpoints and, for the modes that run code, the agent, which of its tools are live, and what
    becomes of a request that is another one than was recorded (`on_difference`); for mode `live` the model with its
    settings, how often it is asked (`samples`), the agent, and what is expected; where a live model is asked,
    which connected one (`live_model`). Raises `NotReplayable` for a mode that
    is none of `MODES`, `RequestKeyUsed` for a key that was used for something else, and `ForkError` naming the field of
    the order.
    """
    wanted, agent = checked_order(run.project, mode, order or {})
    return queue_replay(run=run, user=user, mode=mode, request_key=request_key, order=wanted, agent=agent)


def checked_order(
    project: Project, mode: str, order: JsonObject, *, agent_is_named_later: bool = False
) -> tuple[JsonObject, str | None]:
    """The order of a replay that changes nothing, as it may be stored, and the agent that it names. Raises as
    `request_replay` does."""
    if mode not in MODES:
        raise NotReplayable(f"Mode {mode!r} is not available here; this server replays: {', '.join(MODES)}.")
    _check_unchanged(mode, order)
    wanted, read = read_wanted(project, _as_stored(mode, order))
    if mode in OF_CODE and read.agent is None and not agent_is_named_later:
        raise ForkError(f"Mode {mode} needs the name of a registered agent.", field="agent")
    if read.agent is not None or not agent_is_named_later:
        check_code(read)
    choose_live_model(project, wanted, read, field="mode" if mode == ReplayMode.LIVE else "on_difference")
    if mode == ReplayMode.RECORDING and read.agent is not None:
        raise ForkError("Mode recording runs no agent of yours; ask for mode code.", field="agent")
    if mode == ReplayMode.LIVE:
        _check_live(read)
    if mode == ReplayMode.RECORDING and read.on_difference != "stop":
        raise ForkError("A replay from the recording always plays on; ask for mode code.", field="on_difference")
    if mode == ReplayMode.CODE and read.tools.run:
        raise ForkError("In mode code the tools are frozen; ask for mode code_and_tools.", field="tools.run")
    return wanted, read.agent


def _as_stored(mode: str, order: JsonObject) -> JsonObject:
    """The order tells the child what runs; the mode is for people. What a live model may answer is no course of the
    recording any more: the replay goes on from its first step as a fork does, with nothing changed."""
    tools = order.get("tools") or {}
    if mode == ReplayMode.LIVE:
        pinned = {"kind": "model", "value": _pinned(order.get("model"))}
        changes = [pinned] if order.get("agent") is None else []
        kept = {name: value for name, value in order.items() if name != "model"}
        return {"samples": 1, **kept, "at_step": 1, "changes": changes}
    if mode == ReplayMode.CODE_AND_TOOLS and isinstance(tools, dict):
        order = {**order, "tools": {**tools, "run": True}}
    return {**order, "at_step": 1} if order.get("on_difference") == "live" and mode in OF_CODE else order


def _pinned(wanted: JsonValue) -> JsonObject:
    """The recorded model and settings, with temperature 0 unless the order says otherwise; a recorded seed is sent."""
    asked = NewModel() if wanted is None else read_model(wanted, "model")
    named = {} if asked.model is None else {"model": asked.model}
    return {**named, "settings": {"temperature": 0, **(asked.settings or {})}}


def _check_live(order: Order) -> None:
    if order.breakpoints:
        raise ForkError("A live model is asked without pauses; leave the breakpoints out.", field="breakpoints")
    if order.tools.any_runs:
        raise ForkError("In mode live the tools are frozen; ask for mode code_and_tools.", field="tools")
    if order.on_difference != "stop":
        raise ForkError("In mode live every request goes to the live model.", field="on_difference")


def choose_live_model(project: Project, wanted: JsonObject, order: Order, *, field: str) -> None:
    """Say in `wanted` which connected model is asked; nothing where it is that of the environment, or none is asked.
    Raises `ForkError` where there is none, or the day has no request left."""
    named = wanted.pop("live_model", None)
    if not order.asks_live_model:
        if named is not None:
            raise ForkError("Nothing here asks a live model, so leave live_model out.", field="live_model")
        return
    try:
        found = live_model(project, order.live_model)
    except ModelUnavailable as none:
        raise ForkError(none.reason, field=field if named is None else "live_model") from None
    if found.row is not None:
        wanted["live_model"] = found.name


def read_wanted(project: Project, typed: JsonObject) -> tuple[JsonObject, Order]:
    """An order as it may be stored, and what it says. Raises `ForkError` and `RedactionFailed`."""
    wanted = without_secrets(project, typed)
    tools = wanted.get("tools")
    for name, value in tools.items() if isinstance(tools, dict) else ():
        # That a tool is frozen may be said of each of them; they all are.
        if name not in ("run", "live") and value != "frozen":
            words = f"tools has run, true or false, and live, a list of names, and no {name!r}."
            raise ForkError(words, field=f"tools.{name}")
    return wanted, read_order(wanted)


def _check_unchanged(mode: str, order: JsonObject) -> None:
    for name in ("at_step", "changes"):
        if order.get(name):
            raise ForkError(f"A replay has no {name}; ask for a fork.", field=name)
    for name in ("samples", "model"):
        if order.get(name) is not None and mode != ReplayMode.LIVE:
            raise ForkError(f"Only mode live asks a model; there is no {name} in mode {mode}.", field=name)
    if order.get("model") is not None and order.get("agent") is not None:
        words = "Your own code says which model is asked, and how; change that in the code, or leave the agent out"
        raise ForkError(f"{words}.", field="model")


def check_code(order: Order) -> None:
    """That the agent is registered, and that tools run only where there is one."""
    known = ", ".join(registered_agents()) or "none"
    if order.agent is not None and order.agent not in registered_agents():
        words = f"No agent {order.agent!r} is registered on this server; there are: {known}"
        raise ForkError(f"{words}. {HOW_TO_REGISTER}", field="agent")
    if order.agent is None and order.tools.any_runs:
        words = "Only the code of a registered agent has tools that can run; name one as agent"
        raise ForkError(f"{words}. There are: {known}.", field="tools")


def registered_agents() -> list[str]:
    """Names of the agents that the server's settings know."""
    return sorted(settings.REPLAY_AGENTS)


def queue_replay(
    *,
    run: Run,
    user: User | None,
    mode: str,
    request_key: str | None,
    order: JsonObject,
    agent: str | None,
    course: JsonObject | None = None,
    is_golden: bool = False,
) -> Replay:
    """Queue a replay whose order has been checked; a worker is told after the commit."""
    with transaction.atomic():
        # Numbers and keys are given one after the other; who only refers to the project does not wait.
        Project.objects.select_for_update(no_key=True).get(pk=run.project_id)
        known = _known(run, mode, order, request_key)
        if known is not None:
            return known
        columns = {"course": course or {}, "request_key": request_key, "is_golden": is_golden}
        replay = create_replay(run, user, mode, order, agent=agent, **columns)
        transaction.on_commit(lambda: wake(replay))
    return replay


def check_ended(run: Run) -> None:
    if run.status == "running":
        raise StillRunning(run.run_id)


def create_replay(
    run: Run, user: User | None, mode: str, order: JsonObject, *, agent: str | None, **columns: Any
) -> Replay:
    """The row of a replay whose order has been checked. The project is locked, and nobody is told yet. Raises
    `StillRunning`, and `ForkError` where code of the run's framework cannot do what is asked."""
    check_ended(run)
    refusal = why_not_replayed(run, read_order(order))
    if refusal is not None:
        words, field = refusal
        raise ForkError(words, field=field)
    return Replay.objects.create(
        project_id=run.project_id,
        run=run,
        number=next_number(run, mode, is_golden=columns.get("is_golden", False)),
        mode=mode,
        queue=ReplayQueue.REPLAYS if agent is None else ReplayQueue.CODE,
        order=order,
        content_id=run.content_id,
        fork_id=_fork_id(run, mode) if mode in FORK_MODES else None,
        requested_by=user,
        woken_at=timezone.now(),
        progress_total=run.model_call_count + run.tool_call_count,
        **columns,
    )


def next_number(run: Run, mode: str, *, is_golden: bool = False) -> int:
    """Attempts at reproducing a run are counted by themselves, and so are its forks, and replays of its goldens. The
    project is locked."""
    is_fork = Q(mode__in=FORK_MODES)
    same_kind = run.replays.filter(is_fork if mode in FORK_MODES else ~is_fork, is_golden=is_golden)
    return (same_kind.aggregate(last=Max("number"))["last"] or 0) + 1


def _known(run: Run, mode: str, order: JsonObject, request_key: str | None) -> Replay | None:
    if request_key is None:
        return None
    known = Replay.objects.filter(project=run.project_id, request_key=request_key).first()
    if known is not None and known.run_id != run.pk:
        words = f"The request key {request_key!r} was used for a replay of another run."
        raise RequestKeyUsed(words, field="request_key")
    if known is not None and (known.mode, known.order) != (mode, order):
        raise RequestKeyUsed(f"The request key {request_key!r} was used for another order.", field="request_key")
    return known


def _fork_id(run: Run, mode: str) -> str:
    """Free while the project is locked, which it is here."""
    infix = "_resume_" if mode == ReplayMode.RESUME else "_fork_"
    while True:
        name = f"{run.run_id[: _LONGEST_RUN_ID - len(infix) - 8]}{infix}{secrets.token_hex(4)}"
        is_taken = Replay.objects.filter(project=run.project_id, fork_id=name).exists()
        if not is_taken and not Run.objects.filter(project=run.project_id, run_id=name).exists():
            return name


def cancel_replay(replay: Replay, user: User | None = None) -> Replay:
    cancel_all(Replay.objects.filter(pk=replay.pk), user)
    replay.refresh_from_db()
    return replay


def cancel_all(replays: QuerySet[Replay], user: User | None = None) -> None:
    """A waiting or paused replay is cancelled at once; a running one as soon as its worker sees the wish."""
    still_open = replays.filter(state__in=OPEN_STATES)
    waiting = still_open.exclude(state__in=HELD_STATES)
    waiting.update(state=ReplayState.CANCELLED, verdict="cancelled", finished_at=timezone.now(), cancelled_by=user)
    still_open.update(is_cancel_wanted=True, cancelled_by=user)
