"""Attempts at a request that failed, and steps whose every attempt did, are held against their recorded HTTP."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.recorder.local_server import Answer
from tests.recorder.openai_provider import Json, Provider, calls, provider, says
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import Play

Record = dict[str, Any]
FORGED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Something else."}]}
ADDS = calls(("add", '{"x": 1}', "c1"))


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as found:
        yield found


def fails(status: int) -> Answer:
    body = json.dumps({"error": {"message": f"The provider says {status}.", "type": "server_error"}})
    return Answer(body.encode(), headers={"Content-Type": "application/json", "retry-after-ms": "1"}, status=status)


def chat(server: Provider, name: str = "gpt-4o", *, retries: int = 2) -> OpenAIChatModel:
    client = server.client.with_options(max_retries=retries)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


def record_of(server: Provider, model: Any, *script: Json | Answer, way: str = "run") -> Record:
    server.will_answer(*script)
    agent = Agent(model, name="adder", instructions="Add.")

    @agent.tool_plain
    def add(x: float) -> float:
        return x

    record: Record = json.loads(recorded(Play(agent, "go"), way, http=True)[0])
    return record


def reasons_of(record: Record) -> list[tuple[str, int | None]]:
    judged = assert_promise_kept(json.dumps(record).encode())
    return [(reason.code, reason.step) for reason in judged.reasons]


def attempts(record: Record) -> list[Record]:
    return [step["http"] for step in record["steps"] if step["kind"] == "other"]


def asked(record: Record) -> list[Record]:
    return [step for step in record["steps"] if step["kind"] == "model"]


# --- attempts that were made again -------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "run_stream"])
def test_attempts_that_failed_and_were_made_again_are_held_against_what_came_next(way: str, server: Provider):
    record = record_of(server, chat(server), fails(500), ADDS, fails(429), fails(503), says("Done."), way=way)
    assert [http["status"] for http in attempts(record)] == [500, 429, 503][: len(attempts(record))]
    assert reasons_of(record) == []

    for place in range(len(attempts(record))):
        for change in ({"request_body": FORGED}, {"status": 200}, {"url": "https://other.example/v1/chat/completions"}):
            changed = copy.deepcopy(record)
            attempts(changed)[place].update(change)
            assert reasons_of(changed) == [("http_contradicted", 1 if place == 0 else 4)], (place, change)


def test_a_failure_that_was_answered_as_its_repetition_was_is_judged(server: Provider):
    record = record_of(server, chat(server), ADDS, fails(503), says("Done."))

    attempts(record)[0].update(status=200, response_body=asked(record)[1]["http"]["response_body"])

    assert reasons_of(record) == [("http_contradicted", 3)]


def test_an_attempt_of_which_the_body_was_left_out_or_redacted_contradicts_nothing(server: Provider):
    record = record_of(server, chat(server), ADDS, fails(503), says("Done."))
    cut, redacted = copy.deepcopy(record), copy.deepcopy(record)

    attempts(cut)[0].update(request_body='{"model": ', request_body_cut=True)
    attempts(redacted)[0].update(request_body={**FORGED, "user": "[email:1a2b3c4d]", "messages": []})

    assert reasons_of(cut) == reasons_of(redacted) == []


def test_each_model_of_a_fallback_was_asked_the_same(server: Provider):
    model = FallbackModel(chat(server, retries=0), chat(server, "gpt-4o-mini", retries=0))
    record = record_of(server, model, fails(500), ADDS, fails(500), says("Done."))
    assert reasons_of(record) == []

    for body in (FORGED, {**FORGED, "model": "gpt-5"}):
        changed = copy.deepcopy(record)
        attempts(changed)[1]["request_body"] = body
        assert reasons_of(changed) == [("http_contradicted", 4)]


class AskingAgain(WrapperModel):
    """Of the team's own."""

    async def request(self, *arguments: Any) -> ModelResponse:
        found = await super().request(*arguments)
        return await super().request(*arguments) if "Hm" in str(found.parts) else found


def _is_doubtful(response: ModelResponse) -> bool:
    return "Hm" in str(response.parts)


