"""Recorded HTTP: cassettes of vcrpy (version 1) and betamax, as JSON.

    {"version": 1, "interactions": [
        {"request": {"method", "uri", "body", "headers"},
         "response": {"status": {"code", "message"}, "headers", "body": {"string"} or {"base64_string"}}}]}

Source: vcrpy's `serializers/compat.py` and `persisters`, betamax's `cassette/interaction.py`, whose list is called
`http_interactions`. An interaction is a tool's step whose answer is the body, byte for byte; a request to a model is a
model's step, with steps for the tools that its answers ask for. Order and repetitions stay as recorded. Cassettes in
YAML are JSON by the time they come here (`yaml_text`), and files of nock and WireMock are read as cassettes
(`http_files`).
"""

from __future__ import annotations

import base64
from dataclasses import replace
from urllib.parse import urlsplit

from sessions_app.core.assembly.steps import Draft, StepWriter, numbered
from sessions_app.core.assembly.tree import Node
from sessions_app.core.conventions.provider_payload import read
from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.importers.http_files import interactions_of, is_http_file
from sessions_app.core.importers.interaction import SOURCE, Interaction, is_json
from sessions_app.core.importers.provider_log import is_request
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import BINARY, JsonValue, Payload, compact_json, sha256_hex
from sessions_app.core.run import ErrorInfo, HttpExchange, ModelCall, Run, Step, ToolCall
from sessions_app.core.spans.provider_messages.wire import said_in
from sessions_app.core.spans.reading import ChatMessage, TextPart
from sessions_app.core.spans.span import Span

_LISTS = ("interactions", "http_interactions")
_MAX_NAME = 200


def matches(value: JsonValue) -> bool:
    """Whether this is recorded HTTP that was read from JSON or YAML."""
    return _is_cassette(value) or is_http_file(value)


def _is_cassette(value: JsonValue) -> bool:
    lists = [value.get(name) for name in _LISTS] if isinstance(value, dict) else []
    rows = next((rows for rows in lists if isinstance(rows, list) and rows), [None])
    return isinstance(rows[0], dict) and {"request", "response"} <= rows[0].keys()


def parse_cassette(content: bytes, limits: Limits = Limits()) -> Run:
    """The interactions as a run of their own; raises `RecordError` naming the field.

    Where models were called, the last call says how the run ended; else it counts as ended well.
    """
    fields, interactions = read_interactions(content, limits)
    run_id = f"cassette-{sha256_hex(content)[:16]}"
    writer = _Writer()
    for interaction in interactions:
        writer.take(interaction)
    run = Run(run_id=run_id, session_id=run_id, status="ok", source_format=SOURCE)
    return replace(writer.told(run), extra=foreign_extra(fields.rest(), SOURCE))


def read_interactions(content: bytes, limits: Limits = Limits()) -> tuple[Fields, list[Interaction]]:
    """The interactions, and the cassette around them. Raises `RecordError` naming the field."""
    value = load_strict(content, limits)
    if not _is_cassette(value) and is_http_file(value):
        content = compact_json({"interactions": interactions_of(value)})
    fields = Fields(content)
    _check_version(fields)
    return fields, [Interaction(row) for row in _rows(fields, limits)]


def _check_version(fields: Fields) -> None:
    version = fields.integer("version")
    if version not in (None, 1):
        raise fields.error("version", f"is {version}; cassettes of version 1 are read")


def _rows(fields: Fields, limits: Limits) -> list[Fields]:
    name = next((name for name in _LISTS if fields.has(name)), _LISTS[0])
    rows = list(fields.required(name, fields.children))
    if len(rows) > limits.max_steps:
        raise RecordTooLarge(f"{name} has {len(rows)} items; the limit is {limits.max_steps}.", field=name)
    return rows


# --- steps -------------------------------------------------------------------------------------


