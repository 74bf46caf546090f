"""Runs that cannot be reproduced, grouped by what was missing, and what would have closed most of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations, groupby
from typing import Any

from django.db.models import QuerySet

from sessions_app.models import Project, Replay, Run, RunContent
from sessions_app.models.replays import FORK_MODES
from sessions_app.queries.failure_groups import told_of
from sessions_app.queries.search import IS_COLD

MOST = 2000
"""Newest cold cases that are read for the board; more are counted as "newest 2,000"."""
SHOWN_IN_GROUP = 10
NAMED_OF_GROUP = 200
"""Of each group those whose tools and agents are read."""
_FIELDS = (
    "run_id", "received_at", "started_at", "kit", "kit_lacks", "verdict_reasons", "input_preview", "error_preview",
    "verdict", "project", "session", "content", "cold_case", "agent_name", "status", "anomalies", "story",
    "failure_group", "verdict_step",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """How to capture it next time, for the runs of one framework or instrumentation."""

    sentence: str
    code: str | None
    runs: int
    """Cold cases that it is for."""
    agents: tuple[str, ...]
    """Those whose runs they are, as far as they have names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingThing:
    """What cold cases lack: what the judge's reason names, or a line of the replay kit."""

    key: str
    title: str
    missing_in: int
    """How many of the cold cases lack it."""
    advice: tuple[Advice, ...] = ()
    """One for each framework that was seen; that for most runs comes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheapestFixes:
    """The two things that, captured, would have made the most cold cases replayable."""

    things: tuple[MissingThing, ...]
    completes: int
    """Cold cases that lack nothing else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdRun:
    run: Run
    missing: tuple[str, ...]
    """Without which it cannot be replayed."""
    tried: Replay | None = None
    """Of a run that a person marked: the replay that reproduced it, else the newest that ended."""
    came_again: bool = False
    """Its failure did, in a run that can be replayed."""

    @property
    def is_marked(self) -> bool:
        return hasattr(self.run, "cold_case")

    @property
    def is_untried(self) -> bool:
        return self.is_marked and self.run.verdict != "cold" and self.tried is None

    @property
    def told(self) -> str:
        """What went wrong in it."""
        return told_of(self.run)

    @property
    def reason(self) -> str:
        """What the judge found, as its group is called; else what the person said who marked it."""
        found = [reason["message"] for reason in self.run.verdict_reasons if self.missing]
        return str(found[0]) if found else self.mark or "No reason was kept."

    @property
    def mark(self) -> str:
        """What was said by who marked it."""
        return str(self.run.cold_case.words) if self.is_marked else ""

    @property
    def at(self) -> datetime:
        return self.run.started_at or self.run.received_at


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdGroup:
    """Cold cases that lack the same things, or that people marked for one reason."""

    kit: tuple[MissingThing, ...]
    """Lines of the kit that they lack besides, those that most of them lack first."""
    things: tuple[MissingThing, ...]
    runs: list[ColdRun]
    """Those that are shown: those that started last, first."""
    members: list[ColdRun]
    """Those whose tools and agents are named."""
    count: int
    first_at: datetime
    last_at: datetime
    is_marked: bool
    mark: str
    """What was said by who marked all of them."""
    places: tuple[str, ...] = ()
    """`cancel_order of support-bot`: where the shown ones lack it."""

    @property
    def reason(self) -> str | None:
        """Why they are cold, where one sentence says it of all that are shown."""
        reasons = {case.reason for case in self.runs}
        return reasons.pop() if len(reasons) == 1 and not self.is_marked else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdBoard:
    groups: list[ColdGroup]
    total: int
    lacking: int
    """Those that cannot be replayed."""
    is_cut: bool
    fixes: CheapestFixes

    @property
    def marked(self) -> int:
        """Those that could be, and that people marked."""
        return self.total - self.lacking

    @property
    def _shown(self) -> list[ColdRun]:
        return [case for group in self.groups for case in group.runs]

    @property
    def is_any_tried(self) -> bool:
        return any(case.tried is not None for case in self._shown)

    @property
    def is_any_in_part(self) -> bool:
        """Can be replayed, but not to its end."""
        return any(case.run.verdict == "replayable_to_step" for case in self._shown)

    @property
    def untried(self) -> list[Run]:
        """Marked by people, replayable, and never replayed: of those that are shown."""
        return [case.run for case in self._shown if case.is_untried]


