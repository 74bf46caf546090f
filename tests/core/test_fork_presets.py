import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.core.compare.strict import Interner
from sessions_app.core.fork.changes import NewToolResult, read_changes
from sessions_app.core.fork.presets import MAX_BYTES, Preset, presets, unfit_presets
from sessions_app.core.fork.words import describe
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.history import extend
from sessions_app.core.payload import BINARY, Payload
from sessions_app.core.run import ErrorInfo, ModelCall, Run, StateChange, Step, ToolCall
from tests.builders import SAMPLES

KEYS = ["empty", "rate_limit", "timeout", "stale", "other_tenant", "doubled"]


def make_call(result: Payload | None, name: str = "lookup_order") -> ToolCall:
    return ToolCall(tool_name=name, result=result)


def of_json(value: Any) -> dict[str, Any]:
    return values(presets(make_call(Payload.of_json(value))))


def of_text(text: str) -> dict[str, Any]:
    return values(presets(make_call(Payload.of_text(text))))


def values(found: list[Preset]) -> dict[str, Any]:
    return {preset.key: preset.change["value"] for preset in found if "value" in preset.change}


ORDER = {
    "docs": [{"id": "d1", "user_id": "u_7710", "at": "2026-11-21T06:34:30Z"}, {"id": "d2", "user_id": "u_3306"}],
    "count": 2,
    "note": "Due 2026-03-01.",
    "tags": [],
}


def test_presets_of_an_answer_that_has_everything():
    found = presets(make_call(Payload.of_json(ORDER)))

    assert [preset.key for preset in found] == KEYS
    assert [preset.title for preset in found] == [
        "Empty answer",
        "Error 429 with cut body",
        "Timeout",
        "Stale by 30 days",
        "Of another tenant",
        "Doubled",
    ]
    assert {preset.key: preset.change for preset in found} == {
        "empty": {"kind": "tool_result", "value": {"docs": [], "count": 0, "note": "Due 2026-03-01.", "tags": []}},
        "rate_limit": {
            "kind": "tool_result",
            "value": '{"docs":[{"id":"d1","user_id":"u_7710","at":"2026-11-21T06:34:30Z"},{"id',
        },
        "timeout": {
            "kind": "tool_result",
            "error": {"type": "TimeoutError", "message": "lookup_order did not answer in time.", "crashes": False},
        },
        "stale": {
            "kind": "tool_result",
            "value": {
                "docs": [
                    {"id": "d1", "user_id": "u_7710", "at": "2026-10-22T06:34:30Z"},
                    {"id": "d2", "user_id": "u_3306"},
                ],
                "count": 2,
                "note": "Due 2026-01-30.",
                "tags": [],
            },
        },
        "other_tenant": {
            "kind": "tool_result",
            "value": {
                **ORDER,
                "docs": [
                    {"id": "d1", "user_id": "u_8821", "at": "2026-11-21T06:34:30Z"},
                    {"id": "d2", "user_id": "u_4417"},
                ],
            },
        },
        "doubled": {
            "kind": "tool_result",
            "value": {**ORDER, "docs": [each for each in ORDER["docs"] for _ in range(2)], "count": 4},
        },
    }


def test_the_presets_that_an_answer_has_none_of_say_why():
    assert unfit_presets(make_call(Payload.of_json([]))) == [
        "empty (it is empty already)",
        "stale (it holds no date)",
        "of another tenant (it names none)",
        "doubled (it holds no list with items)",
    ]
    assert unfit_presets(make_call(None)) == []


@pytest.mark.parametrize("result", [None, Payload(content=b"\x89PNG", media_type=BINARY)])
def test_answer_that_cannot_be_read_has_only_a_timeout(result):
    assert [preset.key for preset in presets(make_call(result))] == ["timeout"]


@pytest.mark.parametrize(
    ("value", "empty"),
    [
        ([1, [2]], []),
        ("sunny", ""),
        (42, None),
        (True, None),
        ({"city": "Lisbon", "eur": 6.9}, {}),
        ({"data": {"items": [1]}, "meta": {"totalCount": 1}}, {"data": {"items": []}, "meta": {"totalCount": 0}}),
        ({"rows": [1], "total_rows": 9, "n": 1, "page": 1}, {"rows": [], "total_rows": 0, "n": 0, "page": 1}),
        ({"items": [1], "count": True, "total": 9.5}, {"items": [], "count": True, "total": 9.5}),
        ({"items": [1], "discount": 3, "total_price": 5}, {"items": [], "discount": 3, "total_price": 5}),
    ],
)
def test_empty_keeps_the_shape(value, empty):
    assert Interner().same(of_json(value)["empty"], empty)


