"""Which call a tool's span tells of: the surest sign of all spans counts, whatever the order in which they began."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.spans.span import Span
from tests.core.test_assembly import SECOND, agent, asks, chat, gives, made, span, text, tool, tools_of
from tests.recorder.replaying import replayed
from tests.traces.captures import CHOICE, Capture

PROMPT = text("user", "How is the weather?")
DONE = text("assistant", "Well.")


def weather(arguments: Any, result: Any, *, number: int, call_id: str | None = None, parent: int = 1) -> Span:
    said = {"gen_ai.tool.call.id": call_id, "gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result}
    given = {name: value for name, value in said.items() if value is not None}
    return tool(number, parent, name="w", **given)


def both(first: Any, second: Any) -> dict[str, Any]:
    return {"role": "assistant", "parts": [*first["parts"], *second["parts"]]}


def told(spans: list[Span]) -> list[tuple[Any, Any]]:
    """Arguments and answer of each call that the model made, in the order of its answer."""
    calls = [call for step, call in tools_of(made(spans)) if step.parent is not None]
    values = [(call.arguments and call.arguments.value, call.result and call.result.value) for call in calls]
    return sorted(values, key=str)


def verdict(spans: list[Span]) -> str:
    return str(replayed(encode_native(made(spans)))[0].verdict)


def test_another_id_and_other_arguments_are_another_call():
    spans = [
        agent(),
        chat(2, [PROMPT], asks("c1", "w", c="P")),
        weather({"c": "ZZZ"}, "warm-up", number=3, call_id="c9"),
        chat(4, [PROMPT, asks("c1", "w", c="P"), gives("sun")], DONE),
    ]

    assert told(spans) == [({"c": "P"}, "sun")]
    stray = next(call for step, call in tools_of(made(spans)) if step.parent is None)
    assert (stray.arguments and stray.arguments.value) == {"c": "ZZZ"}


def test_a_span_of_the_same_name_does_not_take_the_call_of_one_with_its_arguments():
    asked = both(asks("c1", "w", c="P"), asks("c2", "w", c="R"))
    spans = [
        agent(),
        chat(2, [PROMPT], asked),
        weather({"c": "X"}, "fog", number=3),
        weather({"c": "R"}, "rain", number=4),
        weather({"c": "P"}, "sun", number=5),
        chat(6, [PROMPT, asked, gives("sun", "c1"), gives("rain", "c2")], DONE),
    ]

    assert told(spans) == [({"c": "P"}, "sun"), ({"c": "R"}, "rain")]


def test_answers_that_the_model_was_given_tell_calls_apart_and_changed_arguments_are_kept():
    asked = both(asks("c1", "w", c="P"), asks("c2", "w", c="R"))
    spans = [
        agent(),
        chat(2, [PROMPT], asked),
        weather({"c": "R", "unit": "C"}, "rain", number=3),
        weather({"c": "P", "unit": "C"}, "sun", number=4),
        chat(5, [PROMPT, asked, gives("sun", "c1"), gives("rain", "c2")], DONE),
    ]

    assert told(spans) == [({"c": "P"}, "sun"), ({"c": "R"}, "rain")]
    kept = [step.extra["ran_with"] for step, _ in tools_of(made(spans))]
    assert kept == [{"c": "R", "unit": "C"}, {"c": "P", "unit": "C"}]
    assert verdict(spans) == "reproduced"


@pytest.mark.parametrize("arguments", [{}, None])
def test_equal_calls_are_told_apart_by_their_answers(arguments):
    asked = both(asks("c1", "w"), asks("c2", "w"))
    spans = [
        agent(),
        chat(2, [PROMPT], asked),
        weather(arguments, "second", number=3),
        weather(arguments, "first", number=4),
        chat(5, [PROMPT, asked, gives("first", "c1"), gives("second", "c2")], DONE),
    ]

    calls = {call.call_id: call.result and call.result.value for _, call in tools_of(made(spans))}
    assert calls == {"c1": "first", "c2": "second"}


def test_agents_that_work_at_once_ask_for_their_own():
    spans = [
        agent(),
        agent(2, 1),
        agent(3, 1),
        chat(4, [PROMPT], asks(None, "w"), parent=2),
        chat(5, [PROMPT], asks(None, "w"), parent=3),
        weather({}, "of the first", number=6, parent=2),
        weather({}, "of the second", number=7, parent=3),
    ]

    run = made(spans)
    parents = {
        call.result.value: run.steps[(step.parent or 0) - 1].extra for step, call in tools_of(run) if call.result
    }
    assert {said: extra["span"]["span_id"][-1] for said, extra in parents.items()} == {
        "of the first": "4",
        "of the second": "5",
    }


@pytest.mark.parametrize("call_id", ["c1", None])
def test_an_attempt_that_failed_has_no_answer_and_the_next_one_has_it(call_id):
    failed = span(
        3,
        1,
        name="execute_tool w",
        status="error",
        status_message="Timeout",
        attributes=dict(weather({"c": "P"}, None, number=3, call_id=call_id).attributes),
    )
    spans = [
        agent(),
        chat(2, [PROMPT], asks("c1", "w", c="P")),
        failed,
        weather({"c": "P"}, "sun", number=4, call_id=call_id),
        chat(5, [PROMPT, asks("c1", "w", c="P"), gives("sun")], DONE),
    ]

    attempt, answered = tools_of(made(spans))
    assert (attempt[1].result, attempt[1].outcome, attempt[0].parent) == (None, "crashed", 1)
    assert attempt[0].error is not None
    assert (answered[1].result and answered[1].result.value, answered[1].outcome) == ("sun", "success")
    assert answered[0].error is None
    assert verdict(spans) == "reproduced"


@pytest.mark.parametrize("call_id", ["c1", None])
def test_two_attempts_that_failed_are_calls_of_no_answer_of_their_own(call_id):
    attempts = [
        span(
            number,
            1,
            name="execute_tool w",
            status="error",
            status_message="Timeout",
            attributes=dict(weather({"c": "P"}, None, number=number, call_id=call_id).attributes),
        )
        for number in (3, 4)
    ]
    spans = [
        agent(),
        chat(2, [PROMPT], asks("c1", "w", c="P")),
        *attempts,
        weather({"c": "P"}, "sun", number=5, call_id=call_id),
        chat(6, [PROMPT, asks("c1", "w", c="P"), gives("sun")], DONE),
    ]

    assert verdict(spans) == "reproduced"


def test_a_clock_that_is_late_makes_no_second_call():
    early = weather({"c": "P"}, "sun", number=3, call_id="c1")
    spans = [
        agent(),
        chat(2, [PROMPT], asks("c1", "w", c="P")),
        Span(**{name: getattr(early, name) for name in early.__slots__} | {"start_ns": 2 * SECOND - 50}),
        chat(4, [PROMPT, asks("c1", "w", c="P"), gives("sun")], DONE),
    ]

    assert [step.kind for step in made(spans).steps] == ["model", "tool", "model"]
    assert told(spans) == [({"c": "P"}, "sun")]
    assert verdict(spans) == "reproduced"


def test_a_model_that_makes_vectors_is_not_the_model_of_the_run():
    searched = {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e-1"}
    spans = [span(2, None, name="embeddings e-1", attributes=searched), chat(3, [PROMPT], DONE)]

    assert made(spans).model == "m-1"


# --- and what stands beside --------------------------------------------------------------------


def test_an_answer_that_only_an_older_turn_of_the_next_request_holds_is_the_tools():
    later = [PROMPT, asks("c1", "w", c="P"), gives("sun"), text("assistant", "Sunny."), text("user", "Thanks")]
    spans = [agent(), chat(2, [PROMPT], asks("c1", "w", c="P")), chat(3, later, DONE)]

    assert told(spans) == [({"c": "P"}, "sun")]


def test_an_attempt_inside_of_a_call_that_was_answered_is_no_error_of_the_run():
    inner = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    refused = span(3, 2, at=2, name="chat m-1", status="error", status_message="429", attributes=inner)
    answered = span(4, 2, at=2, name="chat m-1", attributes=inner)
    run = made([agent(), chat(2, [PROMPT], text("assistant", "Sunny.")), refused, answered])

    assert (run.status, run.error, run.steps[0].error) == ("ok", None, None)
    assert run.output is not None
    assert run.output.value == "Sunny."


def test_neighbours_of_two_conventions_that_tell_one_answer_are_one_call():
    said = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m-1",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "How is the weather?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Sunny.",
        "llm.token_count.prompt": 10,
    }
    usage = {"gen_ai.usage.input_tokens": 10}
    beside = span(3, 1, at=2, name="ChatOpenAI", attributes=said)
    run = made([agent(), chat(2, [PROMPT], text("assistant", "Sunny."), **usage), beside])
    other = span(3, 1, at=2, name="ChatOpenAI", attributes=said | {"llm.output_messages.0.message.content": "Rain."})
    apart = made([agent(), chat(2, [PROMPT], text("assistant", "Sunny."), **usage), other])

    assert [call.input_tokens for _, call in run.model_calls] == [10]
    assert len(apart.model_calls) == 2


@pytest.mark.parametrize(
    ("given", "prompt", "expected"),
    [
        ({"question": "Hm?", "template": "Context: lots of text."}, "Context: lots of text.\n\nQuestion: Hm?", "Hm?"),
        ("你好", "Be kind. 你好", "你好"),
        ({"a": "Is it so?", "b": "no"}, "no: Is it so?", "Is it so?"),
    ],
)
def test_what_was_asked_stands_under_a_name_for_it(given, prompt, expected):
    root = span(1, None, name="chain", attributes={"openinference.span.kind": "CHAIN", "input.value": given})
    run = made([root, chat(2, [text("user", prompt)], DONE)])

    assert run.input is not None
    assert run.input.value == expected


@pytest.mark.parametrize(("status", "error"), [("unset", "Timeout"), ("ok", None), ("error", "Timeout")])
def test_an_error_type_alone_says_that_a_span_failed(status, error):
    failed = span(2, 1, name="execute_tool w", status=status, attributes={"error.type": "Timeout"})
    (step,) = made([agent(), failed]).steps

    assert (step.error and step.error.type) == error


def refused(number: int, words: str = "How is the weather?") -> Span:
    asked = chat(number, [text("user", words)], None)
    said = {name: getattr(asked, name) for name in asked.__slots__}
    return Span(**said | {"status": "error", "status_message": "429"})


def test_a_request_that_was_refused_and_made_again_is_one_answer_of_the_replay():
    spans = [agent(), refused(2), refused(3), chat(4, [PROMPT], DONE)]

    assert judge(made(spans)).verdict == "replayable"
    assert verdict(spans) == "reproduced"


def test_another_request_after_one_that_was_refused_is_another_one():
    spans = [agent(), refused(2, "Something else"), chat(3, [PROMPT], DONE)]

    assert verdict(spans) != "reproduced"


# --- spans that were lost at the end -------------------------------------------------------------


def ended(output: Any = None, status: str = "ok", *, spans: list[Span]) -> tuple[str, int | None, str]:
    """The verdict and the replay's, of a run whose own span says how it ended."""
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop", "final_result": output}
    given = {name: value for name, value in said.items() if value is not None}
    root = span(1, None, name="invoke_agent shop", status=status, status_message="x", attributes=given)
    run = made([root, *spans])
    found = judge(run)
    return found.verdict, found.step, str(replayed(encode_native(run))[0].verdict)


