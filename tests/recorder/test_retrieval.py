"""Searches recorded by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import replay_recorder
from replay_recorder import record, record_retrieval, recorded_tool
from sessions_app.core.run import Retrieval, Run, Step
from tests.recorder.recordings import BREAKING_POINTS, break_at, only_run_of, value


@dataclass
class Document:
    page_content: str
    id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def recorded(query: Any, chunks: Any, **versions: Any) -> tuple[Step, Retrieval]:
    @record
    def agent() -> None:
        record_retrieval(query, chunks, **versions)

    run: Run = only_run_of(agent)
    (step,) = run.steps
    assert isinstance(step.call, Retrieval)
    return step, step.call


def chunk(given: Any) -> tuple[Any, ...]:
    _, call = recorded("q", [given])
    assert call.chunks is not None
    (found,) = call.chunks
    return found.chunk_id, found.score, value(found.content), found.extra


def test_a_search_is_a_step_with_query_chunks_and_versions():
    step, call = recorded(
        "how to cancel",
        [{"id": "d1", "score": 0.91, "content": "Cancel in settings."}, {"id": "d2"}],
        index_version="2026-01-05",
        embedding_version="text-embedding-3-small",
        name="search_docs",
    )

    assert step.name == "search_docs"
    assert value(call.query) == "how to cancel"
    assert (call.index_version, call.embedding_version) == ("2026-01-05", "text-embedding-3-small")
    assert call.chunks is not None
    assert [(each.chunk_id, each.score, value(each.content)) for each in call.chunks] == [
        ("d1", 0.91, "Cancel in settings."),
        ("d2", None, None),
    ]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"chunk_id": 7, "similarity": 1, "text": "a"}, ("7", 1, "a", {})),
        ({"_id": "x", "_score": 2.5, "page_content": "a", "source": "f.md"}, ("x", 2.5, "a", {"source": "f.md"})),
        ({"id": "x", "score": float("nan"), "values": [0.1, 0.2]}, ("x", None, None, {})),
        ({"id": "x", "score": Decimal("0.5"), "content": {"base64": "aGk="}}, ("x", 0.5, {"base64": "aGk="}, {})),
        (Document("a", id="d", metadata={"page": 3}), ("d", None, "a", {"metadata": {"page": 3}})),
        ((Document("a"), 0.25), (None, 0.25, "a", {"metadata": {}})),
        ("just text", (None, None, "just text", {})),
        (object, (None, None, None, {})),
    ],
)
def test_chunks_are_read_under_the_names_that_libraries_use(given: Any, read: tuple[Any, ...]):
    assert chunk(given) == read


def test_no_chunks_are_another_thing_than_chunks_that_were_not_captured():
    assert recorded("q", [])[1].chunks == ()
    left = iter([{"id": "d1"}])
    assert recorded("q", left)[1].chunks is None
    assert list(left) == [{"id": "d1"}]


def test_a_search_inside_a_tool_is_its_child():
    @recorded_tool
    def search_docs(query: str) -> None:
        record_retrieval(query, [])

    @record
    def agent() -> None:
        search_docs("q")

    assert [(step.kind, step.parent) for step in only_run_of(agent).steps] == [("tool", None), ("retrieval", 1)]


@pytest.mark.parametrize(("owner", "name"), BREAKING_POINTS)
def test_a_broken_recorder_changes_nothing(owner: type, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    times = break_at(monkeypatch, owner, name)

    @record
    def agent() -> str:
        record_retrieval("q", [{"id": 1}])
        return "done"

    replay_recorder.install(spool=tmp_path)
    try:
        assert agent() == "done"
    finally:
        replay_recorder.uninstall()

    assert times != []


def test_outside_a_run_nothing_is_recorded(tmp_path: Path):
    replay_recorder.install(spool=tmp_path)
    try:
        record_retrieval("q", [])
    finally:
        replay_recorder.uninstall()

    assert list((tmp_path / "ready").iterdir()) == []