@pytest.mark.parametrize("value", [[], {}, "", None, {"docs": [], "count": 0}])
def test_answer_that_is_empty_is_not_offered_emptied(value):
    assert "empty" not in of_json(value)


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ("2026-11-21", "2026-10-22"),
        ("2024-03-30", "2024-02-29"),
        ("2026-01-30T00:00:00+02:00", "2025-12-31T00:00:00+02:00"),
        ("from 2026-11-21 to 2026-11-30.", "from 2026-10-22 to 2026-10-31."),
        ("(2026-11-21)", "(2026-10-22)"),
    ],
)
def test_dates_move_back_by_30_days(text, stale):
    assert of_json({"at": text})["stale"] == {"at": stale}
    assert of_text(text)["stale"] == stale


@pytest.mark.parametrize(
    "text",
    [
        *["2026-13-01", "2026-02-30", "0001-01-15", "12026-11-21", "2026-11-211", "2026-11-21-7", "2026-11"],
        *["ORD-2026-11-21", "v1.2026-11-21", "2026/11/21", "\N{ARABIC-INDIC DIGIT TWO}026-11-21"],
    ],
)
def test_what_is_no_date_does_not_move(text):
    assert "stale" not in of_json({"at": text, "n": 2026})


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"user_id": "u_7710"}, {"user_id": "u_8821"}),
        ({"userId": 7710, "id": 5}, {"userId": 8821, "id": 5}),
        ({"tenant-id": 9}, {"tenant-id": 1}),
        ({"customer_id": -95}, {"customer_id": -16}),
        ({"account": "acme"}, {"account": "bdnf"}),
        ({"account": {"id": "a_1", "plan": "pro"}}, {"account": {"id": "a_2", "plan": "pro"}}),
        ({"orders": [{"user": {"id": 0, "name": "Ann"}}]}, {"orders": [{"user": {"id": 1, "name": "Ann"}}]}),
        ([{"ownerId": "Zz"}], [{"ownerId": "Aa"}]),
        ({"user_id": "0b7e4c1a-9f00-4d2e"}, {"user_id": "1b8e5c2a-0f11-5d3e"}),
    ],
)
def test_owners_are_replaced_by_others_of_the_same_shape(value, other):
    assert of_json(value)["other_tenant"] == other


@pytest.mark.parametrize(
    "value",
    [
        *[{"id": "u_1"}, {"order_id": "o_1"}, {"user": "Ann"}, {"orders": {"id": 1}}, {"accounting": "1"}],
        *[{"user_id": None}, {"user_id": True}, {"user_id": ""}, {"user_id": 1.5}, {"user_id": "[email:0a1b2c3d]"}],
        *["u_7710", ["u_7710"]],
    ],
)
def test_answer_without_an_owner_is_of_no_other_tenant(value):
    assert "other_tenant" not in of_json(value)


@pytest.mark.parametrize(
    ("value", "doubled"),
    [
        ([1, [2]], [1, 1, [2], [2]]),
        ({"hits": {"docs": ["a"], "found": 1}, "n": 1}, {"hits": {"docs": ["a", "a"], "found": 2}, "n": 2}),
        ({"a": [{"b": [1], "count": 1}]}, {"a": [{"b": [1], "count": 1}] * 2}),
    ],
)
def test_doubled_has_each_item_of_the_outer_lists_twice(value, doubled):
    assert of_json(value)["doubled"] == doubled


@pytest.mark.parametrize("value", [{"count": 2}, "a", 3, [], {"docs": []}, None])
def test_answer_without_items_is_not_doubled(value):
    assert "doubled" not in of_json(value)


def test_body_is_cut_in_the_middle_as_it_was_spelled():
    spelled = b'{ "price": 12.50,  "currency": "EUR" }'

    assert values(presets(make_call(Payload(content=spelled))))["rate_limit"] == '{ "price": 12.50,  '
    assert of_text("caf\u00e9 au lait")["rate_limit"] == "caf\u00e9 a"
    assert of_json("sunny")["rate_limit"] == "su"
    assert "rate_limit" not in of_text("")