def cold_board(project: Project) -> ColdBoard:
    """Five queries for any number of cases."""
    read = list(cold_runs(project)[: MOST + 1])
    cases = [ColdRun(run=run, missing=needs_of(run)) for run in read[:MOST]]
    counts = Counter(key for case in cases for key in case.missing)
    groups = _groups(cases, counts)
    return ColdBoard(
        groups=_with_twins(project, _with_replays(_with_places(groups))),
        total=len(cases),
        lacking=sum(case.run.verdict == "cold" for case in cases),
        is_cut=len(read) > MOST,
        fixes=cheapest_fixes([case.missing for case in cases], _things(cases, counts)),
    )


def cold_runs(project: Project) -> QuerySet[Run]:
    runs = Run.objects.filter(IS_COLD, project=project, origin="recorded").only(*_FIELDS)
    return runs.select_related("session", "cold_case__marked_by").order_by("-pk")


def needs_of(run: Run) -> tuple[str, ...]:
    """What made it cold: nothing of the record, where the judge can replay it and a person marked it."""
    if run.verdict != "cold":
        return ()
    return tuple(dict.fromkeys(reason["code"] for reason in run.verdict_reasons)) or missing_keys(run)


def missing_keys(run: Run) -> tuple[str, ...]:
    """In the order of the kit. A mark keeps what was missing when it was made."""
    if hasattr(run, "cold_case"):
        return tuple(run.cold_case.missing)
    return tuple(run.kit_lacks)


def cheapest_fixes(missing: list[tuple[str, ...]], things: dict[str, MissingThing]) -> CheapestFixes:
    """Of all pairs the one that completes most cases; where none does, the things lacked most often."""
    most = sorted(things.values(), key=lambda thing: -thing.missing_in)
    pairs: list[tuple[MissingThing, ...]] = [*combinations(most, 2)] or [tuple(most)]
    best = max(pairs, key=lambda pair: (_completed(missing, pair), sum(thing.missing_in for thing in pair)))
    return CheapestFixes(things=best, completes=_completed(missing, best))


def _completed(missing: list[tuple[str, ...]], things: tuple[MissingThing, ...]) -> int:
    keys = {thing.key for thing in things}
    return sum(1 for lacking in missing if lacking and keys.issuperset(lacking))


def _things(cases: list[ColdRun], counts: Counter[str]) -> dict[str, MissingThing]:
    """What these cases lack, with what is to be done in the frameworks that they come from."""
    return {key: _thing(key, cases, counts[key]) for key in counts if any(key in case.missing for case in cases)}


def _thing(key: str, cases: list[ColdRun], missing_in: int) -> MissingThing:
    lines = [(line, case.run) for case in cases if key in case.missing if (line := _line(case.run, key)) is not None]
    title = lines[0][0]["title"] if lines else _spelled(key)
    return MissingThing(key=key, title=title, missing_in=missing_in, advice=_advice(lines))


def _line(run: Run, key: str) -> Any:
    """Of the kit, or of the verdict, whose reasons have the code of the kit line with the same fix."""
    lines = run.kit.get("lines", [])
    found = next((line for line in lines if line["key"] == key), None)
    reason = next((each for each in run.verdict_reasons if each["code"] == key), None)
    if found is not None or reason is None:
        return found
    fix = reason.get("fix")
    code = next((line["code"] for line in lines if fix and line["fix"] == fix), None)
    return {"title": _spelled(key), "fix": fix, "code": code}


