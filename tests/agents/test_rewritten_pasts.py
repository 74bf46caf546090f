"""Requests whose past code of the team's rewrote: what of them a replay proves, and what it only takes over."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, TextPart, ToolReturnPart, UserPromptPart

from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_promise_kept, replayed, verdict_of
from tests.recorder.scenarios import Play, call, says, support_agent

Messages = list[ModelMessage]
Json = Any
Record = dict[str, Any]


def user(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def keeps_one(messages: Messages) -> Messages:
    return messages[-1:]


def keeps_three(messages: Messages) -> Messages:
    return messages[-3:]


def adds_in_front(messages: Messages) -> Messages:
    return [user("Be kind."), *messages]


def adds_behind(messages: Messages) -> Messages:
    return [*messages, user("Now?")]


def copies(messages: Messages) -> Messages:
    return copy.deepcopy(messages)


def sums_up(messages: Messages) -> Messages:
    return [user("They greeted."), *messages[4:]] if len(messages) > 4 else messages


def shortens_answers(messages: Messages) -> Messages:
    return [*map(_shortened, messages[:-1]), messages[-1]]


def _shortened(message: Any) -> Any:
    cut = [replace(part, content="cut") if isinstance(part, ToolReturnPart) else part for part in message.parts]
    return replace(message, parts=cut) if message.kind == "request" else message


def shortens_the_newest(messages: Messages) -> Messages:
    return [*messages[:-1], _shortened(messages[-1])]


def drops_words(messages: Messages) -> Messages:
    return [_without_words(each) if each.kind == "response" else each for each in messages]


def _without_words(message: Any) -> Any:
    return replace(message, parts=[part for part in message.parts if not isinstance(part, TextPart)] or message.parts)


def rewords_the_prompt(messages: Messages) -> Messages:
    return [user("Only this.")] if len(messages) == 1 else messages


PROCESSORS = (
    *(keeps_one, keeps_three, adds_in_front, adds_behind, copies, sums_up, shortens_answers),
    *(shortens_the_newest, drops_words, rewords_the_prompt),
)
PRIOR: Messages = [user("Hi"), says("Hello"), user("And?"), says("Yes.")]


def searching(process: Callable[[Messages], Messages], *first: Any, **arguments: Any) -> Play:
    looks = [says("Looking.", call("search", {"query": f"q{i}", "limit": i}, f"s{i}")) for i in range(1, 4)]
    agent = support_agent(*first, *looks, says("Done."), capabilities=[ProcessHistory(process)])
    return Play(agent, "Search thrice", **arguments)


PLAYS: dict[str, Callable[[Any], Play]] = {
    "alone": searching,
    "a later turn": lambda process: searching(process, message_history=PRIOR),
    "a refused call": lambda process: searching(process, says(call("search", {"query": 7}, "b1"))),
}


@pytest.mark.parametrize("way", ["run", "run_stream"])
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("process", PROCESSORS, ids=lambda process: process.__name__)
def test_an_agent_with_a_history_processor_replays_as_judged(process: Any, play: str, way: str):
    record = recorded(PLAYS[play](process), way)[-1]
    judged = judge(parse_native(record))
    if [reason.code for reason in judged.reasons[:1]] != ["answer_contradicted"]:
        assert_promise_kept(record)
        return
    # The loop is told of this difference, and the replay names it at the step that the judge named.
    assert judged.step is not None
    assert verdict_of(json.loads(record))[:2] == ("diverged", judged.step + 1)


def test_a_replay_of_a_replay_knows_what_was_rewritten():
    _, made = replayed(json.dumps(record_of(shortens_answers)).encode())

    assert made is not None
    assert replayed(encode_native(made))[0].verdict == "reproduced"


def requests_part(record: Record) -> tuple[str, str | None]:
    part = replayed(json.dumps(record).encode())[0].facts["proof"]["requests"]
    return part["state"], part["reason"]


def record_of(process: Any) -> Record:
    """1 model, 2 search, 3 model, 4 search, 5 model, 6 search, 7 model."""
    return dict(json.loads(recorded(searching(process))[-1]))


def test_the_recorder_says_what_was_made_anew_and_what_is_gone():
    assert [step.get("rewritten") for step in record_of(keeps_three)["steps"][::2]] == [
        *(None, None),
        *({"made": [], "cut": 2}, {"made": [], "cut": 2}),
    ]
    assert record_of(shortens_answers)["steps"][4]["rewritten"] == {"made": [2], "cut": 1}


def test_a_request_that_was_not_recorded_is_named_beside_those_that_were_rewritten():
    record = record_of(shortens_answers)
    del record["steps"][0]["request"]

    state, reason = requests_part(record)

    assert state == "not_comparable"
    assert reason is not None
    assert "the history was rewritten by code" in reason
    assert re.search(r"; the request of step 1 \(\S+\) was not recorded", reason)


def test_the_proof_names_requests_and_messages():
    words = "the history was rewritten by code that does not run in a replay"

    assert requests_part(record_of(copies)) == ("proven", None)
    assert requests_part(record_of(shortens_answers)) == (
        "not_comparable",
        f"{words} (step 5: messages[2] made anew, 1 message gone; step 7: messages[4] made anew, 1 message gone)",
    )
    assert requests_part(record_of(keeps_one)) == (
        "not_comparable",
        f"{words} (step 3: 2 messages gone; step 5: 2 messages gone; step 7: 2 messages gone)",
    )


def test_messages_that_were_there_before_must_be_the_same():
    record = record_of(shortens_answers)
    told = record["steps"][4]["request"]["messages"]
    told[0]["parts"][0]["content"] += "!"

    assert verdict_of(record) == ("diverged", 5, "messages[0].parts[0].content")


def test_a_message_that_is_said_to_be_made_anew_is_taken_over_and_named():
    record = record_of(shortens_answers)
    record["steps"][4]["request"]["messages"][2]["parts"][0]["content"] += "!"

    assert verdict_of(record)[0] == "reproduced"
    assert "step 5: messages[2] made anew" in str(requests_part(record)[1])


def test_a_message_more_that_is_gone_is_a_difference():
    record = record_of(keeps_three)
    del record["steps"][4]["request"]["messages"][0]

    assert verdict_of(record)[:2] == ("diverged", 5)


def test_an_answer_that_a_cut_past_tells_otherwise_differs_in_what_is_told_otherwise():
    record = record_of(keeps_three)
    record["steps"][2]["response"]["provider_response_id"] = "set"

    assert verdict_of(record) == ("diverged", 5, "messages[1].provider_response_id")


def spelled_whole(record: Record, index: int) -> Json:
    """The messages of this step's request, which from now on says all of them."""
    step = record["steps"][index - 1]
    before = record["steps"][step["request"]["after"] - 1]
    messages = [*before["request"]["messages"], before["response"], *step["request"]["messages"]]
    step["request"] = {"messages": copy.deepcopy(messages)}
    return step["request"]["messages"]


