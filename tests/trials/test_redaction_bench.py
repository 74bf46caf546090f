"""Generated secrets of some seventy kinds, put into records and spans in many ways: none is in what is kept or shown.

What the redactor finds of real agents' traces, in which there is none, is counted too. Both figures are printed.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from sessions_app.core.redaction import Redactor
from sessions_app.core.spans.remembered import RememberedPieces
from sessions_app.services import spans
from sessions_app.services.spans import Redact
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step
from tests.core.test_redaction_shapes import in_base64, readable_parts
from tests.otlp_requests import (
    PROTOBUF,
    SPAN_ID,
    TRACE_ID,
    as_protobuf,
    make_attributes,
    make_logs,
    make_span,
    make_traces,
    make_value,
)
from tests.stored_bytes import everything
from tests.trials.mutations import Fuzzer

HEX, UPPER, DIGITS = "0123456789abcdef", string.ascii_uppercase + string.digits, string.digits
ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"


def some(random: Random, signs: str, count: int) -> str:
    """With a digit within, as a key of that length has."""
    made = [random.choice(signs) for _ in range(count)]
    made[count // 2] = random.choice(DIGITS)
    return "".join(made)


def key(prefix: str, signs: str, count: int, ending: str = "") -> Callable[[Random], tuple[str, str]]:
    """A text that is the key alone."""

    def make(random: Random) -> tuple[str, str]:
        made = prefix + some(random, signs, count) + ending
        return made, made

    return make


def within(text: str, signs: str = ALNUM, count: int = 20) -> Callable[[Random], tuple[str, str]]:
    """A text that holds the secret at `{}`."""

    def make(random: Random) -> tuple[str, str]:
        secret = some(random, signs, count)
        return text.replace("{}", secret), secret

    return make


def iban(random: Random) -> tuple[str, str]:
    account = some(random, DIGITS, 18)
    check = 98 - int(f"{account}131400") % 97
    made = f"DE{check:02}{account}"
    return made, made


def card(random: Random) -> tuple[str, str]:
    digits = "4" + some(random, DIGITS, 14)
    total = sum(sum(divmod(int(digit) * (2 if at % 2 == 0 else 1), 10)) for at, digit in enumerate(digits))
    made = digits + str(-total % 10)
    return made, made


def jwt(random: Random) -> tuple[str, str]:
    made = f"eyJ{some(random, ALNUM, 20)}.eyJ{some(random, ALNUM, 30)}.{some(random, WORD, 43)}"
    return made, made


def private_key(random: Random) -> tuple[str, str]:
    secret = some(random, ALNUM, 64)
    return f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----", secret


def ssn(random: Random) -> tuple[str, str]:
    made = f"{random.randint(100, 665)}-{random.randint(10, 99)}-{random.randint(1000, 9999)}"
    return made, made


KINDS: dict[str, Callable[[Random], tuple[str, str]]] = {
    "openai": key("sk-proj-", WORD, 60),
    "anthropic": key("sk-ant-api03-", WORD, 90),
    "groq": key("gsk_", ALNUM, 52),
    "xai": key("xai-", ALNUM, 80),
    "perplexity": key("pplx-", ALNUM, 48),
    "replicate": key("r8_", ALNUM, 37),
    "pinecone": key("pcsk_", ALNUM, 60),
    "fireworks": key("fw_", ALNUM, 24),
    "tavily": key("tvly-", ALNUM, 32),
    "hugging face": key("hf_", ALNUM, 34),
    "langsmith": key("lsv2_pt_", HEX, 32),
    "google": key("AIza", WORD, 35),
    "google oauth": key("ya29.", WORD, 60),
    "aws id": key("AKIA", UPPER, 16),
    "aws secret": within("AWS_SECRET_ACCESS_KEY={}", ALNUM, 40),
    "aws signature": within("https://b.example/x?X-Amz-Signature={}&X-Amz-Date=1", HEX, 64),
    "azure account": within("AccountName=a;AccountKey={};EndpointSuffix=core", ALNUM, 86),
    "azure bus": within("Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey={}", ALNUM, 43),
    "github": key("ghp_", ALNUM, 36),
    "github app": key("ghs_", ALNUM, 36),
    "github fine": key("github_pat_", ALNUM, 60),
    "gitlab": key("glpat-", WORD, 20),
    "slack bot": key("xoxb-1234567890-", ALNUM, 24),
    "slack app": key("xapp-1-A1-1-", HEX, 40),
    "slack hook": within("https://hooks.slack.com/services/T0/B0/{}", ALNUM, 24),
    "discord hook": within("https://discord.com/api/webhooks/1234567890/{}", ALNUM, 60),
    "telegram": within("1234567890:AA{}", WORD, 33),
    "twilio": key("SK", HEX, 32),
    "twilio account": key("AC", HEX, 32),
    "sendgrid": within("SG.abcdefghij1234567890.{}", ALNUM, 43),
    "brevo": within("xkeysib-" + "a1" * 32 + "-{}", ALNUM, 16),
    "stripe": key("sk_live_", ALNUM, 24),
    "stripe hook": key("whsec_", ALNUM, 32),
    "square": key("sq0atp-", WORD, 22),
    "shopify": key("shpat_", HEX, 32),
    "shippo": key("shippo_live_", HEX, 40),
    "digitalocean": key("dop_v1_", HEX, 64),
    "databricks": key("dapi", HEX, 32),
    "vault": key("hvs.", WORD, 95),
    "age": key("AGE-SECRET-KEY-1", UPPER, 58),
    "doppler": key("dp.pt.", ALNUM, 43),
    "dynatrace": within("dt0c01.ABCDEFGH12345678ABCDEFGH.{}", UPPER, 64),
    "fly": key("fo1_", WORD, 43),
    "grafana": key("glsa_", ALNUM, 41),
    "linear": key("lin_api_", ALNUM, 40),
    "notion": key("ntn_", ALNUM, 46),
    "new relic": key("NRAK-", UPPER, 27),
    "npm": key("npm_", ALNUM, 36),
    "pypi": key("pypi-AgEIcHlwaS5vcmc", WORD, 60),
    "rubygems": key("rubygems_", HEX, 48),
    "postman": within("PMAK-" + "a1" * 12 + "-{}", HEX, 34),
    "prefect": key("pnu_", ALNUM, 36),
    "pulumi": key("pul-", HEX, 40),
    "planetscale": key("pscale_tkn_", ALNUM, 43),
    "sentry": key("sntryu_", HEX, 64),
    "openshift": key("sha256~", WORD, 43),
    "our own": key("rpk_", WORD, 43),
    "jwt": jwt,
    "private key": private_key,
    "bearer": within("Authorization: Bearer {}", ALNUM, 30),
    "database address": within("postgres://app:{}@db.internal:5432/x", ALNUM, 14),
    "cookie": within("Cookie: sid={}; theme=dark", ALNUM, 24),
    "password, said": within("the password is {}, keep it", ALNUM, 12),
    "Passwort": within("Passwort: {}", ALNUM, 12),
    "password, assigned": within("password={}", ALNUM, 12),
    "curl -u": within("curl -u bob:{} https://x.example", ALNUM, 12),
    "mysql -p": within("mysql -u app -p{} shop", ALNUM, 12),
    "--token": within("deploy --token {} now", ALNUM, 20),
    "XML element": within("<conf><password>{}</password></conf>", ALNUM, 12),
    "kubeconfig": within("client-key-data: {}", ALNUM, 60),
    "OTP": within("otp: {}", DIGITS, 6),
    "card": card,
    "iban": iban,
    "ssn": ssn,
    "e-mail": within("{}@mail.example.org", string.ascii_lowercase, 10),
}


def tool(**fields: Any) -> dict[str, Any]:
    return make_record("r", {**make_tool_step(call_id="c", arguments={"q": 1}, result="ok"), **fields})


def asked(**fields: Any) -> dict[str, Any]:
    said = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi", **fields}]}
    return make_record("r", {"kind": "model", "model": "m", "request": {"messages": [said]}})


WAYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "argument": lambda text: tool(arguments={"q": text}),
    "argument, deep": lambda text: tool(arguments={"a": [{"b": [text]}]}),
    "name of an argument": lambda text: tool(arguments={text: 1}),
    "arguments in a text": lambda text: tool(arguments=json.dumps({"q": text})),
    "text in a text in a text": lambda text: tool(arguments=json.dumps({"q": json.dumps({"r": text})})),
    "result": lambda text: tool(result=f"It said: {text}"),
    "lines of a result": lambda text: tool(result=f"first\n{text}\nlast"),
    "result as an object": lambda text: tool(result={"rows": [{"v": text}]}),
    "base64": lambda text: tool(result={"media_type": "text/plain", "base64": in_base64(text)}),
    "error": lambda text: tool(error={"type": "E", "message": text}),
    "traceback": lambda text: tool(error={"type": "E", "message": "m", "traceback": f"line 1\n{text}\n"}),
    "prompt": lambda text: asked(content=f"Please use {text} for it"),
    "input": lambda text: make_record("r", input=text),
    "output": lambda text: make_record("r", output={"said": text}),
    "environment": lambda text: make_record("r", environment={"NOTE": text}),
    "unknown field": lambda text: make_record("r", **{"x-more": [text]}),
}


def escaped(value: Any) -> bytes:
    """As careful senders write it, all signs that may be escaped."""
    return json.dumps(value).replace("password", "\\u0070assword").encode()


def planted() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    random = Random(25)
    for kind, make in KINDS.items():
        for way, put in WAYS.items():
            text, secret = make(random)
            yield kind, way, secret, put(text)


def holds(content: bytes, secret: str) -> bool:
    return any(secret in part for part in readable_parts(json.loads(content)))


@pytest.mark.parametrize("spell", [lambda value: json.dumps(value).encode(), escaped], ids=["plain", "escaped"])
def test_recall(spell):
    redactor, missed, total = Redactor(b"project"), Counter[str](), 0
    for kind, way, secret, record in planted():
        document, total = spell(record), total + 1
        assert holds(document, secret), (kind, way)
        if holds(redactor.redact(document).content, secret):
            missed[f"{kind}: {way}"] += 1

    recall = 1 - missed.total() / total
    print(f"{len(KINDS)} kinds in {len(WAYS)} ways, {total} secrets: recall {recall:.2%}; missed: {sorted(missed)}")
    assert recall >= 0.99


def test_false_hits():
    """In recordings and traces of agents of many frameworks, which hold no secret."""
    redactor, texts, hits = Redactor(b"project"), 0, Counter[str]()
    for seed in Fuzzer(1).seeds:
        document = json.dumps(seed.tree).encode()
        texts += sum(1 for _ in readable_parts(json.loads(document)))
        hits.update(redactor.redact(document).counts)
    rate = hits.total() / texts
    print(f"{texts} texts, {dict(hits)} hits: {rate:.3%}")
    assert rate <= 0.005


@pytest.mark.django_db
def test_nothing_that_is_given_out_holds_a_secret():
    """One record for each way, with a secret of each kind in a step of its own."""
    project = make_project()
    client = make_client(make_key(project))
    found = []
    for number, (kind, way, secret, record) in enumerate(planted()):
        if number % len(WAYS) != number // len(WAYS) % len(WAYS):
            continue  # each kind in one way; the ways take turns
        body = json.dumps({**record, "run_id": f"r{number}"})
        assert client.post("/api/v1/runs", body, content_type="application/json").status_code == 201, (kind, way)
        given = [client.get(f"/api/v1/runs/r{number}{part}").content for part in ("", "/steps", "/record", "/otlp")]
        found += [(kind, way)] if any(secret.encode() in part for part in given) else []

    print(f"{len(KINDS)} kinds: {len(found)} are in an answer of the API: {found}")
    assert found == []


# --- spans -------------------------------------------------------------------------------------


def chat(text: str) -> str:
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}, {"role": "user", "parts": []}])


def with_event(text: str) -> Span:
    made = make_span()
    made.events.add(name="gen_ai.choice", attributes=make_attributes({"message": text}))
    return made


def with_link(text: str) -> Span:
    made = make_span()
    made.links.add(trace_id=b"\7" * 16, span_id=b"\7" * 8, attributes=make_attributes({"why": text}))
    return made


def in_resource(text: str) -> ExportTraceServiceRequest:
    return make_traces(make_span(), resource={"note": text})


def in_scope(text: str) -> ExportTraceServiceRequest:
    request = make_traces(make_span())
    request.resource_spans[0].scope_spans[0].scope.attributes.extend(make_attributes({"note": text}))
    return request


def as_log(**fields: Any) -> ExportLogsServiceRequest:
    return make_logs(LogRecord(trace_id=TRACE_ID, span_id=SPAN_ID, time_unix_nano=5, event_name="e", **fields))


SPAN_WAYS: dict[str, Callable[[str], Any]] = {
    "attribute": lambda text: make_span({"input.value": text}),
    "unknown attribute": lambda text: make_span({"x.more": f"see {text}"}),
    "long attribute": lambda text: make_span({"output.value": "a word, " * 100 + text}),
    "name of an attribute": lambda text: make_span({text: 1}),
    "list": lambda text: make_span({"x": ["a", text]}),
    "map": lambda text: make_span({"x": {"a": [{"b": text}]}}),
    "messages": lambda text: make_span({"gen_ai.operation.name": "chat", "gen_ai.input.messages": chat(text)}),
    "numbered messages": lambda text: make_span(
        {"openinference.span.kind": "LLM", "llm.input_messages.0.message.content": text, "llm.input_messages.1.x": 1}
    ),
    "arguments": lambda text: make_span(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": json.dumps({"q": text})}
    ),
    "span name": lambda text: make_span(name=f"look {text}"),
    "status": lambda text: make_span(status=Status(code=Status.STATUS_CODE_ERROR, message=text)),
    "event": with_event,
    "link": with_link,
    "resource": in_resource,
    "scope": in_scope,
    "log body": lambda text: as_log(body=make_value({"content": text})),
    "log attribute": lambda text: as_log(attributes=make_attributes({"content": text})),
}


def request_of(made: Any, trace_id: bytes) -> tuple[str, bytes]:
    """The address and the body; each secret goes into a trace of its own."""
    request = make_traces(made) if isinstance(made, Span) else made
    for each in (*spans_in(request), *logs_in(request)):
        each.trace_id = trace_id
    return ("/v1/logs" if isinstance(request, ExportLogsServiceRequest) else "/v1/traces"), as_protobuf(request)


def spans_in(request: Any) -> Iterator[Any]:
    return (s for block in getattr(request, "resource_spans", ()) for scope in block.scope_spans for s in scope.spans)


def logs_in(request: Any) -> Iterator[Any]:
    return (r for b in getattr(request, "resource_logs", ()) for s in b.scope_logs for r in s.log_records)


def kept_secrets(way: str, kinds: Sequence[str] = tuple(KINDS)) -> list[str]:
    """The kinds that are in clear somewhere in the store after one secret of each was sent this way."""
    client, random = make_client(make_key(make_project())), Random(25)
    secrets: dict[str, str] = {}
    for number, kind in enumerate(kinds, start=1):
        text, secrets[kind] = KINDS[kind](random)
        address, body = request_of(SPAN_WAYS[way](text), number.to_bytes(16, "big"))
        assert client.post(address, body, content_type=PROTOBUF).status_code == 200
    stored = b"\n".join(content for _, content in everything())
    return [kind for kind, secret in secrets.items() if secret.encode() in stored]


@pytest.mark.django_db
@pytest.mark.parametrize("way", SPAN_WAYS)
def test_spans_keep_no_secret(way):
    kept = kept_secrets(way)

    print(f"{len(KINDS)} kinds as {way}: {len(kept)} are stored in clear: {kept}")
    assert len(kept) <= len(KINDS) * 0.01


@pytest.mark.django_db
@pytest.mark.parametrize("way", SPAN_WAYS)
def test_without_redaction_spans_keep_them(way, monkeypatch):
    """The control of the test above."""
    monkeypatch.setattr(Redact, "_redacted", lambda self, content, is_json: content)
    monkeypatch.setattr(spans, "_REMEMBERED", RememberedPieces(0))

    assert kept_secrets(way, ("openai", "card")) == ["openai", "card"]
