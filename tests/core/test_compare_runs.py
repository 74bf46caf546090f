import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.compare.as_json import to_json
from sessions_app.core.compare.runs import Comparison, compare_runs, first_divergence
from sessions_app.core.compare.sentences import agreement_sentence, divergence_lines, divergence_sentence
from sessions_app.core.compare.volatile import VOLATILE_RULES, without
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.history import History, extend
from sessions_app.core.payload import Payload
from sessions_app.core.run import (
    AgentCall,
    AgentInfo,
    Call,
    Chunk,
    CodeInfo,
    ErrorInfo,
    HttpExchange,
    ModelCall,
    ParentLink,
    Retrieval,
    Run,
    StateChange,
    Step,
    ToolCall,
)

RECORDS = sorted((Path(__file__).parents[1] / "records").glob("*.json"))


def make_run(*calls: Call, run_id: str = "a", **fields: Any) -> Run:
    steps = tuple(make_step(index, call) for index, call in enumerate(calls, start=1))
    return Run(**{"run_id": run_id, "session_id": run_id, "status": "ok", "steps": steps, **fields})


def make_step(index: int, call: Call, **fields: Any) -> Step:
    return Step(index=index, name=call.tool_name if isinstance(call, ToolCall) else "model", call=call, **fields)


def tool(name: str, arguments: Any = None, result: Any = "ok", **fields: Any) -> ToolCall:
    return ToolCall(
        tool_name=name,
        arguments=Payload.of_json(arguments or {}),
        result=Payload.of_text(result),
        outcome="success",
        **fields,
    )


def conversation(turns: int, *, stamp: str = "10:00", odd_turn: int | None = None) -> Run:
    """A model step and a tool step each turn; `stamp` is on every message."""
    calls: list[Call] = []
    history = extend(None, [message("Where is it?", kind="request", stamp=stamp)])
    for turn in range(turns):
        order = "none" if turn == odd_turn else f"ORD-{turn}"
        answer = message(order, kind="response", stamp=stamp, part_kind="text")
        calls += [ModelCall(history=history, response=answer), tool("look", {"order": order}, result="ok")]
        history = History(History(history, answer), message("ok", kind="request", stamp=stamp))
    return make_run(*calls, final=history)


def model(answer: str, *request: str, call_id: str = "c1", **fields: Any) -> ModelCall:
    messages = [message(text, kind="request", part_kind="user-prompt") for text in request]
    return ModelCall(
        history=extend(None, messages),
        response=message(answer, kind="response", part_kind="text", tool_call_id=call_id),
        **fields,
    )


def message(text: str, *, kind: str, stamp: str = "10:00", **part: Any) -> Payload:
    value = {"parts": [{"content": text, **part}], "timestamp": stamp, "run_id": stamp, "kind": kind}
    return Payload.of_json(value)


def fields(**values: Any) -> Payload:
    return Payload.of_json(values)


def statuses(comparison: Comparison) -> list[str]:
    return [pair.status for pair in comparison.steps]


def paths(comparison: Comparison) -> list[str]:
    return [found.path for pair in comparison.steps for found in pair.differences]


def changed_facts(comparison: Comparison) -> list[str]:
    return [fact.name for fact in comparison.facts if fact.status != "same"]


