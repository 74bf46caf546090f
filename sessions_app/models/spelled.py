"""Columns for JSON whose spelling counts."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.json import Json

from sessions_app.core.payload import compact_json


class SpelledJsonField(models.JSONField):
    """JSON that comes back as it was written: `jsonb` puts the keys of objects into an order of its own, and the value
    that a person gave for a tool's answer would be another one. SQL cannot compare it."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        return None if value is None else Json(value, dumps=lambda held: compact_json(held).decode())

    def from_db_value(self, value: Any, expression: object, connection: BaseDatabaseWrapper) -> Any:
        """The driver has read it."""
        return value
