"""A native record as a replay needs it: the answers of the model and of the tools, each with what was asked for."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from replay_recorder.delivery.api_client import ApiClient
from replay_recorder.recorded_http.exchanges import Headers, HttpStep, RecordedExchange
from replay_recorder.settings import settings_from
from replay_recorder.state import AUTOMATIC
from replay_recorder.writing.assembly import assemble, is_spool_file

Json = dict[str, Any]
Run = Mapping[str, Any] | str | os.PathLike[str]
"""A native record, the path of a file that holds one, or the id of a run on the server."""

_FORMAT = "agent-replay.run"
_ENCLOSING = ("tool", "agent")
_BY_FRAMEWORK = ("unknown_tool", "unavailable_tool")
_WAITING = ("deferred", "unapproved")
_FEEDBACK = ("retry-feedback", "retry-prompt")
_SKIPPED = "Tool not executed"
"""How Pydantic AI begins its answer to a call that a final result made superfluous."""


@dataclass(frozen=True)
class RecordedAnswer:
    """One request to the model and its answer."""

    step: int
    messages: list[Json] | None
    """Everything that went in; None when it was not captured."""
    parameters: Json | None
    settings: Any
    response: Json | None
    error: Json | None
    was_sent_otherwise: bool = False
    """Whether a hook sent other messages than these."""
    raw_response: Json | None = None
    """What the model itself gave, where hooks behind the request made the response of it."""


@dataclass(frozen=True)
class RecordedCall:
    """One call of a tool and its answer."""

    step: int
    name: str
    call_id: str | None
    arguments: Any
    """Read, where they are JSON."""
    result: Any
    has_result: bool
    outcome: str | None
    error: Json | None
    retry: Json
    metadata: Any = None
    content: Any = None
    returned: Any = None
    """What the tool of an OpenAI Agents SDK agent really gave, where the model was told in other words."""
    approved_arguments: Any = None
    """What whoever approved the call had it run with, in place of the model's arguments."""
    tool_ran: bool | None = None
    """Whether the tool itself began, where the recording says it."""
    waited_for: str | None = None
    """What its tool had it wait for: `approval`, or an `answer` from outside."""
    waits_with: Any = None
    """What the tool said to whoever is to approve or to answer the call."""
    is_output: bool = False
    is_handoff: bool = False
    given: Any = None
    """What the tool itself was given, behind all checks and hooks; None where that was not heard, or not whole."""

    @property
    def ended_before_tool(self) -> bool:
        """Whether a check or a hook of the agent's code ended the call in front of the tool."""
        return not self.tool_ran if self.tool_ran is not None else self.retry.get("cause") == "validation_error"

    @property
    def was_put_off(self) -> bool:
        """Whether the answer came from outside while the run went on."""
        return self.waited_for == "answer" and self.outcome not in _WAITING

    @property
    def was_held_back(self) -> bool:
        """Whether the tool itself asked for an approval, and somebody decided on the call while the run went on."""
        return self.waited_for == "approval" and self.outcome not in _WAITING

    @property
    def is_answered_by_tool(self) -> bool:
        """False for structured output, for handoffs, and for what the framework itself answers."""
        if self.is_output or self.is_handoff or self.outcome == "denied" or self.retry.get("cause") in _BY_FRAMEWORK:
            return False
        return not (isinstance(self.result, str) and self.result.startswith(_SKIPPED))


