"""Every request has an id, the sender's or one made here: it is in the answer and in each line of the log about it."""

import logging
import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER = "X-Request-ID"
_ALLOWED = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
"""What cannot break a line of the log, nor forge one."""
_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


def name_requests(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The first middleware, so that all others are heard under this id."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        sent = request.headers.get(HEADER, "")
        name = sent if _ALLOWED.fullmatch(sent) else secrets.token_hex(8)
        _request_id.set(name)  # until the thread's next request: Django logs refusals behind all middlewares
        response = get_response(request)
        response.headers[HEADER] = name
        return response

    return serve


class NameRequest(logging.Filter):
    """Gives each record ` [id]` as `request_id`; nothing where no request is served."""

    def filter(self, record: logging.LogRecord) -> bool:
        name = _request_id.get()
        record.request_id = f" [{name}]" if name else ""
        return True
