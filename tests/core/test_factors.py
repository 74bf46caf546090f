"""Each sign of the world outside with a run that shows it, one that does not, and one that cannot tell."""

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.factors import Factor, external_factors
from sessions_app.core.factors.checks import Check
from sessions_app.core.payload import Payload
from sessions_app.core.run import AgentInfo, CodeInfo, ErrorInfo, HttpExchange, Run, Step
from tests.core.test_judge_runs import NOON, make_run, model, other, payload, read, retrieval, tool

CLOCK, DATES, TIMES = "A clock that is not pinned", "Dates, and words such as today", "Steps without a time"
MODEL, SCHEMAS = "Model other than requested", "Tool schemas that changed"
VERSIONS, ERRORS = "Another provider, or versions unknown", "HTTP errors, except rate limits"
OVERLOAD, WAIT = "HTTP 429, 503, 529", "Retry-After, or words that suggest a limit"
CUT, RETRIES = "Truncated answers", "Retried calls"

OK = HttpExchange(status=200)
SCHEMA = {"name": "lookup_order", "parameters_json_schema": {"type": "object"}}


def parameters(*tools: object) -> Payload:
    return Payload.of_json({"function_tools": list(tools)})


def captured_model(**fields: Any) -> Step:
    """A request of which everything is known."""
    known: dict[str, Any] = {
        "model": "gpt-4o",
        "answered_model": "gpt-4o-2024-08-06",
        "provider": "openai",
        "finish_reason": "stop",
        "parameters": parameters(SCHEMA),
        "http": OK,
        "started_at": NOON,
    }
    return model(**(known | fields))


def captured_tool(**fields: Any) -> Step:
    known: dict[str, Any] = {"arguments": {"id": 1}, "outcome": "success", "http": OK, "started_at": NOON}
    return tool(**(known | fields))


def captured_run(*steps: Step, **fields: Any) -> Run:
    """A run that shows nothing, and lacks nothing."""
    known: dict[str, Any] = {
        "started_at": NOON,
        "provider": "openai",
        "agent": AgentInfo(framework="pydantic-ai", framework_version="2.68.0"),
        "code": CodeInfo(commit="9f2c41d"),
    }
    return make_run(*(steps or (captured_model(), captured_tool(), captured_model())), **(known | fields))


def factor(run: Run, key: str) -> Factor:
    return next(found for found in external_factors(run) if found.key == key)


def check(run: Run, title: str) -> Check:
    return next(each for found in external_factors(run) for each in found.checks if each.title == title)


def test_a_run_that_shows_nothing_and_lacks_nothing_has_no_factor_seen():
    found = external_factors(captured_run())

    assert [each.key for each in found] == ["time", "api", "rate_limit"]
    assert {one.sight for each in found for one in each.checks} == {"not_seen"}
    assert {each.sight for each in found} == {"not_seen"}


def test_an_empty_run_tells_nothing():
    found = external_factors(Run(run_id="r", session_id="s", status="ok"))

    assert {each.sight for each in found} == {"not_captured"}


def two_models(first: dict[str, Any], second: dict[str, Any]) -> Run:
    return captured_run(captured_model(**first), captured_tool(), captured_model(**second))


def with_tool(**fields: Any) -> Run:
    return captured_run(captured_model(), captured_tool(**fields), captured_model())


def with_model(**fields: Any) -> Run:
    return captured_run(captured_model(), captured_tool(), captured_model(**fields))


LONGER = SCHEMA | {"description": "Find an order."}
RETRY_AFTER = HttpExchange(status=200, response_headers=(("Retry-After", "2"),))
HALF = HttpExchange(status=200, response_body=Payload(content=b'{"price": 12'))
LATE = ErrorInfo(type="RateLimitError", message="rate limit reached")


