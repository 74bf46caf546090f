"""Each line of the kit made captured, partial, missing and contradictory by a run built for it."""

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.history import History
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.payload import Payload
from sessions_app.core.run import AgentInfo, CodeInfo, ErrorInfo, HttpExchange, Run, Step
from tests.core.test_judge_runs import (
    EXCHANGE,
    NOON,
    SCHEMAS,
    SETTINGS,
    history,
    make_run,
    make_whole_run,
    model,
    payload,
    prompt,
    request_message,
    response_message,
    retrieval,
    tool,
    tool_return,
)

NOTHING = Run(run_id="run-0123456789abcdef", session_id="x", status="cut_off")
NAMELESS = Payload.of_json({"name": "lookup_order", "description": "no schema"})


def settings(**values: Any) -> Payload:
    return Payload.of_json(values)


def asked(**fields: Any) -> History | None:
    return history(request_message(prompt(), **fields))


def told(content: Any, result: Any = "found", **fields: Any) -> Run:
    """A run whose tool answered `found`, and whose next request says `content`."""
    first = asked()
    called = history(response_message("a"), after=first)
    answered = history(request_message(tool_return(content, **fields)), after=called)
    answer = model("a", history=first)
    return make_run(answer, tool(arguments={}, result=result, call_id="call_1"), model(history=answered))


def test_whole_run_has_all_twelve():
    kit = audit_kit(make_whole_run())

    assert [line.key for line in kit.lines if line.status != "captured"] == []
    assert (kit.captured, kit.total) == (12, 12)
    assert {row.captured for row in kit.rows} == {"yes"}
    assert all(line.fix is None and line.code is None for line in kit.lines)


def test_run_of_nothing_has_only_what_was_not_used():
    kit = audit_kit(NOTHING)

    assert [line.key for line in kit.lines if line.status == "captured"] == ["retrieval"]
    assert [row.key for row in kit.rows if row.captured == "yes"] == ["embedding_version", "retrieval"]
    assert all(line.fix for line in kit.lines if line.status != "captured")


