"""Raw HTTP, seen from both ends of a real connection: what the server got and sent is what the record holds."""

import asyncio
import contextvars
import gzip
import hashlib
import io
import itertools
import sys
import threading
import tracemalloc
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from replay_recorder.context import placed
from replay_recorder.guard import FAULTS
from replay_recorder.raw_http import exchange as http_exchange
from replay_recorder.raw_http import log as http_log
from replay_recorder.raw_http import tee as http_tee
from replay_recorder.raw_http.exchange import Body, Exchange
from replay_recorder.raw_http.tee import first_byte_at, http_fields, patch_transports, take_exchanges
from replay_recorder.recorder import activate, active, deactivate
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import assemble
from replay_recorder.writing.run_writer import RunWriter
from sessions_app.core.formats.native import parse_native
from sessions_app.core.run import HttpExchange, Run, Step
from tests.recorder.local_server import Answer, LocalServer, local_server

# --- clients: each sends one request and reads the whole answer


@dataclass(frozen=True)
class Got:
    status: int
    body: bytes


def by_httpx2(method, url, headers, body):
    with httpx2.Client(trust_env=False) as client:
        answer = client.request(method, url, headers=headers, content=body)
        return Got(answer.status_code, answer.content)


def by_httpx2_async(method, url, headers, body):
    async def send():
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.request(method, url, headers=headers, content=body)
            return Got(answer.status_code, answer.content)

    return asyncio.run(send())


def by_httpx(method, url, headers, body):
    with installed("httpx").Client(trust_env=False) as client:
        answer = client.request(method, url, headers=headers, content=body)
        return Got(answer.status_code, answer.content)


def by_httpx_async(method, url, headers, body):
    async def send():
        async with installed("httpx").AsyncClient(trust_env=False) as client:
            answer = await client.request(method, url, headers=headers, content=body)
            return Got(answer.status_code, answer.content)

    return asyncio.run(send())


def by_requests(method, url, headers, body):
    with installed("requests").Session() as session:
        session.trust_env = False
        answer = session.request(method, url, headers=headers, data=body)
        return Got(answer.status_code, answer.content)


def by_urllib3(method, url, headers, body):
    with installed("urllib3").PoolManager(retries=False) as pool:
        answer = pool.request(method, url, headers=headers, body=body)
        return Got(answer.status, answer.data)


def by_urllib3_streamed(method, url, headers, body):
    with installed("urllib3").PoolManager(retries=False) as pool:
        answer = pool.request(method, url, headers=headers, body=body, preload_content=False)
        return Got(answer.status, b"".join(answer.stream(7, decode_content=True)))


def by_aiohttp(method, url, headers, body):
    async def send():
        async with installed("aiohttp").ClientSession() as session, session.request(
            method, url, headers=headers, data=body
        ) as answer:  # fmt: skip
            return Got(answer.status, await answer.read())

    return asyncio.run(send())


def by_urllib(method, url, headers, body):
    patch_transports()
    asked = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
        content = answer.read()
        coding = answer.headers.get("Content-Encoding", "")
        return Got(answer.status, zlib.decompress(content, _WINDOWS[coding](content)) if coding else content)


_WINDOWS = {
    "gzip": lambda content: 31,
    "deflate": lambda content: 15 if content[:1] == b"\x78" else -15,
}
"""urllib leaves the content coding to its caller."""


def installed(name: str) -> Any:
    """The module, with its tee; a test that misses it says so at the end of the run."""
    module = pytest.importorskip(name, reason=f"NOT TESTED WITH {name.upper()}: it is not installed")
    patch_transports()
    return module


CLIENTS = (
    by_httpx2,
    by_httpx2_async,
    by_httpx,
    by_httpx_async,
    by_requests,
    by_urllib3,
    by_urllib3_streamed,
    by_aiohttp,
    by_urllib,
)
every_client = pytest.mark.parametrize("send", CLIENTS, ids=lambda send: send.__name__.removeprefix("by_"))


# --- recordings


@dataclass
class Recording:
    """A run of which each step is `step()`; after `finish()` its spool file and what the server reads in it."""

    run: RunWriter
    folder: Path
    raw: bytes = b""
    steps: list[int] = field(default_factory=list)

    @contextmanager
    def step(self, name: str = "fetch") -> Iterator[int]:
        """What hooks of frameworks do around a tool."""
        patch_transports()
        index = self.run.begin("tool", tool_name=name)
        self.steps.append(index)
        try:
            with placed(self.run, index):
                yield index
        finally:
            self.run.end(index, **http_fields(self.run, index))

    def finish(self) -> Run:
        active().end(self.run, "ok")
        [file] = (self.folder / "ready").iterdir()
        self.raw = file.read_bytes()
        return parse_native(assemble(self.raw))

    def only_step(self) -> Step:
        [step] = self.finish().steps
        return step

    def only_http(self) -> Any:
        """None when nothing was recorded."""
        return self.only_step().http