@pytest.mark.parametrize(
    ("title", "run", "steps"),
    [
        (DATES, with_tool(arguments={"day": "2026-11-17"}), (2,)),
        (DATES, with_tool(result="It leaves today."), (2,)),
        (DATES, with_tool(result={"note": "first line\ntoday"}), (2,)),
        (DATES, with_tool(arguments='{"note": "first line\\ntoday"}'), (2,)),
        (DATES, captured_run(captured_model(), retrieval(("a", 1, "Prices of 2026-01-02"))), (2,)),
        (DATES, captured_run(input=payload("what is on now?")), ()),
        (DATES, captured_run(instructions="Today is a Tuesday."), ()),
        (MODEL, with_model(answered_model="gpt-4o-mini"), (3,)),
        (MODEL, with_model(answered_model="gpt-4o-2024-11-20"), (3,)),
        (SCHEMAS, with_model(parameters=parameters(LONGER)), (3,)),
        (VERSIONS, with_model(provider="azure"), ()),
        (ERRORS, with_tool(http=HttpExchange(status=404)), (2,)),
        (ERRORS, with_tool(result={"status": 500}, http=None), (2,)),
        (OVERLOAD, with_tool(http=HttpExchange(status=429)), (2,)),
        (OVERLOAD, with_model(http=HttpExchange(status=529)), (3,)),
        (WAIT, with_tool(http=RETRY_AFTER), (2,)),
        (WAIT, with_tool(result="Too many requests, try later"), (2,)),
        (WAIT, with_tool(result={"error": "HTTP 429"}), (2,)),
        (WAIT, with_model(error=LATE), (3,)),
        (CUT, with_tool(http=HALF), (2,)),
        (CUT, with_tool(result='{"price": 12'), (2,)),
        (CUT, with_model(finish_reason="length"), (3,)),
        (CUT, with_model(finish_reason="max_output_tokens"), (3,)),
        (RETRIES, with_tool(outcome="retried"), (2,)),
        (RETRIES, with_tool(extra={"retry_of": 1}), (2,)),
    ],
)
def test_a_sign_is_seen_with_its_steps(title, run, steps):
    found = check(run, title)

    assert (found.sight, found.steps) == ("seen", steps)


@pytest.mark.parametrize(
    ("title", "run"),
    [
        (DATES, with_tool(result="I know 2026 things, order 2026-99")),
        (DATES, with_model(answer="It leaves today.")),
        (MODEL, with_model(model="openai:gpt-4o")),
        (SCHEMAS, with_model(parameters=parameters({**dict(reversed(SCHEMA.items()))}))),
        (SCHEMAS, with_model(parameters=parameters())),
        (ERRORS, with_tool(http=HttpExchange(status=429))),
        (OVERLOAD, with_tool(http=HttpExchange(status=500))),
        (WAIT, with_model(answer="There are too many requests of yours.")),
        (WAIT, with_tool(result="Order 429 is on its way.")),
        (CUT, with_tool(result='{"price": 12}')),
    ],
)
def test_what_only_looks_like_a_sign_is_none(title, run):
    assert check(run, title).sight == "not_seen"


@pytest.mark.parametrize(
    ("title", "run"),
    [
        (CLOCK, captured_run(started_at=None)),
        (DATES, with_tool(result=None)),
        (TIMES, with_tool(started_at=None)),
        (MODEL, with_model(answered_model=None)),
        (SCHEMAS, with_model(parameters=None)),
        (VERSIONS, captured_run(code=CodeInfo())),
        (ERRORS, with_tool(http=None)),
        (OVERLOAD, with_tool(http=None)),
        (WAIT, with_tool(result=None, http=None)),
        (CUT, with_model(finish_reason=None)),
        (RETRIES, with_tool(outcome=None)),
    ],
)
def test_what_was_not_captured_is_never_called_not_seen(title, run):
    assert check(run, title).sight == "not_captured"


def test_a_check_names_the_steps_that_lack_it():
    assert check(with_tool(started_at=None), TIMES).steps == (2,)
    assert check(with_tool(started_at=None), TIMES).words == "1 of 3 steps without a time."


def test_one_sign_is_enough_for_a_factor_and_one_gap_too_much_for_none():
    assert factor(with_tool(http=HttpExchange(status=503), outcome=None), "rate_limit").sight == "seen"
    assert factor(with_tool(outcome=None), "rate_limit").sight == "not_captured"


def test_the_frame_s_own_steps_are_not_asked_for_arguments():
    assert check(captured_run(captured_model(), other(started_at=NOON)), DATES).sight == "not_seen"


def test_bytes_that_are_no_text_are_not_searched():
    image = Payload(content=b"\xff\xfe today", media_type="image/png")
    run = with_tool()
    step, call = run.tool_calls[0]
    seen = replace(step, call=replace(call, result=image))

    assert check(replace(run, steps=(run.steps[0], seen)), DATES).sight == "not_seen"


def test_the_price_that_was_cut_in_half_met_a_limit():
    run = read("../../sessions_app/examples/price_429.json")

    found = factor(run, "rate_limit")

    assert found.sight == "seen"
    assert {one.title: one.steps for one in found.checks if one.sight == "seen"} == {
        OVERLOAD: (2,),
        WAIT: (2,),
        CUT: (2,),
    }
