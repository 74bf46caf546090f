"""The whole run in a few lines: a track for each agent and kind of step, and the growth of the context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Run
from sessions_app.web.sessions.outline import offset_words
from sessions_app.web.timeline.axis import SMALLEST, WIDTH, Axis, Reach, Tick
from sessions_app.web.timeline.bars import rectangle

TRACK, BAR = 16, (3, 10)
CONTEXT = 40
TRACKS = 12
"""More would be a page of their own."""
SLICES = 100
MANY = 400
"""Steps of a track that are no longer drawn one by one."""
KINDS = ("model", "tool", "retrieval", "agent", "other")


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    agent: str | None
    """None for the agent of the run itself."""
    kind: str
    bars: str
    failed: str
    run: Run | None = None
    """The run of a sub-agent that this track stands for."""
    outside: str = ""
    """When that run started, where it lies before or after all that is drawn."""
    top: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """Tokens that went into each model call of the run's own agent; sub-agents have contexts of their own."""

    top: int
    line: str
    most: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """A part of the overview that leads to the step which ran there."""

    x: int
    width: int
    step: StepSummary


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    tracks: list[Track]
    hidden: int
    """Tracks that are left out."""
    context: Context | None
    slices: list[Slice]
    ticks: list[Tick]
    shown: tuple[int, int] | None
    """The part that the rows show; None where they show all."""
    playhead: int | None
    height: int


def overview_of(
    steps: Sequence[StepSummary], called: Sequence[Run], origin: datetime | None, axis: Axis, rows: Axis, at: int
) -> Overview:
    tracks = [*_tracks(steps, axis), *_called_tracks(called, origin, axis)]
    hidden, tracks = len(tracks[TRACKS:]), tracks[:TRACKS]
    context = _context(steps, axis, len(tracks) * TRACK)
    reach = axis.reaches.get(at)
    is_whole = (rows.low, rows.high) == (axis.low, axis.high)
    return Overview(
        tracks=[replace(track, top=number * TRACK) for number, track in enumerate(tracks)],
        hidden=hidden,
        context=context,
        slices=_slices(steps, axis),
        ticks=axis.ticks,
        shown=None if is_whole else axis.bar((rows.low, rows.high)),
        playhead=None if reach is None else axis.bar(reach)[0],
        height=len(tracks) * TRACK + (CONTEXT if context else 0),
    )


# --- tracks ------------------------------------------------------------------------------------


def _tracks(steps: Sequence[StepSummary], axis: Axis) -> list[Track]:
    """By agent in the order of their first steps, and by kind."""
    agents = agents_of(steps)
    found: dict[tuple[str | None, str], list[StepSummary]] = {}
    for step in steps:
        if step.index in axis.reaches:
            found.setdefault((agents[step.index], step.kind), []).append(step)
    order = list(dict.fromkeys([None, *agents.values()]))
    keys = sorted(found, key=lambda key: (order.index(key[0]), KINDS.index(key[1])))
    return [_track(agent, kind, found[agent, kind], axis) for agent, kind in keys]


def agents_of(steps: Sequence[StepSummary]) -> dict[int, str | None]:
    """The sub-agent that each step ran inside of; None is the agent of the run."""
    kinds_and_names = {step.index: (step.kind, step.name) for step in steps}
    agents: dict[int, str | None] = {}
    for step in steps:
        parent = step.parent if step.parent in agents else None
        kind, name = kinds_and_names[parent] if parent is not None else ("", "")
        agents[step.index] = name if kind == "agent" else agents[parent] if parent is not None else None
    return agents


def _track(agent: str | None, kind: str, steps: Sequence[StepSummary], axis: Axis) -> Track:
    reaches = [axis.reaches[step.index] for step in steps]
    return Track(
        agent=agent,
        kind=kind,
        bars=busy_shares(reaches, axis) if len(reaches) > MANY else joined_bars(reaches, axis),
        failed="".join(f"M{x} 1v14" for x in _failed_places(steps, axis)),
    )


