"""Spans put together into runs: whatever they hold, in whatever order they came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.core.assembly.run import assemble
from sessions_app.core.formats.native import encode_native, parse_native, run_digest
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import ModelCall, Run, Step, ToolCall
from sessions_app.core.spans.span import Span, SpanEvent
from tests.builders import a_span

TRACE = "ab" * 16
SECOND = 1_000_000_000


def span(number: int, parent: int | None = None, *, at: int | None = None, **fields: Any) -> Span:
    """A span of one second; ids from 1."""
    start = (number if at is None else at) * SECOND
    return Span(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        start_ns=start,
        end_ns=start + SECOND,
        **fields,
    )


def text(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": words}]}


def asks(call_id: str | None = "c1", name: str = "lookup", words: str = "", **arguments: Any) -> dict[str, Any]:
    call = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
    said = [{"type": "text", "content": words}] if words else []
    return {"role": "assistant", "parts": [*said, call]}


def gives(value: Any, call_id: str | None = "c1") -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": value}]}


def chat(number: int, messages: list[Any], answer: Any, parent: Any = 1, **attributes: Any) -> Span:
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.input.messages": messages,
        "gen_ai.output.messages": None if answer is None else [answer],
        **attributes,
    }
    return span(number, parent, name="chat m-1", attributes={k: v for k, v in said.items() if v is not None})


def tool(number: int, parent: Any = 1, name: Any = "lookup", **attributes: Any) -> Span:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **attributes}
    return span(number, parent, name=f"execute_tool {name}", attributes=said)


def agent(number: Any = 1, parent: Any = None, **attributes: Any) -> Span:
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop", **attributes}
    return span(number, parent, name="invoke_agent shop", attributes=said)


def order_run(result: Any = "in Oslo") -> list[Span]:
    question = text("user", "Where is 7?")
    return [
        agent(),
        chat(2, [question], asks(id="7")),
        tool(3, **{"gen_ai.tool.call.arguments": '{"id": "7"}', "gen_ai.tool.call.result": result}),
        chat(4, [question, asks(id="7"), gives(result)], text("assistant", "In Oslo.")),
    ]


def made(spans: list[Span], *, is_closed: bool = True) -> Run:
    run = assemble(spans, is_closed=is_closed)
    assert run_digest(parse_native(encode_native(run))) == run_digest(run)
    return run


def tools_of(run: Run) -> list[tuple[Step, ToolCall]]:
    return run.tool_calls


def _own_messages(result: str, call_id: str) -> Run:
    """A tool's span that tells its answer once more."""
    question = text("user", "Where is 7?")
    answer = '{"city": "Oslo"}'
    said = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": '{"id": "7"}', "gen_ai.tool.call.result": answer}
    again = {"gen_ai.output.messages": [gives(result, call_id)]}
    last = chat(4, [question, asks(id="7"), gives(answer)], text("assistant", "In Oslo."))
    return made([agent(), chat(2, [question], asks(id="7")), tool(3, **said, **again), last])


@pytest.mark.parametrize(
    ("result", "call_id", "told"),
    [
        ('{"city": "Oslo"}', "c1", {}),
        ('{"city":"Oslo"}', "c1", {}),
        ('{"city": "Os', "c1", {}),
        ('{"city": "Oslo"}lost', "c1", {"result_told": "in two ways"}),
        ('{"city": "Oslo"}', "c2", {"named_call": "c2"}),
    ],
)
def test_what_a_tool_s_span_tells_twice_and_differently_is_marked(result: str, call_id: str, told: dict[str, str]):
    ((step, _),) = tools_of(_own_messages(result, call_id))

    assert {name: step.extra[name] for name in ("result_told", "named_call") if name in step.extra} == told


# --- calls of tools ----------------------------------------------------------------------------


def test_a_tool_span_without_an_id_is_the_call_with_its_arguments():
    question = text("user", "Where?")
    both = {"role": "assistant", "parts": [*asks("a", id="1")["parts"], *asks("b", id="2")["parts"]]}

    run = made(
        [
            agent(),
            chat(2, [question], both),
            tool(3, **{"gen_ai.tool.call.arguments": {"id": "2"}, "gen_ai.tool.call.result": "two"}),
            tool(4, **{"gen_ai.tool.call.arguments": {"id": "1"}, "gen_ai.tool.call.result": "one"}),
        ]
    )

    assert [(c.call_id, c.result.value, s.parent) for s, c in tools_of(run)] == [("b", "two", 1), ("a", "one", 1)]