STRAY = replace(tool(), parent=9)
CASES = [
    ("ids", "captured", make_run(model(), tool())),
    ("ids", "captured", make_run(tool(), model())),
    ("ids", "partial", make_run(model(), tool(), run_id="run-0123456789abcdef")),
    ("ids", "partial", replace(make_run(model()), steps=(model(), replace(tool(), index=2)))),
    ("ids", "missing", NOTHING),
    ("ids", "contradictory", make_run(model(), STRAY)),
    ("identity", "captured", make_run(model(), user_id="u", tenant_id="t")),
    ("identity", "partial", make_run(model(), user_id="u")),
    ("identity", "partial", make_run(model(), tool(), user_id="u", tenant_id="t")),
    ("identity", "partial", make_run(model(), tool(arguments={"user_id": "u"}))),
    ("identity", "missing", make_run(model(), tool())),
    ("identity", "contradictory", make_run(model(), tool(user_id="v"), user_id="u")),
    ("input", "captured", make_run(model())),
    ("input", "captured", make_run(model(), input=None, prior=asked())),
    ("input", "partial", make_run(model(history=asked()), input=None)),
    ("input", "missing", make_run(model(), input=None)),
    (
        "input",
        "contradictory",
        make_run(model(history=asked()), input=payload("other"), source_format="session-file"),
    ),
    ("instructions", "captured", make_run(model(), instructions="You help customers.")),
    ("instructions", "captured", make_run(model(), instructions="")),
    ("instructions", "captured", make_run(model(history=asked(instructions=None)))),
    ("instructions", "partial", make_run(model(), instructions="<function prompt at 0x7f>")),
    ("instructions", "partial", make_run(model(), instructions="[SourcedInstruction(x='You')]")),
    ("instructions", "partial", make_run(model(), instructions="support_agent_v3")),
    ("instructions", "missing", make_run(model(history=asked()))),
    (
        "instructions",
        "contradictory",
        make_run(model(history=asked(instructions="You refuse all.")), instructions="You help all."),
    ),
    ("tool_schemas", "captured", make_run(model(tools=SCHEMAS), tool())),
    ("tool_schemas", "captured", make_run(model(tools=()))),
    ("tool_schemas", "partial", make_run(model(tools=SCHEMAS), tool(), model())),
    ("tool_schemas", "partial", make_run(model(tools=(NAMELESS,)), tool())),
    ("tool_schemas", "missing", make_run(model(), tool())),
    ("tool_schemas", "contradictory", make_run(model(tools=SCHEMAS), tool("delete_order"))),
    ("retrieval", "captured", make_run(model())),
    ("retrieval", "captured", make_run(retrieval(("kb#1", 0.8, "text")), model())),
    ("retrieval", "captured", make_run(retrieval(), model())),
    ("retrieval", "partial", make_run(retrieval(("kb#1", None, "text")), model())),
    ("retrieval", "partial", make_run(retrieval(("kb#1", 0.8, None)), model())),
    ("retrieval", "missing", make_run(retrieval(chunks=None), model())),
    ("model", "captured", make_run(model(model="m", provider="p", region="r"))),
    ("model", "partial", make_run(model(model="m", provider="p"))),
    ("model", "partial", make_run(model(), model="OpenAIModel(model_name='x')", provider="p", region="r")),
    ("model", "missing", make_run(model())),
    ("model", "contradictory", make_run(model(model="haiku"), model="sonnet")),
    ("sampling", "captured", make_run(model(settings=SETTINGS))),
    ("sampling", "captured", make_run(model(settings=settings(temperature=0, top_p=1), provider="anthropic"))),
    ("sampling", "partial", make_run(model(settings=settings(temperature=0, top_p=1), provider="openai"))),
    ("sampling", "partial", make_run(model(settings=SETTINGS), tool(), model())),
    ("sampling", "partial", make_run(model(settings=settings(temperature=0, top_p=1, seed=None)))),
    ("sampling", "missing", make_run(model())),
    (
        "sampling",
        "contradictory",
        make_run(model(settings=SETTINGS, http=HttpExchange(request_body=settings(temperature=1)))),
    ),
    ("tool_io", "captured", make_run(model())),
    ("tool_io", "captured", make_run(model(), tool(arguments={}, http=EXCHANGE))),
    ("tool_io", "captured", make_run(model(), tool(arguments={}, result=None, outcome="deferred"))),
    ("tool_io", "missing", make_run(model(), tool(arguments={}, result=None))),
    ("tool_io", "captured", make_run(model(), tool(arguments={}, result=None, outcome="crashed"), model())),
    ("tool_io", "partial", make_run(model(), tool(arguments={}))),
    ("tool_io", "partial", make_run(model(), tool(arguments={}, http=replace(EXCHANGE, extra={"body_cut": True})))),
    ("tool_io", "partial", make_run(model(), tool(arguments={}, http=replace(EXCHANGE, extra={"respelled": True})))),
    ("tool_io", "partial", told("found")),
    ("tool_io", "partial", told("other", outcome="failed")),
    ("tool_io", "partial", make_run(model(), tool(), model())),
    ("tool_io", "partial", make_run(model(), tool(arguments={}), tool(arguments={}, result=None), model())),
    ("tool_io", "missing", make_run(model(), tool(arguments={}, result=None), model())),
    ("tool_io", "contradictory", told("something else")),
    ("timestamps", "captured", make_whole_run()),
    (
        "timestamps",
        "captured",
        make_run(model(started_at=NOON, duration_ms=1.0), started_at=NOON, agent=AgentInfo(entry_point="run")),
    ),
    ("timestamps", "partial", make_run(model(started_at=NOON, duration_ms=1.0), started_at=NOON)),
    ("timestamps", "partial", make_run(model(), started_at=NOON)),
    ("timestamps", "missing", make_run(model())),
    (
        "timestamps",
        "contradictory",
        make_run(model(started_at=NOON, first_token_at=NOON.replace(hour=11), duration_ms=5.0)),
    ),
    ("commit", "captured", make_run(code=CodeInfo(commit="9f2c1e7"))),
    ("commit", "partial", make_run(code=CodeInfo(commit="9f2c1e7", dirty=True))),
    ("commit", "partial", make_run(agent=AgentInfo(version="1.2"))),
    ("commit", "missing", make_run()),
    ("flags", "captured", make_run(flags={})),
    ("flags", "partial", make_run(flags={"new_flow": None})),
    ("flags", "missing", make_run()),
]


@pytest.mark.parametrize(
    ("key", "status", "run"), CASES, ids=[f"{i}-{key}-{status}" for i, (key, status, _) in enumerate(CASES)]
)
def test_kit_line_has_status(key, status, run):
    line = audit_kit(run).line(key)

    assert line.status == status, line.detail
    assert (line.fix is None) == (status == "captured")


