"""What is typed on a command line, as orders of replays and forks."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management import CommandError

from sessions_app.core.errors import RecordError
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.models import Run


def run_called(run_id: str, project: str | None) -> Run:
    """The run of this id; without a project that of the first one that has it."""
    found = Run.objects.select_related("project").filter(run_id=run_id).order_by("project_id")
    run = (found if project is None else found.filter(project__slug=project)).first()
    if run is None:
        where = f" in {project}" if project else ""
        raise CommandError(f"There is no run {run_id!r}{where}.", returncode=2)
    return run


def typed_json(text: str, option: str) -> JsonValue:
    try:
        return load_strict(text.encode())
    except (RecordError, UnicodeEncodeError) as error:
        words = error.message if isinstance(error, RecordError) else "It is no UTF-8."
        raise CommandError(f"{option} must be JSON: {words}", returncode=2) from None


def json_or_text(text: str) -> JsonValue:
    """What reads as JSON is JSON, the rest a text."""
    try:
        return load_strict(text.encode())
    except (RecordError, UnicodeEncodeError):
        return text


def typed_expectation(text: str | None) -> JsonValue:
    """An object is a check, all else words for people."""
    value = None if text is None else json_or_text(text)
    return value if isinstance(value, dict) else text


def tool_result(text: str) -> JsonObject:
    """`2=[]`."""
    step, sign, value = text.partition("=")
    if not sign:
        raise CommandError("--tool-result is written as STEP=JSON.", returncode=2)
    return {"kind": "tool_result", "step": step.strip(), "value": typed_json(value, "--tool-result")}


def rules(conditions: Sequence[str], answers: Sequence[str]) -> list[JsonObject]:
    """Each condition with the answer that was typed for it."""
    if len(conditions) != len(answers):
        raise CommandError("Each --rule needs one --answer, and each --answer one --rule.", returncode=2)
    pairs = zip(conditions, answers, strict=True)
    return [{"kind": "rule", "when": when, "answer": json_or_text(answer)} for when, answer in pairs]


def breakpoints(texts: Sequence[str]) -> list[JsonObject]:
    """`tool:cancel_order`, `step:4`, `when:args.order_id = "x"`."""
    return [_breakpoint(text) for text in texts]


def _breakpoint(text: str) -> JsonObject:
    name, sign, value = text.partition(":")
    if not sign or name not in ("tool", "step", "when"):
        raise CommandError("--break is written as tool:NAME, step:NUMBER or when:CONDITION.", returncode=2)
    return {name: value.strip()}


def typed_answer(kind: str, text: str) -> JsonObject:
    """What somebody types for a stop of this kind, as services.forks.answer_by_hand takes it."""
    if kind == "model":
        return {"answer": json_or_text(text)}
    word, _, rest = text.partition(" ")
    if text == "not found":
        return {"not_found": True}
    if word == "error:":
        return {"error": rest.strip()}
    if word == "like":
        run_id, _, step = rest.strip().rpartition("#")
        return {"twin": {"run_id": run_id, "step": int(step) if step.isdecimal() and len(step) < 10 else None}}
    return {"value": json_or_text(text)}