def start(folder: Path, **settings: Any) -> Recording:
    recorder = activate(Settings(spool=folder, **({"http": True} | settings)))
    run = recorder.begin("r-1")
    assert run is not None
    return Recording(run, folder)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with local_server() as server:
        yield server


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    """The recorder must come through without a fault of its own."""
    yield start(tmp_path)
    deactivate()
    assert FAULTS.counts == {}


@pytest.fixture
def recorder_off() -> Iterator[None]:
    """For tests that start a recorder of their own."""
    yield
    deactivate()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def said(http: HttpExchange, *fields: str) -> dict[str, Any]:
    """What the exchange says beside its bytes; times are another matter."""
    return {name: http.extra[name] for name in fields if name in http.extra}


def lowered(headers):
    """Some clients spell the names of headers anew."""
    return [(name.lower(), value) for name, value in headers]


MARKS = ("decoded", "body_cut", "incomplete", "body_left_out", "request_decoded", "request_body_cut",
         "request_incomplete", "request_body_left_out", "error", "earlier_left_out")  # fmt: skip

# --- bytes


BODIES = {
    "json": b'{"a":1.0, "b" : [ ],\r\n"a":2}',
    "text": "Grüße, 世界 \U0001f600\x00\ttab \u2028 \x7f".encode(),
    "binary": bytes(range(256)) * 3,
    "half a character": "ü".encode()[:1],
    "like bytes of a record": b'{"base64": "aGk="}',
    "empty": b"",
}


@every_client
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_exchange_is_recorded_byte_for_byte(send, body, server, recording):
    url = server.answer("/echo", Answer(body[::-1], 201, {"Content-Type": "application/json", "X-Request-Id": "q-1"}))

    with recording.step():
        got = send("POST", url, {"Content-Type": "application/json"}, body)

    http = recording.only_http()
    assert got == Got(201, body[::-1])
    assert sha256(http.request_body.content) == sha256(server.received[0].body) == sha256(body)
    assert sha256(http.response_body.content) == sha256(got.body)
    assert (http.method, http.url, http.status) == ("POST", url, 201)
    assert ("x-request-id", "q-1") in lowered(http.response_headers)
    assert ("content-type", "application/json") in lowered(http.request_headers)
    assert said(http, *MARKS) == {}
    assert {"started_at", "duration_ms"} <= http.extra.keys()


def raw_deflate(content: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(content) + squeezer.flush()


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without header": ("deflate", raw_deflate),
}


@every_client
@pytest.mark.parametrize("coding", CODINGS)
def test_a_coded_answer_is_recorded_decoded(send, coding, server, recording):
    name, encode = CODINGS[coding]
    body = b'{"answer": "' + b"long " * 500 + b'"}'
    url = server.answer("/coded", Answer(encode(body), headers={"Content-Encoding": name}))

    with recording.step():
        got = send("GET", url, {}, None)

    http = recording.only_http()
    assert got.body == body
    assert http.response_body.content == body
    assert said(http, *MARKS) == {"decoded": name}
    assert ("content-encoding", name) in lowered(http.response_headers)


def test_an_answer_in_several_gzip_members_is_one_body(server, recording):
    wire = gzip.compress(b"one, ") + gzip.compress(b"two")
    url = server.answer("/coded", Answer(wire, headers={"Content-Encoding": "gzip"}))

    with recording.step():
        got = by_requests("GET", url, {}, None)

    assert got.body == recording.only_http().response_body.content == b"one, two"


@pytest.mark.parametrize(("coding", "wire"), [("zz", b"\x00zz\xff"), ("gzip", b"this is no gzip"), ("gzip, zz", b"1")])
def test_an_answer_that_cannot_be_decoded_stays_as_it_came(coding, wire, server, recording):
    url = server.answer("/coded", Answer(wire, headers={"Content-Encoding": coding}))

    with recording.step(), httpx2.stream("GET", url, trust_env=False) as answer:
        assert b"".join(answer.iter_raw()) == wire

    http = recording.only_http()
    assert http.response_body.content == wire
    assert said(http, *MARKS) == {}


