"""Files of people's own with odd values in every place: read, or refused in words, and never anything else."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.core.assembly.run import assemble
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import find_parser, parser_of
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.formats.python_text import read_python_text
from sessions_app.core.importers.documents import read_document
from sessions_app.core.importers.formats import spans_in
from sessions_app.core.json_text import Limits
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import judge
from tests.api.printed import PRINTED

ODD: tuple[Any, ...] = (None, 7, -1.5, True, "", "x", "\x00", [], [1], {}, {"a": 1}, [[]], "9" * 2000, {"error": 1})
TAKEN = [printed for printed in PRINTED if printed.known_by]


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (key,)
        yield from ((key, *rest) for rest in places(child))


def replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = by
    return changed


def read_whole(value: Any) -> None:
    content = json.dumps(value).encode()
    if find_parser(value) is None and (spans := spans_in(value)):
        run = assemble(spans, is_closed=True)
    else:
        run = parser_of(value)(content, Limits())
    assert parse_native(encode_native(run)) == run
    judge(run)
    audit_kit(run)


@pytest.mark.parametrize("printed", TAKEN, ids=lambda printed: printed.name)
def test_a_file_with_an_odd_value_is_read_or_refused(printed):
    value = read_document(printed.content).value
    for place in places(value):
        for odd in ODD:
            try:
                read_whole(replaced(value, place, odd))
            except RecordError:
                continue
            except Exception as error:
                pytest.fail(f"{place} = {odd!r}: {type(error).__name__}: {error}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': [1, -2.5, None, True], 'b': ('x', \"it's\")}", {"a": [1, -2.5, None, True], "b": ["x", "it's"]}),
        (
            "Call(name='get', args={'n': 1}, state=<State.DONE: 'done'>)",
            {"name": "get", "args": {"n": 1}, "state": "done"},
        ),
        ("name='get' args='{}' id=None", {"name": "get", "args": "{}", "id": None}),
        ("[A(b=B(c=()))]", [{"b": {"c": []}}]),
    ],
)
def test_what_python_prints_is_read_as_data(text, value):
    assert read_python_text(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "hello", "a b", "1 + 1", "f(1)", "__import__('os').system('true')", "lambda: 1", "[1, 2", "{'a'}", "{1: 2}",
        "datetime.datetime(2026, 1, 1)", "<Item at 0x7f>", "b'bytes'", "1e999", "'\\ud800'", "[" * 5000, "x=",
        "'a' 'b'", "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_printed_value_is_left_as_text(text):
    assert read_python_text(text) is None