def test_a_call_that_no_span_tells_of_gets_its_answer_from_the_next_request():
    run = made([each for each in order_run() if "execute_tool" not in each.name])

    ((step, call),) = tools_of(run)
    assert (step.index, step.parent, step.started_at) == (2, 1, None)
    assert (call.call_id, call.result.value, call.outcome) == ("c1", "in Oslo", "success")
    assert judge(run).verdict == "replayable"


def test_an_answer_to_a_provider_that_keeps_what_was_said_is_that_of_the_tool_which_was_asked_for():
    first, second = (
        chat(2, [text("user", "Where?")], asks("c1", order=1)),
        chat(4, [gives("Oslo")], text("assistant", "Oslo.")),
    )
    run = made([agent(), first, tool(3, **{"gen_ai.tool.call.id": "c1"}), second])

    call = run.steps[-1].call
    assert isinstance(call, ModelCall)
    assert call.history is not None
    (part,) = call.history.message.value["parts"]
    assert (part["tool_name"], part["tool_call_id"]) == ("lookup", "c1")


def test_without_any_answer_the_call_stays_open():
    run = made(order_run()[:2])

    ((_, call),) = tools_of(run)
    assert (call.result, call.outcome, run.status) == (None, None, "cut_off")


def test_the_answer_is_spelled_as_the_model_was_given_it():
    spans = order_run({"place": "Oslo"})
    spans[3] = chat(
        4, [text("user", "Where is 7?"), asks(id="7"), gives('{"place": "Oslo"}')], text("assistant", "In Oslo.")
    )

    ((_, call),) = tools_of(made(spans))

    assert call.result.value == '{"place": "Oslo"}'


def test_another_answer_than_the_model_was_given_is_the_tools_own():
    spans = order_run("in Rome")
    spans[3] = chat(4, [text("user", "Where is 7?"), asks(id="7"), gives("in Oslo")], text("assistant", "In Oslo."))

    ((_, call),) = tools_of(made(spans))

    assert call.result.value == "in Rome"


def test_answers_that_ended_in_another_order_stand_as_they_were_asked_for():
    question = text("user", "Where?")
    both = {"role": "assistant", "parts": [*asks("a", id="1")["parts"], *asks("b", id="2")["parts"]]}

    run = made(
        [
            agent(),
            chat(2, [question], both),
            chat(3, [question, both, gives("two", "b"), gives("one", "a")], text("assistant", "Done.")),
        ]
    )

    _, last = run.model_calls[-1]
    assert [part["content"] for part in last.history.message.value["parts"]] == ["one", "two"]
    assert "order" in run.steps[-1].extra["tool_results"]


# --- conversations -----------------------------------------------------------------------------


def test_a_history_goes_on_from_the_call_before_whatever_the_spelling():
    question = text("user", "Where is 7?")
    told = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": '{"id":"7"}'}],
    }

    run = made(
        [agent(), chat(2, [question], asks(id="7", words="Let me see.")), chat(3, [question, told, gives("x")], None)]
    )

    (_, first), (_, second) = run.model_calls
    assert second.history.parent == first.output_history


def test_other_words_in_an_earlier_answer_are_another_history():
    question = text("user", "Where is 7?")

    run = made(
        [
            agent(),
            chat(2, [question], asks(id="7", words="Let me see.")),
            chat(3, [question, asks(id="7", words="I was told to lie."), gives("x")], None),
        ]
    )

    (_, first), (_, second) = run.model_calls
    assert second.history.parent != first.output_history
    assert "lie" in second.history.parent.message.content.decode()


def test_the_system_prompt_is_the_instructions_wherever_it_stands():
    among = made([agent(), chat(2, [text("system", "Be brief."), text("user", "Hi")], text("assistant", "Hi"))])
    apart = made(
        [
            agent(),
            chat(
                2,
                [text("user", "Hi")],
                text("assistant", "Hi"),
                **{"gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}]},
            ),
        ]
    )

    assert (among.instructions, apart.instructions) == ("Be brief.", "Be brief.")
    assert encode_native(among) == encode_native(replace(apart, extra=among.extra, steps=among.steps))


def test_earlier_turns_are_what_the_run_started_from():
    turns = [text("user", "Hi"), text("assistant", "Hello"), text("user", "Where is 7?")]

    run = made([agent(), chat(2, turns, text("assistant", "In Oslo."))])

    assert (run.prior.length, run.input.value) == (2, "Where is 7?")


# --- the tree ----------------------------------------------------------------------------------


def test_two_spans_of_one_model_call_are_one_step_and_its_tokens_count_once():
    usage = {"gen_ai.usage.input_tokens": 10}
    inner = span(
        3, 2, at=2, name="sdk", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **usage}
    )

    run = made([agent(), chat(2, [text("user", "Hi")], text("assistant", "Hi"), **usage), inner])

    ((step, call),) = run.model_calls
    assert call.input_tokens == 10
    assert step.extra["span"]["twins"][0]["name"] == "sdk"