def test_a_compressed_bomb_does_not_go_off_in_the_recorder(server, tmp_path, recorder_off):
    recording = start(tmp_path, max_body_bytes=100_000)
    bomb = gzip.compress(b"0" * 50_000_000)
    url = server.answer("/bomb", Answer(bomb, headers={"Content-Encoding": "gzip"}))

    tracemalloc.start()
    with recording.step(), httpx2.stream("GET", url, trust_env=False) as answer:
        wire = b"".join(answer.iter_raw())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    http = recording.only_http()
    assert wire == bomb
    assert http.response_body.content == b"0" * 100_000
    assert said(http, *MARKS) == {"decoded": "gzip", "body_cut": True}
    assert peak < 10_000_000


@every_client
def test_a_body_above_the_limit_is_cut_and_says_so(send, server, tmp_path, recorder_off):
    recording = start(tmp_path, max_body_bytes=1001)
    body = "aü".encode() * 1000
    url = server.answer("/big", Answer(body))

    with recording.step():
        got = send("POST", url, {}, body)

    http = recording.only_http()
    assert got.body == server.received[0].body == body
    assert http.request_body.content == http.response_body.content == ("aü" * 333 + "a").encode()
    assert said(http, *MARKS) == {"body_cut": True, "request_body_cut": True}


def test_bodies_give_way_before_they_cost_the_run(server, tmp_path, recorder_off):
    recording = start(tmp_path, max_run_bytes=20_000, max_body_bytes=6_000)
    url = server.answer("/big", Answer(b"x" * 6_000))

    for _ in range(4):
        with recording.step():
            by_httpx2("GET", url, {}, None)

    run = recording.finish()
    first, second, *rest = [step.http.response_body for step in run.steps]
    assert first.content == b"x" * 6_000
    assert 0 < len(second.content) < 6_000
    assert rest == [None, None]
    assert [step.http.extra.get("body_cut") for step in run.steps] == [None, True, True, True]
    assert (run.status, [step.http.status for step in run.steps]) == ("ok", [200] * 4)


def test_bodies_that_wait_in_memory_count_as_well(server, tmp_path, recorder_off):
    recording = start(tmp_path, max_run_bytes=20_000, max_body_bytes=6_000)
    url = server.answer("/big", Answer(b"x" * 6_000))

    with recording.step() as step:
        for _ in range(5):
            by_httpx2("GET", url, {}, None)
        held = [len(each.response.content) for each in take_exchanges(recording.run, step)]

    assert held[0] == 6_000
    assert sum(held) <= 10_000


def test_no_more_exchanges_are_kept_than_can_be_looked_at(server, recording, monkeypatch):
    monkeypatch.setattr(http_log, "MOST", 3)
    url = server.answer("/many", Answer(b"1"))

    with recording.step():
        for number in range(6):
            by_httpx2("GET", f"{url}?n={number}", {}, None)

    parent, *others = recording.finish().steps
    kept = [*others, parent]
    assert [step.http.url[-1] for step in kept] == ["3", "4", "5"]
    assert [step.http.extra.get("earlier_left_out") for step in kept] == [3, None, None]


# --- streams


def gated(opened: threading.Event) -> Callable[[], Iterator[bytes]]:
    """The second chunk is sent only when the reader has the first one."""

    def chunks():
        yield b"data: 1\n\n"
        assert opened.wait(20), "the reader did not get the first chunk by itself"
        yield b"data: 2\n\n"

    return chunks


def test_a_streamed_answer_passes_chunk_by_chunk(server, recording):
    opened = threading.Event()
    url = server.answer("/sse", Answer(chunks=gated(opened)))

    with recording.step() as step, httpx2.stream("GET", url, trust_env=False) as answer:
        chunks = answer.iter_raw()
        first = next(chunks)
        first_byte = first_byte_at(recording.run, step)
        opened.set()
        rest = list(chunks)

    http = recording.only_http()
    assert [first, *rest] == [b"data: 1\n\n", b"data: 2\n\n"]
    assert http.response_body.content == b"data: 1\n\ndata: 2\n\n"
    assert http.extra["first_byte_at"] == first_byte > http.extra["started_at"]
    assert said(http, *MARKS) == {}


def test_an_async_streamed_answer_passes_chunk_by_chunk(server, recording):
    opened = threading.Event()
    url = server.answer("/sse", Answer(chunks=gated(opened)))

    async def read():
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", url) as answer:
            async for chunk in answer.aiter_raw():
                opened.set()
                yield chunk

    async def gathered():
        return [chunk async for chunk in read()]

    with recording.step():
        got = asyncio.run(gathered())

    assert got == [b"data: 1\n\n", b"data: 2\n\n"]
    assert recording.only_http().response_body.content == b"".join(got)


