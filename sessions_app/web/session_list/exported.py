"""A batch of native records, byte for byte, that can be sent to another server as it is."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import StreamingHttpResponse

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Run
from sessions_app.web.downloads import as_file


def exported(project: Project, pks: list[int]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_batch(pks), content_type="application/octet-stream")
    response.headers["Cache-Control"] = "private, no-store"
    return as_file(response, f'attachment; filename="{project.slug}-sessions.json"')


def _batch(pks: list[int]) -> Iterator[bytes]:
    """Written as they are read: one record in memory at a time."""
    gone: list[JsonObject] = []
    separator = b'{"runs":['
    for run in (Run.objects.filter(pk=pk).first() for pk in pks):
        if run is None:
            continue
        try:
            yield separator + encode_native(load_run(run))
            separator = b",\n"
        except StoredBytesMissing as error:
            gone.append({"run_id": run.run_id, "error": str(error)})
    yield separator if separator.endswith(b"[") else b""
    yield b"]" + (b',"gone":' + compact_json(gone) if gone else b"") + b"}"
