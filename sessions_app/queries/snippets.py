"""Why a run is in a list of search results: the words of the query with what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.search.snippets import Place, Snippet, snippet
from sessions_app.models import Run
from sessions_app.models.contents import RunContent

_MAX_STEPS = 1000
"""Of a run whose steps are looked at, so that a page of long runs stays quick."""


def snippets_of(runs: Iterable[Run], phrases: Sequence[str]) -> dict[int, Snippet]:
    """By primary key of the run. One query for any number of runs, none where nothing is searched for.

    Of what a run asked and answered the first words are looked at, and those of each of its steps: a word further on is
    found by the search and has no snippet.
    """
    if not phrases:
        return {}
    wanted = list(runs)
    contents = RunContent.objects.only("outline", "step_count").in_bulk([run.content_id for run in wanted])
    found = {run.pk: snippet(_places(run, contents.get(run.content_id)), phrases) for run in wanted}
    return {pk: each for pk, each in found.items() if each is not None}


def _places(run: Run, content: RunContent | None) -> Iterator[Place]:
    yield Place(where="asked", text=run.input_preview)
    yield Place(where="answered", text=run.output_preview)
    yield Place(where="error", text=run.error_preview)
    for name in ("run_id", "user_id", "tenant_id", "commit"):
        yield Place(where=name.removesuffix("_id"), text=getattr(run, name))
    if content is None or content.step_count > _MAX_STEPS:
        return
    try:
        steps = content.own_steps
    except StoredBytesMissing:
        return
    for step in steps:
        texts = (step.arguments_preview, step.result_preview, step.error_preview)
        for text in (step.name, *texts):
            yield Place(where=f"step {step.index}", text=text, step=step.index)
