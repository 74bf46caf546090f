"""Putting traces that hold one call of a model each where they belong: core/assembly/lone_calls.py says where that is.

Each such trace has a row with its keys. Rows that are new or have changed, and those around them, are settled together,
one project at a time; runs that get or lose spans by that are made again. Which trace came first makes no difference:
what is decided depends on the rows alone, and on the runs of agents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from sessions_app.core.assembly import lone_calls
from sessions_app.core.assembly.lone_calls import gone_on_from, told_first
from sessions_app.core.run import Run as MadeRun
from sessions_app.core.spans.span import moment
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.content_keys import answered_as
from sessions_app.mapping.contents_by_key import contents_by_key
from sessions_app.mapping.span_ids import answer_key
from sessions_app.models import LoneCall, Project, Run, RunContent, Trace
from sessions_app.models.traces import WANTED
from sessions_app.services.contents import release
from sessions_app.services.run_store import delete_empty, lock_name, lock_trace
from sessions_app.services.wakeups import wake_for_spans

_AT_ONCE = 200
"""Rows that are settled in one transaction."""
_ALIKE = 20
"""Rows with one key that are looked at. Calls that more than one other could belong to stay by themselves."""
_KEYS = ("continues", "leaves", "response")


# --- what traces say -----------------------------------------------------------------------------


def note(trace: Trace, call: lone_calls.LoneCall | None) -> bool:
    """Keep what the trace says now; whether it is one call, which waits to be settled. In the trace's turn."""
    before = LoneCall.objects.filter(trace=trace).first() if trace.batches_received > 1 else None
    if before is not None:
        _unsettle(_around(before))
    if call is None:
        LoneCall.objects.filter(trace=trace).delete()
        return False
    said = asdict(call)
    del said["trace_id"]
    LoneCall.objects.update_or_create(trace=trace, defaults={**said, "project": trace.project, "is_settled": False})
    return True


def unsettle_told_again(trace: Trace, run: MadeRun) -> None:
    """Calls that came before the trace of the agent that made them, of which this is the run."""
    keys = [key for step in run.steps if (key := answer_key(step)) is not None]
    told = LoneCall.objects.filter(project=trace.project, response__in=keys, after=None) if keys else None
    if told is not None and not LoneCall.objects.filter(trace=trace).exists():
        _unsettle(told)


def _unsettle(rows: QuerySet[LoneCall]) -> None:
    rows.filter(is_settled=True).update(is_settled=False)


# --- where they belong ---------------------------------------------------------------------------


def settle(project: Project) -> list[Trace]:
    """Settle rows that wait for it; the traces whose runs are to be made again, none when nothing waits.

    Where somebody is making one of these now, nothing is done: they wait for the next round.
    """
    if not _rows(project).filter(is_settled=False).exists():
        return []
    with transaction.atomic():
        lock_name(project, "lone calls")
        waiting = list(_rows(project).filter(is_settled=False).order_by("began_ns", "pk")[:_AT_ONCE])
        near = {row.pk: row for row in (*waiting, *(other for row in waiting for other in _around(row)[:_ALIKE]))}
        _place_all(list(near.values()))
        wanted = _put_together(near.values())
        if not all(lock_trace(project, trace.trace_id, waits=False) for trace in wanted):
            transaction.set_rollback(True)
            wake_for_spans()
            return []
        Trace.objects.filter(pk__in=[trace.pk for trace in wanted]).update(batches_assembled=WANTED)
        LoneCall.objects.filter(pk__in=near).update(is_settled=True)
    return wanted


def _rows(project: Project) -> QuerySet[LoneCall]:
    return LoneCall.objects.filter(project=project).select_related("trace")


def _around(row: LoneCall) -> QuerySet[LoneCall]:
    """Those whose place may be another one for this row."""
    keys = [key for key in (row.continues, row.leaves) if key is not None]
    return _rows(row.project).filter(Q(continues__in=keys) | _at_once(row)).exclude(pk=row.pk)


def _at_once(row: LoneCall) -> Q:
    is_same = Q(response=row.response, began_ns__lte=row.ended_ns, ended_ns__gte=row.began_ns)
    return is_same if row.response is not None else Q(pk=None)


def _place_all(rows: list[LoneCall]) -> None:
    free = [row for row in rows if not _is_worked_on(row)]
    for row in free:
        first = _told_first(row)
        row.after, row.is_told_again = first, first is not None
        row.save(update_fields=["after", "is_told_again"])
    for row in free:
        # Only now it is known from which rows others can go on.
        if not row.is_told_again and row.continues is not None:
            row.after = _gone_on_from(row)
            row.save(update_fields=["after"])


