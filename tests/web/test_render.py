"""Recorded values as pages show them: tolerant, bounded, exact."""

import base64
import json

import pytest

from sessions_app.core.base64_data import Folded, decoded, folded
from sessions_app.core.payload import BINARY, Payload
from sessions_app.core.step_summary import StepSummary
from sessions_app.web.render import spelled
from sessions_app.web.render.changes import field_of
from sessions_app.web.render.payloads import PART, guess, show
from sessions_app.web.render.tree import build_tree, find, path_of
from sessions_app.web.sessions.outline import Fold, Line, outline
from sessions_app.web.sessions.ruler import ruler_of
from sessions_app.web.steps.messages import message_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


# --- JSON ----------------------------------------------------------------------------------------


def test_numbers_keep_their_spelling():
    assert spelled.compact(spelled.read("[1.0, 1, 1e2, 100000000000000000000000, -0]")) == (
        "[1.0, 1, 1e2, 100000000000000000000000, -0]"
    )


def test_a_key_that_stands_twice_is_shown_twice():
    assert spelled.compact(spelled.read('{"a": 1, "a": 2}')) == '{"a": 1, "a": 2}'


@pytest.mark.parametrize("text", ["{", "NaN", '{"a": Infinity}', "[" * 100_000, "9" * 5000 + "x"])
def test_what_is_no_json_says_so(text):
    assert isinstance(spelled.read(text), spelled.Unreadable)


def test_a_tree_draws_two_levels_open_and_the_rest_folded():
    tree = build_tree(spelled.read('{"a": {"b": {"c": {"d": 1}}}}'))

    a = tree.children[0]
    b = a.children[0]
    assert (tree.is_open, a.is_open, b.is_open) == (True, True, False)
    assert b.children[0].path == "a.b.c"


def test_a_tree_has_at_most_so_many_nodes_and_every_top_key_comes_first():
    value = {"long": list(range(1000)), "last": 1}

    tree = build_tree(spelled.of_value(value), nodes=50)

    assert [node.key for node in tree.children] == ["long", "last"]
    assert len(tree.children[0].children) == 48
    assert tree.children[0].hidden == 952


def test_the_next_part_of_a_list_goes_on_where_the_first_ended():
    tree = build_tree(spelled.of_value(list(range(500))), start=200)

    assert (tree.children[0].index, tree.children[0].text) == (200, "200")
    assert (tree.next_child, tree.hidden) == (400, 100)


@pytest.mark.parametrize(
    ("pointer", "path"),
    [("/orders/0/id", "orders[0].id"), ("/a~1b/c d", '["a/b"]["c d"]'), ("", ""), ("/0", "[0]")],
)
def test_a_pointer_in_words(pointer, path):
    assert path_of(pointer) == path


def test_any_key_can_be_found_by_its_pointer():
    value = spelled.of_value({"a/b": {"~": [10, 20]}, "": 1})

    assert find(value, "/a~1b/~0/1") == "20"
    assert find(value, "/") == "1"
    with pytest.raises(LookupError):
        find(value, "/a~1b/x")


# --- payloads ------------------------------------------------------------------------------------