def test_answer_told_as_json_text_is_no_contradiction():
    line = audit_kit(told('{"id":  1}', result={"id": 1})).line("tool_io")

    assert line.status == "partial"


SEEDS = [
    ({"seed": None}, "openai", "seed not set"),
    ({}, "openai", "seed not captured"),
    ({"seed": 42}, "openai", "seed 42, which this provider follows as far as it can"),
    ({"random_seed": 42}, "mistral", "seed 42, which this provider follows as far as it can"),
    ({"seed": 42}, "anthropic", "seed 42, which this provider ignores"),
    ({"seed": None}, "anthropic", "seed not supported by this provider"),
    ({"seed": 42}, "a-proxy", "seed 42, and it is not known whether this provider follows it"),
]


@pytest.mark.parametrize(("said", "provider", "words"), SEEDS)
def test_a_seed_says_whether_it_was_set_and_whether_it_counts(said, provider, words):
    kit = audit_kit(make_run(model(settings=settings(**said), provider=provider)))

    assert kit.line("sampling").detail.removesuffix(".").endswith(words)
    assert next(row for row in kit.rows if row.key == "rng_seed").detail == f"{words}."


def test_a_seed_that_was_set_at_some_steps_says_at_how_many_it_was_not():
    calls = [model(settings=settings(seed=seed), provider="openai") for seed in (42, None)]

    row = next(row for row in audit_kit(make_run(*calls, model())).rows if row.key == "rng_seed")

    assert (row.captured, row.detail) == (
        "partial",
        "seed 42 (not set on 1 step, not captured on 1 step), which this provider follows as far as it can.",
    )


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (make_run(model(), instructions="You help."), "no version recorded."),
        (make_run(model(), instructions="You help.", extra={"context.prompt_version": "v7"}), "version v7."),
        (make_run(model(settings=settings(prompt_version=3)), instructions="You help."), "version 3."),
    ],
)
def test_instructions_have_their_hash_and_their_version_beside_them(run, words):
    detail = audit_kit(run).line("instructions").detail

    assert detail == f"Full text, 9 characters, SHA-256 {Payload.of_text('You help.').digest[:12]}, {words}"


def test_flags_are_said_with_their_values():
    run = make_run(flags={"new_flow": True, "limit": 3, "group": "b"})

    assert audit_kit(run).line("flags").detail == "3 flags: new_flow true, limit 3, group b."


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ({"settings": settings(stream=True)}, "partial"),
        ({"settings": settings(stream=False)}, "captured"),
        ({"http": HttpExchange(request_body=settings(stream=True))}, "partial"),
        ({"settings": settings(stream=True), "first_token_at": NOON}, "captured"),
        ({}, "captured"),
    ],
)
def test_a_first_token_is_asked_for_where_a_stream_was_used(call, status):
    step = model(started_at=NOON, duration_ms=1.0, **call)

    run = make_run(step, started_at=NOON, agent=AgentInfo(entry_point="run"))

    assert audit_kit(run).line("timestamps").status == status


def test_sampling_says_its_values_and_what_the_provider_lacks():
    calls = [model(settings=settings(temperature=t), provider="anthropic") for t in (0.7, 0)]

    assert audit_kit(make_run(*calls)).line("sampling").detail == (
        "temperature 0.7 / 0, top_p not captured, seed not supported by this provider."
    )