def test_text_that_spells_json_is_edited_and_stays_a_text():
    text = json.dumps({"docs": [{"user_id": "u_1"}], "at": "2026-11-21", "name": "é"})

    assert of_text(text) == of_json(text)
    assert {key: json.loads(value) for key, value in of_text(text).items() if key != "rate_limit"} == {
        "empty": {"docs": [], "at": "2026-11-21", "name": "é"},
        "stale": {"docs": [{"user_id": "u_1"}], "at": "2026-10-22", "name": "é"},
        "other_tenant": {"docs": [{"user_id": "u_2"}], "at": "2026-11-21", "name": "é"},
        "doubled": {"docs": [{"user_id": "u_1"}] * 2, "at": "2026-11-21", "name": "é"},
    }


@pytest.mark.parametrize(
    ("result", "empty"),
    [
        (Payload.of_json([{"at": "2026-11-21", "user_id": "u_1"}] * 5000), []),
        (Payload.of_json({"docs": ["2026-11-21"] * 10_000}), {}),
        (Payload.of_json("é" * MAX_BYTES), ""),
        (Payload.of_text("[" * 10 * MAX_BYTES), ""),
    ],
)
def test_large_answers_are_emptied_and_cut_but_not_edited(result, empty):
    found = presets(make_call(result))

    assert [preset.key for preset in found] == ["empty", "rate_limit", "timeout"]
    assert found[0].change == {"kind": "tool_result", "value": empty}
    assert len(json.dumps([preset.change for preset in found])) < 12_000


def test_deep_answers_are_edited_or_left_out():
    deep = Payload.of_text("[" * 900 + '{"a": ' * 50 + '["2026-11-21"]' + "}" * 50 + "]" * 900)
    nested = Payload(content=b'{"a": ' * 190 + b'["2026-11-21"]' + b"}" * 190)

    assert {"empty", "rate_limit", "timeout"} <= {preset.key for preset in presets(make_call(deep))}
    assert [preset.key for preset in presets(make_call(nested))] == [key for key in KEYS if key != "other_tenant"]


# --- properties --------------------------------------------------------------------------------