def test_a_sub_agent_below_a_model_call_is_no_twin():
    nested = chat(5, [text("user", "Sub")], text("assistant", "Sub answer"), parent=4)

    run = made([*order_run()[:3], agent(4, 3), nested, order_run()[3].__class__(**_fields(order_run()[3], 6))])

    assert [step.kind for step in run.steps] == ["model", "tool", "agent", "model", "model"]


def _fields(each: Span, number: int) -> dict[str, Any]:
    fields = {name: getattr(each, name) for name in Span.__slots__}
    return {**fields, "span_id": f"{number:016x}", "start_ns": number * SECOND, "end_ns": (number + 1) * SECOND}


def test_spans_that_claim_to_be_inside_each_other_do_not_hang():
    run = made([span(1, 2, name="a"), span(2, 3, name="b"), span(3, 1, name="c")])

    assert [step.name for step in run.steps] == ["c", "b"]
    assert run.extra["trace"]["root"]["name"] == "a"


def test_a_child_that_began_before_its_parent_stands_behind_it():
    run = made([span(1, name="root", at=5), span(2, 1, name="outer", at=9), span(3, 2, name="inner", at=1)])

    assert [(step.name, step.parent) for step in run.steps] == [("outer", None), ("inner", 1)]


def test_what_nobody_knows_arrives_whole():
    event = SpanEvent(name="tick", time_ns=5, attributes={"n": 1})
    unknown = span(2, 1, name="mystery", attributes={"x.y": [1, {"z": "ä"}]}, events=(event,), status="error")

    run = made([span(1, name="root", attributes={"a": 1}), unknown])

    (step,) = run.steps
    told = step.extra["span"]
    assert (step.kind, step.name, step.error.type) == ("other", "mystery", None)
    assert (told["attributes"], told["events"]) == (
        {"x.y": [1, {"z": "ä"}]},
        [{"name": "tick", "attributes": {"n": 1}}],
    )
    assert run.extra["trace"]["root"]["attributes"] == {"a": 1}
    assert run.extra["trace"]["attributes_not_understood"] == 2


def test_a_span_whose_parent_never_came_is_an_orphan():
    run = made([span(1, name="root"), span(2, 1, name="child"), span(3, 99, name="lost")])

    assert [("is_orphan" in step.extra["span"], step.name) for step in run.steps] == [(False, "child"), (True, "lost")]
    assert run.extra["trace"]["lost_spans"] == [f"{99:016x}"]


def test_spans_of_one_lost_span_stand_inside_of_what_was_open_around_all_of_them():
    around = [lasting(span(1, name="root", at=0), 9), lasting(span(2, 1, name="outer", at=1), 8)]
    before = lasting(span(3, 2, name="inner", at=2), 3)
    lost = [span(4, 99, name="first", at=3), span(5, 99, name="second", at=6)]

    together = made([*around, before, *lost])
    alone = made([*around, before, lost[0]])

    assert parents(together) == {"inner": "outer", "first": "outer", "second": "outer"}
    assert parents(alone) == {"inner": "outer", "first": "inner"}


def lasting(span: Span, seconds: int) -> Span:
    return replace(span, end_ns=(span.start_ns or 0) + seconds * SECOND)


def parents(run: Run) -> dict[str, str]:
    return {step.name: run.steps[step.parent - 1].name for step in run.steps if step.parent is not None}


def test_whom_the_work_was_for_is_read_off_spans_of_no_known_convention():
    run = made([span(1, name="root"), span(2, 1, name="own", attributes={"session.id": "S1", "user.id": "U1"})])

    assert (run.session_id, run.user_id) == ("S1", "U1")


def test_plain_text_in_and_out_of_a_model_is_a_prompt_and_its_answer():
    plain = {"openinference.span.kind": "LLM", "input.value": "Where is 7?", "output.value": "In Oslo."}
    unknown = {**plain, "input.value": '{"state": 1}'}

    run, other = made([agent(), span(2, 1, attributes=plain)]), made([agent(), span(2, 1, attributes=unknown)])

    assert (run.input.value, run.output.value, judge(run).verdict) == ("Where is 7?", "In Oslo.", "replayable")
    assert [call.history for _, call in other.model_calls if call.history] == []