ROWS = [
    ("prompt", "yes", make_run(model(), instructions="You help.")),
    ("prompt", "partial", make_run(model())),
    ("prompt", "no", make_run(model(), input=None)),
    ("people", "yes", make_run(model(), tool(), user_id="u", tenant_id="t")),
    ("people", "partial", make_run(user_id="u")),
    ("people", "no", make_run()),
    ("history_turns", "yes", make_run(model(history=asked()))),
    ("history_turns", "partial", make_run(model(history=asked()), extra={"history_turns": 30})),
    ("history_turns", "partial", make_run(model(), prior=history(response_message("and so")))),
    ("history_turns", "no", make_run(model())),
    ("model", "yes", make_run(model(), model="openai:gpt-4o")),
    ("model", "partial", make_run(model(), model="gpt-4o")),
    ("model", "no", make_run(model())),
    ("commit", "yes", make_run(code=CodeInfo(commit="9f2c1e7"))),
    ("commit", "partial", make_run(agent=AgentInfo(version="1.2"))),
    ("commit", "no", make_run()),
    ("embedding_version", "yes", make_run(retrieval(embedding_version="e5"))),
    ("embedding_version", "partial", make_run(retrieval(embedding_version="e5"), retrieval())),
    ("embedding_version", "partial", make_run(retrieval(index_version="monday"))),
    ("embedding_version", "no", make_run(retrieval())),
    ("rng_seed", "yes", make_run(model(settings=SETTINGS))),
    ("rng_seed", "partial", make_run(model(settings=SETTINGS), model())),
    ("rng_seed", "no", make_run(model())),
    ("utc_time", "yes", make_run(model(started_at=NOON), started_at=NOON)),
    ("utc_time", "partial", make_run(model(), started_at=NOON)),
    ("utc_time", "no", make_run(model())),
    ("tool_io", "yes", make_run(model(), tool(arguments={}))),
    ("tool_io", "partial", make_run(model(), tool(), model())),
    ("tool_io", "partial", make_run(model(), tool(arguments={}, result=None), model())),
    ("tool_io", "no", make_run(model(), tool(result=None), model())),
    ("retrieval", "yes", make_run(retrieval(("kb#1", 0.8, "text")))),
    ("retrieval", "partial", make_run(retrieval((None, 0.8, "text")))),
    ("retrieval", "no", make_run(retrieval(chunks=None))),
]


@pytest.mark.parametrize(
    ("key", "said", "run"), ROWS, ids=[f"{i}-{key}-{said}" for i, (key, said, _) in enumerate(ROWS)]
)
def test_bucket_row_is_captured(key, said, run):
    row = next(row for row in audit_kit(run).rows if row.key == key)

    assert row.captured == said, row.detail
    assert (row.fix is None) == (said == "yes")


def test_cut_history_says_how_much_of_it_is_there():
    turns = [message for _ in range(6) for message in (request_message(prompt()), response_message("a"))]
    run = make_run(model(), prior=history(*turns), extra={"history_turns": 30})

    row = next(row for row in audit_kit(run).rows if row.key == "history_turns")

    assert (row.captured, row.detail) == ("partial", "6 of 30 turns.")


def test_outputs_without_requests_are_named():
    row = next(row for row in audit_kit(make_run(model(), tool(), model())).rows if row.key == "tool_io")

    assert row.detail == (
        "Answers only: Tool arguments on 0 of 1 call, answers on 1 of 1. HTTP exchange kept byte for byte on 0 of 1."
    )


def test_kit_as_json_has_twelve_lines_and_ten_rows_in_three_buckets():
    body = audit_kit(make_run(model(), tool(error=ErrorInfo(type="T", message="m")))).to_json()

    assert list(body["buckets"]) == ["input", "environment", "side_effects"]
    assert [len(rows) for rows in body["buckets"].values()] == [3, 5, 2]
    assert (len(body["lines"]), body["total"]) == (12, 12)
    assert {"key", "status", "detail", "fix"} <= body["lines"][0].keys()
    assert body["captured"] == sum(line["status"] == "captured" for line in body["lines"])


def tool_io(*tools: Step, **fields: Any) -> str:
    """What the kit says of calls that the last answer asked for."""
    return audit_kit(make_run(model(), *tools, **fields)).line("tool_io").detail


LIMIT = ErrorInfo(type="UsageLimitExceeded", message="3 calls at most")


@pytest.mark.parametrize(
    ("last", "fields", "answers"),
    [
        ({"result": "found"}, {}, "answers on 2 of 2."),
        ({"result": None}, {}, "answers on 1 of 2."),
        ({"result": None}, {"status": "cut_off", "output": None}, "answers on 1 of 2."),
        ({"result": None, "outcome": "unapproved"}, {}, "answers on 1 of 1; 1 call had no answer to record."),
        ({"result": None, "outcome": "interrupted"}, {}, "answers on 1 of 1; 1 call had no answer to record."),
        (
            {"result": None},
            {"status": "error", "output": None, "error": LIMIT},
            "answers on 1 of 1; 1 call had no answer to record.",
        ),
    ],
)
def test_a_call_without_an_answer_is_never_passed_over(last, fields, answers):
    calls = (tool(arguments={}), tool(arguments={"id": 2}, **last))

    said, _, exchanges = tool_io(*calls, **fields).partition(" HTTP exchange kept byte for byte ")
    assert said == f"Tool arguments on 2 of 2 calls, {answers}"
    assert exchanges.startswith("on 0 of ")
