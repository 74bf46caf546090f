"""Errors that Pydantic AI's loop raises by itself: the judge foresees them, and the replay comes to them again."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pydantic_ai import ModelRetry, NativeOutput, PromptedOutput
from pydantic_ai.messages import BinaryContent, ModelResponse, ThinkingPart
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import Verdict, judge
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import (
    Play,
    Refund,
    call,
    cut_before_an_answer,
    cut_calls,
    filtered,
    says,
    support_agent,
    text_in_place_of_output,
    token_limit,
    unknown_tool_retries_exhausted,
)

LOOK, BAD_LOOK = (call("lookup_order", {"order_id": each}, each) for each in ("ORD-1", "1"))
UNKNOWN = call("lookup", {}, "u")
HALF = '{"order_id": "O'


def _bad(number: int) -> Any:
    return call("search", {"query": "x", "limit": 500}, f"b{number}")


def _cut(response: ModelResponse) -> ModelResponse:
    return replace(response, finish_reason="length")


def play(*responses: ModelResponse, limits: UsageLimits | None = None, **arguments: Any) -> Play:
    return Play(support_agent(*responses, **arguments), "Where?", usage_limits=limits)


def judged(record: dict[str, Any]) -> tuple[Verdict, list[str]]:
    """Once the replay has kept what was promised."""
    verdict = assert_promise_kept(json.dumps(record).encode())
    return verdict, [reason.code for reason in verdict.reasons]


def record_of(made: Play) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(recorded(made)[-1])
    return record


@pytest.mark.parametrize(
    "make",
    [
        partial(play, says(LOOK, UNKNOWN), says(LOOK, UNKNOWN)),
        partial(play, *(says(LOOK, _bad(number)) for number in range(4))),
        partial(play, *(says(_bad(number), LOOK) for number in range(4))),
        partial(play, says(""), says("")),
        partial(play, says("Five."), says("Five."), output_type=NativeOutput(Refund)),
        partial(play, _cut(says(HALF)), output_type=NativeOutput(Refund), model_settings=ModelSettings(max_tokens=7)),
        partial(play, *(_cut(says(call("final_result", HALF, f"o{n}"))) for n in range(2)), output_type=Refund),
        partial(play, *(_cut(says(call("lookup", HALF, f"o{n}"))) for n in range(2))),
        partial(play, replace(says(ThinkingPart("Hm.")), finish_reason="content_filter")),
    ],
    ids=[
        "an unknown tool behind a good call",
        "bad arguments behind a good call",
        "bad arguments in front of a good call",
        "no text",
        "no JSON",
        "JSON that is cut",
        "a cut call of the output",
        "a cut call of an unknown tool",
        "a filter behind thinking",
    ],
)
def test_what_the_loop_raises_without_code_of_the_teams_is_reproduced(make: Callable[[], Play]):
    record = record_of(make())

    assert record["status"] == "error"
    assert judged(record)[0].verdict == "replayable"


def test_a_call_beside_one_that_refused_while_it_ran_was_made_and_its_answer_is_missed():
    record = record_of(play(*(says(LOOK, BAD_LOOK) for _ in range(3))))
    answered = [step for step in record["steps"] if step.get("call_id") == LOOK.tool_call_id]
    assert judged(record)[0].verdict == "replayable"

    del answered[-1]["result"], answered[-1]["outcome"]

    assert judged(record)[1] == ["tool_answer_missing"]


BAD, GOOD = '{"order_id":"x"}', '{"order_id":"x","amount":1}'


@pytest.mark.parametrize("output", [NativeOutput(Refund), PromptedOutput(Refund), Refund])
def test_why_an_answer_was_refused_is_not_known_without_the_request_behind_it(output: Any):
    """Control: the record itself, and one in which the request in front of the refused answer is missing alone."""
    record = record_of(play(says(LOOK), says(BAD), says(GOOD), output_type=output))
    assert judged(record)[0].verdict == "replayable"
    in_front, behind = copy.deepcopy(record), copy.deepcopy(record)
    del in_front["steps"][0]["request"], behind["steps"][3]["request"]

    verdict, codes = judged(behind)

    assert (verdict.step, codes) == (3, ["model_request_missing"])
    assert "step 4 (scripted-1) has no recorded request" in verdict.words
    result, _ = replayed(json.dumps(in_front).encode())
    assert (result.verdict, judge(parse_native(json.dumps(in_front).encode())).verdict) == ("reproduced", "replayable")


@pytest.mark.parametrize("output", [NativeOutput(Refund), Refund])
def test_an_answer_that_can_be_no_output_needs_no_request_behind_it(output: Any):
    record = record_of(play(says(LOOK), says("Five."), says(GOOD), output_type=output))
    del record["steps"][3]["request"]

    result, _ = replayed(json.dumps(record).encode())

    assert (result.verdict, judge(parse_native(json.dumps(record).encode())).verdict) == ("reproduced", "replayable")


def test_a_call_beside_one_whose_refusal_cannot_be_told_was_made_and_its_answer_is_missed():
    """The run ends with an error of the library that no step has."""
    made = play(says(call("picture", {}, "p"), call("wait", {}, "w")), says("Done."))

    @made.agent.tool_plain
    def picture() -> str:
        return str(BinaryContent(b"...", "image/png"))  # type: ignore[call-arg]

    @made.agent.tool_plain
    async def wait() -> None:
        await asyncio.sleep(60)

    record = record_of(made)
    assert record["error"]["type"] == "PydanticSerializationError"

    verdict, codes = judged(record)

    assert (verdict.step, codes) == (2, ["error_outside_loop"])


def test_a_budget_that_the_recording_does_not_tell_is_named():
    verdict, codes = judged(record_of(play(says(UNKNOWN), retries=0)))

    assert (verdict.step, codes) == (1, ["error_outside_loop"])
    assert verdict.words.startswith("How many retries the loop allows was not recorded")


def _says_something(record: dict[str, Any]) -> None:
    record["steps"][-1]["response"]["parts"] = [{"part_kind": "text", "content": "Five."}]


def _finishes(record: dict[str, Any]) -> None:
    last = next(step for step in reversed(record["steps"]) if step["kind"] == "model")
    last["response"]["finish_reason"] = "stop"


def _had_more_tokens(record: dict[str, Any]) -> None:
    record["steps"][0]["settings"]["max_tokens"] = 10


def _used_less(record: dict[str, Any]) -> None:
    record["agent"]["usage_limits"]["total_tokens_limit"] = 100


def _allows_more(record: dict[str, Any]) -> None:
    record["error"]["message"] = record["error"]["message"].replace("of 1.", "of 2.").replace("(1)", "(2)")


@pytest.mark.parametrize("usage", [True, 5, "x", ["x"], {"input_tokens": {"a": 1}, "output_tokens": ["x"]}], ids=str)
def test_usage_that_counts_nothing_is_judged_all_the_same(usage: Any):
    record = record_of(token_limit())
    for step in record["steps"]:
        if step["kind"] == "model":
            step["response"]["usage"] = usage

    assert judge(parse_native(json.dumps(record).encode())).verdict == "cold"


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (filtered, _says_something),
        (filtered, _finishes),
        (cut_before_an_answer, _says_something),
        (cut_before_an_answer, _had_more_tokens),
        (cut_calls, _finishes),
        (token_limit, _used_less),
        (unknown_tool_retries_exhausted, _allows_more),
        (text_in_place_of_output, _allows_more),
    ],
)
def test_an_error_that_the_answers_do_not_lead_to_is_judged(
    make: Callable[[], Play], change: Callable[[dict[str, Any]], None]
):
    record = record_of(make())
    change(record)

    assert judged(record)[0].verdict == "replayable_to_step"


# --- streams, whose first text is the output -----------------------------------------------------

BESIDE = [(), (call("lookup_order", {"order_id": "ORD-1"}, "l"),), (UNKNOWN,), (call("lookup_order", HALF, "h"),)]


def _refuses(output: Any) -> Any:
    raise ModelRetry("Say it otherwise.")


@pytest.mark.parametrize("beside", BESIDE, ids=["nothing", "a call", "an unknown tool", "a call that is cut"])
@pytest.mark.parametrize("end_strategy", ["graceful", "early", "exhaustive"])
@pytest.mark.parametrize(
    ("said", "output", "checks", "verdict"),
    [
        ("Hm.", PromptedOutput(Refund), False, "replayable"),
        ("Hm.", NativeOutput(Refund), False, "replayable"),
        ("", PromptedOutput(Refund), False, "replayable_to_step"),
        ("Hm.", str, True, "replayable_to_step"),
        ('{"order_id": "a", "amount": 1}', PromptedOutput(Refund), True, "replayable_to_step"),
    ],
    ids=["no JSON, prompted", "no JSON, native", "nothing", "a text that is refused", "JSON that is refused"],
)
def test_a_stream_ends_at_a_refused_text_whatever_was_asked_for_beside_it(
    said: str, output: Any, checks: bool, verdict: str, end_strategy: Any, beside: Any
):
    made = play(says(said, *beside), says("x"), output_type=output, end_strategy=end_strategy)
    if checks:
        made.agent.output_validator(_refuses)
    record: dict[str, Any] = json.loads(recorded(made, "run_stream")[-1])

    assert record["error"]["message"].startswith("Output validation failed during streaming")
    assert judged(record)[0].verdict == verdict