# --- beginning and end -------------------------------------------------------------------------


def test_a_run_is_running_until_its_topmost_span_came():
    spans = order_run()

    assert made(spans[1:], is_closed=False).status == "running"
    assert made(spans[1:], is_closed=True).status == "cut_off"
    assert made(spans, is_closed=False).status == "ok"


def test_an_error_that_was_told_to_no_model_is_the_runs():
    failed = replace(
        order_run()[2], attributes={k: v for k, v in order_run()[2].attributes.items() if "result" not in k}
    )
    raised = SpanEvent(name="exception", attributes={"exception.type": "Down", "exception.message": "503"})

    run = made([*order_run()[:2], replace(failed, status="error", events=(raised,))])
    told = made([*order_run()[:2], replace(order_run()[2], status="error", events=(raised,)), order_run()[3]])

    assert (run.status, run.error.type, run.error.message) == ("error", "Down", "503")
    assert (told.status, told.error) == ("ok", None)
    assert tools_of(told)[0][1].outcome == "failed"


def test_the_input_is_what_the_run_was_given_and_not_the_template_around_it():
    prompt = text("user", "Answer from these pages: … Question: How do I descale it?")
    run = made(
        [
            agent(**{"input": 1, "gen_ai.input.messages": [text("user", "How do I descale it?")]}),
            chat(2, [prompt], text("assistant", "Hold the button.")),
        ]
    )
    bare = made([agent(), chat(2, [prompt], text("assistant", "Hold the button."))])

    assert run.input.value == "How do I descale it?"
    assert bare.input.value.startswith("Answer from")


# --- anything ----------------------------------------------------------------------------------

KEYS = [
    "gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions",
    "gen_ai.tool.definitions", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result", "gen_ai.request.model", "gen_ai.conversation.id", "openinference.span.kind",
    "input.value", "output.value", "llm.input_messages.0.message.role", "llm.input_messages.0.message.content",
    "ai.operationId", "ai.prompt.messages", "traceloop.span.kind", "langfuse.observation.type",
    "langfuse.observation.input", "mlflow.spanType", "mlflow.spanInputs", "session.id", "user.id", "events",
]  # fmt: skip
WORDS = [
    "chat",
    "execute_tool",
    "invoke_agent",
    "LLM",
    "TOOL",
    "AGENT",
    "generation",
    "tool",
    "lookup",
    "",
    "\x00",
    "x" * 1100,
]
BROKEN = ['{"a": "\\ud800"}', "[1, 2", '[{"role": "user"}]']
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(WORDS) | st.sampled_from(BROKEN)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
NAMES = ["role", "parts", "content", "type", "id", "name", "arguments", "response", "text", "base64"]
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def any_spans(draw):
    count = draw(st.integers(1, 6))
    return [
        Span(
            trace_id=TRACE,
            span_id=f"{number:016x}",
            parent_id=draw(st.none() | st.integers(0, 7).map(lambda n: f"{n:016x}")),
            name=draw(st.sampled_from(WORDS)),
            start_ns=draw(st.none() | st.integers(0, 2**63)),
            end_ns=draw(st.none() | st.integers(0, 2**63)),
            status=draw(st.sampled_from(["unset", "ok", "error"])),
            attributes=draw(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)),
        )
        for number in range(count)
    ]


@settings(max_examples=400, deadline=None)
@given(spans=any_spans(), is_closed=st.booleans(), data=st.data())
def test_any_spans_give_a_run_that_can_be_written_read_and_judged(spans, is_closed, data):
    run = made(spans, is_closed=is_closed)
    shuffled = made(data.draw(st.permutations(spans)), is_closed=is_closed)

    assert encode_native(run) == encode_native(shuffled)
    assert audit_kit(run).total == 12
    assert judge(run).verdict in {"replayable", "replayable_to_step", "cold"}
    assert all(step.parent is None or step.parent < step.index for step in run.steps)
    assert not [call for _, call in run.model_calls if not isinstance(call, ModelCall)]


def named(span_id: str, parent_id: str | None, **attributes: Any) -> Span:
    ids = {"trace_id": TRACE, "span_id": span_id * 16, "parent_id": parent_id and parent_id * 16}
    return a_span(**ids, name="work", attributes=attributes)


