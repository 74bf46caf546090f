"""Columns for JSON that lies compressed in the database."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from zstandard import ZstdError

from sessions_app.core.payload import compact_json
from sessions_app.payloads.compression import KITS, RECORDED, pack_object, unpack_object


class PackedField(models.BinaryField):  # type: ignore[type-arg]  # at run time it takes none
    """The text of a JSON object as bytes, empty where it is damaged: rows beside it are read all the same. SQL sees it
    compressed, if it gets smaller by it."""

    dictionary = RECORDED

    def from_db_value(
        self, value: bytes | memoryview | None, expression: object, connection: BaseDatabaseWrapper
    ) -> bytes | None:
        try:
            return None if value is None else unpack_object(bytes(value))
        except ZstdError:
            return b""

    def get_db_prep_value(
        self, value: bytes | memoryview | None, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> object:
        packed = None if value is None else pack_object(bytes(value), self.dictionary)
        return super().get_db_prep_value(packed, connection, prepared)


class PackedKitField(PackedField):
    """A replay kit, as the object that it is. SQL cannot look into it."""

    dictionary = KITS

    def from_db_value(
        self, value: bytes | memoryview | None, expression: object, connection: BaseDatabaseWrapper
    ) -> Any:
        text = super().from_db_value(value, expression, connection)
        return None if text is None else json.loads(text)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> object:
        text = None if value is None else compact_json(value)
        return super().get_db_prep_value(text, connection, prepared)
