"""Records with values of other types in their fields: refused in words, or every page of the run opens.

`TRIAL_SIZE=full` sends 100,000 and opens what came of every tenth; `FUZZ_BODIES`, `FUZZ_SEED`, `FUZZ_FROM` and
`FUZZ_OPEN` are those of tests/api/test_otlp_fuzz.py.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from django.db import transaction

from tests.api.test_otlp_fuzz import Doors
from tests.core.test_field_types import FULL, SESSION_FILE, VALUES, changed, paths
from tests.otlp_requests import JSON
from tests.trials.mutations import HOSTILE, Request, nested

IS_FULL = os.environ.get("TRIAL_SIZE") == "full"
BODIES = int(os.environ.get("FUZZ_BODIES") or (100_000 if IS_FULL else 60))
SEED = int(os.environ.get("FUZZ_SEED") or 1)
FROM = int(os.environ.get("FUZZ_FROM") or 0)
OPEN = int(os.environ.get("FUZZ_OPEN") or (10 if IS_FULL else 1))
DEEP = [nested(levels) for levels in (5, 30, 75, 150, 190)]
TEXTS_OF_JSON = ["[" * 75 + "1" + "]" * 75, "[" * 190 + "]" * 190, '{"a":' * 90 + "1" + "}" * 90]
OF_OTHER_TYPES = [*VALUES, *HOSTILE, *DEEP, *TEXTS_OF_JSON]


def mutant(number: int) -> Any:
    """A record with a few fields that hold something else; each is there already, or one beside it."""
    random = Random(f"{SEED} {number}")
    document = random.choice((FULL, FULL, FULL, SESSION_FILE))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        path = random.choice([path for path in paths(document) if path])
        document = changed(document, path, random.choice(OF_OTHER_TYPES))
    return document


def request(number: int) -> Request:
    body = json.dumps(mutant(number)).encode()
    return Request(number=number, path="/api/v1/runs", body=body, extra={"CONTENT_TYPE": JSON})


@pytest.mark.django_db
def test_what_was_taken_opens_on_every_page_whatever_its_fields_hold():
    doors, seen = Doors(), Counter[str]()
    complaints: dict[str, list[int]] = {}
    for number in range(FROM, FROM + BODIES):
        with transaction.atomic():
            for words in doors.complaints(request(number), seen):
                complaints.setdefault(words, []).append(number)
            transaction.set_rollback(True)
    print(f"seed {SEED}, {BODIES} records: {dict(sorted(seen.items()))}")
    assert {words: numbers[:5] for words, numbers in complaints.items()} == {}
    assert {"/api/v1/runs 201", "/api/v1/runs 400"} <= set(seen)
