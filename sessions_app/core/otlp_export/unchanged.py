"""Whether spans are an export as it was written: what GenAI's attributes and the status of a span say is what the run
says of itself, in attributes of ours. Somebody who changed one of the two means something by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import parsed
from sessions_app.core.otlp_export import names
from sessions_app.core.otlp_export.attributes import Value
from sessions_app.core.otlp_export.messages import MessageWriter
from sessions_app.core.otlp_export.request import attributes_of_run
from sessions_app.core.otlp_export.steps import attributes_of_step, described
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ErrorInfo, Run
from sessions_app.core.spans.span import Span

_GEN_AI = "gen_ai."


def is_unchanged(run: Run, root: Span, steps: Sequence[Span]) -> bool:
    """`steps` are the spans of the run's steps, in their order. The run is written once more, and compared."""
    writer = MessageWriter()
    if not _says(root, attributes_of_run(run, writer), run.error, has_failed=run.status == "error"):
        return False
    return all(
        _says(span, attributes_of_step(step, described(step, writer)), step.error, has_failed=step.error is not None)
        for step, span in zip(run.steps, steps, strict=True)
    )


def _says(span: Span, written: Mapping[str, Value], error: ErrorInfo | None, *, has_failed: bool) -> bool:
    """What others added beside it, such as a collector's own attributes, contradicts nothing."""
    message = (error.message if error and has_failed else None) or ""
    is_same_end = (span.status == "error") == has_failed and (span.status_message or "") == message
    of_export = {name for name in span.attributes if name in written or name.startswith((_GEN_AI, names.OWN))}
    said = {name: span.attributes.get(name) for name in of_export | written.keys()}
    return is_same_end and all(_is_same(value, written.get(name)) for name, value in said.items())


def _is_same(said: JsonValue, written: Value) -> bool:
    """A text that is a JSON list may have come as that list."""
    return said == written or same_json(parsed(said), parsed(written))