def test_a_long_text_is_shown_in_parts_that_never_cut_a_character():
    text = "é" * PART
    payload = Payload.of_text(text)

    first = show(payload)
    second = show(payload, start=first.end)

    assert first.text == "é" * (PART // 2)
    assert (first.is_part, first.end, second.start) == (True, PART, PART)
    assert (first.text or "") + (second.text or "") == text


def test_a_start_inside_a_character_goes_back_to_its_beginning():
    assert show(Payload.of_text("aé"), "json", start=2).text == "é"


def test_a_text_that_holds_json_is_shown_as_json_and_says_so():
    shown = show(Payload.of_text('{"a": 1}'))

    assert shown.tree is not None
    assert shown.tree.children[0].key == "a"
    assert shown.note == "a text that holds JSON"


@pytest.mark.parametrize("content", [b"", b"plain", b"{broken", b"[" * 5000])
def test_any_text_can_be_shown(content):
    assert show(guess(content)).text == content.decode()


def test_bytes_are_shown_as_rows_of_sixteen():
    shown = show(Payload(content=bytes(range(20)), media_type=BINARY), "bytes")

    assert shown.rows is not None
    assert [(row.offset, row.text) for row in shown.rows] == [("00000000", "·" * 16), ("00000010", "·" * 4)]
    assert shown.rows[1].hex == "10 11 12 13"


def test_base64_is_folded_with_its_size_and_kind():
    text = base64.b64encode(PNG).decode()

    assert folded(text) == Folded(media_type="image/png", size=len(PNG))
    assert folded(f"data:image/webp;base64,{text}") == Folded(media_type="image/webp", size=len(PNG))
    assert decoded(text) == PNG


@pytest.mark.parametrize("text", ["word " * 1000, "A" * 5000, "short", "é" * 3000])
def test_other_long_texts_are_no_base64(text):
    assert folded(text) is None


# --- messages ------------------------------------------------------------------------------------


def parts_of(message):
    return [(part.look, part.label, part.name) for part in message_of(Payload.of_json(message)).parts]


@pytest.mark.parametrize(
    ("message", "role", "parts"),
    [
        (
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]},
            "user",
            [("text", "user", None)],
        ),
        (
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "f", "args": "{}"}]},
            "model",
            [("call", "tool call", "f")],
        ),
        (
            {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "f", "content": 1}]},
            "tool",
            [("answer", "tool answer", "f")],
        ),
        (
            {"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
            "model",
            [("text", "model", None), ("call", "tool call", "f")],
        ),
        ({"role": "tool", "tool_call_id": "1", "content": "ok"}, "tool", [("answer", "tool answer", None)]),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]},
            "user",
            [("answer", "tool answer", None)],
        ),
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": {}}]},
            "model",
            [("call", "tool call", "f")],
        ),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "model", [("call", "tool call", "f")]),
        ({"kind": "request", "parts": [{"part_kind": "brand-new"}]}, "user", [("unknown", "brand-new", None)]),
        ({"nobody": "knows"}, "unknown", [("unknown", "unknown part", None)]),
    ],
)
def test_messages_of_many_frameworks(message, role, parts):
    assert message_of(Payload.of_json(message)).role == role
    assert parts_of(message) == parts


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"7", b'"text"', b"\xff\xfe", b"{", b'{"role": 7}'])
def test_anything_is_some_message(content):
    assert message_of(Payload(content=content)).role == "unknown"


@pytest.mark.parametrize("odd", [None, 7, "x", [], {}, [None], [[1]], {"x": None}])
def test_no_part_of_a_message_can_break_it(odd):
    for message in (
        {"kind": "request", "parts": odd},
        {"kind": "request", "parts": [odd], "instructions": odd},
        {"role": "user", "content": odd, "tool_calls": odd, "parts": odd},
        {"role": "tool", "content": odd, "name": odd},
        {"kind": "response", "parts": [{"part_kind": "tool-call", "args": odd, "tool_name": odd}]},
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [odd, {"kind": "binary", "data": odd}]}]},
    ):
        message_of(Payload.of_json(message))


def test_fields_that_were_not_used_are_kept_at_hand():
    message = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi", "new": 1}], "new_too": 2}

    shown = message_of(Payload.of_json(message))

    rest = shown.parts[0].rest
    assert rest is not None
    assert rest.children[0].key == "new"
    assert shown.rest is not None
    assert shown.rest.children[0].key == "new_too"


def test_every_recorded_sample_message_is_understood(request):
    for path in (request.config.rootpath / "tests" / "records").glob("*.messages.json"):
        for message in json.loads(path.read_bytes()):
            shown = message_of(Payload.of_json(message))
            assert shown.role != "unknown"
            assert "unknown" not in {part.look for part in shown.parts}


# --- the list of steps ---------------------------------------------------------------------------


def row(index: int, kind: str = "tool", *, key: bytes | None = b"k", **fields) -> StepSummary:
    name = fields.pop("name", "search" if kind == "tool" else "model")
    return StepSummary(index=index, kind=kind, name=name, text=index, arguments_key=key, result_key=b"r", **fields)


def rows_of_loop(times: int) -> list[StepSummary]:
    pairs = ((row(2 * i + 1, "model", key=None), row(2 * i + 2, parent=2 * i + 1)) for i in range(times))
    return [step for pair in pairs for step in pair]


