"""The native record, `agent-replay.run` version 1. The format is described in docs/record-format.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sessions_app.core.asking_answers import with_asking_answers
from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.fields import Fields, names_of
from sessions_app.core.formats.json_writer import array_text, moment, object_text, scalar
from sessions_app.core.formats.native_steps import (
    Embedding,
    Resolver,
    optional,
    read_error,
    read_payload,
    read_step,
    write_error,
    write_step,
)
from sessions_app.core.formats.shapes import MESSAGE, PARAMETERS, TOOL, Shape, check_shape
from sessions_app.core.formats.values import read_value, write_value
from sessions_app.core.history import History, extend, nodes
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, Payload, sha256_hex
from sessions_app.core.run import (
    EMPTY_END,
    EMPTY_REQUEST,
    USAGE_LIMITS,
    AgentInfo,
    CodeInfo,
    ModelCall,
    Origin,
    ParentLink,
    Run,
    RunStatus,
    Step,
)
from sessions_app.core.told_failures import with_words_of_failures

FORMAT = "agent-replay.run"
VERSION = 1


def parse_native(content: bytes, limits: Limits = Limits()) -> Run:
    """Read one record; raises `RecordError` naming the field."""
    fields = Fields(content)
    _check_version(fields)
    resolve = _InlineResolver(fields, limits.max_messages)
    written = fields.items("steps") or []
    if len(written) > limits.max_steps:
        raise RecordTooLarge(f"The run has {len(written)} steps; the limit is {limits.max_steps}.")
    prior = resolve.start(fields.items("prior"))
    steps = tuple(_read_step(Fields(raw, f"steps[{i}]"), i + 1, resolve) for i, raw in enumerate(written))
    final = resolve.history(fields.slice("final"), "final")
    run = read_header(fields, resolve, prior=prior, steps=steps, final=final)
    empty_end = {EMPTY_END: True} if final is None and fields.child("final") is not None else {}
    run = replace(run, extra={**run.extra, **empty_end, **resolve.unnamed_rows()})
    return with_words_of_failures(with_asking_answers(run))


def _read_step(fields: Fields, index: int, resolve: Resolver) -> Step:
    """A request without messages is none; that a record tells of one is kept."""
    step = read_step(fields, index, resolve)
    is_unasked = isinstance(step.call, ModelCall) and step.call.history is None
    request = fields.child("request") if is_unasked else None
    if request is None or request.integer("after"):
        return step
    return replace(step, extra={**step.extra, EMPTY_REQUEST: True})


def encode_native(run: Run) -> bytes:
    """Write a record; parsing it gives an equal run."""
    into = _InlineEmbedding(run.prior)
    steps = array_text([write_step(step, into) for step in run.steps])
    fields = [
        *header_fields(run, into),
        ("prior", array_text(into.new_messages(run.prior, None)) if run.prior else None),
        ("parameters", into.table("parameters")),
        ("tools", into.table("tools")),
        ("steps", steps),
        ("final", into.history(run.final) if run.final else None),
    ]
    return object_text(fields, run.extra)


def run_digest(run: Run) -> str:
    """SHA-256 over what was recorded; the format in which it arrived does not count."""
    text = encode_native(run)
    return sha256_hex(text.replace(_source_text(run), b"", 1))


def _source_text(run: Run) -> bytes:
    return b'"source_format":' + (scalar(run.source_format) or b"")


def _check_version(fields: Fields) -> None:
    name = fields.required("format", fields.text)
    if name != FORMAT:
        raise fields.error("format", f"is {name[:40]!r}; this server reads {FORMAT!r}")
    version = fields.required("version", fields.integer)
    if version != VERSION:
        raise fields.error("version", f"is {version}; this server reads version {VERSION}")


# --- header ------------------------------------------------------------------------------------


def header_fields(run: Run, into: Embedding) -> list[tuple[str, bytes | None]]:
    """All of a run but its steps and histories."""
    return [
        ("format", scalar(FORMAT)),
        ("version", scalar(VERSION)),
        ("run_id", scalar(run.run_id)),
        ("session_id", scalar(run.session_id)),
        ("source_format", scalar(run.source_format)),
        ("origin", scalar(run.origin)),
        ("parent", _write_parent(run.parent)),
        ("status", scalar(run.status)),
        ("input", optional(run.input, into)),
        ("output", optional(run.output, into)),
        ("error", write_error(run.error)),
        ("agent", _write_agent(run.agent)),
        ("code", _write_code(run.code)),
        ("model", scalar(run.model)),
        ("provider", scalar(run.provider)),
        ("region", scalar(run.region)),
        ("instructions", into.text(run.instructions)),
        ("user_id", scalar(run.user_id)),
        ("tenant_id", scalar(run.tenant_id)),
        ("flags", scalar(run.flags)),
        ("started_at", moment(run.started_at)),
        ("duration_ms", scalar(run.duration_ms)),
        ("deferred", optional(run.deferred, into)),
        ("initial_state", optional(run.initial_state, into)),
    ]


def read_header(
    fields: Fields,
    resolve: Resolver,
    *,
    prior: History | None,
    steps: tuple[Step, ...],
    final: History | None,
) -> Run:
    run_id = fields.required("run_id", fields.identifier)
    return Run(
        run_id=run_id,
        session_id=fields.identifier("session_id") or run_id,
        status=fields.choice("status", names_of(RunStatus)) or _status(fields),
        source_format=fields.name("source_format") or "native",
        origin=fields.choice("origin", names_of(Origin)) or "recorded",
        parent=_read_parent(fields.child("parent")),
        input=read_payload(fields, "input", resolve),
        output=read_payload(fields, "output", resolve),
        error=read_error(fields, "error"),
        agent=_read_agent(fields.child("agent")),
        code=_read_code(fields.child("code")),
        model=fields.name("model"),
        provider=fields.name("provider"),
        region=fields.name("region"),
        instructions=resolve.text(fields, "instructions"),
        user_id=fields.name("user_id"),
        tenant_id=fields.name("tenant_id"),
        flags=fields.object("flags"),
        started_at=fields.time("started_at"),
        duration_ms=fields.number("duration_ms"),
        deferred=read_payload(fields, "deferred", resolve),
        initial_state=read_payload(fields, "initial_state", resolve),
        prior=prior,
        steps=steps,
        final=final,
        extra=fields.rest(),
    )


def _status(fields: Fields) -> RunStatus:
    """A record without a status ended well when it has an output and no error."""
    if fields.has("error"):
        return "error"
    return "ok" if fields.has("output") else "cut_off"


def _write_parent(parent: ParentLink | None) -> bytes | None:
    if parent is None:
        return None
    return object_text([("run_id", scalar(parent.run_id)), ("step", scalar(parent.step))])


def _read_parent(fields: Fields | None) -> ParentLink | None:
    if fields is None:
        return None
    run_id = fields.required("run_id", fields.identifier)
    link = ParentLink(run_id=run_id, step=fields.integer("step", low=1))
    fields.refuse_rest()
    return link


def _write_agent(agent: AgentInfo) -> bytes | None:
    if agent == AgentInfo():
        return None
    fields = [
        ("name", scalar(agent.name)),
        ("version", scalar(agent.version)),
        ("framework", scalar(agent.framework)),
        ("framework_version", scalar(agent.framework_version)),
        ("entry_point", scalar(agent.entry_point)),
        ("end_strategy", scalar(agent.end_strategy)),
        ("tool_retries", scalar(agent.tool_retries)),
        ("output_retries", scalar(agent.output_retries)),
        ("output_function", scalar(agent.output_function)),
        ("output_changed", scalar(agent.output_changed)),
        ("output_unchecked", scalar(agent.output_unchecked)),
        ("usage_limits", scalar(agent.usage_limits)),
    ]
    return object_text(fields, agent.extra)


def _read_agent(fields: Fields | None) -> AgentInfo:
    if fields is None:
        return AgentInfo()
    return AgentInfo(
        name=fields.name("name"),
        version=fields.name("version"),
        framework=fields.name("framework"),
        framework_version=fields.name("framework_version"),
        entry_point=fields.name("entry_point"),
        end_strategy=fields.name("end_strategy"),
        tool_retries=fields.object("tool_retries"),
        output_retries=fields.integer("output_retries"),
        output_function=fields.name("output_function"),
        output_changed=fields.boolean("output_changed"),
        output_unchecked=fields.boolean("output_unchecked"),
        usage_limits=_read_limits(fields),
        extra=fields.rest(),
    )


def _read_limits(agent: Fields) -> JsonObject | None:
    """A limit of another kind would end a replay elsewhere, or nowhere."""
    if (limits := agent.child("usage_limits")) is not None:
        for name in USAGE_LIMITS:
            limits.integer(name)
    return agent.object("usage_limits")


def _write_code(code: CodeInfo) -> bytes | None:
    if code == CodeInfo():
        return None
    fields = [
        ("commit", scalar(code.commit)),
        ("dirty", scalar(code.dirty)),
        ("versions", scalar(code.versions)),
    ]
    return object_text(fields, code.extra)


def _read_code(fields: Fields | None) -> CodeInfo:
    if fields is None:
        return CodeInfo()
    return CodeInfo(
        commit=fields.name("commit"),
        dirty=fields.boolean("dirty"),
        versions=fields.object("versions"),
        extra=fields.rest(),
    )


# --- payloads inline ---------------------------------------------------------------------------


class _InlineEmbedding:
    """Payloads stand where they belong; shared values in tables; histories as what was added."""

    def __init__(self, prior: History | None) -> None:
        self._tables: dict[str, dict[Payload, int]] = {"parameters": {}, "tools": {}}
        self._known: dict[str, int] = {prior.digest: 0} if prior else {}

    def payload(self, payload: Payload) -> bytes:
        return write_value(payload)

    def text(self, text: str | None) -> bytes | None:
        return scalar(text)

    def shared(self, table: str, payload: Payload) -> bytes:
        rows = self._tables[table]
        return b"%d" % rows.setdefault(payload, len(rows))

    def table(self, name: str) -> bytes | None:
        rows = self._tables[name]
        return array_text(_json_text(payload) for payload in rows) if rows else None

    def history(self, history: History | None) -> bytes | None:
        if history is None:
            return None
        base = next((node for node in nodes(history) if node.digest in self._known), None)
        after = None if base is None else self._known[base.digest]
        added = array_text(self.new_messages(history, base))
        return object_text([("after", scalar(after)), ("messages", added)])

    def new_messages(self, history: History | None, base: History | None) -> list[bytes]:
        added = []
        for node in nodes(history):
            if base is not None and node.digest == base.digest:
                break
            added.append(_json_text(node.message))
        return added[::-1]

    def step_written(self, step: Step) -> None:
        if isinstance(step.call, ModelCall) and (output := step.call.output_history):
            self._known.setdefault(output.digest, step.index)


class _InlineResolver:
    """Reads what `_InlineEmbedding` writes."""

    def __init__(self, fields: Fields, max_messages: int) -> None:
        self._max_messages = max_messages
        self._tables = {
            name: [Payload(content=row) for row in fields.items(name) or []] for name in ("parameters", "tools")
        }
        for position, row in enumerate(self._tables["parameters"]):
            _check_object(row, PARAMETERS, f"parameters[{position}]")
        for position, row in enumerate(self._tables["tools"]):
            check_shape(row.content, TOOL, f"tools[{position}]")
        self._unnamed = {name: dict(enumerate(rows)) for name, rows in self._tables.items()}
        self._after: dict[int, History | None] = {}

    def unnamed_rows(self) -> JsonObject:
        """Rows of tables that no step names: kept like any field of which nothing is known."""
        rows = {name: [row.value for row in rows.values()] for name, rows in self._unnamed.items() if rows}
        return {"unnamed_rows": rows} if rows else {}

    def start(self, prior: list[bytes] | None) -> History | None:
        history = extend(None, self._messages(prior or [], "prior"))
        self._after[0] = history
        return history

    def payload(self, slice_: bytes, path: str) -> Payload:
        return read_value(slice_, path)

    def text(self, fields: Fields, name: str) -> str | None:
        return fields.text(name)

    def shared(self, table: str, slice_: bytes, path: str) -> Payload:
        rows = self._tables[table]
        position = Payload(content=slice_).value
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < len(rows):
            raise RecordError(f"{path} must be a position in the list {table!r}.", field=path)
        self._unnamed[table].pop(position, None)
        return rows[position]

    def history(self, slice_: bytes | None, path: str) -> History | None:
        if slice_ is None:
            return None
        fields = Fields(slice_, path)
        raw = fields.items("messages") or []
        added = self._messages(raw, f"{path}.messages")
        base = self._base(fields)
        fields.refuse_rest()
        return extend(base, added)

    def _messages(self, raw: list[bytes], path: str) -> Iterator[Payload]:
        if len(raw) > self._max_messages:
            words = f"{path} has {len(raw)} messages; the limit is {self._max_messages}."
            raise RecordTooLarge(words, field=path)
        return (_message(item, f"{path}[{i}]") for i, item in enumerate(raw))

    def _base(self, fields: Fields) -> History | None:
        after = fields.integer("after")
        if after is None:
            return None
        if after not in self._after:
            raise fields.error("after", "must be 0 or the index of an earlier model step")
        return self._after[after]

    def step_read(self, step: Step) -> None:
        if isinstance(step.call, ModelCall):
            _check_object(step.call.response, MESSAGE, f"steps[{step.index - 1}].response")
            self._after[step.index] = step.call.output_history


def _json_text(payload: Payload) -> bytes:
    """Messages and shared values are JSON as spelled; no object among them stands for bytes."""
    return payload.content if payload.is_json else write_value(payload)


def _check_object(value: Payload | None, shape: Shape, path: str) -> None:
    """Another value than an object, or the text of one, stands for itself."""
    if value is not None and isinstance(value.parsed, dict):
        check_shape(value.content, shape, path)


def _message(raw: bytes, path: str) -> Payload:
    if not raw.startswith(b"{"):
        raise RecordError(f"{path} must be a message object.", field=path)
    check_shape(raw, MESSAGE, path)
    return Payload(content=raw)


FIELD_NAMES = frozenset(
    {name for name, _ in header_fields(Run(run_id="-", session_id="-", status="ok"), _InlineEmbedding(None))}
    | {"prior", "parameters", "tools", "steps", "final"}
)
"""Names that a record uses itself; an unknown field of another format cannot keep one of them."""


def foreign_extra(extra: JsonObject, source: str) -> JsonObject:
    """Unknown fields of another format, renamed where a native record has a field of that name."""
    return {f"{source}.{key}" if key in FIELD_NAMES else key: value for key, value in extra.items()}