def test_requests_streams_chunk_by_chunk(server, recording):
    requests = installed("requests")
    opened = threading.Event()
    url = server.answer("/sse", Answer(chunks=gated(opened)))

    with recording.step(), requests.Session() as session:
        chunks = session.get(url, stream=True).iter_content(None)
        got = [next(chunks)]
        opened.set()
        got += chunks

    http = recording.only_http()
    assert b"".join(got) == http.response_body.content == b"data: 1\n\ndata: 2\n\n"
    assert said(http, *MARKS) == {}


def endless() -> Iterator[bytes]:
    return itertools.repeat(b"more and more " * 100)


def test_a_reader_that_stops_early_is_left_alone(server, recording):
    url = server.answer("/endless", Answer(chunks=endless))

    with recording.step(), httpx2.stream("GET", url, trust_env=False) as answer:
        first = next(answer.iter_raw())

    http = recording.only_http()
    assert server.broken.wait(20), "the connection stayed open"
    assert first
    assert http.response_body.content.startswith(first)
    assert said(http, *MARKS) == {"incomplete": True}


def test_an_async_reader_that_stops_early_is_left_alone(server, recording):
    url = server.answer("/endless", Answer(chunks=endless))

    async def read_one():
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", url) as answer:
            async for chunk in answer.aiter_raw():
                return chunk

    with recording.step():
        first = asyncio.run(read_one())

    http = recording.only_http()
    assert server.broken.wait(20), "the connection stayed open"
    assert http.response_body.content.startswith(first)
    assert said(http, *MARKS) == {"incomplete": True}


def test_a_reader_that_stops_early_leaves_no_more_to_the_garbage_collector_than_without_us(server, recording):
    url = server.answer("/endless", Answer(chunks=endless))

    async def abandoned():
        found = []
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=lambda generator: found.append(generator.ag_code.co_qualname))
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", url) as answer:
            chunks = answer.aiter_raw()
            await anext(chunks)
            await chunks.aclose()
        sys.set_asyncgen_hooks(*hooks)
        return found

    with recording.step():
        seen = asyncio.run(abandoned())
    unseen = asyncio.run(abandoned())

    assert seen == unseen
    assert recording.only_http().extra["incomplete"] is True


def test_a_reader_of_requests_that_stops_early_is_left_alone(server, recording):
    requests = installed("requests")
    url = server.answer("/endless", Answer(chunks=endless))

    with recording.step(), requests.Session() as session, session.get(url, stream=True) as answer:
        first = next(answer.iter_content(10))

    http = recording.only_http()
    assert server.broken.wait(20), "the connection stayed open"
    assert http.response_body.content.startswith(first)
    assert said(http, *MARKS) == {"incomplete": True}


def test_a_step_that_ends_before_its_answer_has_what_came_until_then(server, recording):
    opened = threading.Event()
    url = server.answer("/sse", Answer(chunks=gated(opened)))

    with httpx2.Client(trust_env=False) as client:
        with recording.step():
            answer = client.send(client.build_request("GET", url), stream=True)
            chunks = answer.iter_raw()
            next(chunks)
        opened.set()
        rest = list(chunks)
        answer.close()

    http = recording.only_http()
    assert rest == [b"data: 2\n\n"]
    assert http.response_body.content == b"data: 1\n\n"
    assert said(http, *MARKS) == {"incomplete": True}


def test_a_cancelled_reader_is_cancelled(server, recording):
    url = server.answer("/sse", Answer(chunks=gated(held := threading.Event())))

    async def cancelled():
        got_first = asyncio.Event()

        async def read():
            async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", url) as answer:
                async for _ in answer.aiter_raw():
                    got_first.set()

        task = asyncio.create_task(read())
        await got_first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with recording.step():
        asyncio.run(cancelled())
    held.set()

    assert said(recording.only_http(), *MARKS) == {
        "incomplete": True,
        "error": {"type": "asyncio.exceptions.CancelledError"},
    }


# --- bodies of requests


def pieces() -> Iterator[bytes]:
    yield from (b"one ", b"two ", b"\xff three")


async def async_pieces():
    for piece in pieces():
        yield piece


