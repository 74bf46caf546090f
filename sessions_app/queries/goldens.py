"""Goldens, their runs, and the runs by which they are judged."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Case, OuterRef, Prefetch, Q, QuerySet, Subquery, When

from sessions_app.models import Golden, GoldenBatch, GoldenRun, Project, Run
from sessions_app.models.replays import ReplayMode

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


def goldens_of(project: Project) -> QuerySet[Golden]:
    """Each with its scene and the id of its newest run, newest first."""
    newest = GoldenRun.objects.filter(golden=OuterRef("pk")).order_by("-pk").values("golden_run_id")[:1]
    rows = Golden.objects.filter(project=project).select_related("run__session", "created_by")
    return rows.annotate(newest_run_id=Subquery(newest)).order_by("-pk")


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


def goldens_about(run: Run) -> QuerySet[Golden]:
    """Those whose scene is the run or was made of it, newest first; each with its newest run that was judged
    (`last_run_id`, `last_result`) and the deploy that this run was for (`last_deploy`). One query."""
    newest = GoldenRun.objects.filter(golden=OuterRef("pk"), result__isnull=False).order_by("-pk")
    scenes = Q(run=run) | Q(run__project=run.project_id, run__parent_run_id=run.run_id)
    deploy = Case(When(batch__is_deploy=True, then="batch__label"))
    found = Golden.objects.filter(scenes, project=run.project_id).annotate(
        last_run_id=Subquery(newest.values("golden_run_id")[:1]),
        last_result=Subquery(newest.values("result")[:1]),
        last_deploy=Subquery(newest.annotate(deploy=deploy).values("deploy")[:1]),
    )
    return found.order_by("-pk")[:_RELATIVES]


def unjudged_runs(run: Run) -> QuerySet[GoldenRun]:
    """Of the goldens whose scene is the run or was made of it."""
    scenes = Q(golden__run=run) | Q(golden__run__project=run.project_id, golden__run__parent_run_id=run.run_id)
    return golden_runs(GoldenRun.objects.filter(scenes, result=None).order_by("-pk"))[:_RELATIVES]


def golden_by_id(project: Project, golden_id: str) -> Golden | None:
    return Golden.objects.filter(project=project, golden_id=golden_id).select_related("run__session", "project").first()


def golden_runs(golden_runs: QuerySet[GoldenRun]) -> QuerySet[GoldenRun]:
    """With all that their results are made of."""
    rows = golden_runs.select_related(
        "golden__project", "golden__run", "batch", "replay__run", "replay__produced_run", "replay__content"
    )
    return rows.defer(*_OF_CONTENT)


def golden_run_by_id(project: Project, golden_run_id: str) -> GoldenRun | None:
    return golden_runs(GoldenRun.objects.filter(golden__project=project, golden_run_id=golden_run_id)).first()


def newest_runs(goldens: Iterable[Golden]) -> dict[int, GoldenRun]:
    """The newest run of each golden, by the golden's key. One query."""
    names = [name for golden in goldens if (name := getattr(golden, "newest_run_id", None))]
    return {run.golden_id: run for run in golden_runs(GoldenRun.objects.filter(golden_run_id__in=names))}


def batch_by_id(project: Project, golden_batch_id: str) -> GoldenBatch | None:
    runs = Prefetch("runs", queryset=golden_runs(GoldenRun.objects.order_by("pk")))
    return GoldenBatch.objects.filter(project=project, golden_batch_id=golden_batch_id).prefetch_related(runs).first()
