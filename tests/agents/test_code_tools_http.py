"""HTTP of tools that run in a replay: recorded against a real server, answered again when it is gone."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3
from pydantic_ai import Agent, ModelRetry, TextOutput, ToolOutput

from replay_recorder.recorded_http.exchanges import RecordedExchange, had_ended_before
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run
from tests.agents.code_talking import replay_in_child
from tests.agents.http_desk import SENDS, SHOP, Send, by_httpx_async, desk, script
from tests.agents.own_agents import observed_by, own, recorded_run, replayed_by
from tests.agents.test_code_tools_run import place
from tests.recorder.local_server import Answer, LocalServer, local_server
from tests.recorder.playing import recorded
from tests.recorder.scenarios import Play, Scripted, call, says

RUN = {"tools": {"run": True}}


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    with local_server() as server:
        monkeypatch.setenv(SHOP, server.url)
        server.answer("/stock", *(stocked(n) for n in range(4)))
        server.answer("/orders", Answer(b'{"wait": 7}', 429, {"Retry-After": "7"}), Answer("bestätigt".encode(), 201))
        yield server


def stocked(count: int) -> Answer:
    """Compressed, as answers are."""
    coded = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return Answer(gzip.compress(json.dumps({"count": count}).encode()), headers=coded)


def record(send: Send, **settings: Any) -> dict[str, Any]:
    [text] = recorded(Play(desk(send, *script()), "Order a lamp"), **({"http": True} | settings))
    return dict(json.loads(text))


@pytest.mark.parametrize("client", SENDS)
def test_tools_of_every_client_run_in_the_sealed_process_with_the_recorded_answers(client: str, shop: LocalServer):
    then = record(SENDS[client])
    asked = len(shop.received)

    result = replay_in_child(
        f"tests.agents.http_desk:{client}_desk", then, order=RUN, environment={SHOP: os.environ[SHOP]}
    )

    assert (result["verdict"], result["divergence"], result["error"]) == ("reproduced", None, None)
    assert (result["live_calls"], result["refused_calls"]) == (0, 0)
    assert (asked, len(shop.received)) == (6, 6)
    assert result["facts"]["sources"] == {"recorded": 4, "own_code": 4}
    said = [step.get("result") for step in then["steps"] if step["kind"] == "tool"]
    assert "waited 7: bestätigt" in said


def test_one_changed_line_of_a_tool_shows_at_its_step(shop: LocalServer):
    then = record(SENDS["aiohttp"])

    result = replay_in_child(
        "tests.agents.http_desk:changed_desk", then, order=RUN, environment={SHOP: os.environ[SHOP]}
    )

    assert result["verdict"] == "diverged"
    found = result["divergence"]
    assert then["steps"][found["step"] - 1]["tool_name"] == "note"
    assert (found["path"], found["recorded"], found["replayed"]) == ("result", "kept ordered", "changed ordered")
    assert (result["live_calls"], result["refused_calls"]) == (0, 0)


def test_an_address_that_was_not_recorded_stops_the_replay_and_is_named(shop: LocalServer):
    then = record(SENDS["requests"])
    asked = len(shop.received)

    result = replay_in_child(
        "tests.agents.http_desk:elsewhere_desk", then, order=RUN, environment={SHOP: os.environ[SHOP]}
    )

    assert result["verdict"] == "fixture_missing"
    assert (result["divergence"]["path"], result["divergence"]["step"]) == ("http", 2)
    assert result["divergence"]["replayed"] == f"GET {shop.url}/stock/now"
    sent = result["facts"]["asked_for"]["http"]
    assert (sent["method"], sent["url"]) == ("GET", f"{shop.url}/stock/now")
    assert sent["recorded"] == [f"GET {shop.url}/stock"] * 2
    assert (len(shop.received), result["live_calls"], result["refused_calls"]) == (asked, 0, 0)


# --- one tool, in this process


def one_tool(function: Callable[..., Any], *answers: Any) -> Play:
    agent: Agent[None, str] = Agent(Scripted(*answers), name="one")
    agent.tool_plain(name="ask")(function)
    return Play(agent, "Go")


def asking(function: Callable[..., Any], **settings: Any) -> Run:
    """1 model, 2 ask, its earlier exchanges, model."""
    play = one_tool(function, says(call("ask", {}, "a")), says("Done."))
    return recorded_run(lambda: play, **({"http": True} | settings))


def again(run: Run, function: Callable[..., Any]) -> Result:
    return replayed_by(run, own(one_tool(function)), runs_tools=True)


def test_a_swallowed_stop_is_no_answer(shop: LocalServer):
    def ask() -> str:
        return requests.get(f"{shop.url}/stock").text

    def swallows() -> str:
        try:
            return requests.get(f"{shop.url}/other").text
        except BaseException:
            return "nothing"

    result = again(asking(ask), swallows)

    assert place(result) == ("fixture_missing", 2, "http")
    assert result.facts["asked_for"]["http"]["url"] == f"{shop.url}/other"


def test_no_exchange_is_given_twice(shop: LocalServer):
    def once() -> str:
        return requests.get(f"{shop.url}/stock").text

    def twice() -> str:
        return once() + once()

    result = again(asking(once), twice)

    assert place(result) == ("fixture_missing", 2, "http")
    assert "already used" in result.facts["asked_for"]["http"]["reason"]
    assert result.divergence is not None
    assert result.divergence.recorded == [f"GET {shop.url}/stock"]
    assert result.divergence.replayed.startswith(f"GET {shop.url}/stock: each recorded exchange of this call")


def test_a_body_is_part_of_the_request(shop: LocalServer):
    def ask(count: int) -> str:
        return requests.post(f"{shop.url}/orders", json={"count": count}).text

    def more() -> str:
        return ask(2)

    def less() -> str:
        return ask(1)

    run = asking(less)

    assert place(again(run, less)) == ("reproduced", None, None)
    result = again(run, more)
    assert place(result) == ("fixture_missing", 2, "http.body.count")
    assert result.divergence is not None
    assert (result.divergence.recorded, result.divergence.replayed) == (1, 2)
    sent = result.facts["asked_for"]["http"]
    assert (sent["url"], sent["other"]["path"]) == (f"{shop.url}/orders", "body.count")
    assert sent["reason"].endswith("body.count was 1 and is now 2")


def test_headers_and_secrets_are_no_part_of_the_request(shop: LocalServer):
    def ask(key: str) -> str:
        headers = {"Authorization": f"Bearer {key}", "X-Trace": key}
        return requests.get(f"{shop.url}/stock?page=2&api_key={key}", headers=headers).text

    run = asking(lambda: ask("then"))

    assert place(again(run, lambda: ask("now"))) == ("reproduced", None, None)
    assert place(again(run, lambda: requests.get(f"{shop.url}/stock?page=3&api_key=now").text))[0] == "fixture_missing"


def test_without_recorded_http_the_first_request_stops_the_replay(shop: LocalServer):
    def ask() -> str:
        return requests.get(f"{shop.url}/stock").text

    result = again(asking(ask, http=False), ask)

    assert place(result) == ("fixture_missing", 2, "http")
    assert "http=True" in result.facts["asked_for"]["http"]["reason"]


async def redirected_by_aiohttp(url: str) -> tuple[int, str, int]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text(), len(answer.history)


async def redirected_by_httpx(url: str) -> tuple[int, str, int]:
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as client:
        answer = await client.get(url)
        return answer.status_code, answer.text, len(answer.history)


def redirected_by_requests(url: str) -> tuple[int, str, int]:
    answer = requests.get(url)
    return answer.status_code, answer.text, len(answer.history)


def redirected_by_urllib(url: str) -> tuple[int, str, str]:
    with urllib.request.urlopen(url) as answer:
        return answer.status, answer.read().decode(), answer.url.split("?")[0]


@pytest.mark.parametrize(
    "follow", [redirected_by_aiohttp, redirected_by_httpx, redirected_by_requests, redirected_by_urllib]
)
def test_redirects_are_followed_within_the_recording(follow: Callable[[str], Any], shop: LocalServer):
    shop.answer("/new", Answer(b"here"))
    url = shop.answer("/old", Answer(status=302, headers={"Location": "/new?token=planted&x=1"}))

    def ask() -> Any:
        return follow(url)

    async def ask_async() -> Any:
        return await follow(url)

    function = ask_async if inspect.iscoroutinefunction(follow) else ask

    run = asking(function)

    assert place(again(run, function)) == ("reproduced", None, None)


def test_an_answer_whose_body_nobody_read_is_given_without_one(shop: LocalServer):
    async def status() -> str:
        async with aiohttp.ClientSession() as session, session.get(f"{shop.url}/stock") as answer:
            return str(answer.status)

    async def text() -> str:
        async with aiohttp.ClientSession() as session, session.get(f"{shop.url}/stock") as answer:
            return await answer.text()

    run = asking(status)

    assert place(again(run, status)) == ("reproduced", None, None)
    assert place(again(run, text)) == ("fixture_missing", 2, "http")


def test_a_request_that_failed_is_not_made_up(shop: LocalServer):
    def ask() -> str:
        try:
            return requests.get("http://127.0.0.1:1/").text
        except requests.ConnectionError:
            return "down"

    result = again(asking(ask), ask)

    assert place(result) == ("fixture_missing", 2, "http")
    assert "was not answered" in result.facts["asked_for"]["http"]["reason"]


def test_forms_are_told_apart_by_what_they_hold(shop: LocalServer):
    def send(content: bytes) -> str:
        return requests.post(f"{shop.url}/orders", files={"bill": ("bill.txt", content)}).text

    run = asking(lambda: send(b"one"))

    assert place(again(run, lambda: send(b"one"))) == ("reproduced", None, None)
    result = again(run, lambda: send(b"two"))
    assert place(result) == ("fixture_missing", 2, "http.body")
    assert result.divergence is not None
    assert "one" in result.divergence.recorded
    assert "two" in result.divergence.replayed


def test_parallel_calls_in_threads_and_requests_of_one_call_keep_to_their_own_answers(shop: LocalServer):
    def ask(item: str) -> str:
        return f"{item}: {requests.get(f'{shop.url}/stock').text} {urllib3.request('GET', f'{shop.url}/stock').data!r}"

    async def both() -> list[str]:
        async with httpx.AsyncClient(trust_env=False) as client:
            answers = await asyncio.gather(*(client.get(f"{shop.url}/stock?n={n}") for n in range(5)))
        return [answer.text for answer in answers]

    def make(*answers: Any) -> Play:
        agent: Agent[None, str] = Agent(Scripted(*answers), name="parallel")
        agent.tool_plain(ask)
        agent.tool_plain(both)
        return Play(agent, "Go")

    shop.answer("/stock", *(stocked(n) for n in range(40)))
    calls = [call("ask", {"item": str(n)}, f"i{n}") for n in range(10)]
    run = recorded_run(lambda: make(says(*calls, call("both", {}, "z")), says("Done.")), http=True)

    for _ in range(3):
        assert place(replayed_by(run, own(make()), runs_tools=True)) == ("reproduced", None, None)


def test_frozen_tools_ask_for_nothing(shop: LocalServer):
    def ask() -> str:
        return requests.get(f"{shop.url}/stock").text

    run, asked = asking(ask), len(shop.received)

    assert place(replayed_by(run, own(one_tool(ask)))) == ("reproduced", None, None)
    assert len(shop.received) == asked


@pytest.mark.parametrize("client", ["httpx", "requests", "urllib", "urllib3"])
def test_what_a_tool_raises_beside_an_open_answer_is_raised_again(client: str, shop: LocalServer):
    url = f"{shop.url}/stock"
    opened: dict[str, Callable[[], Any]] = {
        "httpx": lambda: httpx.stream("GET", url, trust_env=False),
        "requests": lambda: requests.get(url, stream=True),
        "urllib": lambda: urllib.request.urlopen(url),
        "urllib3": lambda: urllib3.request("GET", url, preload_content=False),
    }

    def ask() -> str:
        with opened[client]():
            raise LookupError("no such item")

    run = asking(ask)

    assert run.steps[1].error.type == "LookupError"
    assert place(again(run, ask)) == ("reproduced", None, None)


@pytest.mark.parametrize("client", ["httpx", "requests", "urllib"])
def test_headers_are_given_as_recorded(client: str, shop: LocalServer):
    url = shop.answer("/head", Answer(b"four", 203, {"X-Request-Id": "q-1", "Retry-After": "3"}))

    def ask() -> dict[str, Any]:
        if client == "urllib":
            answer = urllib.request.urlopen(urllib.request.Request(url, method="HEAD"))
            return {"status": answer.status, **{name.lower(): value for name, value in answer.headers.items()}}
        found: Any = httpx if client == "httpx" else requests
        answer = found.head(url)
        return {"status": answer.status_code, **{name.lower(): value for name, value in answer.headers.items()}}

    run = asking(ask)

    assert run.steps[1].call.result.value["content-length"] == "4"
    assert place(again(run, ask)) == ("reproduced", None, None)


def test_a_bare_thread_of_a_tool_stops_the_replay_and_is_named(shop: LocalServer):
    def ask() -> str:
        with ThreadPoolExecutor(1) as threads:
            try:
                return threads.submit(requests.get, f"{shop.url}/stock").result().text
            except BaseException:
                return "nothing"

    result = again(asking(ask), ask)

    assert place(result) == ("fixture_missing", 2, "http")
    sent = result.facts["asked_for"]["http"]
    assert (sent["url"], "thread" in sent["reason"]) == (f"{shop.url}/stock", True)


def test_a_thread_that_was_there_before_is_refused_by_the_fence(shop: LocalServer):
    """As telemetry sends."""
    with ThreadPoolExecutor(1) as threads:
        refused: list[BaseException | None] = []

        def ask() -> str:
            refused.append(threads.submit(requests.get, f"{shop.url}/stock").exception())
            return "sent"

        result = again(asking(ask), ask)

    assert place(result) == ("reproduced", None, None)
    assert [type(error).__name__ for error in refused] == ["NoneType", "WorldIsOff"]


# --- requests that are no longer sent


def cancels(send: Callable[[str, str], Any]) -> Callable[[], str]:
    """Looks an order up, deletes it, and says that it did."""

    def ask() -> str:
        send("GET", "/orders?id=1")
        send("DELETE", "/orders/1")
        return "cancelled"

    return ask


def test_a_request_that_is_no_longer_sent_is_a_difference_at_the_tool(shop: LocalServer):
    def send(method: str, path: str) -> Any:
        return requests.request(method, shop.url + path)

    def send_nothing_that_writes(method: str, path: str) -> Any:
        return send(method, path) if method == "GET" else None

    run = asking(cancels(send))
    tool = next(step.index for step, _ in run.tool_calls)

    assert place(again(run, cancels(send))) == ("reproduced", None, None)
    result = again(run, cancels(send_nothing_that_writes))
    assert place(result) == ("diverged", tool, "http")
    assert (result.divergence.recorded, result.divergence.replayed) == ([f"DELETE {shop.url}/orders/1"], None)
    assert result.facts["proof"]["outcome"]["state"] == "not_proven"
    assert place(again(run, cancels(lambda method, path: None))) == ("diverged", tool, "http")


def test_of_two_equal_requests_both_are_asked_for(shop: LocalServer):
    def ask(times: int) -> str:
        for _ in range(times):
            requests.post(f"{shop.url}/orders", json={"item": "lamp"})
        return "ordered"

    run = asking(lambda: ask(2))

    assert place(again(run, lambda: ask(2))) == ("reproduced", None, None)
    assert place(again(run, lambda: ask(1))) == ("diverged", 2, "http")


def test_requests_in_another_order_are_a_difference(shop: LocalServer):
    def send(*paths: str) -> str:
        for path in paths:
            requests.get(shop.url + path)
        return "sent"

    run = asking(lambda: send("/stock", "/orders"))

    assert place(again(run, lambda: send("/stock", "/orders"))) == ("reproduced", None, None)
    result = again(run, lambda: send("/orders", "/stock"))
    assert place(result) == ("diverged", 2, "http")
    assert result.divergence.recorded == [f"GET {shop.url}/stock before GET {shop.url}/orders"]


def test_requests_at_the_same_time_have_no_order():
    apart = RecordedExchange("GET", "/a", 200, facts={"started_at": "2026-01-01T00:00:00Z", "duration_ms": 5})
    beside = RecordedExchange("GET", "/b", 200, facts={"started_at": "2026-01-01T00:00:00.004Z", "duration_ms": 5})
    untimed = RecordedExchange("GET", "/c", 200)

    assert not had_ended_before(apart, beside)
    assert not had_ended_before(apart, untimed)
    assert had_ended_before(apart, replace(beside, facts={"started_at": "2026-01-01T00:00:00.005Z"}))


def test_a_tool_that_fails_as_then_without_having_asked_is_noticed(shop: LocalServer):
    def fails(asks: bool) -> str:
        if asks:
            requests.get(f"{shop.url}/stock")
        raise ModelRetry("Try again.")

    def twice(asks: bool) -> Play:
        return one_tool(lambda: fails(asks), says(call("ask", {}, "a")), says("Done."))

    play = twice(True)
    run = recorded_run(lambda: play, http=True)

    assert place(replayed_by(run, own(twice(True)), runs_tools=True)) == ("reproduced", None, None)
    assert place(replayed_by(run, own(twice(False)), runs_tools=True)) == ("diverged", 2, "http")


def test_another_answer_says_more_than_a_request_that_is_missing(shop: LocalServer):
    def ask() -> str:
        return requests.get(f"{shop.url}/stock").text

    def tells() -> str:
        return "nothing"

    assert place(again(asking(ask), tells)) == ("diverged", 2, "result")


# --- functions that make the output ------------------------------------------------------------


def made_by_function(by_call: bool, *paths: str) -> Play:
    """The function asks at each of these paths."""

    async def made(text: str) -> str:
        for path in paths:
            await by_httpx_async("GET", path)
        return f"made of {text}"

    answer = says(call("final_result", {"text": "x"}, "o")) if by_call else says("x")
    output: Any = ToolOutput(made) if by_call else TextOutput(made)
    return Play(Agent(Scripted(answer), name="one", output_type=output), "Go")


def with_function_of_today(run: Run, today: Play, replay: Callable[..., Result]) -> Result:
    return replay(run, today, tools="run") if replay is observed_by else replayed_by(run, own(today), runs_tools=True)


@pytest.mark.parametrize("replay", [replayed_by, observed_by])
@pytest.mark.parametrize("by_call", [False, True])
@pytest.mark.parametrize(
    ("paths", "verdict", "path"),
    [
        (("/stock", "/stock"), "reproduced", None),
        (("/stock",), "diverged", "http"),
        (("/stock", "/orders"), "fixture_missing", "http"),
        (("/stock", "/stock", "/stock"), "fixture_missing", "http"),
    ],
    ids=["the same", "less", "another", "more"],
)
def test_what_a_function_sends_that_makes_the_output_is_held_against_the_recording(
    paths: tuple[str, ...], verdict: str, path: str | None, by_call: bool, replay: Any, shop: LocalServer
):
    run = recorded_run(lambda: made_by_function(by_call, "/stock", "/stock"), http=True)
    asked = len(shop.received)

    result = with_function_of_today(run, made_by_function(by_call, *paths), replay)

    assert (result.verdict, result.divergence and result.divergence.path) == (verdict, path)
    assert len(shop.received) == asked == 2


@pytest.mark.parametrize("replay", [replayed_by, observed_by])
def test_a_function_that_makes_the_output_has_no_answer_where_no_http_was_recorded(replay: Any, shop: LocalServer):
    run = recorded_run(lambda: made_by_function(False, "/stock"))

    result = with_function_of_today(run, made_by_function(False, "/stock"), replay)

    assert result.verdict == "fixture_missing"
    assert "http=True" in result.facts["asked_for"]["http"]["reason"]