def _is_worked_on(row: LoneCall) -> bool:
    """Whether people did something with its run as it is."""
    done = ("replays", "goldens", "notes", "cold_case", "share_links")
    is_any = Q(*[(f"{each}__isnull", False) for each in done], _connector=Q.OR)
    return row.trace.run_id is not None and Run.objects.filter(is_any, pk=row.trace.run_id).exists()


def _told_first(row: LoneCall) -> Trace | None:
    """By an agent's trace, or by another instrumentation of a client."""
    same = list(_rows(row.project).filter(_at_once(row))[:_ALIKE])
    first = told_first(_call(row), map(_call, same))
    if first is None or row.response is None:
        return None
    agents = _agents_that_asked(row)
    if len(agents) == 1:
        return agents[0]
    is_itself = first.trace_id == row.trace.trace_id or agents
    return None if is_itself else next(each.trace for each in same if each.trace.trace_id == first.trace_id)


def _agents_that_asked(row: LoneCall) -> list[Trace]:
    assert row.response is not None
    key = bytes(row.response)
    contents = contents_by_key([row.project_id], [answered_as(key)])
    runs = Run.objects.filter(content__in=contents, trace__isnull=False, trace__lone_call=None)
    found = runs.select_related("trace", "content")[:_ALIKE]
    return [run.trace for run in found if any(_is_call_of(row, step) for step in run.steps if step.answer_key == key)]


def _is_call_of(row: LoneCall, step: StepSummary) -> bool:
    began, ended = moment(row.began_ns), moment(row.ended_ns)
    if began is None or ended is None or step.started_at is None or step.duration_ms is None:
        return False
    return step.started_at <= ended and began <= step.started_at + timedelta(milliseconds=step.duration_ms)


def _gone_on_from(row: LoneCall) -> Trace | None:
    others = _rows(row.project).filter(is_told_again=False)
    # Two of each say that it is not clear.
    before = list(others.filter(leaves=row.continues)[:2])
    answered = list(others.filter(continues=row.continues, is_answered=True)[:2])
    found = gone_on_from(_call(row), [_call(each) for each in (*before, *answered)])
    return before[0].trace if found is not None else None


def _call(row: LoneCall) -> lone_calls.LoneCall:
    keys = {name: None if getattr(row, name) is None else bytes(getattr(row, name)) for name in _KEYS}
    return lone_calls.LoneCall(
        trace_id=row.trace.trace_id,
        scope=row.scope,
        is_answered=row.is_answered,
        began_ns=row.began_ns,
        ended_ns=row.ended_ns,
        **keys,
    )


# --- what that changes ---------------------------------------------------------------------------


def _put_together(near: Collection[LoneCall]) -> list[Trace]:
    """Have each trace join the first one of its chain. The traces whose runs get or lose spans, or are new."""
    heads = {_head(row.trace) for row in near} | {_head(row.after) for row in near if row.after is not None}
    members = {trace.pk: trace for trace in Trace.objects.filter(Q(pk__in=heads) | Q(joined__in=heads))}
    rows = LoneCall.objects.filter(trace__in=members)
    after: dict[int, int | None] = dict(rows.values_list("trace_id", "after_id"))
    wanted, joining = {row.trace_id for row in near}, []
    for trace in members.values():
        first = _first(trace.pk, after)
        joined = None if first == trace.pk else first
        if joined != trace.joined_id:
            wanted |= {trace.pk, _head(trace), first}
            trace.joined_id = joined
            joining.append(trace)
    Trace.objects.bulk_update(joining, ["joined"])
    _drop_runs_of([trace for trace in joining if trace.joined_id is not None])
    return [members[key] for key in sorted({_head(members[key]) for key in wanted})]


def _head(trace: Trace) -> int:
    return trace.joined_id or trace.pk


def _first(key: int, after: dict[int, int | None]) -> int:
    while (before := after.get(key)) is not None:
        key = before
    return key


def _drop_runs_of(traces: Iterable[Trace]) -> None:
    """Their steps are in another run now."""
    runs = Run.objects.filter(pk__in=[trace.run_id for trace in traces if trace.run_id is not None])
    sessions = set(runs.values_list("session_id", flat=True))
    contents = list(runs.values_list("content_id", flat=True))
    runs.delete()
    release(RunContent.objects.filter(pk__in=contents))
    delete_empty(sessions)