@dataclass(frozen=True)
class Recording:
    """One run, without what happened inside its tools."""

    record: Json
    answers: list[RecordedAnswer]
    calls: list[RecordedCall] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        return str(self.record["run_id"])

    @property
    def framework(self) -> str | None:
        framework: str | None = (self.record.get("agent") or {}).get("framework")
        return framework

    @property
    def input(self) -> Any:
        return plain_value(self.record.get("input"))

    @property
    def output(self) -> Any:
        return plain_value(self.record.get("output"))

    @property
    def prior(self) -> list[Json]:
        """The messages of earlier turns that it began with."""
        return self.record.get("prior") or []

    @property
    def initial_state(self) -> Any:
        """None where none was recorded."""
        return plain_value(self.record.get("initial_state"))

    @property
    def snapshot_every(self) -> int | None:
        """Steps between the automatic snapshots of it; None where there is none."""
        steps: list[Json] = self.record.get("steps") or []
        first = next((step for step in steps if step.get("name") == AUTOMATIC), {})
        changes = (first.get("state") or {}).get("after") or []
        counted = next((change.get("value") for change in changes if change.get("path") == "/step_number"), None)
        return counted if type(counted) is int and counted > 0 else None

    @property
    def output_functions(self) -> list[tuple[int, int | None]]:
        """The steps of functions that made the output, each with that of the answer it was given."""
        steps = enumerate(self.record.get("steps") or [], start=1)
        return [(index, step.get("parent")) for index, step in steps if step.get("of_output_function") is True]

    def feedback_behind(self, request: int) -> str | None:
        """With which words code refused the text that answered the request of this number; None where it did not."""
        messages = self.answers[request].messages if request < len(self.answers) else None
        for part in (messages or [{}])[-1].get("parts") or []:
            if part.get("part_kind") in _FEEDBACK and (part.get("retry") or {}).get("cause") == "model_retry":
                return str(part.get("content"))
        return None

    @cached_property
    def http_steps(self) -> list[HttpStep]:
        """All steps, with the exchange that each of them has."""
        return [
            HttpStep(index, step.get("parent"), str(step["kind"]), _exchange(step.get("http")))
            for index, step in enumerate(self.record.get("steps") or [], start=1)
        ]


def read_recording(run: Run, *, url: str | None = None, key: str | None = None) -> Recording:
    """Raises `ValueError` for what is no native record and `OSError` for a file that cannot be read or a server that
    cannot be reached; each says what to do."""
    record = dict(run) if isinstance(run, Mapping) else _parsed(_content(run, url, key), str(run))
    if record.get("format") != _FORMAT:
        raise ValueError(
            f"This is no native record: its format is {record.get('format')!r}. "
            "Send the file to the server, and replay the run by its id."
        )
    steps = list(main_steps(record))
    histories = _histories(record)
    answers = [_answer(record, index, step, histories) for index, step in steps if step["kind"] == "model"]
    calls = [_call(record, index, step) for index, step in steps if step["kind"] == "tool"]
    return Recording(record=record, answers=_without_repeated(answers), calls=calls)


def _content(run: str | os.PathLike[str], url: str | None, key: str | None) -> bytes:
    """Of a file of this name, where there is one; else of the server's run with this id."""
    path = Path(run)
    if not isinstance(run, str) or path.is_file():
        return path.read_bytes()
    settings = settings_from(os.environ, url=url, key=key)
    if settings.url is None:
        raise ValueError(f"There is no file {run!r}; to fetch the run of this id, set REPLAY_URL and REPLAY_KEY.")
    return ApiClient(settings.url, settings.key).record(run)


def _parsed(content: bytes, name: str) -> Json:
    try:
        record = json.loads(assemble(content) if is_spool_file(content) else content)
    except ValueError as error:
        raise ValueError(f"{name} holds no JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{name} holds no record, which is a JSON object.")
    return record


# --- steps -------------------------------------------------------------------------------------


def main_steps(record: Json) -> Iterator[tuple[int, Json]]:
    """Those of the agent's own loop, with their index: not what ran inside a tool or another agent."""
    steps = list(enumerate(record.get("steps") or [], start=1))
    outside = _outside(steps, _ENCLOSING)
    has_model = any(step["kind"] == "model" for _, step in outside)
    yield from outside if has_model else _outside(steps, ("tool",))


def _outside(steps: list[tuple[int, Json]], kinds: tuple[str, ...]) -> list[tuple[int, Json]]:
    enclosing = {index for index, step in steps if step["kind"] in kinds}
    inside: set[int] = set()
    for index, step in steps:
        if step.get("parent") in enclosing or step.get("parent") in inside:
            inside.add(index)
    return [(index, step) for index, step in steps if index not in inside]


def _histories(record: Json) -> dict[int, list[Json]]:
    """Of each model step all messages that went in. Lists share their messages."""
    found: dict[int, list[Json]] = {}
    behind: dict[int, list[Json]] = {0: record.get("prior") or []}
    for index, step in enumerate(record.get("steps") or [], start=1):
        request = step.get("request")
        if step["kind"] != "model" or request is None:
            continue
        before = behind.get(request["after"], []) if request.get("after") is not None else []
        found[index] = [*before, *(request.get("messages") or [])]
        response = plain_value(step.get("response"))
        behind[index] = found[index] if response is None else [*found[index], response]
    return found


