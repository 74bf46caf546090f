"""The log as JSON, one object a line, for machines that collect it."""

import json
import logging
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """The fields of the plain line, under names; a traceback is one of them."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", "").strip(" []") or None,
            "message": record.getMessage(),
            "traceback": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({name: value for name, value in said.items() if value is not None})