def where(comparison: Comparison) -> tuple[int | None, int | None, str]:
    found = to_json(comparison)["divergence"]
    return found["left_step"], found["right_step"], found["path"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_a_record_compared_with_itself_is_identical(record):
    run = parse_document(record.read_bytes())

    comparison = compare_runs(run, run)

    assert comparison.identical
    assert comparison.divergence is None
    assert set(statuses(comparison)) == {"same"}
    assert comparison.compared_fields > 10


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_one_changed_letter_in_any_tool_answer_is_found(record):
    run = parse_document(record.read_bytes())

    for step, call in run.tool_calls:
        if call.result is None:
            continue
        other = replace(call, result=Payload.of_text(call.result.as_text() + "!"))
        steps = [replace(s, call=other) if s is step else s for s in run.steps]
        comparison = compare_runs(run, replace(run, steps=tuple(steps)))

        assert not comparison.identical
        assert comparison.divergence is not None
        assert comparison.divergence.left_step is step
        assert comparison.divergence.path.startswith("result")


def test_compare_runs_counts_the_fields_it_compared():
    run = make_run(tool("look", {"id": 1, "deep": {"a": [1, 2], "b": {}}}))

    comparison = compare_runs(run, run)

    # status; tool_name; args.id, args.deep.a[0], args.deep.a[1], args.deep.b; result; outcome
    assert comparison.compared_fields == 8
    assert agreement_sentence(comparison) == "No difference in 1 step, 8 fields"


def test_the_count_does_not_depend_on_what_differs():
    left, right = make_run(tool("look", {"id": 1, "x": 2})), make_run(tool("look", {"id": 2, "x": 2}))

    assert compare_runs(left, right).compared_fields == compare_runs(left, left).compared_fields


def test_divergence_names_the_missing_argument():
    left = make_run(tool("lookup_order", {"order": 88}))
    right = make_run(tool("lookup_order", {"order": 88, "user_id": "u_7710"}))

    comparison = compare_runs(left, right)

    assert where(comparison) == (1, 1, "args.user_id")
    assert divergence_sentence(comparison) == 'lookup_order: args.user_id  absent  →  "u_7710"'
    assert divergence_lines(comparison) == [
        "Runs diverged at step 1",
        'Run 1: lookup_order({"order": 88})',
        'Run 2: lookup_order({"order": 88, "user_id": "u_7710"})',
    ]


def test_an_equal_beginning_of_another_length_is_a_difference():
    calls = [tool("search", {"page": n}) for n in range(3)]
    left, right = make_run(*calls[:2]), make_run(*calls)

    comparison = compare_runs(left, right)

    assert statuses(comparison) == ["same", "same", "only_right"]
    assert where(comparison) == (None, 3, "steps[2]")
    assert divergence_sentence(comparison) == 'step 3  absent  →  search({"page": 2})'
    assert divergence_lines(comparison) == [
        "Runs diverged at step 3",
        "Run 1: no more steps",
        'Run 2: search({"page": 2})',
    ]
    assert where(compare_runs(right, left)) == (3, None, "steps[2]")


def test_a_step_that_one_run_lacks_shows_what_comes_next_there():
    left, right = make_run(tool("a"), tool("b")), make_run(tool("b"))

    assert divergence_lines(compare_runs(left, right))[1:] == ["Run 1: a({})", "Run 2: no such step; next is b({})"]


def test_another_tool_at_the_same_place_shows_both_calls():
    left, right = make_run(tool("look"), tool("cancel")), make_run(tool("look"), tool("refuse"))

    comparison = compare_runs(left, right)

    assert where(comparison) == (2, 2, "steps[1]")
    assert divergence_lines(comparison) == ["Runs diverged at step 2", "Run 1: cancel({})", "Run 2: refuse({})"]


def test_the_same_call_with_another_answer_shows_the_place_and_both_answers():
    left, right = make_run(tool("look", result="one")), make_run(tool("look", result="two"))

    assert divergence_lines(compare_runs(left, right)) == [
        "Runs diverged at step 1, result", 'Run 1: "one"', 'Run 2: "two"'
    ]  # fmt: skip


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.integers(0, 12))
def test_an_inserted_step_is_the_only_step_that_differs(names, at):
    calls = [tool(name) for name in names]
    longer = [*calls[:at], tool("new"), *calls[at:]]

    comparison = compare_runs(make_run(*calls), make_run(*longer))

    assert sorted(statuses(comparison)) == ["only_right"] + ["same"] * len(names)
    assert comparison.divergence is not None
    assert comparison.divergence == first_divergence(make_run(*calls), make_run(*longer))


def test_identical_runs_say_so():
    run = make_run(tool("look"))

    assert divergence_lines(compare_runs(run, run)) == ["Runs are identical"]


# --- facts -------------------------------------------------------------------------------------


def test_facts_alone_diverge_without_a_step():
    left = make_run(output=Payload.of_text("order #88"), agent=AgentInfo(version="1"))
    right = make_run(output=Payload.of_text("order #91"), agent=AgentInfo(version="1"))

    comparison = compare_runs(left, right)

    assert changed_facts(comparison) == ["output"]
    assert where(comparison) == (None, None, "output")
    assert divergence_sentence(comparison) == 'output  "order #88"  →  "order #91"'
    assert divergence_lines(comparison)[0] == "Runs diverged at output"


