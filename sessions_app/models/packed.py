"""A column for JSON text that lies compressed in the database."""

from __future__ import annotations

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from sessions_app.payloads.compression import pack_object, unpack_object


class PackedField(models.BinaryField):  # type: ignore[type-arg]  # at run time it takes none
    """The text of a JSON object as bytes. SQL sees it compressed, if it gets smaller by it."""

    def from_db_value(
        self, value: bytes | memoryview | None, expression: object, connection: BaseDatabaseWrapper
    ) -> bytes | None:
        return None if value is None else unpack_object(bytes(value))

    def get_db_prep_value(
        self, value: bytes | memoryview | None, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> object:
        packed = None if value is None else pack_object(bytes(value))
        return super().get_db_prep_value(packed, connection, prepared)