STREAMED: dict[str, Callable[[], dict[str, Any]]] = {
    "generator": lambda: {"content": pieces()},
    "file": lambda: {"content": io.BytesIO(b"of a file" * 9000)},
    "multipart": lambda: {"data": {"a": "1"}, "files": {"file": ("a.bin", io.BytesIO(b"\x00\x01" * 40_000))}},
    "form": lambda: {"data": {"a": "1 2", "ü": "ß"}},
    "json": lambda: {"json": {"a": [1.0, None]}},
}


@pytest.mark.parametrize("kind", STREAMED)
def test_a_streamed_request_arrives_whole_and_is_recorded(kind, server, recording):
    url = server.answer("/upload", Answer(b"ok"))

    with recording.step(), httpx2.Client(trust_env=False) as client:
        request = client.build_request("POST", url, **STREAMED[kind]())
        stream = request.stream
        client.send(request)

    http = recording.only_http()
    assert len(server.received[0].body) > 4
    assert http.request_body.content == server.received[0].body
    assert request.stream is stream
    assert said(http, *MARKS) == {}


@pytest.mark.parametrize("content", [async_pieces, lambda: b"plain"])
def test_an_async_streamed_request_arrives_whole_and_is_recorded(content, server, recording):
    url = server.answer("/upload", Answer(b"ok"))

    async def send():
        async with httpx2.AsyncClient(trust_env=False) as client:
            await client.post(url, content=content())

    with recording.step():
        asyncio.run(send())

    assert server.received[0].body in (b"plain", b"".join(pieces()))
    assert recording.only_http().request_body.content == server.received[0].body


def test_a_stream_sent_by_requests_is_left_out_and_arrives_whole(server, recording):
    requests = installed("requests")
    url = server.answer("/upload", Answer(b"ok"))

    with recording.step(), requests.Session() as session:
        session.post(url, data=pieces())

    http = recording.only_http()
    assert server.received[0].body == b"".join(pieces())
    assert http.request_body is None
    assert said(http, *MARKS) == {"request_body_left_out": "it was sent as a stream"}


def test_text_sent_by_requests_is_recorded_as_sent(server, recording):
    requests = installed("requests")
    url = server.answer("/upload", Answer(b"ok"))

    with recording.step(), requests.Session() as session:
        session.post(url, data="Grüße")

    assert recording.only_http().request_body.content == server.received[0].body == "Grüße".encode()


# --- several exchanges in one step


FLAKY = (
    Answer(b'{"error": "slow down"}', 429, {"Retry-After-Ms": "1", "X-Request-Id": "first"}),
    Answer(b'{"error": "slower"}', 429, {"Retry-After-Ms": "1", "X-Request-Id": "second"}),
)
COMPLETION = Answer(
    b'{"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-x", "choices": '
    b'[{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}]}',
    headers={"Content-Type": "application/json"},
)


def ask_openai(url):
    openai = installed("openai")
    with openai.OpenAI(base_url=url, api_key="sk-planted-key", max_retries=2) as client:
        answer = client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "Hi"}])
        return answer.choices[0].message.content


def ask_openai_async(url):
    openai = installed("openai")

    async def ask():
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-planted-key", max_retries=2) as client:
            answer = await client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "Hi"}])
            return answer.choices[0].message.content

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [ask_openai, ask_openai_async])
def test_attempts_that_the_sdk_repeats_by_itself_are_steps_of_their_own(ask, server, recording):
    server.answer("/chat/completions", *FLAKY, COMPLETION)

    with recording.step():
        answer = ask(server.url)

    call, *attempts = recording.finish().steps
    assert answer == "Hello."
    assert (call.http.status, call.http.response_body.content) == (200, COMPLETION.body)
    assert [(step.kind, step.name, step.parent, step.http.status) for step in attempts] == [
        ("other", "HTTP POST 127.0.0.1", 1, 429)
    ] * 2
    assert [step.http.response_body.content for step in attempts] == [each.body for each in FLAKY]
    assert [step.http.request_body.content for step in [*attempts, call]] == [each.body for each in server.received]
    assert attempts[0].started_at < attempts[1].started_at
    assert call.started_at < attempts[0].started_at
    assert all(step.started_at.isoformat() == step.http.extra["started_at"] for step in attempts)
    assert all(step.duration_ms == step.http.extra["duration_ms"] > 0 for step in attempts)
    assert b"sk-planted-key" not in recording.raw


def test_attempts_that_urllib3_repeats_by_itself_are_steps_of_their_own(server, recording):
    requests, urllib3 = installed("requests"), installed("urllib3")
    url = server.answer("/flaky", *FLAKY, Answer(b"at last"))
    retries = urllib3.Retry(total=3, status_forcelist=[429], backoff_factor=0)

    with recording.step(), requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        got = session.get(url).content

    last, *attempts = recording.finish().steps
    assert got == last.http.response_body.content == b"at last"
    assert [(step.parent, step.http.status, step.http.response_body.content) for step in attempts] == [
        (1, 429, each.body) for each in FLAKY
    ]