def _answer(record: Json, index: int, step: Json, histories: dict[int, list[Json]]) -> RecordedAnswer:
    row = step.get("parameters")
    return RecordedAnswer(
        step=index,
        messages=histories.get(index),
        parameters=None if row is None else record["parameters"][row],
        settings=plain_value(step.get("settings")),
        response=plain_value(step.get("response")),
        error=_error(step),
        was_sent_otherwise=any(step.get(name) for name in ("words_added", "words_left_out")),
        raw_response=step.get("raw_response"),
    )


def _without_repeated(answers: list[RecordedAnswer]) -> list[RecordedAnswer]:
    """Without requests that failed and were sent again: a client did that, and the loop was told of the last alone."""
    following = [*answers[1:], None]
    return [
        one for one, after in zip(answers, following, strict=False) if after is None or not _is_repeated(one, after)
    ]


def _is_repeated(one: RecordedAnswer, after: RecordedAnswer) -> bool:
    failed = one.error is not None and one.response is None
    return failed and one.messages is not None and one.messages == after.messages


def _call(record: Json, index: int, step: Json) -> RecordedCall:
    return RecordedCall(
        step=index,
        name=str(step.get("tool_name") or step.get("name")),
        call_id=step.get("call_id"),
        arguments=read_arguments(plain_value(step.get("arguments"))),
        result=plain_value(step.get("result")),
        has_result="result" in step,
        outcome=step.get("outcome"),
        error=_error(step),
        retry=step.get("retry") or {},
        metadata=plain_value(step.get("metadata")),
        content=plain_value(step.get("content")),
        returned=plain_value(step.get("returned")),
        approved_arguments=step.get("approved_arguments"),
        tool_ran=step.get("tool_ran"),
        waited_for=step.get("waited_for"),
        waits_with=step.get("waits_with"),
        is_output=bool(step.get("is_output")),
        is_handoff=step.get("handoff") is not None,
        given=_given(step) if record.get("recorder.ran_with") else None,
    )


def _given(step: Json) -> Any:
    has_run = step.get("tool_ran", step.get("outcome") == "success")
    if not has_run or "ran_with_unknown" in step:
        return None
    return step.get("ran_with", read_arguments(plain_value(step.get("arguments"))))


def _exchange(http: Json | None) -> RecordedExchange | None:
    if http is None:
        return None
    sent = http.get("request_body")
    return RecordedExchange(
        method=str(http.get("method") or ""),
        url=str(http.get("url") or ""),
        status=http.get("status"),
        request_headers=_headers(http.get("request_headers")),
        request_body=None if sent is None else _bytes(plain_value(sent)),
        is_json_value=sent is not None and not isinstance(plain_value(sent), str | bytes),
        response_headers=_headers(http.get("response_headers")),
        response_body=_bytes(plain_value(http.get("response_body", ""))),
        facts={name: value for name, value in http.items() if name not in _OF_EXCHANGES},
    )


_OF_EXCHANGES = frozenset(
    {"method", "url", "status", "request_headers", "request_body", "response_headers", "response_body"}
)


def _headers(said: Any) -> Headers:
    """A list of pairs, or an object."""
    pairs = said.items() if isinstance(said, dict) else said or ()
    return tuple((str(name), str(value)) for name, value in pairs)


def _bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()


def _error(step: Json) -> Json | None:
    error = step.get("error")
    return {"type": None, "message": error} if isinstance(error, str) else error


def read_arguments(sent: Any) -> Any:
    """As an object where they spell one; none, and an empty text, are an empty object to a loop."""
    if isinstance(sent, str) and sent:
        try:
            return json.loads(sent)
        except ValueError:
            return sent
    return {} if sent in (None, "") else sent


def plain_value(value: Any) -> Any:
    """A value of a record: what it stands for where it is written as bytes."""
    if not isinstance(value, dict) or "base64" not in value or not value.keys() <= {"base64", "media_type"}:
        return value
    content, media_type = b64decode(value["base64"]), str(value.get("media_type") or "")
    if media_type == "application/json":
        return json.loads(content)
    return content.decode() if media_type.startswith("text/") else content
