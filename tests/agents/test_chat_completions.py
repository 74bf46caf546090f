"""The live model of samplings: what it cannot do to us."""

import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.agents.live_model.client import LiveModelClient
from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.fork.sampling import wilson
from tests import fake_provider as fake
from tests.fake_provider import KEY, PROMPT, FakeProvider, ask, fake_provider, make_endpoint, refusal, says
from tests.recorder.local_server import Answer


def test_an_endless_answer_is_cut_off():
    with fake_provider(fake.endless()) as provider:
        assert refusal(provider, max_answer_bytes=100_000) == "Its answer is longer than 100,000 bytes."
        assert provider.server.broken.wait(10)


def test_the_limit_of_an_answer_is_exact():
    answer = fake.huge(5000)
    with fake_provider(answer) as provider:
        assert ask(provider, max_answer_bytes=len(answer.body))["parts"][0]["content"] == "x" * 5000
        assert "longer than" in refusal(provider, max_answer_bytes=len(answer.body) - 1)


def test_an_answer_that_drips_is_not_waited_for():
    with fake_provider(fake.dripping(says("No."), seconds=5)) as provider:
        assert refusal(provider, timeout_seconds=0.5) == "It gave no whole answer within 0.5 seconds."


def test_an_answer_that_drips_fast_enough_is_taken():
    with fake_provider(fake.dripping(says("No."), seconds=0.2)) as provider:
        assert ask(provider)["parts"][0]["content"] == "No."


@pytest.mark.parametrize("to", ["http://127.0.0.1:1/elsewhere", "/v1/other", "file:///etc/passwd"])
def test_redirects_are_not_followed(to):
    with fake_provider(fake.redirect(to)) as provider:
        assert refusal(provider) == "It redirects elsewhere (302), which is not followed."
        assert provider.requests == 1


def waits_of(provider: FakeProvider, **fields: Any) -> tuple[list[float], Any]:
    """What was waited for, and the answer or the reason why there is none."""
    waits: list[float] = []
    client = LiveModelClient(make_endpoint(provider.url, **fields), sleep=waits.append)
    try:
        return waits, client.answer(PROMPT, None, model="m")["parts"][0]["content"]
    except ModelUnavailable as error:
        return waits, error.reason


@pytest.mark.parametrize(
    ("answers", "waits", "outcome"),
    [
        ([fake.busy("2"), says("No.")], [2], "No."),
        ([fake.busy(), fake.busy(status=503), says("No.")], [0.5, 1], "No."),
        ([fake.busy("0")], [0, 0], "It is busy (429)."),
        ([fake.busy("11"), says("No.")], [], "It is busy (429)."),
        ([fake.busy("Wed, 21 Oct 2026 07:28:00 GMT"), says("No.")], [0.5], "No."),
        ([fake.busy(status=500)], [0.5, 1], "It failed (500)."),
        ([fake.busy(status=400), says("No.")], [], "It refused the request (400)."),
        ([fake.busy(status=401), says("No.")], [], "It refused the key (401)."),
        ([fake.busy(status=404), says("No.")], [], "It knows no such model or address (404)."),
        ([fake.busy(status=204), says("No.")], [], "It gave no answer (204)."),
    ],
)
def test_a_busy_server_is_asked_again_twice_at_most(answers, waits, outcome):
    with fake_provider(fake.in_turn(*answers)) as provider:
        assert waits_of(provider) == (waits, outcome)
        assert provider.requests == len(waits) + 1


def test_a_wait_beyond_the_time_of_the_answer_is_not_begun():
    with fake_provider(fake.in_turn(fake.busy("5"), says("No."))) as provider:
        assert waits_of(provider, timeout_seconds=3) == ([], "It is busy (429).")


def test_each_request_is_counted_and_the_budget_holds():
    with fake_provider(fake.in_turn(fake.busy("0"), says("No."))) as provider:
        client = LiveModelClient(make_endpoint(provider.url, max_requests=3), requests=1, sleep=lambda seconds: None)
        client.answer(PROMPT, None, model="m")

        with pytest.raises(ModelUnavailable, match=r"^The budget of 3 requests is spent\.$"):
            client.answer(PROMPT, None, model="m")

        assert (client.requests, provider.requests) == (3, 2)


def test_known_reasons_of_a_provider_are_told_and_nothing_else_that_it_says():
    error = {"code": "unsupported_parameter", "param": "seed", "message": f"{KEY} Is it late?"}
    with fake_provider(fake.of_json({"error": error}, status=400)) as provider:
        client = LiveModelClient(make_endpoint(provider.url))
        with pytest.raises(ModelUnavailable) as caught:
            client.answer(PROMPT, None, model="m", settings={"seed": 1})

    assert caught.value.reason == "It refused the request (400: unsupported parameter (seed))."