@pytest.mark.parametrize("send", [by_requests, by_aiohttp])
def test_each_hop_of_a_redirect_is_an_exchange(send, server, recording):
    server.answer("/old", Answer(status=303, headers={"Location": "/new"}))
    server.answer("/new", Answer(b"here"))

    with recording.step():
        got = send("POST", server.url + "/old", {}, b"x")

    last, hop = recording.finish().steps
    assert got.body == last.http.response_body.content == b"here"
    assert [(step.http.method, step.http.url, step.http.status) for step in (hop, last)] == [
        ("POST", server.url + "/old", 303),
        ("GET", server.url + "/new", 200),
    ]


# --- failures


UNREACHABLE = "http://127.0.0.1:1/?api_key=planted-key"


def raised_by(send, url, body=None):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (each client has its own)
        send("POST", url, {}, body)
    return caught.value


@every_client
def test_a_refused_connection_fails_as_it_would_without_us(send, recording):
    with recording.step():
        seen = raised_by(send, UNREACHABLE, b"hi")
    unseen = raised_by(send, UNREACHABLE, b"hi")

    http = recording.only_http()
    assert type(seen) is type(unseen)
    assert (http.status, http.response_body) == (None, None)
    assert http.extra["error"]["message"].startswith("ConnectionRefusedError: Conn")
    assert b"planted-key" not in recording.raw


@every_client
def test_an_answer_that_breaks_off_fails_as_it_would_without_us(send, server, recording):
    url = server.answer("/broken", Answer(b"only half", promised=18))

    with recording.step():
        seen = raised_by(send, url)
    unseen = raised_by(send, url)

    http = recording.only_http()
    assert type(seen) is type(unseen)
    assert http.extra.get("error", http.extra.get("body_left_out"))
    if send not in (by_urllib3, by_aiohttp):
        assert (http.status, http.response_body.content) == (200, b"only half")
        assert http.extra["incomplete"] is True


def test_a_failed_attempt_is_the_failure_of_its_own_step(server, recording):
    with recording.step():
        raised_by(by_httpx2, UNREACHABLE)
        by_httpx2("GET", server.answer("/", Answer(b"1")), {}, None)

    call, attempt = recording.finish().steps
    assert (call.error, attempt.error.type, attempt.error.message) == (
        None,
        "httpx2.ConnectError",
        "ConnectionRefusedError: Connection refused",
    )


def test_words_of_an_error_never_quote_what_was_sent(server, recording):
    with recording.step(), httpx2.Client(trust_env=False) as client, pytest.raises(httpx2.LocalProtocolError) as caught:
        client.get(server.url, headers={"X-Token": "planted\nkey"})

    http = recording.only_http()
    assert "planted" in str(caught.value)
    assert http.extra["error"] == {"type": "httpx2.LocalProtocolError"}
    assert b"planted" not in recording.raw


# --- secrets


SECRET_HEADERS = {
    "Authorization": "Bearer planted-1",
    "X-Api-Key": "planted-2",
    "Cookie": "session=planted-3",
    "X-Own-Secret": "planted-4",
    "User-Agent": "harmless-agent",
}


@every_client
def test_secrets_in_headers_and_addresses_never_reach_the_disk(send, server, recording):
    answer = Answer(b"ok", headers={"Set-Cookie": "s=planted-5", "X-Token": "planted-6", "Server-Timing": "planted-7"})
    url = server.answer("/secret", answer)
    if send is not by_urllib:  # it takes them for a part of the host
        url = url.replace("http://", "http://someone:planted-8@")

    headers = dict(SECRET_HEADERS)
    if send is by_aiohttp:
        del headers["Authorization"]  # it refuses two of them

    with recording.step():
        send("POST", f"{url}?api_key=planted-9&city=harmless-city", headers, b"harmless-body")

    http = recording.only_http()
    assert server.received[0].headers["X-Own-Secret"] == "planted-4"
    assert "planted-9" in server.received[0].path
    assert b"planted" not in recording.raw
    assert all(word in recording.raw for word in (b"harmless-city", b"harmless-body", b"harmless-agent"))
    assert http.url == f"{server.url}/secret?api_key=[redacted]&city=harmless-city"


