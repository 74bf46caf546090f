"""Goldens, their runs, and the runs by which they are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, Q, QuerySet

from sessions_app.core.goldens.results import WORST_FIRST, Result, worst_of
from sessions_app.models import Golden, GoldenBatch, GoldenRun, Project, Replay, Run
from sessions_app.models.replays import ReplayMode
from sessions_app.queries.forks import agent_of, sources_of

_ANCESTORS = 8
_RELATIVES = 20
_OF_CONTENT = tuple(f"replay__content__{name}" for name in ("header", "outline", "nodes", "keys"))


def relatives_of(run: Run) -> list[Run]:
    """The runs that this one was made of, and the newest forks of them all and runs of the team's code. Replays from
    the recording alone are none: they repeat what it says. Nor are runs of other goldens, which had other parts."""
    ancestors = _ancestors(run)
    names = [each.run_id for each in (run, *ancestors)]
    made = Run.objects.filter(project=run.project_id, parent_run_id__in=names).exclude(pk=run.pk)
    made = made.filter(Q(origin="fork") | Q(produced_by__isnull=False) & ~Q(produced_by__mode=ReplayMode.RECORDING))
    known = {each.pk for each in ancestors}
    newest = made.exclude(produced_by__is_golden=True).distinct().select_related("project").order_by("-pk")[:_RELATIVES]
    return [*ancestors, *(each for each in newest if each.pk not in known)]


def _ancestors(run: Run) -> list[Run]:
    found: list[Run] = []
    name = run.parent_run_id
    while name is not None and len(found) < _ANCESTORS:
        rows = Run.objects.filter(project=run.project_id, run_id=name).select_related("project")
        parent = rows.exclude(pk__in=[run.pk, *(each.pk for each in found)]).first()
        if parent is None:
            break
        found.append(parent)
        name = parent.parent_run_id
    return found


def known_runs(golden: Golden) -> tuple[list[str], list[str]]:
    """On which it fails, and on which it passes. A run and a replay that reproduced it are one."""
    names = [*golden.fails_on, *golden.passes_on]
    replays = Replay.objects.filter(project=golden.project_id, verdict="reproduced", produced_run__run_id__in=names)
    same = set(replays.filter(run__run_id__in=names).values_list("produced_run__run_id", flat=True))
    return [name for name in golden.fails_on if name not in same], [
        name for name in golden.passes_on if name not in same
    ]


def made_by(runs: Sequence[Run]) -> dict[int | None, Replay]:
    """By the keys of the runs the replays that produced them; a run that was recorded has none."""
    replays = Replay.objects.filter(produced_run__in=runs)
    return {each.produced_run_id: each for each in replays.only("produced_run", "facts", "number", "mode", "is_golden")}


def is_by_hand(replay: Replay) -> bool:
    """Whether somebody wrote one of its answers."""
    return bool(sources_of(replay).get("by_hand"))


def goldens_of(project: Project) -> QuerySet[Golden]:
    """Each with its scene, newest first."""
    return Golden.objects.filter(project=project).select_related("run__session", "created_by").order_by("-pk")


def exportable_goldens(project: Project) -> QuerySet[Golden]:
    """Those that run without the server."""
    return goldens_of(project).exclude(mode=ReplayMode.LIVE)


def live_goldens(project: Project) -> QuerySet[Golden]:
    """Those that ask a live model, with what their scenes took."""
    rows = Golden.objects.filter(project=project, mode=ReplayMode.LIVE).select_related("run")
    return rows.only(
        "order", "run", *(f"run__{name}" for name in ("model_call_count", "input_tokens", "output_tokens"))
    )


def deploys_of(project: Project) -> QuerySet[GoldenBatch]:
    """What was noted as deployed, newest first."""
    return project.golden_batches.filter(is_deploy=True).order_by("-pk")


def deploy_before(batch: GoldenBatch) -> GoldenBatch | None:
    """What was deployed last when these were asked for."""
    return deploys_of(batch.project).filter(pk__lt=batch.pk).first()


def batch_before(batch: GoldenBatch) -> GoldenBatch | None:
    """The last deploy, or what was run last where nothing was deployed yet."""
    return deploy_before(batch) or batch.project.golden_batches.filter(pk__lt=batch.pk).order_by("-pk").first()


def goldens_about(run: Run) -> QuerySet[Golden]:
    """Those whose scene is the run or was made of it, newest first."""
    scenes = Q(run=run) | Q(run__project=run.project_id, run__parent_run_id=run.run_id)
    return Golden.objects.filter(scenes, project=run.project_id).order_by("-pk")[:_RELATIVES]


def unjudged_runs(run: Run) -> QuerySet[GoldenRun]:
    """Of the goldens whose scene is the run or was made of it."""
    scenes = Q(golden__run=run) | Q(golden__run__project=run.project_id, golden__run__parent_run_id=run.run_id)
    return golden_runs(GoldenRun.objects.filter(scenes, result=None).order_by("-pk"))[:_RELATIVES]


def golden_by_id(project: Project, golden_id: str) -> Golden | None:
    return Golden.objects.filter(project=project, golden_id=golden_id).select_related("run__session", "project").first()


def golden_of(replay: Replay) -> Golden | None:
    """Whose run the replay is."""
    return Golden.objects.filter(runs__replay=replay).first() if replay.is_golden else None


def golden_runs(golden_runs: QuerySet[GoldenRun]) -> QuerySet[GoldenRun]:
    """With all that their results are made of."""
    rows = golden_runs.select_related(
        "golden__project", "golden__run", "batch", "replay__run", "replay__produced_run", "replay__content"
    )
    return rows.defer(*_OF_CONTENT)


def golden_run_by_id(project: Project, golden_run_id: str) -> GoldenRun | None:
    return golden_runs(GoldenRun.objects.filter(golden__project=project, golden_run_id=golden_run_id)).first()


_RANK = {result: place for place, result in enumerate(WORST_FIRST)}


@dataclass(frozen=True, kw_only=True, slots=True)
class LastRuns:
    """The runs of a golden that were made together with its newest one: those of one batch, or that one alone."""

    runs: tuple[GoldenRun, ...]
    """In the order in which they were asked for; at least one."""

    @property
    def result(self) -> Result | None:
        """The worst of them; None while one is open."""
        return worst_of(run.result for run in self.runs)  # type: ignore[misc]  # of ours, from a column

    @property
    def decider(self) -> GoldenRun:
        """The first that has this result."""
        return next(run for run in self.runs if run.result == self.result)

    @property
    def by_agent(self) -> list[tuple[str | None, GoldenRun]]:
        """Each with its agent, None for the one that is rebuilt from the recording; the worst first."""
        ranked = sorted(self.runs, key=lambda run: _RANK.get(run.result, len(WORST_FIRST)))  # type: ignore[call-overload]  # likewise
        return [(agent_of(run.replay), run) for run in ranked]

    @property
    def agents(self) -> tuple[str, ...]:
        """Those that came to this result, where others came to another one."""
        deciding = [run for run in self.runs if run.result == self.result]
        is_split = len(deciding) < len(self.runs)
        return tuple(agent_of(run.replay) or "the rebuilt agent" for run in deciding) if is_split else ()


def last_runs(goldens: Sequence[Golden]) -> dict[int, LastRuns]:
    """By the key of the golden; nothing of those that never ran. Two queries."""
    found = _made_last(GoldenRun.objects.filter(golden__in=[golden.pk for golden in goldens]), golden_runs)
    return {key: LastRuns(runs=tuple(runs)) for key, runs in found.items()}


def last_results(project: Project) -> dict[int, Result | None]:
    """As `last_runs` of all goldens of a project, with nothing but the results. Two queries."""
    of_project = GoldenRun.objects.filter(golden__project=project)
    found = _made_last(of_project, lambda runs: runs.only("golden", "batch", "result"))
    return {key: worst_of(run.result for run in runs) for key, runs in found.items()}  # type: ignore[misc]  # likewise


def _made_last(
    asked: QuerySet[GoldenRun], read: Callable[[QuerySet[GoldenRun]], QuerySet[GoldenRun]]
) -> dict[int, list[GoldenRun]]:
    """Of each golden the runs that were made together with its newest one."""
    newest = asked.order_by("golden", "-pk").distinct("golden")
    heads = {run.golden_id: run for run in newest.only("golden", "batch")}
    alone, batches = [run.pk for run in heads.values()], {run.batch_id for run in heads.values()}
    together = Q(pk__in=alone) | Q(batch__in=batches - {None}, golden__in=heads)
    found: dict[int, list[GoldenRun]] = {}
    for run in read(GoldenRun.objects.filter(together).order_by("pk")):
        if run.batch_id == heads[run.golden_id].batch_id:
            found.setdefault(run.golden_id, []).append(run)
    return found


def unsettled_runs(project: Project) -> QuerySet[GoldenRun]:
    """Those that nobody has judged yet."""
    return golden_runs(GoldenRun.objects.filter(golden__project=project, result=None))


def batch_by_id(project: Project, golden_batch_id: str) -> GoldenBatch | None:
    runs = Prefetch("runs", queryset=golden_runs(GoldenRun.objects.order_by("pk")))
    return GoldenBatch.objects.filter(project=project, golden_batch_id=golden_batch_id).prefetch_related(runs).first()