def test_a_loop_is_folded_with_the_model_calls_between():
    (fold,) = outline(rows_of_loop(20))

    assert isinstance(fold, Fold)
    assert (fold.name, fold.times, fold.first, fold.last, fold.around) == ("search", 20, 1, 40, 1)


def test_two_of_a_kind_are_no_loop():
    assert all(isinstance(entry, Line) for entry in outline(rows_of_loop(2)))


@pytest.mark.parametrize("change", [{"key": b"other"}, {"key": None}, {"name": "other"}])
def test_other_calls_do_not_fold(change):
    steps = [row(1), row(2), row(3, **change), row(4), row(5)]

    assert all(isinstance(entry, Line) for entry in outline(steps))


def test_many_calls_of_one_tool_fold_whatever_their_arguments_but_for_an_odd_one():
    steps = [row(i, key=bytes([i])) for i in range(1, 14)]

    entries = outline(steps, apart={7})

    assert [entry.times if isinstance(entry, Fold) else entry.step.index for entry in entries] == [6, 7, 6]
    assert all(isinstance(entry, Line) for entry in outline(steps[:5]))


def test_equal_calls_fold_before_those_of_one_tool_alone():
    steps = [row(i, key=bytes([min(i, 7)])) for i in range(1, 11)]

    folds = [entry for entry in outline(steps) if isinstance(entry, Fold)]

    assert [(fold.first, fold.last, fold.has_same_arguments) for fold in folds] == [(1, 6, False), (7, 10, True)]


def test_model_calls_alone_never_fold():
    assert all(isinstance(entry, Line) for entry in outline([row(i, "model", key=None) for i in range(1, 9)]))


def test_the_step_asked_for_is_shown_under_its_folded_loop():
    (fold,) = outline(rows_of_loop(5), asked=4)

    assert isinstance(fold, Fold)
    assert fold.opened is not None
    assert fold.opened.step.index == 4


def test_unfolding_is_kept_in_the_address():
    (fold,) = outline(rows_of_loop(5), unfolded={1, 99})

    assert isinstance(fold, Fold)
    assert (fold.is_unfolded, fold.unfold_target) == (True, "99")


def test_steps_of_one_answer_are_joined_by_a_brace_and_indented():
    steps = [row(1, "model", key=None), row(2, parent=1, key=b"a"), row(3, parent=1, key=b"b")]

    lines = [entry for entry in outline(steps) if isinstance(entry, Line)]

    assert [(line.depth, line.brace) for line in lines] == [(0, ""), (1, "first"), (1, "last")]


def test_the_ruler_marks_errors_and_each_anomaly_once_where_no_error_is():
    anomalies = [
        {"code": "unscoped_call", "message": "a", "steps": [first, *range(first + 1, 1001)]} for first in (301, 501)
    ]

    ruler = ruler_of([1, 501], anomalies, 1000, [row(401), row(600)])

    assert (ruler.failed, ruler.odd) == ("M0 0h14M0 500h14", "M7 300h7")
    assert (ruler.shown_y, ruler.shown_height) == (400, 200)


# --- fields that differ --------------------------------------------------------------------------


def texts(bits):
    return [(bit.kind, bit.text) for bit in bits]


def test_only_the_words_that_differ_are_marked():
    field = field_of("output", "Order #4421 is shipped.", "Order #91 is shipped.")

    assert texts(field.left) == [
        ("equal", '"'),
        ("equal", "Order #"),
        ("removed", "4421"),
        ("equal", " is shipped."),
        ("equal", '"'),
    ]
    assert ("added", "91") in texts(field.right)


def test_white_space_that_differs_can_be_seen():
    field = field_of("x", "a b", "a  b\n")

    assert ("added", "·") in texts(field.right)
    assert any("⏎" in bit.text for bit in field.right)


def test_long_equal_text_is_cut_between_changes():
    words = " ".join(f"word{i}" for i in range(400))

    field = field_of("x", f"one {words} two", f"uno {words} due")

    gaps = [bit for bit in field.left if bit.kind == "gap"]
    assert len(gaps) == 1
    assert gaps[0].elided > 2000
    assert sum(len(bit.text) for bit in field.left) < 400