@pytest.mark.parametrize(
    ("left", "right", "name", "path"),
    [
        ({"model": "sonnet-4-2510"}, {"model": "sonnet-4-2511"}, "model", "model"),
        ({"provider": "a"}, {"provider": "b"}, "provider", "provider"),
        ({"region": "eu"}, {"region": "us"}, "region", "region"),
        ({"instructions": "x"}, {"instructions": "y"}, "instructions", "instructions"),
        ({"flags": {"beta": True}}, {"flags": {"beta": False}}, "flags", "flags.beta"),
        ({"user_id": "u1"}, {"user_id": "u2"}, "user_id", "user_id"),
        ({"tenant_id": "t1"}, {"tenant_id": "t2"}, "tenant_id", "tenant_id"),
        ({"agent": AgentInfo(version="1")}, {"agent": AgentInfo(version="2")}, "agent.version", "agent.version"),
        ({}, {"status": "error"}, "status", "status"),
        ({}, {"error": ErrorInfo(type="E", message="m")}, "error", "error"),
        ({"input": Payload.of_text("a")}, {"input": Payload.of_text("b")}, "input", "input"),
    ],
)
def test_facts_are_compared(left, right, name, path):
    comparison = compare_runs(make_run(**left), make_run(**right))

    assert name in changed_facts(comparison)
    assert where(comparison) == (None, None, path)


def test_what_one_run_did_not_capture_is_not_comparable():
    left, right = make_run(tool("look"), region=None), make_run(tool("look"), region="eu")

    comparison = compare_runs(left, right)

    assert [(f.name, f.status) for f in comparison.facts if f.status != "same"] == [("region", "not_comparable")]
    assert (comparison.identical, comparison.divergence, comparison.not_comparable) == (None, None, 1)
    assert agreement_sentence(comparison).endswith("; 1 field cannot be compared")


def test_identical_and_divergence_agree():
    """A difference makes both say so; what cannot be compared makes neither."""
    run = make_run(tool("look"), region="eu")
    cases = {True: run, False: replace(run, region="us"), None: replace(run, region=None)}

    for identical, other in cases.items():
        told = to_json(compare_runs(run, other))
        assert told["identical"] is identical
        assert (told["divergence"] is not None) is (identical is False)

    both = compare_runs(run, replace(run, region=None, status="error"))
    assert (both.identical, both.divergence and both.divergence.path) == (False, "status")


def test_what_neither_run_captured_is_not_counted():
    bare = make_run(Retrieval(query=None, chunks=(Chunk(chunk_id="c", score=None, content=None),)))
    full = make_run(Retrieval(query=None, chunks=(Chunk(chunk_id="c", score=0.5, content=None),)))

    # status; result[0].id and, where it is there, result[0].score
    assert [compare_runs(run, run).compared_fields for run in (bare, full)] == [2, 3]


def test_an_error_without_a_message_is_compared_by_its_type():
    def failed(type_: str, message: str | None) -> Run:
        return make_run(tool("look"), status="error", error=ErrorInfo(type=type_, message=message))

    one, other, told = failed("A", None), failed("B", None), failed("A", "words")

    assert compare_runs(one, one).compared_fields == compare_runs(told, told).compared_fields - 1
    assert where(compare_runs(one, other))[2] == "error.type"
    assert (compare_runs(one, told).identical, compare_runs(one, told).divergence) == (None, None)
    assert where(compare_runs(told, failed("A", "other")))[2] == "error.message"


def test_facts_that_neither_run_captured_say_so():
    run = make_run(tool("look"), region="eu")
    facts = {fact["name"]: fact for fact in to_json(compare_runs(run, run))["facts"]}

    assert {name: facts[name]["captured"] for name in ("region", "provider", "error", "output")} == {
        "region": True,
        "provider": False,
        "error": True,
        "output": False,
    }


# --- steps -------------------------------------------------------------------------------------


def test_a_tool_that_failed_has_no_result_and_one_not_captured_is_unknown():
    whole, bare = make_run(tool("look")), make_run(replace(tool("look"), result=None))
    failed = replace(bare, steps=(replace(bare.steps[0], error=ErrorInfo(type="TimeoutError", message=None)),))

    assert statuses(compare_runs(whole, bare)) == ["not_comparable"]
    assert paths(compare_runs(whole, failed)) == ["error", "result"]
    assert statuses(compare_runs(whole, failed)) == ["changed"]


def test_null_is_an_answer_and_not_a_gap():
    null, bare = (make_run(replace(tool("look"), result=p)) for p in (Payload.of_json(None), None))
    text = make_run(tool("look", result="None"))

    assert statuses(compare_runs(null, bare)) == ["not_comparable"]
    assert statuses(compare_runs(null, text)) == ["changed"]


def test_arguments_as_text_and_as_object_are_the_same_fields():
    as_text = replace(tool("look"), arguments=Payload.of_text('{"id": 1, "on": true}'))
    as_object = replace(tool("look"), arguments=Payload.of_json({"id": 1, "on": True}))

    assert compare_runs(make_run(as_text), make_run(as_object)).identical
    other = replace(tool("look"), arguments=Payload.of_text('{"id": 1.0, "on": true}'))
    assert paths(compare_runs(make_run(as_text), make_run(other))) == ["args.id"]


