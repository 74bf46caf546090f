"""Trains the dictionary that stored rows are compressed with: `.venv/bin/python -m benchmarks.train_dictionary N`.

It learns from the recordings of the tests and the bundled examples: the texts of steps, runs and batches of spans, as
they are stored. A new one needs a new number N, which then becomes `NEWEST` in sessions_app/payloads/compression.py;
the files of those before it stay, for what was written with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import django
import zstandard

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replay_web.settings.test")
django.setup()

from sessions_app.core.formats.detect import parse_document  # noqa: E402
from sessions_app.core.run import Run  # noqa: E402
from sessions_app.core.spans.batch import write_batch  # noqa: E402
from sessions_app.core.spans.packing import Packer  # noqa: E402
from sessions_app.mapping.rows import run_columns, step_rows  # noqa: E402
from sessions_app.mapping.stored import Collector  # noqa: E402
from sessions_app.payloads.compression import dictionary_file  # noqa: E402
from tests.builders import SAMPLES  # noqa: E402
from tests.traces.captures import Capture, captures  # noqa: E402

_SIZE = 32 * 1024
_LONGEST = 8_000
"""Bytes of one text that are learnt from: a long one would speak for all."""
_HEADERS_WEIGH = 3
"""A run has one header and many steps."""


def texts() -> Iterator[bytes]:
    for capture in captures():
        yield from _of_batches(capture)
        for run in capture.runs:
            yield from _of_run(run)
    for sample in SAMPLES:
        yield from _of_run(parse_document(sample.read_bytes()))


def _of_run(run: Run) -> Iterator[bytes]:
    collector = Collector()
    header = run_columns(run, collector)["header"]
    assert isinstance(header, bytes)
    yield from [header] * _HEADERS_WEIGH
    yield from (step.detail for step in step_rows(run, collector))


def _of_batches(capture: Capture) -> Iterator[bytes]:
    for trace_id in sorted({span.trace_id for span in capture.spans}):
        spans = [span for span in capture.spans if span.trace_id == trace_id]
        yield write_batch(spans, [], Packer(lambda content, is_json: content, lambda name: False)).content


def main() -> None:
    number = int(sys.argv[1])
    learnt: list[bytes | bytearray | memoryview] = [text[:_LONGEST] for text in texts()]
    dictionary = zstandard.train_dictionary(_SIZE, learnt, dict_id=number)
    dictionary_file(number).write_bytes(dictionary.as_bytes())
    print(f"{dictionary_file(number)}: {len(dictionary)} bytes, learnt from {len(learnt)} texts")


if __name__ == "__main__":
    main()
