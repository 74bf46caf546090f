"""Facts of answers, fields of files, and pieces that a search found, which a record holds twice and of which a replay
reads one.

Of a file the library reads the fields that it knows, so one that only the input or a tool's content has goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sessions_app.core.finish_reasons import ended_otherwise
from sessions_app.core.judge.reading import as_object, is_of_recorder, main_models, object_of, seen_messages, step_name
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import Chunk, Retrieval, Run, Step


def gaps_beside_messages(run: Run) -> Iterator[Reason]:
    if run.source_format == "native" and "recorder" in run.extra:
        yield from islice(_other_facts(run), 1)
        yield from islice(_other_names(run), 1)
    if is_of_recorder(run):
        yield from islice(_fields_of_files(run), 1)
        yield from islice(_other_chunks(run), 1)


# --- facts of answers --------------------------------------------------------------------------


def _other_facts(run: Run) -> Iterator[Reason]:
    """The recorder takes them out of the answer. What a provider said of its end may stand there once more. Tokens are
    a measure, and nothing that the run did."""
    for step, call in run.model_calls:
        answer = object_of(call.response)
        details = as_object(answer.get("provider_details"))
        pairs: list[tuple[str, JsonValue, JsonValue]] = [
            ("model_name", call.answered_model, answer.get("model_name")),
            ("provider_name", call.provider, answer.get("provider_name")),
            ("finish_reason", call.finish_reason, answer.get("finish_reason")),
        ]
        other = next((name for name, *both in pairs if None not in both and both[0] != both[1]), None)
        if other is not None:
            message = f"The {other} in the answer of {step_name(step)} is not that of the step."
            yield reason_at_end(run, "facts_contradicted", message)
        if ended_otherwise(answer.get("finish_reason"), details.get("finish_reason")):
            message = f"The answer of {step_name(step)} gives two reasons why it ended."
            yield reason_at_end(run, "facts_contradicted", message)


def _other_names(run: Run) -> Iterator[Reason]:
    """The recorders of frameworks name the step of a model for the model that was asked; a fork may ask another."""
    is_of_framework = run.agent.framework is not None and run.origin == "recorded"
    for step, call in run.model_calls if is_of_framework else ():
        if None not in (step.name, call.model) and step.name != call.model:
            message = f"S{step_name(step)[1:]} says that {call.model} was asked."
            yield reason_at_end(run, "facts_contradicted", message)


# --- files -------------------------------------------------------------------------------------


def _fields_of_files(run: Run) -> Iterator[Reason]:
    parts = [part for seen in seen_messages(run) for part in seen.parts_of("user-prompt")]
    sent = [item for part in parts for item in _files(part.get("content"))]
    models = main_models(run)
    field = _unsent(run.input, sent)
    if field is not None and models:
        message = f"A file of the input has the field {field}, which no request holds."
        yield reason_at(run, "input_contradicts", message, models[0][0])
    for step, call in run.tool_calls:
        field = _unsent(call.content, sent)
        if field is not None and step.index < models[-1][0].index:
            message = f"A file that {step_name(step)} gave has the field {field}, which no request holds."
            yield reason_at(run, "answer_contradicted", message, step)


def _files(content: JsonValue) -> list[JsonObject]:
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def _unsent(payload: Payload | None, sent: list[JsonObject]) -> str | None:
    """A field of a file that no file of its kind has in a message; None where no message holds one of its kind."""
    for item in _files(payload.value) if payload is not None and payload.is_json else ():
        alike = [each for each in sent if each.get("kind") == item.get("kind")]
        known = {name for each in alike for name in each}
        unsent = (name[:60] for name, value in item.items() if value is not None and name not in known)
        field = next(unsent, None) if alike else None
        if field is not None:
            return field
    return None


# --- what a search found -----------------------------------------------------------------------


def _other_chunks(run: Run) -> Iterator[Reason]:
    """A tool that says in its metadata what it retrieved has a step of the recorder's that says the same."""
    for step, call in run.tool_calls:
        said = object_of(call.metadata).get("chunks")
        found = [each for each in run.steps if each.parent == step.index and _chunks(each) is not None]
        if isinstance(said, list) and found and not any(_agree(_chunks(each) or (), said) for each in found):
            message = f"S{step_name(found[-1])[1:]} found other pieces than the metadata of {step_name(step)} holds."
            yield reason_at(run, "answer_contradicted", message, found[-1])


def _chunks(step: Step) -> tuple[Chunk, ...] | None:
    return step.call.chunks if isinstance(step.call, Retrieval) else None


def _agree(chunks: tuple[Chunk, ...], said: list[JsonValue]) -> bool:
    return len(chunks) == len(said) and all(map(_is_same, chunks, said))


def _is_same(chunk: Chunk, said: JsonValue) -> bool:
    """Fields that both have under the same name; libraries have other names as well."""
    if not isinstance(said, dict):
        return True
    own = {"id": chunk.chunk_id, "score": chunk.score, "content": chunk.content.value if chunk.content else None}
    pairs = [(said.get(name), value) for name, value in own.items()]
    return all(one == other or str(one) == str(other) for one, other in pairs if None not in (one, other))