def _failed_places(steps: Iterable[StepSummary], axis: Axis) -> list[int]:
    """Where they ended."""
    places = {sum(axis.bar(axis.reaches[step.index])) // SMALLEST * SMALLEST for step in steps if step.has_failed}
    return sorted(places)


def joined_bars(reaches: Iterable[Reach], axis: Axis) -> str:
    """What nobody could tell apart is one bar, so that a drawing has an end however many steps there are."""
    joined: list[list[int]] = []
    for start, width in sorted(map(axis.bar, reaches)):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], start + width)
        else:
            joined.append([start, start + width])
    return "".join(rectangle(start, end - start, *BAR) for start, end in joined)


def busy_shares(reaches: Iterable[Reach], axis: Axis) -> str:
    """Bars as high as the share of their time in which a step ran: of thousands of steps no single one is seen."""
    width = (axis.high - axis.low) / SLICES or 1
    busy = [0.0] * SLICES
    for start, end in reaches:
        first, last = (min(int((at - axis.low) / width), SLICES - 1) for at in (start, end))
        for part in range(first, last + 1):
            low = axis.low + part * width
            busy[part] += max(min(end, low + width) - max(start, low), 0) / width
    heights = [min(round(share * (TRACK - 2)), TRACK - 2) for share in busy]
    unit = WIDTH // SLICES
    return "".join(rectangle(i * unit, unit, TRACK - 1 - high, high) for i, high in enumerate(heights) if high)


def _called_tracks(called: Sequence[Run], origin: datetime | None, axis: Axis) -> list[Track]:
    """The runs of sub-agents, as long as they took or at the step that called them."""
    reaches = [(run, _reach(run, origin, axis)) for run in called]
    return [_called_track(run, reach, axis) for run, reach in reaches if reach is not None]


def _called_track(run: Run, reach: Reach, axis: Axis) -> Track:
    track = Track(agent=run.agent_name or run.run_id, kind="agent", bars="", failed="", run=run)
    start, end = reach
    if axis.is_time and (start >= axis.high or end <= axis.low):
        return replace(track, outside=_whole_seconds(offset_words(start)))
    failed = f"M{sum(axis.bar(reach))} 1v14" if run.status == "error" else ""
    return replace(track, bars=rectangle(*axis.bar(reach), *BAR), failed=failed)


def _reach(run: Run, origin: datetime | None, axis: Axis) -> Reach | None:
    if not axis.is_time or run.started_at is None or origin is None:
        return axis.reaches.get(run.parent_step or 0)
    start = (run.started_at - origin).total_seconds() * 1000
    return start, start + (run.duration_ms or 0)


def _whole_seconds(offset: str) -> str:
    """Of minutes; less is told exactly."""
    return offset if offset.endswith("s") else offset.partition(".")[0]


# --- the growth of the context -----------------------------------------------------------------


def _context(steps: Sequence[StepSummary], axis: Axis, top: int) -> Context | None:
    agents = agents_of(steps)
    points = [
        (axis.x(axis.reaches[step.index][0]), step.input_tokens)
        for step in steps
        if step.input_tokens is not None and step.index in axis.reaches and agents[step.index] is None
    ]
    if not points:
        return None
    most = max(tokens for _, tokens in points)
    places = [(x, top + CONTEXT - 3 - round(tokens / max(most, 1) * (CONTEXT - 8))) for x, tokens in points]
    return Context(top=top, line=_stairs(places), most=most)


def _stairs(places: Sequence[tuple[int, int]]) -> str:
    """Each call has its tokens until the next one; of those at one place the last."""
    (first, y), *rest = dict(places).items()
    return f"M{first} {y}" + "".join(f"H{x}V{y}" for x, y in rest) + f"H{WIDTH}"


# --- ways into the rows ------------------------------------------------------------------------


def _slices(steps: Sequence[StepSummary], axis: Axis) -> list[Slice]:
    """Each part leads to the last step that had begun by its end."""
    width = WIDTH // SLICES
    starts = [(axis.x(axis.reaches[step.index][0]), step.index) for step in steps if step.index in axis.reaches]
    placed = sorted((min(x, WIDTH - 1), index) for x, index in starts)
    by_index = {step.index: step for step in steps}
    found: dict[int, tuple[int, int]] = {}
    at = 0
    for x in range(0, WIDTH, width) if placed else ():
        while at + 1 < len(placed) and placed[at + 1][0] < x + width:
            at += 1
        start, _ = found.get(placed[at][1], (x, x))
        found[placed[at][1]] = (start, x + width)
    return [Slice(x=start, width=end - start, step=by_index[index]) for index, (start, end) in found.items()]
