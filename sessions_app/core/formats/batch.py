"""Several recordings in one document: `{"runs": [recording, …]}`.

An export writes the same; where bytes were missing it adds `gone`, which is only to be read by people.
"""

from __future__ import annotations

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.fields import as_array, as_object
from sessions_app.core.payload import JsonValue

MAX_RUNS = 1000


def split_batch(content: bytes, value: JsonValue) -> list[bytes] | None:
    """The recordings of a batch, each as it was spelled; None when the document is a recording itself.

    `value` is what `load_strict` read from `content`.
    """
    if not isinstance(value, dict) or "runs" not in value or not value.keys() <= {"runs", "gone"}:
        return None
    runs = as_array(as_object(content, "the document")["runs"], "runs")
    if not 0 < len(runs) <= MAX_RUNS:
        raise RecordError(f"runs must hold between 1 and {MAX_RUNS} recordings.", field="runs")
    return runs