@pytest.mark.parametrize(
    ("spans", "run_id"),
    [
        ([named("a", None, run_id="r1")], "r1"),
        ([named("a", None, run_id="r1"), named("b", "a", run_id="r2")], "r1"),
        ([named("a", None), named("b", "a", run_id="r2")], "r2"),
        ([named("b", "a", run_id="r2"), named("c", "b", run_id="r2")], "r2"),
        ([named("a", None), named("b", "a", run_id="r2"), named("c", "a", run_id="r3")], TRACE),
        ([named("a", None, run_id="\x00")], TRACE),
        ([named("a", None)], TRACE),
    ],
    ids=["topmost", "topmost before inner", "inner", "orphan", "several", "no id", "none"],
)
def test_a_run_has_the_id_that_its_spans_give_it(spans, run_id):
    assert assemble(spans, is_closed=True).run_id == run_id


@pytest.mark.parametrize(
    ("beside", "reasons"),
    [([], []), ([text("user", "Look at this.")], [("message_from_code", 3)])],
    ids=["answers alone", "a message beside them"],
)
def test_a_message_beside_the_answers_of_tools_is_judged(beside: list[Any], reasons: list[tuple[str, int]]):
    """A tool may have given it along, or code put it there: the loop of a replay does neither."""
    asked = [text("user", "Where is 7?")]
    spans = [
        span(1, name="root", attributes={"gen_ai.operation.name": "invoke_agent"}),
        chat(2, asked, asks()),
        chat(3, [*asked, asks(), gives("Oslo"), *beside], text("assistant", "In Oslo.")),
    ]

    found = judge(made(spans)).reasons

    assert [(reason.code, reason.step) for reason in found] == reasons


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "content": {"kind": "binary", "data": "iVBORw==", "media_type": "image/png"}},
        {"type": "blob", "content": "iVBORw==", "mime_type": "image/png"},
        {"type": "binary", "content": "iVBORw==", "media_type": "image/png"},
    ],
    ids=["file", "blob", "binary"],
)
def test_a_file_in_an_answer_is_a_file(part: Any):
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "Here."}, part]}
    run = made([span(1, name="root"), chat(2, [text("user", "Draw")], answer)])

    said = run.model_calls[0][1].response
    assert said is not None
    assert [each["part_kind"] for each in said.value["parts"]] == ["text", "file"]
    assert said.value["parts"][1]["content"] == {"kind": "binary", "data": "iVBORw==", "media_type": "image/png"}


def test_a_prompt_with_files_is_the_input_that_the_run_names():
    """As Pydantic AI's formats before the fifth spell them; the run's input leaves them out."""
    link = {"type": "image-url", "url": "https://shop.test/a.png"}
    picture = {"type": "binary", "content": "iVBORw==", "media_type": "image/png"}
    words = [{"type": "text", "content": each} for each in ("Is it", "this?")]
    asked = [{"role": "user", "parts": [words[0], picture, link, words[1]]}]
    run = made([span(1, name="root"), chat(2, asked, text("assistant", "Yes."))])

    first = run.model_calls[0][1].history
    assert first is not None
    assert first.message.value["parts"][0]["content"] == [
        "Is it",
        {"kind": "binary", "data": "iVBORw==", "media_type": "image/png"},
        {"kind": "image-url", "url": "https://shop.test/a.png"},
        "this?",
    ]
    assert run.input is not None
    assert run.input.value == "Is it\nthis?"
    assert "input_contradicts" not in [reason.code for reason in judge(run).reasons]


@pytest.mark.parametrize(
    ("root", "status"), [({}, "ok"), ({"status": "error", "status_message": "RuntimeError: boom"}, "error")]
)
def test_the_topmost_of_hand_written_spans_says_how_the_run_ended(root: dict[str, Any], status: str):
    """What a tool raised and the agent caught is the tool's failure alone."""
    failed = {"tool_name": "rank", "args": "{}", "success": False, "error": "boom"}
    run = made(
        [
            span(1, name="agent_run", attributes={"run_id": "run_abc123", "query": "refund policy"}, **root),
            span(2, 1, name="retrieve_docs", attributes={"step_number": 1}),
            span(3, 2, name="tool_rank", attributes=failed, status="error", status_message="RuntimeError: boom"),
            span(4, 1, name="generate", attributes={"step_number": 2}),
        ]
    )

    [(step, _)] = run.tool_calls
    assert step.error is not None
    assert step.error.message == "RuntimeError: boom"
    assert run.status == status
    assert (run.error is None) is (status == "ok")
