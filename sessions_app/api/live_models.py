"""Live models that a project may ask. Keys go in and never come out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field, SecretStr

from sessions_app.api import examples
from sessions_app.api.auth import AdminKeyHolder, FullKeyHolder, project_of
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.schemas import NO_NUL, Answer, OrderBody, shown
from sessions_app.core.payload import JsonObject
from sessions_app.models import ConnectedModel
from sessions_app.services.connected_models import (
    MOST_A_DAY,
    REQUESTS_PER_DAY,
    CannotConnect,
    Connection,
    change,
    connect,
    connection_of,
)
from sessions_app.services.live_models import LiveModel, connected, live_models

router = Router(tags=["projects"])


class ModelBody(Answer):
    model_id: int | None = Field(description="null for the model that the server's environment configures.")
    name: str = Field(description="Use it as `live_model` of a replay, a fork or a golden.")
    source: Literal["environment", "project"]
    provider: str | None
    host: str
    model: str | None = Field(description="Requested instead of the recorded model.")
    requests_per_day: int | None = Field(description="null: no daily budget.")
    requests_today: int | None = Field(description="Sent since 00:00 UTC.")
    refusal: str | None = Field(description="Why it cannot be called now.")


class ModelList(Answer):
    items: list[ModelBody]
    next_cursor: str | None


class ModelRequest(OrderBody):
    model_config = shown(examples.CONNECTED_MODEL)

    name: str = Field(max_length=60, pattern=NO_NUL)
    provider: Literal["openai", "anthropic", "openai-compatible"]
    base_url: str = Field(default="", max_length=300, pattern=NO_NUL, description="The provider's own by default.")
    model: str = Field(default="", max_length=200, pattern=NO_NUL, description="The recorded model by default.")
    key: SecretStr = Field(default=SecretStr(""), description="Stored encrypted and never returned.")
    requests_per_day: int = Field(default=REQUESTS_PER_DAY, ge=1, le=MOST_A_DAY)


class ModelChanges(OrderBody):
    model_config = shown(examples.MODEL_CHANGES)

    name: str | None = Field(default=None, max_length=60, pattern=NO_NUL)
    provider: Literal["openai", "anthropic", "openai-compatible"] | None = None
    base_url: str | None = Field(default=None, max_length=300, pattern=NO_NUL, description='"": the provider\'s own.')
    model: str | None = Field(default=None, max_length=200, pattern=NO_NUL, description='"": the recorded model.')
    key: SecretStr | None = Field(default=None, description="Required where requests go to another host than before.")
    requests_per_day: int | None = Field(default=None, ge=1, le=MOST_A_DAY)


@router.get("/models", auth=FullKeyHolder(), response={200: ModelList})
def list_models(request: HttpRequest) -> JsonObject:
    """List the live models that replays in the project can call. The server's own comes first, then connected ones."""
    return {"items": [_shape(each) for each in live_models(project_of(request))], "next_cursor": None}


@router.post("/models", auth=AdminKeyHolder(), response={201: ModelBody})
def post_model(request: HttpRequest, wanted: ModelRequest) -> Status[JsonObject]:
    """Connect a live model. The server's settings must allow its host."""
    with _refused():
        row = connect(project_of(request), Connection(**_said(wanted)))
    return Status(201, _shape(connected(row)))


@router.patch("/models/{int:model_id}", auth=AdminKeyHolder(), response={200: ModelBody})
def patch_model(request: HttpRequest, model_id: int, wanted: ModelChanges) -> JsonObject:
    """Change a live model. What you leave out stays as it is. Orders and goldens that use its old name will fail."""
    row = _models(request, model_id).first()
    if row is None:
        raise not_found("model")
    with _refused():
        change(row, replace(connection_of(row), **_said(wanted)))
    return _shape(connected(row))


@router.delete("/models/{int:model_id}", auth=AdminKeyHolder(), response={204: None})
def delete_model(request: HttpRequest, model_id: int) -> Status[None]:
    """Remove a live model and its key. Queued replays that need it will fail and say so."""
    if not _models(request, model_id).delete()[0]:
        raise not_found("model")
    return Status(204, None)


def _models(request: HttpRequest, model_id: int) -> QuerySet[ConnectedModel]:
    """The one of this id, if there is one."""
    rows = ConnectedModel.objects.filter(project=project_of(request), pk=model_id)
    return rows if model_id < 2**63 else rows.none()


def _said(wanted: ModelRequest | ModelChanges) -> JsonObject:
    key = {"key": wanted.key.get_secret_value()} if wanted.key else {}
    return wanted.model_dump(exclude_none=True) | key


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except CannotConnect as problem:
        raise Refused(400, "bad_parameter", problem.message, problem.field) from None


def _shape(model: LiveModel) -> JsonObject:
    row = model.row
    return {
        "model_id": row.pk if row else None,
        "name": model.name,
        "source": "project" if row else "environment",
        "provider": row.provider if row else None,
        "host": model.host,
        "model": model.model,
        "requests_per_day": row.requests_per_day if row else None,
        "requests_today": row.sent_today if row else None,
        "refusal": model.refusal or None,
    }