MODELS: dict[str, Callable[[Provider], Any]] = {
    "a model that asks again": lambda server: AskingAgain(chat(server)),
    "a fallback": lambda server: FallbackModel(chat(server), chat(server, "gpt-4o-mini"), fallback_on=[_is_doubtful]),
}


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_that_code_of_the_team_refused_is_no_contradiction(model: str, server: Provider):
    record = record_of(server, MODELS[model](server), ADDS, says("Hm."), says("Done."))

    assert [http["status"] for http in attempts(record)] == [200]
    assert reasons_of(record) == []


# --- steps that failed -------------------------------------------------------------------------


def _answer(record: Record) -> Json:
    http = asked(record)[0]["http"]
    return {"response_body": http["response_body"]}


@pytest.mark.parametrize(
    "change",
    [
        lambda record: {"status": 200},
        lambda record: {"status": 429},
        _answer,
        lambda record: {"status": 200, **_answer(record)},
        lambda record: {"request_body": FORGED},
    ],
    ids=["success", "another failure", "answer", "both", "request"],
)
def test_a_step_that_failed_is_held_against_its_last_attempt(change: Callable[[Record], Record], server: Provider):
    record = record_of(server, chat(server, retries=1), ADDS, fails(500), fails(500))
    assert replayed(json.dumps(record).encode())[0].verdict == "reproduced"

    asked(record)[1]["http"].update(change(record))

    assert reasons_of(record) == [("http_contradicted", 3)]


class Strict(WrapperModel):
    async def request(self, *arguments: Any) -> ModelResponse:
        found = await super().request(*arguments)
        if "Hm" in str(found.parts):
            raise ValueError("That is no answer.")
        return found


def test_a_step_that_failed_over_an_answer_is_no_contradiction(server: Provider):
    record = record_of(server, Strict(chat(server)), ADDS, says("Hm."))

    assert (asked(record)[1]["http"]["status"], "error" in asked(record)[1]) == (200, True)
    assert [code for code, _ in reasons_of(record)] == []


# --- one key with two values -------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "run_stream"])
@pytest.mark.parametrize(
    ("body", "before", "twice"),
    [
        ("response_body", '"choices"', '"choices": []'),
        ("response_body", '"content"', '"content": "Undone."'),
        ("response_body", '"model"', '"model": "other"'),
        ("request_body", '"messages"', '"messages": []'),
        ("request_body", '"content"', '"content": "stop"'),
    ],
)
def test_a_body_that_gives_a_key_two_values_is_judged(body: str, before: str, twice: str, way: str, server: Provider):
    record = record_of(server, chat(server), ADDS, fails(500), says("Done."), way=way)
    own = asked(record)[-1]["http"]
    for http in (own, *attempts(record)):
        kept = http[body]
        http[body] = kept.replace(before, f"{twice}, {before}", 1)
        expected = [] if http[body] == kept else [("http_contradicted", len(record["steps"]) - len(attempts(record)))]
        assert reasons_of(record) == expected
        http[body] = kept


def test_a_key_that_stands_twice_with_one_value_is_no_contradiction(server: Provider):
    record = record_of(server, chat(server), ADDS, says("Done."))
    http = asked(record)[1]["http"]

    http["response_body"] = http["response_body"].replace('"model"', '"note": "n", "note": "n", "model"', 1)

    assert reasons_of(record) == []


def test_arguments_that_give_a_key_two_values_are_those_of_another_call(server: Provider):
    record = record_of(server, chat(server), ADDS, says("Done."))
    http = asked(record)[0]["http"]

    http["response_body"] = http["response_body"].replace('\\"x\\"', '\\"x\\": 2, \\"x\\"', 1)

    assert reasons_of(record) == [("http_contradicted", 1)]


def test_arguments_that_a_model_gave_with_a_key_twice_are_no_contradiction(server: Provider):
    record = record_of(server, chat(server), calls(("add", '{"x": 2, "x": 1}', "c1")), says("Done."))

    assert 'x\\": 2' in asked(record)[0]["http"]["response_body"]
    assert reasons_of(record) == []