def test_another_order_of_keys_is_a_difference_of_its_object():
    left, right = {"id": 1, "on": {"a": 1, "b": 2}}, {"id": 1, "on": {"b": 2, "a": 1}}

    comparison = compare_runs(make_run(tool("look", left)), make_run(tool("look", right)))

    found = comparison.steps[0].differences
    assert [(d.path, d.left, d.right, d.note) for d in found] == [
        ("args.on", ["a", "b"], ["b", "a"], "same keys, other order")
    ]


@pytest.mark.parametrize(("rules", "count"), [(None, 0), (without(["field-order"]), 1)])
def test_the_order_of_a_message_s_own_fields_is_hidden_counted_and_can_be_shown(rules, count):
    message = {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]}
    turned = dict(reversed(message.items()))
    left, right = (make_run(replace(model("Done."), response=Payload.of_json(each))) for each in (message, turned))

    comparison = compare_runs(left, right, rules)

    assert [pair.status for pair in comparison.steps] == ["changed" if count else "same"]
    assert [each.rule.key for each in comparison.ignored] == ([] if count else ["field-order"])


@pytest.mark.parametrize("field", ["is_output", "parent", "returned", "handoff"])
def test_what_a_step_says_of_its_call_is_compared(field: str):
    call, other = (
        ToolCall(tool_name="a", result=Payload.of_text("1")),
        ToolCall(tool_name="a", result=Payload.of_text("1")),
    )
    said: list[dict[str, Any]] = [{"parent": 1}, {"parent": 1}]
    if field == "is_output":
        other = replace(other, is_output=True)
    elif field == "parent":
        said[1]["parent"] = 2
    else:
        said = [{"parent": 1, "extra": {field: {"to": name}}} for name in ("Billing", "Sales")]
    models = [
        make_step(1, ModelCall(history=None, response=None)),
        make_step(2, ModelCall(history=None, response=None)),
    ]
    left, right = (
        replace(make_run(run_id="a"), steps=(*models, make_step(3, each, **facts)))
        for each, facts in ((call, said[0]), (other, said[1]))
    )

    assert compare_runs(left, left).identical
    found = compare_runs(left, right).divergence
    assert found is not None
    assert (found.path, found.left_step and found.left_step.index) == (
        f"{field}.to" if ".to" in found.path else field,
        3,
    )


@pytest.mark.parametrize(
    "fact", [{"parent": 1}, {"extra": {"agent": "Sales"}}, {"extra": {"handoff": {"to": "Sales"}}}]
)
def test_what_only_one_step_says_is_a_difference_between_two_recordings_of_one_recorder(fact: dict[str, Any]):
    call = ToolCall(tool_name="a", result=Payload.of_text("1"))
    asking = make_step(1, ModelCall(history=None, response=None))
    recorded = replace(make_run(run_id="a"), source_format="native", agent=AgentInfo(framework="openai-agents"))
    left = replace(recorded, steps=(asking, make_step(2, call, **fact)))
    right = replace(recorded, run_id="b", steps=(asking, make_step(2, call)))
    replayed = replace(right, origin="replay", parent=ParentLink(run_id="a"))

    found = [compare_runs(*pair).divergence for pair in ((left, right), (right, left))]

    (name,) = fact.get("extra", fact)
    assert [each and each.path for each in found] == [name, name]
    assert compare_runs(left, left).identical
    assert compare_runs(left, replayed).divergence is None


def test_a_parent_that_moved_with_its_step_is_the_same():
    called = make_step(2, ToolCall(tool_name="a", result=Payload.of_text("1")), parent=1)
    moved = [
        make_step(1, ToolCall(tool_name="b")),
        make_step(2, ModelCall(history=None, response=None)),
        replace(called, index=3, parent=2),
    ]
    left = replace(make_run(), steps=(make_step(1, ModelCall(history=None, response=None)), called))
    right = replace(make_run(), steps=tuple(moved))

    assert [pair.status for pair in compare_runs(left, right).steps] == ["only_right", "same", "same"]


