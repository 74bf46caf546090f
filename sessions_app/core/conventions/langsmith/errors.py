"""Errors that LangSmith and LangChain write as one text: the exception's `repr`, then its traceback."""

from __future__ import annotations

import re

from sessions_app.core.run import ErrorInfo

_TRACEBACK = "Traceback (most recent call last)"
_NAME = re.compile(r"[A-Za-z_][\w.]{0,200}")
_ESCAPE = re.compile(r"\\([\\'\"nrt])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def error_in(text: str) -> ErrorInfo:
    """`ValueError('no such order')\\n\\nTraceback …`, or the text as the message where it is no `repr`."""
    head, mark, trace = text.partition(_TRACEBACK)
    head = head.strip()
    extra = {"stacktrace": mark + trace} if mark else {}
    name, bracket, rest = head.partition("(")
    if bracket and rest.endswith(")") and _NAME.fullmatch(name):
        return ErrorInfo(type=name, message=_argument(rest[:-1]), extra=extra)
    return ErrorInfo(type=None, message=head or None, extra=extra)


def _argument(written: str) -> str | None:
    """The text of a single quoted argument; several arguments as they were written."""
    written = written.rstrip(",")
    quote = written[:1]
    if len(written) < 2 or quote not in ("'", '"') or written[-1] != quote or f"{quote}, " in written:
        return written or None
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), written[1:-1])