NAMES = st.sampled_from(["docs", "count", "user_id", "account", "id", "at", "user", ""])
LEAVES = st.none() | st.booleans() | st.integers(-20, 20) | st.floats(allow_nan=False) | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES | st.sampled_from(["2026-11-21", "u_7710", "0001-01-01", "[1, 2]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner),
    max_leaves=10,
)


@given(VALUES)
@example({"docs": [1], "count": 1, "user_id": 9, "at": "2026-11-21"})
def test_presets_are_whole_changes_that_change_something(value):
    call = make_call(Payload.of_json(value))
    assert call.result is not None
    held = call.result.parsed
    untouched = copy.deepcopy(held)

    found = presets(call)

    assert found == presets(make_call(Payload.of_json(value)))
    assert held == untouched
    for preset in found:
        (change,) = read_changes([{**preset.change, "step": 3}])
        assert isinstance(change, NewToolResult)
        assert change.failure is not None or not Interner().same(change.value, call.result.value)
        assert json.loads(json.dumps(preset.change)) == preset.change


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_presets_of_recorded_answers_are_described(sample):
    run = parse_document(sample.read_bytes())

    for step, call in run.tool_calls:
        lines = [describe({**preset.change, "step": step.index}, run) for preset in presets(call)]
        assert lines
        assert all(line.startswith(f"answer of {call.tool_name} at step {step.index}: ") for line in lines)


# --- in words ----------------------------------------------------------------------------------


def make_run() -> Run:
    history = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where is it?"}]}]
    steps = (
        Step(index=1, name="model", call=make_model_call(history, "Let me look.")),
        Step(index=2, name="look", call=make_call(Payload.of_json({"docs": [1], "n": 1}), "look")),
        Step(index=3, name="look", call=make_call(None, "look"), error=ErrorInfo(type="KeyError", message="id")),
        Step(index=4, name="look", call=make_call(Payload.of_json({"text": "x" * 99, "n": 1}), "look")),
    )
    return Run(
        run_id="r1",
        session_id="s1",
        status="ok",
        model="gpt-4o",
        instructions="You answer questions.",
        initial_state=Payload.of_json({"docs": ["a"], "count": 3, "plan": {"x": [1]}}),
        steps=steps,
    )


def make_model_call(history: list[dict[str, Any]], text: str) -> ModelCall:
    parts = [{"part_kind": "text", "content": text}, {"part_kind": "tool-call", "tool_name": "look", "args": '{"a":1}'}]
    return ModelCall(
        history=extend(None, map(Payload.of_json, history)),
        response=Payload.of_json({"kind": "response", "parts": parts}),
        settings=Payload.of_json({"temperature": 0}),
    )


LOOKUP = {"name": "lookup_order", "arguments": {"order_id": 1}}
PATCH = [
    {"op": "remove", "path": "/docs"},
    {"op": "replace", "path": "/count", "value": 0},
    {"op": "replace", "path": "/plan/x/0", "value": 2},
    {"op": "replace", "path": "/gone", "value": 2},
    {"op": "add", "path": "/a~1b", "value": {}},
    {"op": "move", "from": "/count", "path": "/n"},
    {"op": "test", "path": "", "value": 1},
]
MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("change", "alone", "with_run"),
    [
        (
            {"kind": "instructions", "value": "Always\ncheck."},
            'instructions: → "Always\\ncheck."',
            'instructions: "You answer questions." → "Always\\ncheck."',
        ),
        (
            {"kind": "message", "step": 1, "index": 0, "value": "Why?"},
            'message 0 of step 1: → "Why?"',
            'message 0 of step 1: "Where is it?" → "Why?"',
        ),
        (
            {"kind": "message", "step": 2, "index": 7, "value": {"kind": "request"}},
            'message 7 of step 2: → {"kind": "request"}',
            'message 7 of step 2: → {"kind": "request"}',
        ),
        (
            {"kind": "tool_result", "step": 2, "value": []},
            "tool answer at step 2: → []",
            'answer of look at step 2: {"docs": [1], "n": 1} → []',
        ),
        (
            {"kind": "tool_result", "step": 3, "error": {"message": "late", "crashes": True}},
            "tool answer at step 3: → error late (ends the run)",
            "answer of look at step 3: error KeyError: id → error late (ends the run)",
        ),
        (
            {"kind": "tool_result", "step": 4, "value": {"text": "x" * 99, "n": 2}},
            f'tool answer at step 4: → {{"text": "{"x" * 68}…}}',
            "answer of look at step 4: ~n 1 → 2",
        ),
        (
            {"kind": "tool_result", "step": 99, "value": '{"docs": [\n'},
            "tool answer at step 99: → '{\"docs\": ['",
            "tool answer at step 99: → '{\"docs\": ['",
        ),
        (
            {"kind": "model_answer", "step": 1, "value": {"text": "Hi", "tool_calls": [LOOKUP]}},
            'model answer at step 1: → "Hi", lookup_order({"order_id": 1})',
            'model answer at step 1: "Let me look.", look({"a":1}) → "Hi", lookup_order({"order_id": 1})',
        ),
        (
            {"kind": "state", "step": 2, "patch": PATCH},
            f"state at step 2: {MINUS}docs, ~count → 0, ~plan.x.0 → 2, ~gone → 2, +a/b {{}}, +n (move of count),"
            " test state = 1",
            f"state at step 2: {MINUS}docs, ~count 3 → 0, ~plan.x.0 1 → 2, ~gone → 2, +a/b {{}}, +n (move of count),"
            " test state = 1",
        ),
        (
            {"kind": "model", "value": {"model": "gpt-5", "settings": {"temperature": 1, "top_p": 0.5}}},
            "model: → gpt-5, temperature → 1, top_p → 0.5",
            "model: gpt-4o → gpt-5, temperature 0 → 1, top_p → 0.5",
        ),
        ({"kind": "clock", "value": 3600}, "clock: +3,600 s", "clock: +3,600 s"),
        ({"kind": "clock", "value": -0.5}, f"clock: {MINUS}0.5 s", f"clock: {MINUS}0.5 s"),
        (
            {"kind": "clock", "value": "2026-01-01T00:00:00Z"},
            "clock: → 2026-01-01T00:00:00+00:00",
            "clock: → 2026-01-01T00:00:00+00:00",
        ),
        ({"kind": "agent", "value": "v2"}, "own code: v2", "own code: v2"),
        (
            {"kind": "rule", "when": "docs\n is empty", "answer": "I don't know."},
            'rule: when docs is empty, answer "I don\'t know."',
            'rule: when docs is empty, answer "I don\'t know."',
        ),
        ({"kind": "tool_result", "step": 0, "value": 1}, "tool_result", "tool_result"),
        ({"kind": "weather\nreport"}, "weather report", "weather report"),
        ({"kind": None}, "unknown change", "unknown change"),
        ({}, "unknown change", "unknown change"),
    ],
)
def test_change_is_described_on_one_line(change, alone, with_run):
    assert describe(change) == alone
    assert describe(change, make_run()) == with_run