def test_headers_by_name_are_kept_on_request_and_the_hook_sees_bodies(server, tmp_path, recorder_off):
    recording = start(tmp_path, http_headers=frozenset({"x-own"}), redact=lambda value: mask_planted(value))
    url = server.answer("/", Answer(b"planted answer", headers={"X-Own": "kept"}))

    with recording.step():
        by_httpx2("POST", url, {"X-Own": "mine"}, b"planted question")

    http = recording.only_http()
    assert ("x-own", "mine") in lowered(http.request_headers)
    assert ("x-own", "kept") in lowered(http.response_headers)
    assert (http.request_body.content, http.response_body.content) == (b"*** question", b"*** answer")
    assert b"planted" not in recording.raw


def mask_planted(value):
    if isinstance(value, dict):
        return {key: mask_planted(item) for key, item in value.items()}
    return value.replace("planted", "***") if isinstance(value, str) else value


# --- where an exchange belongs


def test_parallel_steps_do_not_mix(server, recording):
    url = server.answer("/", Answer(b"1"))

    async def call(name: str) -> None:
        with recording.step(name):
            async with httpx2.AsyncClient(trust_env=False) as client:
                for _ in range(2):
                    await client.get(f"{url}?from={name}")

    async def both() -> None:
        await asyncio.gather(*(call(name) for name in ("a", "b", "c")))

    asyncio.run(both())

    run = recording.finish()
    parents = {step.index: step.name for step in run.steps if step.kind == "tool"}
    assert sorted((parents[step.parent or step.index], step.http.url[-1]) for step in run.steps) == [
        (name, name) for name in "aabbcc"
    ]


def test_threads_that_run_in_the_context_of_a_step_belong_to_it(server, recording):
    url = server.answer("/", Answer(b"1"))

    async def call(name: str) -> None:
        with recording.step(name):
            await asyncio.to_thread(by_httpx2, "GET", f"{url}?from={name}", {}, None)

    async def both() -> None:
        await asyncio.gather(call("a"), call("b"))

    asyncio.run(both())

    assert [(step.name, step.http.url[-1]) for step in recording.finish().steps] == [("a", "a"), ("b", "b")]


def test_a_bare_thread_belongs_to_no_step(server, recording):
    url = server.answer("/", Answer(b"1"))

    with recording.step(), ThreadPoolExecutor(1) as threads:
        bare = threads.submit(by_httpx2, "GET", url, {}, None).result()
        copied = threads.submit(contextvars.copy_context().run, by_httpx2, "GET", f"{url}?copied", {}, None).result()

    assert bare == copied == Got(200, b"1")
    assert recording.only_http().url == f"{url}?copied"


def test_a_task_that_outlives_its_step_is_not_recorded(server, recording):
    url = server.answer("/", Answer(b"1"))

    async def main():
        gate = asyncio.Event()

        async def later():
            await gate.wait()
            async with httpx2.AsyncClient(trust_env=False) as client:
                return (await client.get(url)).content

        with recording.step():
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        gate.set()
        return await task

    assert asyncio.run(main()) == b"1"
    assert take_exchanges(recording.run, 1) == []
    assert recording.only_http() is None


def fetch(server):
    """The type of stream that a client gets, which shows whether there is a tee."""
    with httpx2.Client(trust_env=False) as client, client.stream("GET", server.url) as answer:
        answer.read()
        return type(answer.stream._stream).__name__


def test_nothing_is_teed_outside_of_a_step_or_without_the_setting(server, tmp_path, recorder_off):
    recording = start(tmp_path / "on")
    outside = fetch(server)
    with recording.step():
        inside = fetch(server)
    with placed(recording.run, None):
        in_the_run = fetch(server)
    recording = start(tmp_path / "off", http=False)
    with recording.step():
        unwanted = fetch(server)
    deactivate()
    with placed(recording.run, 1):
        uninstalled = fetch(server)

    assert inside == "TeedStream"
    assert {outside, in_the_run, unwanted, uninstalled} == {"ResponseStream"}


def test_a_transport_is_patched_once(server, recording):
    for _ in range(3):
        patch_transports()
    handle_request = httpx2.HTTPTransport.handle_request
    patch_transports()

    with recording.step():
        by_httpx2("GET", server.url, {}, None)

    assert httpx2.HTTPTransport.handle_request is handle_request
    assert not hasattr(handle_request.__wrapped__, "__wrapped__")
    assert recording.only_http().status == 404


