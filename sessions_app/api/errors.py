"""One shape for every refusal: `{"error": {"code", "message", "field"}}`."""

from __future__ import annotations

import logging
import random
import secrets

from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, DataError, ProgrammingError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from replay_goldens.reading import CheckError
from sessions_app.core.errors import (
    NotReplayable,
    QueryError,
    RecordError,
    RecordTooLarge,
    RunConflict,
    StillRunning,
    StoredBytesMissing,
)
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import ApiKey
from sessions_app.services import ingest_log
from sessions_app.services.body_streams import discard_body

logger = logging.getLogger(__name__)


class Refused(Exception):
    """A request that is answered with an error of ours."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field


def not_found(what: str) -> Refused:
    """The same words for what does not exist and for what belongs to somebody else."""
    return Refused(404, "not_found", f"There is no such {what} in this project.")


def refusal(status: int, code: str, message: str, **headers: str) -> HttpResponse:
    """The answer of addresses that are not operations of the API."""
    error = {"code": code, "message": message, "field": None}
    return JsonResponse({"error": error}, status=status, headers=headers)


def add_handlers(api: NinjaAPI) -> None:
    """Turn errors into answers. Anything unforeseen is a 500 with a reference and no details."""

    def answer(request: HttpRequest, status: int, code: str, message: str, field: str | None = None) -> HttpResponse:
        note_refusal(request, status, message, field)
        discard_body(request)
        body = {"error": {"code": code, "message": message, "field": field}}
        return api.create_response(request, body, status=status)

    @api.exception_handler(Refused)
    def refused(request: HttpRequest, error: Refused) -> HttpResponse:
        response = answer(request, error.status, error.code, error.message, error.field)
        for name, value in _ASKS_FOR.get(error.status, {}).items():
            response[name] = value
        return response

    @api.exception_handler(RecordTooLarge)
    def too_large(request: HttpRequest, error: RecordTooLarge) -> HttpResponse:
        return answer(request, 413, "too_large", error.message, error.field)

    @api.exception_handler(RecordError)
    def bad_record(request: HttpRequest, error: RecordError) -> HttpResponse:
        return answer(request, 400, "bad_record", error.message, error.field)

    @api.exception_handler(ForkError)
    def bad_fork(request: HttpRequest, error: ForkError) -> HttpResponse:
        return answer(request, 400, "bad_fork", error.message, error.field)

    @api.exception_handler(CheckError)
    def bad_check(request: HttpRequest, error: CheckError) -> HttpResponse:
        return answer(request, 400, "bad_check", str(error), error.field)

    @api.exception_handler(RunConflict)
    def conflict(request: HttpRequest, error: RunConflict) -> HttpResponse:
        return answer(request, 409, "run_conflict", str(error), "run_id")

    @api.exception_handler(QueryError)
    def bad_query(request: HttpRequest, error: QueryError) -> HttpResponse:
        field = "cursor" if error.part and error.part == request.GET.get("cursor", "")[:200] else "q"
        return answer(request, 400, "bad_query", f"{error.message} ({error.part})", field)

    @api.exception_handler(RequestDataTooBig)
    def body_too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
        return answer(request, 413, "too_large", "The body is too large.")

    @api.exception_handler(StillRunning)
    def still_running(request: HttpRequest, error: StillRunning) -> HttpResponse:
        return answer(request, 409, "still_running", str(error), "run_id")

    @api.exception_handler(NotReplayable)
    def not_replayable(request: HttpRequest, error: NotReplayable) -> HttpResponse:
        return answer(request, 400, "not_replayable", str(error), "mode")

    @api.exception_handler(RedactionFailed)
    def withheld(request: HttpRequest, error: RedactionFailed) -> HttpResponse:
        return answer(request, 400, "redaction_failed", "The recording could not be redacted and was not stored.")

    @api.exception_handler(StoredBytesMissing)
    def gone(request: HttpRequest, error: StoredBytesMissing) -> HttpResponse:
        return answer(request, 410, "payload_missing", str(error))

    @api.exception_handler(AuthenticationError)
    def no_key(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        return refused(request, Refused(401, "unauthorized", "Send a valid key: Authorization: Bearer <key>."))

    @api.exception_handler(ValidationError)
    def bad_parameter(request: HttpRequest, error: ValidationError) -> HttpResponse:
        first = error.errors[0]
        # Of a body the parameter's name stands behind the place: ("body", "wanted", "mode"), and ("query", "limit").
        inside = first["loc"][2:] if first["loc"][:1] == ("body",) else first["loc"][1:]
        field = ".".join(str(part) for part in inside)
        wrong = _WRONG.get(first["type"], first["msg"])
        return answer(request, 400, "bad_parameter", f"{field or 'The body'}: {wrong}.", field or None)

    @api.exception_handler(HttpError)
    def http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
        return answer(request, error.status_code, "bad_request", str(error))

    @api.exception_handler(Http404)
    def no_page(request: HttpRequest, error: Http404) -> HttpResponse:
        return answer(request, 404, "not_found", "There is nothing at this address.")

    @api.exception_handler(DatabaseError)
    def not_now(request: HttpRequest, error: DatabaseError) -> HttpResponse:
        if isinstance(error, DataError | ProgrammingError):
            return unforeseen(request, error)
        return come_back(request, error, "The database does not answer now; send it again.")

    @api.exception_handler(OSError)
    def not_stored(request: HttpRequest, error: OSError) -> HttpResponse:
        return come_back(request, error, "The store of large payloads does not answer now; send it again.")

    def come_back(request: HttpRequest, error: Exception, words: str) -> HttpResponse:
        logger.error("Answered 503: %s at %s", type(error).__name__, _place(error))
        response = answer(request, 503, "unavailable", words)
        response["Retry-After"] = str(random.randint(1, 5))  # not all of them at the same moment
        return response

    @api.exception_handler(Exception)
    def unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
        reference = secrets.token_hex(6)
        # The type and the place are enough to find it; the message may quote recorded text.
        logger.error("Reference %s: %s at %s", reference, type(error).__name__, _place(error))
        return answer(request, 500, "internal", f"Something went wrong here. Reference {reference}.")


_ASKS_FOR = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}
_WRONG = {"extra_forbidden": "There is no such field here", "missing": "It is required"}
"""In place of the validator's own words."""


def note_refusal(request: HttpRequest, status: int, message: str, field: str | None) -> None:
    """Refused recordings are kept for people to see; lists are asked for at the same address."""
    if request.method != "POST" or request.resolver_match is None or request.resolver_match.url_name != "post_run":
        return
    key = getattr(request, "auth", None)
    if isinstance(key, ApiKey):
        words = message if field is None or field in message else f"{field}: {message}"
        ingest_log.note(key.project, door="runs", status=status, words=words)
    elif status == 401:
        words = ingest_log.refused_key_words(request.headers.get("Authorization", ""))
        ingest_log.note(None, door="runs", status=status, words=words)


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