def test_long_values_are_cut():
    long = "x" * 1_000_000
    changes: list[dict[str, Any]] = [
        {"kind": "instructions", "value": long},
        {"kind": "tool_result", "step": 2, "value": [long]},
        {"kind": "tool_result", "step": 2, "error": long},
        {"kind": "model_answer", "step": 1, "value": {"tool_calls": [{"name": long, "arguments": {long: 1}}]}},
        {"kind": "state", "step": 1, "patch": [{"op": long, "path": f"/{long}", "value": {long: long}}]},
        {"kind": "model", "value": {"model": long, "settings": {long: long}}},
        {"kind": long},
    ]

    assert describe(changes[0]) == f'instructions: → "{"x" * 77}…"'
    assert all(len(describe(change, make_run())) < 400 for change in changes)


def test_many_edits_are_counted():
    settings = {f"s{number}": number for number in range(1000)}
    patch = [{"op": "remove", "path": f"/{number}"} for number in range(1000)]
    answer = {"tool_calls": [{"name": f"t{number}"} for number in range(1000)]}

    assert describe({"kind": "model", "value": {"settings": settings}}).endswith("s7 → 7 and 992 more")
    assert describe({"kind": "state", "step": 1, "patch": patch}).endswith(f"{MINUS}7 and 992 more")
    assert describe({"kind": "model_answer", "step": 1, "value": answer}).endswith("t7({}) and 992 more")


def test_change_that_does_not_fit_the_run_is_described_without_it():
    deep: Any = {}
    for _ in range(50_000):
        deep = {"a": deep}
    broken = replace(make_run(), initial_state=Payload.of_json({}))
    steps = tuple(
        replace(step, state=StateChange(after=({"op": "remove", "path": "/gone"},))) for step in make_run().steps
    )
    patch = {"kind": "state", "step": 2, "patch": [{"op": "replace", "path": "/count", "value": 0}]}
    answer = {"kind": "tool_result", "step": 4, "value": deep}
    odd = {"kind": "state", "step": 2, "patch": [{"op": deep, "path": deep}]}

    assert describe(patch, broken) == "state at step 2: ~count → 0"
    assert describe(patch, replace(make_run(), steps=steps)) == "state at step 2: ~count → 0"
    assert describe(answer, make_run()).startswith("tool answer at step 4: →")
    assert describe(odd) == "state at step 2: ? state = null"


ANY = st.recursive(
    LEAVES | st.sampled_from([float("nan"), "\ud800", "\u2028", "step_2", "a is empty"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["op", "path", "text", "a\n"]), inner),
    max_leaves=6,
)
KINDS = ["instructions", "message", "tool_result", "model_answer", "state", "model", "clock", "agent", "rule", "x"]
CHANGES = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS)},
    optional={
        "step": st.integers(0, 6),
        "index": st.integers(0, 3),
        "patch": st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), ANY), max_size=3),
        **dict.fromkeys(["value", "error", "when", "answer"], ANY),
    },
)


@given(CHANGES | ANY)
def test_anything_is_described_on_one_line(change):
    for line in (describe(change), describe(change, make_run())):
        assert line.strip()
        assert line.splitlines() == [line]


def test_number_too_long_to_be_spelled_is_described_by_its_kind():
    assert describe({"kind": "tool_result", "step": 2, "value": [10**5000]}, make_run()) == "tool_result"
