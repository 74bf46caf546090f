"""docs/integrations.md says what was measured."""

from __future__ import annotations

import os
from itertools import chain

import pytest

from tests.traces.captures import captures
from tests.traces.integrations import COLUMNS, TARGET, document
from tests.traces.integrations_groups import GROUPS
from tests.traces.truth import FACTS


def test_columns_sum_up_every_fact_once():
    assert sorted(chain(*COLUMNS.values())) == sorted(FACTS.keys() - {"spans"})


def test_every_variant_has_its_row():
    rows = [variant for group in GROUPS for variant in group.rows]

    assert len(rows) == len(set(rows))
    assert {capture.variant for capture in captures()} <= set(rows)


def test_every_row_and_section_is_in_the_document():
    written = TARGET.read_text()

    assert [group.title for group in GROUPS if f"\n## {group.title}\n" not in written] == []
    labels = [row.label for group in GROUPS for row in group.rows.values()]
    assert [label for label in labels if f"\n| {label} (" not in written] == []


@pytest.mark.skipif("TRACE_CORPUS" not in os.environ, reason="Figures need the whole set of captures: TRACE_CORPUS.")
def test_document_is_what_the_captures_give():
    assert TARGET.read_text() == document()