def test_a_request_that_says_its_whole_past_again_is_as_good():
    record = record_of(lambda messages: messages)
    spelled_whole(record, 3)

    assert judge(parse_native(json.dumps(record).encode())).verdict == "replayable"
    assert verdict_of(record) == ("reproduced", None, None)


def test_another_past_without_a_word_of_the_recorder_is_judged_and_named_at_its_step():
    record = record_of(lambda messages: messages)
    spelled_whole(record, 3)[0]["parts"][0]["content"] += "!"

    judged = judge(parse_native(json.dumps(record).encode()))
    assert (judged.verdict, judged.step) == ("replayable_to_step", 2)
    assert judged.words == "The request of step 3 (scripted-1) gives a different history from the one the run had."
    assert verdict_of(record) == ("diverged", 3, "messages[0].parts[0].content")


def with_an_earlier_turn() -> Record:
    looked: Messages = [user("Hi"), says(call("search", {"query": "a", "limit": 1}, "e1"))]
    told = ModelRequest(parts=[ToolReturnPart("search", "Nothing.", "e1")])
    record: Record = json.loads(recorded(searching(copies, message_history=[*looked, told, says("Nothing.")]))[-1])
    assert judge(parse_native(json.dumps(record).encode())).verdict == "replayable"
    return record


def test_an_answer_of_an_earlier_turn_by_another_tool_than_was_called_is_judged():
    record = with_an_earlier_turn()
    record["prior"][2]["parts"][0]["tool_name"] = "other"

    judged = assert_promise_kept(json.dumps(record).encode())

    assert judged.words == "In an earlier turn other answers a call of search."
    assert judged.step == len(record["steps"])


@pytest.mark.parametrize("message", [1, 2])
def test_an_answer_of_an_earlier_turn_to_a_call_that_none_makes_is_judged(message: int):
    record = with_an_earlier_turn()
    record["prior"][message]["parts"][0]["tool_call_id"] = "e2"

    judged = assert_promise_kept(json.dumps(record).encode())

    assert judged.words == "In an earlier turn search answers a call that no answer makes."