def test_arguments_that_are_spelled_otherwise_are_counted_and_can_be_shown():
    said = (Payload.of_text('{"a":  1}'), Payload.of_json({"a": 1}))
    one, other = (make_run(ToolCall(tool_name="a", arguments=each)) for each in said)

    comparison = compare_runs(one, other)
    shown = compare_runs(one, other, without(["json-spelling"]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == {"json-spelling": 1}
    assert (shown.divergence.path if shown.divergence else None) == "args"


@pytest.mark.parametrize(
    ("change", "rule", "path"),
    [
        ({"source": "by_hand"}, "answer-source", "source"),
        ({"extra": {"tool_kind": "write"}}, "other-fields", "extra.tool_kind"),
        ({"extra": {"of_tomorrow": {"a": 1}}}, "other-fields", "extra.of_tomorrow"),
        ({"http": HttpExchange(request_headers=(("accept", "*/*"),))}, "http-headers", "http.request_headers"),
        ({"http": HttpExchange(response_headers=(("x", "1"), ("x", "2")))}, "http-headers", "http.response_headers"),
        ({"http": HttpExchange(extra={"first_byte_at": "2026-01-01"})}, "step-time", "http.first_byte_at"),
        ({"http": HttpExchange(extra={"error": "E"})}, "other-fields", "http.extra.error"),
    ],
)
def test_what_a_comparison_leaves_out_is_counted_and_can_be_shown(change: dict[str, Any], rule: str, path: str):
    one = make_run(tool("look"))
    other = replace(one, steps=(replace(one.steps[0], **change),))

    comparison, shown = compare_runs(one, other), compare_runs(one, other, without([rule]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == {rule: 1}
    assert (shown.divergence.path if shown.divergence else None) == path
    assert compare_runs(one, one).ignored == ()


@pytest.mark.parametrize("name", ["tool_calls", "items", "input_items", "last_agent", "trace", "recorder.ran_with"])
def test_what_a_comparison_leaves_out_of_the_runs_is_counted_and_can_be_shown(name: str):
    one = replace(make_run(tool("look")), extra={name: [{"tool": "look"}]})
    changed, without_it = replace(one, extra={name: [{"tool": "other"}]}), replace(one, extra={})

    for other in (changed, without_it):
        comparison, shown = compare_runs(one, other), compare_runs(one, other, without(["other-fields"]))

        assert comparison.identical
        assert {each.rule.key: each.count for each in comparison.ignored} == {"other-fields": 1}
        assert str(shown.divergence.path if shown.divergence else None).startswith(f"extra.{name}")
    assert compare_runs(one, one).ignored == ()


def test_names_of_models_steps_are_counted_and_can_be_shown():
    one = make_run(ModelCall(history=None, response=None))
    other = replace(one, steps=(replace(one.steps[0], name="ask"),))

    comparison, shown = compare_runs(one, other), compare_runs(one, other, without(["step-name"]))

    assert comparison.divergence is None
    assert {each.rule.key: each.count for each in comparison.ignored} == {"step-name": 1}
    assert (shown.divergence.path if shown.divergence else None) == "name"


def test_rows_of_a_table_that_no_step_names_are_kept_and_counted():
    step = {"kind": "model", "tools": [0], "parameters": 0}
    record = {"format": "agent-replay.run", "version": 1, "run_id": "r", "steps": [step]}
    tables = {"tools": [{"name": "look"}], "parameters": [{"output_mode": "text"}]}
    one, other = (
        parse_native(json.dumps({**record, **tables, **more}).encode())
        for more in ({}, {"parameters": [{"output_mode": "text"}, {"output_mode": "tool"}]})
    )

    assert other.extra == {"unnamed_rows": {"parameters": [{"output_mode": "tool"}]}}
    assert parse_native(encode_native(other)) == other
    assert {each.rule.key: each.count for each in compare_runs(one, other).ignored} == {"other-fields": 1}


def test_formats_in_which_two_recordings_arrived_are_counted_and_can_be_shown():
    one, other = make_run(tool("look")), replace(make_run(tool("look")), source_format="session-file")

    comparison, shown = compare_runs(one, other), compare_runs(one, other, without(["other-fields"]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == {"other-fields": 1}
    assert (shown.divergence.path if shown.divergence else None) == "extra.source_format"


def test_a_replay_has_no_headers_and_no_names_of_its_own_to_count():
    one = make_run(tool("look"))
    named = replace(one.steps[0], name="look it up", http=HttpExchange(request_headers=(("accept", "*/*"),)))

    assert compare_runs(one, replace(one, origin="replay", steps=(named,))).ignored == ()


def test_times_that_one_recording_lacks_are_counted():
    one = make_run(tool("look"))
    timed = replace(one, steps=(replace(one.steps[0], duration_ms=4.0),))

    assert {each.rule.key: each.count for each in compare_runs(timed, one).ignored} == {"step-time": 1}


def test_ids_of_nested_runs_are_counted_and_can_be_shown():
    one, other, untold = (make_run(AgentCall(run_id=run_id)) for run_id in ("r1", "r2", None))

    comparison, shown = compare_runs(one, other), compare_runs(one, other, without(["nested-run-id"]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == {"nested-run-id": 1}
    assert (shown.divergence.path if shown.divergence else None) == "run_id"
    assert compare_runs(one, one).ignored == compare_runs(one, untold).ignored == ()


def test_the_commit_of_the_code_is_shown_and_is_no_difference_of_what_was_done():
    one, other = (make_run(code=CodeInfo(commit=commit, dirty=commit == "b")) for commit in "ab")

    comparison, compared = compare_runs(one, other), compare_runs(one, other, without(["code-commit"]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == {"code-commit": 2}
    assert [(fact.left, fact.right) for fact in comparison.facts if fact.name == "code.commit"] == [("a", "b")]
    assert compared.divergence is not None
    assert compared.divergence.path == "code.commit"


def test_packages_that_one_process_alone_had_loaded_are_counted_and_other_versions_are_a_difference():
    one, less, other = (
        replace(make_run(), code=CodeInfo(versions={"python": "3.11", **more}))
        for more in ({"openai": "2", "mcp": "1"}, {"openai": "2"}, {"openai": "3"})
    )

    comparison, shown = compare_runs(one, less), compare_runs(one, less, without(["loaded-packages"]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == {"loaded-packages": 1}
    assert [each.divergence and each.divergence.path for each in (shown, compare_runs(one, other))] == [
        "code.versions.mcp",
        "code.versions.openai",
    ]


@pytest.mark.parametrize(("text", "path"), [('{"a": 1}', None), ('{"a": 1.0}', "output.a"), ("a: 1", "output")])
def test_an_output_and_the_text_that_spells_it_are_counted_and_can_be_shown(text: str, path: str | None):
    one, other = (replace(make_run(), output=each) for each in (Payload.of_text(text), Payload.of_json({"a": 1})))

    for left, right in ((one, other), (other, one)):
        comparison, shown = compare_runs(left, right), compare_runs(left, right, without(["output-text"]))
        assert (comparison.divergence and comparison.divergence.path) == path
        assert (shown.divergence and shown.divergence.path) == (path or "output")
        assert {each.rule.key: each.count for each in comparison.ignored} == ({} if path else {"output-text": 1})


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [
        (b'{"a": 1, "b": 2}', b'{"a":1,"b":2}', 1),
        (b'{"a": 1e-07}', b'{"a": 1E-07}', 1),
        (b'"\\u00fc"', '"ü"'.encode(), 1),
        (b'{"a": 1}', b'{"a": 1}', 0),
    ],
)
def test_json_that_is_written_otherwise_is_counted_and_can_be_shown(left: bytes, right: bytes, count: int):
    calls = [
        ToolCall(tool_name="a", result=Payload(content=each, media_type="application/json")) for each in (left, right)
    ]
    one, other = make_run(calls[0]), make_run(calls[1])

    comparison = compare_runs(one, other)
    shown = compare_runs(one, other, without(["json-spelling"]))

    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored} == ({"json-spelling": 1} if count else {})
    assert (shown.divergence.path if shown.divergence else None) == ("result" if count else None)


def test_another_spelling_of_a_number_is_no_other_way_of_writing_json():
    calls = [
        ToolCall(tool_name="a", result=Payload(content=each, media_type="application/json"))
        for each in (b"1.0", b"1.00")
    ]

    assert compare_runs(make_run(calls[0]), make_run(calls[1])).identical is False


def test_another_tool_under_the_same_name_of_a_step_is_a_difference():
    left, right = (make_step(1, tool(name)) for name in ("look", "refund"))

    one, other = (replace(make_run(), steps=(replace(each, name="step"),)) for each in (left, right))
    comparison = compare_runs(one, other)

    assert where(comparison) == (1, 1, "tool_name")


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        ({"settings": fields(temperature=0)}, {"settings": fields(temperature=1)}, "settings.temperature"),
        ({"parameters": fields(a=0)}, {"parameters": fields(a=1)}, "parameters.a"),
        ({"tools": (fields(name="a"),)}, {"tools": (fields(name="b"),)}, "tools[0].name"),
        ({"model": "m1"}, {"model": "m2"}, "model"),
        ({"answered_model": "m1"}, {"answered_model": "m2"}, "answered_model"),
        ({"finish_reason": "stop"}, {"finish_reason": "length"}, "finish_reason"),
        ({"input_tokens": 53}, {"input_tokens": 54}, "input_tokens"),
        ({"output_tokens": 7}, {"output_tokens": 8}, "output_tokens"),
    ],
)
def test_model_steps_are_compared_field_by_field(left, right, path):
    comparison = compare_runs(make_run(model("hi", "q", **left)), make_run(model("hi", "q", **right)))

    assert where(comparison) == (1, 1, path)


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        ('{"temperature": 1.1, "top_p": null}', '{"temperature": 1.1}', None),
        ('{"temperature": 1.1}', '{"seed": null, "temperature": 1.1}', None),
        ('{"temperature": 1.1, "top_p": null}', '{"temperature": 1.10}', "settings.temperature"),
        ('{"seed": 3}', '{"seed": null, "top_p": null}', "settings.seed"),
        ('{"extra_body": {"a": null}, "top_p": null}', '{"extra_body": {}}', "settings.extra_body.a"),
    ],
)
def test_a_setting_that_is_null_says_no_more_than_one_that_is_absent(left: str, right: str, path: str | None):
    one, other = (Payload(content=each.encode(), media_type="application/json") for each in (left, right))
    found = compare_runs(
        make_run(model("hi", "q", settings=one)), make_run(model("hi", "q", settings=other))
    ).divergence

    assert (found and found.path) == path


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        ('{"output_mode": "text", "output_object": null}', '{"output_mode": "text"}', None),
        (
            '{"output_mode": "text"}',
            '{"output_object": {"name": null}, "output_mode": "text"}',
            "parameters.output_object",
        ),
        ('{"function_tools": [{"name": "a", "strict": null}]}', '{"function_tools": [{"name": "a"}]}', None),
        (
            '{"function_tools": [{"parameters_json_schema": {"default": null}}]}',
            '{"function_tools": [{"parameters_json_schema": {}}]}',
            "parameters.function_tools[0].parameters_json_schema.default",
        ),
    ],
)
def test_a_field_of_the_library_that_is_null_says_no_more_than_one_that_is_absent(left, right, path):
    one, other = (model("hi", "q", parameters=Payload(content=each.encode())) for each in (left, right))
    found = compare_runs(make_run(one), make_run(other)).divergence

    assert (found and found.path) == path


def test_only_new_messages_of_a_request_are_compared():
    left = make_run(model("hi", "one"), model("ho", "one", "two", "three"))
    right = make_run(model("hi", "uno"), model("ho", "uno", "two", "drei"))

    comparison = compare_runs(left, right)

    first, second = ([d.path for d in pair.differences] for pair in comparison.steps)
    assert first == ["request.messages[0].parts[0].content"]
    assert second == ["request.messages[2].parts[0].content"]


def test_a_difference_early_in_a_conversation_is_told_once():
    left, right = conversation(20), conversation(20, odd_turn=3)

    comparison = compare_runs(left, right)

    assert [pair.left.index for pair in comparison.steps if pair.status != "same" and pair.left] == [7, 8]
    assert where(comparison) == (7, 7, "response.parts[0].content")


def run_of(dump: list[dict[str, Any]], **fields: Any) -> Run:
    run = parse_document(json.dumps(dump).encode())
    assert isinstance(run, Run)
    return replace(run, **fields)


def with_new_ids(dump: list[dict[str, Any]]) -> Run:
    """As another execution of the same agent."""
    ids = {part["tool_call_id"] for message in dump for part in message["parts"] if "tool_call_id" in part}
    text = json.dumps(dump)
    for number, call_id in enumerate(sorted(ids)):
        text = text.replace(f'"{call_id}"', f'"new-{number}"')
    return run_of(json.loads(text), run_id="another")


def test_new_ids_of_calls_are_hidden_and_the_id_of_another_call_is_not():
    """Of unrelated runs: each answer is told under the id of its own call."""
    dump = json.loads((RECORDS[0].parent / "parallel-tools.messages.json").read_bytes())
    answers = dump[2]["parts"]
    answers[0].update(content="shipped", timestamp=answers[1]["timestamp"])
    answers[1].update(content="shipped")
    run = run_of(dump)

    new = compare_runs(run, with_new_ids(dump))

    assert new.identical
    assert {each.rule.key for each in new.ignored} >= {"tool-call-id"}
    ids = [answer["tool_call_id"] for answer in answers[:2]]
    answers[0]["tool_call_id"], answers[1]["tool_call_id"] = ids[1], ids[0]
    swapped = compare_runs(run, with_new_ids(dump))
    assert swapped.identical is False
    assert where(swapped)[2].endswith("parts[0].tool_call_id")


def test_an_id_of_a_call_that_one_side_lacks_is_no_new_id():
    dump = json.loads((RECORDS[0].parent / "parallel-tools.messages.json").read_bytes())
    run = run_of(dump)
    del dump[2]["parts"][1]["tool_call_id"]

    comparison = compare_runs(run, run_of(dump, run_id="another"))

    assert comparison.identical is False
    assert where(comparison)[2].endswith("parts[1].tool_call_id")


def test_restamped_messages_are_ignored_and_counted():
    left, right = conversation(5), conversation(5, stamp="11:30")

    comparison = compare_runs(left, right)

    assert comparison.identical
    assert {ignored.rule.key: ignored.count for ignored in comparison.ignored} == {
        "message-time": 11,
        "message-run-id": 11,
    }
    assert "22 volatile fields ignored" in divergence_sentence(comparison)
    shown = compare_runs(left, right, without(["message-run-id"]))
    assert where(shown) == (1, 1, "request.messages[0].run_id")


def test_tool_call_ids_count_between_a_run_and_its_replay_only():
    left = make_run(model("hi", "q", call_id="c1"))
    right = make_run(model("hi", "q", call_id="c2"), run_id="b")
    replay = replace(right, origin="replay", parent=ParentLink(run_id="a"))

    assert compare_runs(left, right).identical
    assert where(compare_runs(left, replay)) == (1, 1, "response.parts[0].tool_call_id")
    assert not compare_runs(left, right, VOLATILE_RULES).identical


def test_step_times_are_volatile():
    left = replace(make_run(), steps=(make_step(1, tool("look"), duration_ms=1.5),))
    right = replace(make_run(), steps=(make_step(1, tool("look"), duration_ms=2.5),))

    assert compare_runs(left, right).identical
    assert paths(compare_runs(left, right, ())) == ["duration_ms"]


def test_retrievals_are_compared_by_query_chunks_and_versions():
    def run(query: str, score: float, version: str) -> Run:
        chunk = Chunk(chunk_id="c", score=score, content=Payload.of_text("text"))
        query_payload = Payload.of_text(query)
        return make_run(Retrieval(query=query_payload, chunks=(chunk,), index_version=version))

    assert paths(compare_runs(run("a", 1.0, "1"), run("b", 0.5, "2"))) == ["args", "result[0].score", "index_version"]


def test_truncated_answers_are_never_the_same():
    cut = replace(tool("look"), result=Payload.of_json({"$truncated": {"bytes": 9}}))

    comparison = compare_runs(make_run(cut), make_run(cut))

    assert statuses(comparison) == ["not_comparable"]
    assert not comparison.identical


def test_a_step_keeps_a_bounded_number_of_differences():
    left, right = (make_run(replace(tool("look"), result=Payload.of_json([n] * 5000))) for n in (1, 2))

    pair = compare_runs(left, right).steps[0]

    assert (len(pair.differences), pair.has_more) == (500, True)


# --- JSON --------------------------------------------------------------------------------------


def test_to_json_has_the_fields_of_the_api():
    left, right = make_run(tool("look", {"id": 1})), make_run(tool("look", {}), run_id="b")

    document = json.loads(json.dumps(to_json(compare_runs(left, right)), allow_nan=False))

    assert (document["left"], document["right"], document["identical"]) == ("a", "b", False)
    assert document["divergence"] == {
        "left_step": 1,
        "right_step": 1,
        "path": "args.id",
        "left": 1,
        "right": None,
        "note": None,
    }
    assert [(s["left"], s["right"], s["status"]) for s in document["steps"]] == [(1, 1, "changed")]
    assert document["ignored"] == []


@pytest.mark.parametrize("left", RECORDS, ids=lambda path: path.name)
def test_any_two_records_compare(left):
    one = parse_document(left.read_bytes())

    for right in RECORDS:
        other = parse_document(right.read_bytes())
        comparison = compare_runs(one, other)

        assert json.dumps(to_json(comparison), allow_nan=False)
        assert comparison.divergence == first_divergence(one, other)
        assert comparison.identical == (left == right)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, False), ({"n": 1}, {"n": 1.0})])
def test_numbers_of_a_state_are_compared_as_they_are_spelled(one: Any, other: Any):
    """Control: the order of keys in a state says nothing, and the same state is no difference."""
    left, right = (_with_state({"x": each}, run_id) for each, run_id in ((one, "a"), (other, "b")))
    turned = _with_state({"b": 2, "x": one}, "c"), _with_state({"x": one, "b": 2}, "d")

    assert where(compare_runs(left, right))[2].startswith("state.kept.x")
    assert compare_runs(left, _with_state({"x": one}, "e")).divergence is None
    assert compare_runs(*turned).divergence is None


def _with_state(state: Any, run_id: str) -> Run:
    run = make_run(tool("look"), run_id=run_id)
    change = StateChange(after=({"op": "add", "path": "/kept", "value": state},))
    made = make_step(1, tool("look"), state=change)
    return replace(run, initial_state=Payload.of_json({}), steps=(made,))