class _Writer:
    """Takes interactions in their order."""

    def __init__(self) -> None:
        self._steps = StepWriter()
        self._interactions: dict[int, Interaction] = {}

    def take(self, interaction: Interaction) -> None:
        node = _model_node(interaction)
        if node is not None:
            self._steps.take(node)
        else:
            self._steps.drafts.append(_tool_draft(interaction))
        self._interactions[id(self._steps.drafts[-1])] = interaction

    def told(self, run: Run) -> Run:
        """The run with its steps, and with what its calls of models say of it."""
        drafts = self._steps.finished()
        steps = tuple(self._step(*pair) for pair in zip(drafts, numbered(drafts), strict=True))
        run = replace(run, steps=steps)
        models = [draft for draft in drafts if draft.converted is not None]
        return _with_conversation(run, models[0], models[-1]) if models else run

    def _step(self, draft: Draft, step: Step) -> Step:
        interaction = self._interactions.get(id(draft))
        if interaction is None:
            return step
        return replace(step, http=interaction.http, started_at=interaction.recorded_at, extra=interaction.extra)


def _tool_draft(interaction: Interaction) -> Draft:
    http = interaction.http
    name = _tool_name(http)
    arguments = {"method": http.method, "uri": http.url, "body": _as_value(http.request_body)}
    outcome = None if http.status is None else "failed" if interaction.has_failed else "success"
    call = ToolCall(tool_name=name, arguments=Payload.of_json(arguments), result=http.response_body, outcome=outcome)
    error = ErrorInfo(type=f"HTTP {http.status}", message=interaction.message) if interaction.has_failed else None
    return Draft(name, call, None, error=error)


def _tool_name(http: HttpExchange) -> str:
    """`GET api.example.com/path`."""
    try:
        parts = urlsplit(http.url or "")
        place = parts.netloc.rpartition("@")[2] + parts.path
    except ValueError:
        place = http.url or ""
    return f"{http.method} {place}".replace("\x00", "")[:_MAX_NAME]


def _as_value(body: Payload | None) -> JsonValue:
    if body is None:
        return None
    return {"base64": base64.b64encode(body.content).decode()} if body.media_type == BINARY else body.value


# --- calls of models ---------------------------------------------------------------------------


def _model_node(interaction: Interaction) -> Node | None:
    """None when this is no request to a model, or was not answered like one."""
    http = interaction.http
    request = http.request_body.value if http.request_body else None
    if not is_request(request):
        return None
    response = _clean(said_in(http.response_body))
    error = response.get("error") if isinstance(response, dict) else None
    attributes = {
        "provider.kind": "invocation",
        "provider.request": request,
        "provider.response": response,
        "provider.error": error if interaction.has_failed else None,
    }
    span = Span(trace_id="", span_id="", name="model", attributes=attributes)
    reading = read(span)
    is_model = reading is not None and (reading.answer is not None or reading.error is not None)
    return Node(span, reading) if is_model and reading is not None else None


def _clean(said: JsonValue) -> JsonValue:
    """Without the events of a stream that are no JSON which can be kept as it is."""
    if not isinstance(said, list):
        return said
    return [each for each in said if not isinstance(each, str) or is_json(each.encode())]


def _with_conversation(run: Run, first: Draft, last: Draft) -> Run:
    assert isinstance(first.call, ModelCall)
    assert isinstance(last.call, ModelCall)
    assert first.converted is not None
    has_ended = last.call.response is not None and not last.children_asked
    return replace(
        run,
        model=first.call.model,
        instructions=first.converted.instructions,
        input=_words(first.converted.prompt),
        output=_words(last.node.reading.answer) if has_ended and last.node else None,
        prior=first.converted.start,
        final=last.call.output_history if has_ended else None,
        error=last.error,
        status="error" if last.error else "ok" if has_ended else "cut_off",
    )


def _words(message: ChatMessage | None) -> Payload | None:
    texts = [part.text for part in message.parts if isinstance(part, TextPart)] if message else []
    return Payload.of_text("\n".join(texts)) if texts else None