def _spelled(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _advice(lines: list[tuple[Any, Run]]) -> tuple[Advice, ...]:
    """The same key is another setting in each framework, so a run hears of its own alone."""
    runs: dict[tuple[str, str | None], list[Run]] = defaultdict(list)
    for line, run in lines:
        if line["fix"]:
            runs[line["fix"], line["code"]].append(run)
    found = (
        Advice(sentence=sentence, code=code, runs=len(own), agents=_agents(own))
        for (sentence, code), own in runs.items()
    )
    return tuple(sorted(found, key=lambda advice: -advice.runs))


def _agents(runs: list[Run]) -> tuple[str, ...]:
    return tuple(sorted({run.agent_name for run in runs if run.agent_name}))


def _groups(cases: list[ColdRun], counts: Counter[str]) -> list[ColdGroup]:
    """Those that people marked are apart and last, by what they said: what the record lacks may not be why."""

    def key(case: ColdRun) -> tuple[bool, tuple[str, ...]]:
        return case.is_marked, (case.mark,) if case.is_marked else case.missing

    groups = [_group(list(members), counts) for _, members in groupby(sorted(cases, key=key), key)]
    return sorted(groups, key=lambda group: (group.is_marked, -group.count, -group.last_at.timestamp()))


def _with_places(groups: list[ColdGroup]) -> list[ColdGroup]:
    """With the tools and agents of their runs. One query."""
    contents = RunContent.objects.filter(pk__in=[case.run.content_id for group in groups for case in group.members])
    read = contents.only("outline", "base_steps").in_bulk()
    return [replace(group, places=_places(group, read)) for group in groups]


def _with_replays(groups: list[ColdGroup]) -> list[ColdGroup]:
    """With what was tried with the marked runs that are shown. One query."""
    shown = [case.run.pk for group in groups if group.is_marked for case in group.runs]
    over = Replay.objects.filter(run__in=shown, is_golden=False, state__in=("done", "failed")).exclude(
        mode__in=FORK_MODES
    )
    tried: dict[int, Replay] = {}
    for replay in over.order_by("pk"):
        kept = tried.get(replay.run_id)
        if kept is None or kept.verdict != "reproduced":
            tried[replay.run_id] = replay
    return [
        replace(group, runs=[replace(case, tried=tried.get(case.run.pk)) for case in group.runs]) for group in groups
    ]


def _with_twins(project: Project, groups: list[ColdGroup]) -> list[ColdGroup]:
    """With whether the failures of the shown ones came again. One query."""
    again = replayable_again(project, {case.run.failure_group for group in groups for case in group.runs})
    return [
        replace(group, runs=[replace(case, came_again=case.run.failure_group in again) for case in group.runs])
        for group in groups
    ]


def replayable_again(project: Project, failures: Iterable[str | None]) -> set[str | None]:
    """Those of the failure groups of which a run can be replayed that nobody marked cold."""
    runs = Run.objects.filter(project=project, origin="recorded", verdict="replayable", cold_case__isnull=True)
    return set(runs.filter(failure_group__in=set(failures) - {None}).values_list("failure_group", flat=True).distinct())


def _places(group: ColdGroup, contents: dict[int, RunContent]) -> tuple[str, ...]:
    cases = [] if group.is_marked else group.members
    return tuple(dict.fromkeys(filter(None, (_place(case.run, contents[case.run.content_id]) for case in cases))))


def _place(run: Run, content: RunContent) -> str | None:
    """Of the step that the judge's first reason names, where the run does not share it with another."""
    index = next((reason["step"] for reason in run.verdict_reasons if reason.get("step")), 0) - content.base_steps
    if not 1 <= index <= len(content.own_steps):
        return None
    step = content.own_steps[index - 1]
    return " of ".join(filter(None, (step.tool_name or step.title, run.agent_name)))


def _kit_of(members: list[ColdRun]) -> tuple[MissingThing, ...]:
    cases = [ColdRun(run=case.run, missing=missing_keys(case.run)) for case in members]
    named = {key for case in members for key in case.missing}
    counts = Counter(key for case in cases for key in case.missing if key not in named)
    return tuple(_thing(key, cases, number) for key, number in counts.most_common())


def _group(members: list[ColdRun], counts: Counter[str]) -> ColdGroup:
    first, things = members[0], _things(members, counts)
    newest = sorted(members, key=lambda member: member.at, reverse=True)
    return ColdGroup(
        things=() if first.is_marked else tuple(things[key] for key in first.missing),
        kit=_kit_of(members),
        runs=newest[:SHOWN_IN_GROUP],
        members=newest[:NAMED_OF_GROUP],
        count=len(members),
        first_at=newest[-1].at,
        last_at=newest[0].at,
        is_marked=first.is_marked,
        mark=first.mark,
    )