def test_a_client_that_cannot_be_patched_is_left_alone_and_tried_once(monkeypatch):
    tried = []

    def patch(module):
        tried.append(module)
        raise RuntimeError("another version")

    monkeypatch.setitem(http_tee._PATCHES, "email", patch)
    monkeypatch.setattr(http_tee, "_patched", dict(http_tee._patched))
    before = FAULTS.counts.get("patch of email", 0)

    patch_transports()
    patch_transports()

    assert len(tried) == FAULTS.counts["patch of email"] - before == 1


def test_a_client_that_is_still_being_imported_is_patched_later(monkeypatch):
    tried = []

    def patch(module):
        tried.append(module)
        return len(tried) == 2

    monkeypatch.setitem(http_tee._PATCHES, "email", patch)
    monkeypatch.setattr(http_tee, "_patched", dict(http_tee._patched))

    for _ in range(4):
        patch_transports()

    assert len(tried) == 2


def test_connections_are_used_again(server, recording):
    url = server.answer("/", Answer(b"1", headers={"Content-Encoding": "identity"}))

    with recording.step(), httpx2.Client(trust_env=False) as client:
        for _ in range(3):
            client.get(url)
    asyncio.run(three_times(url, recording))
    with httpx2.Client(trust_env=False) as client:
        client.get(url)

    assert [server.received[i].port == server.received[i + 1].port for i in range(6)] == [
        True, True, False, True, True, False
    ]  # fmt: skip


async def three_times(url, recording):
    with recording.step():
        async with httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(3):
                await client.get(url)


def test_connections_of_requests_are_used_again(server, recording):
    requests = installed("requests")
    url = server.answer("/", Answer(chunks=lambda: [b"1", b"2"]))

    with recording.step(), requests.Session() as session:
        for _ in range(3):
            session.get(url)

    assert len({each.port for each in server.received}) == 1
    assert len(recording.finish().steps) == 3


# --- when the recorder itself fails


def breaks(owner: Any, name: str, after: int = 0) -> Callable[[pytest.MonkeyPatch], None]:
    """From that call on, this part of the recorder raises."""

    def break_it(monkeypatch: pytest.MonkeyPatch) -> None:
        calls = itertools.count()
        original = getattr(owner, name)

        def broken(*arguments: Any, **named: Any) -> Any:
            if next(calls) >= after:
                raise RuntimeError("the recorder is broken")
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, broken)

    return break_it


BROKEN = {
    "settings": breaks(http_log, "active"),
    "place": breaks(http_log, "current_place"),
    "limit": breaks(http_log, "_limit"),
    "log": breaks(http_log.ExchangeLog, "add"),
    "exchange": breaks(Exchange, "__init__"),
    "address": breaks(http_exchange, "safe_url"),
    "headers": breaks(http_exchange, "safe_headers"),
    "answer": breaks(Exchange, "answered"),
    "body": breaks(Body, "__init__"),
    "chunk": breaks(Body, "add"),
    "chunk of the answer": breaks(Body, "add", after=1),
    "end": breaks(Body, "end"),
    "end of the answer": breaks(Body, "end", after=1),
    "fields": breaks(Exchange, "fields"),
    "taking": breaks(http_log.ExchangeLog, "take"),
}


@every_client
@pytest.mark.parametrize("part", BROKEN)
def test_a_recorder_that_fails_changes_nothing_for_the_client(send, part, server, tmp_path, recorder_off, monkeypatch):
    recording = start(tmp_path)
    url = server.answer("/", Answer(gzip.compress(b"x" * 3000), headers={"Content-Encoding": "gzip"}))
    send("POST", url, {}, b"warm")
    before = sum(FAULTS.counts.values())
    BROKEN[part](monkeypatch)

    with recording.step():
        got = send("POST", url, {}, b"question")
        refused = raised_by(send, UNREACHABLE)

    assert got == Got(200, b"x" * 3000)
    assert server.received[-1].body == b"question"
    assert sum(FAULTS.counts.values()) > before
    monkeypatch.undo()
    assert type(refused) is type(raised_by(send, UNREACHABLE))


def test_a_stream_that_cannot_be_noted_still_reaches_its_reader(server, tmp_path, recorder_off, monkeypatch):
    recording = start(tmp_path)
    breaks(Body, "add")(monkeypatch)
    breaks(Body, "end")(monkeypatch)
    url = server.answer("/", Answer(chunks=lambda: [b"1", b"2", b"3"]))

    with recording.step(), httpx2.stream("POST", url, content=pieces(), trust_env=False) as answer:
        got = list(answer.iter_raw())

    assert b"".join(got) == b"123"
    assert server.received[0].body == b"".join(pieces())
    assert recording.finish().status == "ok"