ASKING = chat(2, [PROMPT], asks("c1", "w", c="P"))


def test_a_call_of_which_nothing_is_told_cannot_be_replayed():
    assert ended(status="error", spans=[ASKING]) == ("replayable_to_step", 1, "fixture_missing")


def test_an_answer_in_words_was_not_carried_by_the_call_of_a_tool():
    asking = chat(2, [PROMPT], asks("c1", "w", c="P"))
    verdict, step, outcome = ended("It is sunny", spans=[asking])

    assert (verdict, step) == ("replayable_to_step", 1)
    assert outcome == "unknown_from_step"
    assert ended('{"c": "P"}', spans=[asking])[0] == "replayable"


def test_a_trace_of_two_turns_is_replayed_to_the_end_of_the_first():
    first = [PROMPT, text("assistant", "Well."), text("user", "And there?")]
    spans = [chat(2, [PROMPT], DONE), chat(3, first, text("assistant", "Rain."))]

    assert ended(spans=spans) == ("replayable_to_step", 1, "unknown_from_step")
    assert ended(spans=spans[:1]) == ("replayable", None, "reproduced")


def test_the_answer_to_what_the_tools_gave_may_be_missing():
    spans = [ASKING, weather({"c": "P"}, "sun", number=3, call_id="c1")]

    assert ended(spans=spans) == ("replayable_to_step", 2, "ran_past_recording")


@pytest.mark.parametrize("is_doubled", [False, True])
@pytest.mark.parametrize("variant", ["openai-sdk-langsmith", "openai-sdk-langfuse-v5"])
def test_a_tool_that_ran_once_more_than_was_asked_is_judged_where_it_did(variant: str, is_doubled: bool):
    spans = list(Capture(CHOICE / variant / "parallel_tools").spans)
    first = next(span for span in spans if span.name.startswith("get_weather"))
    run = made([*spans, *([replace(first, span_id="abcdefabcdef0123")] if is_doubled else ())])

    judged = judge(run)
    result, _ = replayed(encode_native(run))

    assert [reason.code for reason in judged.reasons] == (["model_answer_missing"] if is_doubled else [])
    if is_doubled:
        assert (judged.step or 0) + 1 == result.divergence.step
        assert result.verdict == "unknown_from_step"
