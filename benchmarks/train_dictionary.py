"""Trains a dictionary that stored rows are compressed with: `… -m benchmarks.train_dictionary recorded|kits N`.

It learns from the recordings of the tests and the bundled examples: the pieces and outlines of runs and the batches of
spans as they are stored, or the replay kits of these runs. A new one needs a new number N, which then takes its place
in sessions_app/payloads/compression.py; the files of those before it stay, for what was written with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import django
import zstandard

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replay_web.settings.test")
django.setup()

from sessions_app.core.formats.detect import parse_document  # noqa: E402
from sessions_app.core.judge.kit import audit_kit  # noqa: E402
from sessions_app.core.payload import compact_json  # noqa: E402
from sessions_app.core.run import AgentInfo, Call, CodeInfo, ModelCall, Run, Step  # noqa: E402
from sessions_app.core.spans.batch import write_batch  # noqa: E402
from sessions_app.core.spans.carried import MANY, carry  # noqa: E402
from sessions_app.core.spans.packing import Packer  # noqa: E402
from sessions_app.core.step_summary import write_summaries  # noqa: E402
from sessions_app.mapping.rows import content_columns, step_rows  # noqa: E402
from sessions_app.mapping.stored import Collector  # noqa: E402
from sessions_app.payloads.compression import dictionary_file  # noqa: E402
from tests.builders import SAMPLES  # noqa: E402
from tests.traces.captures import Capture, captures  # noqa: E402

_SIZES = {"recorded": 32 * 1024, "kits": 16 * 1024}
_LONGEST = 8_000
"""Bytes of one text that are learnt from: a long one would speak for all."""
_HEADERS_WEIGH = 3
"""A run has one header and many steps."""


def recorded() -> Iterator[bytes]:
    for capture in captures():
        yield from _of_batches(capture)
    for run in _runs():
        yield from _of_run(run)


def kits() -> Iterator[bytes]:
    for run in _runs():
        for other in (run, _bare(run), _by_hand(run)):
            yield compact_json(audit_kit(other).to_json())


def _bare(run: Run) -> Run:
    """As a record that holds little but its steps."""
    return replace(
        run, agent=AgentInfo(), code=CodeInfo(), input=None, instructions=None, user_id=None, tenant_id=None, flags=None
    )


def _by_hand(run: Run) -> Run:
    """As a record that no framework wrote, and a fork of it: little is known of its steps but their answers."""
    steps = tuple(
        replace(step, started_at=None, duration_ms=None, http=None, extra={}, call=_without_question(step))
        for step in run.steps
    )
    told = replace(_bare(run), origin="fork", source_format="native", extra={}, steps=steps)
    return replace(told, started_at=None, duration_ms=None)


def _without_question(step: Step) -> Call:
    if isinstance(step.call, ModelCall):
        call = replace(step.call, tools=None, settings=None, parameters=None)
        return replace(call, provider=None, answered_model=None)
    return step.call


def _runs() -> Iterator[Run]:
    for capture in captures():
        yield from capture.runs
    for sample in SAMPLES:
        yield parse_document(sample.read_bytes())


def _of_run(run: Run) -> Iterator[bytes]:
    collector = Collector()
    steps = step_rows(run, collector)
    header = content_columns(run, collector)["header"]
    assert isinstance(header, bytes)
    yield from [header] * _HEADERS_WEIGH
    yield from collector.pieces
    yield write_summaries(steps)


def _of_batches(capture: Capture) -> Iterator[bytes]:
    for trace_id in sorted({span.trace_id for span in capture.spans}):
        spans = [span for span in capture.spans if span.trace_id == trace_id]
        batch = write_batch(spans, [], Packer(lambda content, is_json: content, lambda name: False))
        yield carry(batch, most=MANY).content


def main() -> None:
    name, number = sys.argv[1], int(sys.argv[2])
    texts = {"recorded": recorded, "kits": kits}[name]
    learnt: list[bytes | bytearray | memoryview] = [text[:_LONGEST] for text in texts()]
    dictionary = zstandard.train_dictionary(_SIZES[name], learnt, dict_id=number)
    dictionary_file(number).write_bytes(dictionary.as_bytes())
    print(f"{dictionary_file(number)}: {len(dictionary)} bytes, learnt from {len(learnt)} texts")


if __name__ == "__main__":
    main()