def test_a_field_that_was_not_sent_is_not_repeated():
    with fake_provider(fake.of_json({"error": {"code": "unsupported_value", "param": KEY}}, status=400)) as provider:
        assert refusal(provider) == "It refused the request (400: unsupported value)."


@pytest.mark.parametrize("error", [{"code": KEY, "param": KEY}, {"code": ["x"], "type": {}}, KEY, None])
def test_unknown_reasons_of_a_provider_are_not_repeated(error):
    with fake_provider(fake.of_json({"error": error}, status=400)) as provider:
        assert refusal(provider) == "It refused the request (400)."


@pytest.mark.parametrize(
    "answer",
    [
        fake.of_json({"error": {"message": KEY}}, status=401),
        Answer(body=KEY.encode()),
        fake.redirect(f"http://127.0.0.1/{KEY}"),
        Answer(promised=10_000, body=KEY.encode()),
        fake.busy(KEY),
    ],
)
def test_the_key_is_in_no_error_and_in_no_log(answer, caplog):
    caplog.set_level("DEBUG")
    with fake_provider(answer) as provider:
        client = LiveModelClient(make_endpoint(provider.url), sleep=lambda seconds: None)
        with pytest.raises(ModelUnavailable) as caught:
            client.answer(PROMPT, None, model="m")

        assert provider.server.received[0].headers["Authorization"] == f"Bearer {KEY}"
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(client) + caplog.text
    assert KEY not in told
    assert KEY not in repr(make_endpoint("https://models.example.org/v1"))


@contextmanager
def wire_server(pieces: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """The base URL of a server that says these bytes to whoever connects, whatever is asked."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            for piece in pieces():
                connection.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join()


def test_what_is_not_http_is_not_repeated():
    words = f"{KEY} is no status line\r\n\r\n".encode()

    with wire_server(lambda: iter([words])) as url, pytest.raises(ModelUnavailable, match="speak HTTP") as caught:
        LiveModelClient(make_endpoint(url)).answer(PROMPT, None, model="m")

    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_headers_that_drip_are_not_waited_for():
    def drops() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nX-Slow: "
        for _ in range(100):
            time.sleep(0.05)
            yield b"x"

    with wire_server(drops) as url, pytest.raises(ModelUnavailable, match=r"within 0\.5 seconds"):
        LiveModelClient(make_endpoint(url, timeout_seconds=0.5)).answer(PROMPT, None, model="m")


@pytest.mark.parametrize("key", ["two\nlines", "sk-é", "a\rb"])
def test_a_key_that_no_header_may_hold_is_refused_without_being_told(key):
    with pytest.raises(ModelUnavailable, match="Its key") as caught:
        make_endpoint("https://models.example.org/v1", key=key)

    assert key not in str(caught.value)


def test_the_worker_loads_no_agent_library():
    code = (
        "import sys; from sessions_app.agents.live_model import client\n"
        "print(client.ATTEMPTS, 'pydantic_ai' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT_ROOT)

    assert done.stdout.split() == ["3", "False"]


# --- the provider that errs --------------------------------------------------------------------


def wrong_answers(share: float) -> int:
    """Of 200."""
    reply = fake.sometimes(says("right"), says("wrong"), share=share, seed=1)
    with fake_provider(reply) as provider:
        client = LiveModelClient(make_endpoint(provider.url))
        answers = [client.answer(PROMPT, None, model="m") for _ in range(200)]
    return sum(answer["parts"][0]["content"] == "wrong" for answer in answers)


def test_the_share_in_which_a_provider_errs_is_found():
    low, high = wilson(wrong_answers(0.3), 200)

    assert low < 0.3 < high
    assert wilson(wrong_answers(0.1), 200)[1] < 0.3


def test_the_fake_provider_goes_on_after_a_tool():
    call = {"part_kind": "tool-call", "tool_name": "look", "args": {}, "tool_call_id": "c1"}
    result = {"part_kind": "tool-return", "tool_name": "look", "content": "x", "tool_call_id": "c1"}
    messages = [*PROMPT, {"kind": "response", "parts": [call]}, {"kind": "request", "parts": [result]}]
    reply = fake.after_tools(fake.always(fake.calls("look", {})), fake.always(says("Done.")))
    with fake_provider(reply) as provider:
        assert [ask(provider, asked)["finish_reason"] for asked in (PROMPT, messages)] == ["tool_call", "stop"]
