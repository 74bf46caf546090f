"""The HTTP of a recorded run as a cassette of vcrpy, for tests that answer with it themselves.

python -m replay_goldens.cassettes recordings/cancel_5521.json > cassettes/cancel_5521.yaml

with vcr.use_cassette("cassettes/cancel_5521.yaml", record_mode="none"): ...
"""

from __future__ import annotations

import argparse
import sys

from vcr.request import Request
from vcr.serialize import serialize
from vcr.serializers import yamlserializer

from replay_goldens.records import Record
from replay_recorder.recorded_http.clients import response_of
from replay_recorder.recorded_http.exchanges import RecordedExchange, why_not
from replay_recorder.replaying.recording import read_recording


class NoHttpRecorded(ValueError):
    """The run has no exchange that could answer a request."""


def cassette_of(record: Record) -> str:
    """In YAML, the exchanges in the order of their steps, without those that had no whole answer.

    Raises `NoHttpRecorded`. Where secrets were taken out of an address or a body, vcrpy does not find the request by
    it: match on what is left (`match_on`).
    """
    steps = read_recording(record).http_steps
    exchanges = [step.http for step in steps if step.http is not None and why_not(step.http) is None]
    if not exchanges:
        raise NoHttpRecorded(f"Run {record.get('run_id')!r} has no recorded HTTP; record with http=True.")
    held = {"requests": [_request(each) for each in exchanges], "responses": [response_of(each) for each in exchanges]}
    return str(serialize(held, yamlserializer))


def _request(exchange: RecordedExchange) -> Request:
    return Request(exchange.method, exchange.url, exchange.request_body, dict(exchange.request_headers))


def main() -> int:
    parser = argparse.ArgumentParser(prog="replay_goldens.cassettes", description="Recorded HTTP for vcrpy.")
    parser.add_argument("recording", help="a native record, as exported goldens have them")
    try:
        sys.stdout.write(cassette_of(read_recording(parser.parse_args().recording).record))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
