"""Parameters that nobody reads: a filter that is misspelled would otherwise answer everything, without a word."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from ninja.operation import Operation

from sessions_app.api.errors import Refused


def refuse_unknown_parameters(view: Callable[..., Any]) -> Callable[..., Any]:
    """For all operations of the API; each knows its own parameters."""
    operation: Operation = view._ninja_operation  # type: ignore[attr-defined]  # put there by ninja
    known = [name for model in operation.models if _is_of_query(model) for name in model.model_fields]

    @wraps(view)
    def checked(request: HttpRequest, **values: Any) -> Any:
        for name in request.GET:
            if name not in known:
                raise Refused(400, "bad_parameter", _words(name, known), name[:100])
        return view(request, **values)

    return checked


def _is_of_query(model: Any) -> bool:
    return bool(model.__ninja_param_source__ == "query")


def _words(name: str, known: list[str]) -> str:
    others = f"Known here: {', '.join(known)}." if known else "This address takes none."
    return f"There is no parameter {name[:100]!r}. {others}"
