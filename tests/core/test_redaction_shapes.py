"""What redaction must find, and what it must leave, one case a line."""

import base64
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.core.redaction import Redactor

REDACTOR = Redactor(b"project one")
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM_BODY = "MIIEpAIBAAKCAQEA7bq0" * 3
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\nq8Zk==\n-----END RSA PRIVATE KEY-----"
HEX32 = "0123456789abcdef" * 2


def json_in_json(value: Any, times: int) -> Any:
    for _ in range(times):
        value = json.dumps(value)
    return value


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# (value put into the document, the secret that must be gone, the rule that finds it)
IN_FIELDS = [
    ({"api_key": "plain-words"}, "plain-words", "secret"),
    ({"apikey": "plain-words"}, "plain-words", "secret"),
    ({"X-API-Key": "plain-words"}, "plain-words", "secret"),
    ({"openaiApiKey": "plain-words"}, "plain-words", "secret"),
    ({"OPENAI_API_KEY": "plain-words"}, "plain-words", "secret"),
    ({"Authorization": "Custom opensesame"}, "opensesame", "secret"),
    ({"Proxy-Authorization": "opensesame"}, "opensesame", "secret"),
    ({"cookie": "opensesame"}, "opensesame", "secret"),
    ({"Set-Cookie": "opensesame"}, "opensesame", "secret"),
    ({"password": "opensesame"}, "opensesame", "secret"),
    ({"dbPassword": "opensesame"}, "opensesame", "secret"),
    ({"passwd": "opensesame"}, "opensesame", "secret"),
    ({"secret": "opensesame"}, "opensesame", "secret"),
    ({"client-secret": "opensesame"}, "opensesame", "secret"),
    ({"accessToken": "opensesame"}, "opensesame", "secret"),
    ({"refresh_token": "opensesame"}, "opensesame", "secret"),
    ({"id_token": "opensesame"}, "opensesame", "secret"),
    ({"token": "opensesame"}, "opensesame", "secret"),
    ({"privateKey": "opensesame"}, "opensesame", "secret"),
    ({"credit_card": 1234567}, "1234567", "secret"),
    ({"cardNumber": "1234567"}, "1234567", "secret"),
    ({"cvv": 731}, "731", "secret"),
    ({"session_cookie": "opensesame"}, "opensesame", "secret"),
    ({"AWS_SECRET_ACCESS_KEY": "opensesame"}, "opensesame", "secret"),
    ({"password": 90210}, "90210", "secret"),
    ({"password": 'tab\there "quoted" é'}, "quoted", "secret"),
    ({"secret": {"deep": [{"er": "opensesame"}]}}, "opensesame", "secret"),
    ({"cookies": ["opensesame", "b"]}, "opensesame", "secret"),
    ([["Authorization", "opensesame"], ["Accept", "*/*"]], "opensesame", "secret"),
    ([["x-token", "a"], ["token", "opensesame"]], "opensesame", "secret"),
    ([{"name": "authorization", "value": "opensesame"}], "opensesame", "secret"),
    ([{"value": "opensesame", "name": "Cookie"}], "opensesame", "secret"),
    (
        [{"key": "http.header.cookie", "value": {"stringValue": "opensesame"}}],
        "opensesame",
        "secret",
    ),
    ({"properties": {"password": {"value": "opensesame"}}}, "opensesame", "secret"),
    (
        {"properties": {"secret": {"type": "string", "default": "opensesame"}}},
        "opensesame",
        "secret",
    ),
]
IN_JSON_STRINGS = [
    ({"arguments": json_in_json({"password": "opensesame"}, 1)}, "opensesame", "secret"),
    ({"arguments": json_in_json({"password": "opensesame"}, 2)}, "opensesame", "secret"),
    ({"arguments": json_in_json({"password": "opensesame"}, 5)}, "opensesame", "secret"),
    ({"arguments": json_in_json({"password": "opensesame"}, 7)}, "opensesame", "secret"),
    ({"arguments": json_in_json([["Cookie", "opensesame"]], 3)}, "opensesame", "secret"),
    ({"arguments": json_in_json({"n": 4111111111111111}, 2)}, "4111111111111111", "card"),
    ({"arguments": '  {"password": "opensesame"}\n'}, "opensesame", "secret"),
    ({"arguments": '{"api_key":"sk-12'}, "sk-12", "secret"),
    ({"arguments": '{"q": 1, "password": "open sesame", "x'}, "sesame", "secret"),
    ({"text": 'it sent {\\"password\\": \\"opensesame\\"} twice'}, "opensesame", "secret"),
    ({"source": {"base64": in_base64('{"password": "opensesame"}')}}, "opensesame", "secret"),
    (
        {"base64": in_base64("mail bob@example.com"), "media_type": "text/plain"},
        "bob@",
        "email",
    ),
]
IN_TEXT = [
    ("key sk-abcdefghijklmnopqrstuvwx", "sk-abcdefghij", "api_key"),
    ("sk-ant-api03-Zx81_kd-2 is mine", "Zx81_kd", "api_key"),
    ("sk-proj-Zx81kdQm2 is mine", "Zx81kdQm2", "api_key"),
    ("ghp_" + "aB3d" * 9, "ghp_", "api_key"),
    ("gho_" + "aB3d" * 9, "gho_", "api_key"),
    ("ghu_" + "aB3d" * 9, "ghu_", "api_key"),
    ("ghs_" + "aB3d" * 9, "ghs_", "api_key"),
    ("ghr_" + "aB3d" * 9, "ghr_", "api_key"),
    ("github_pat_" + "aB3d_" * 9, "github_pat_", "api_key"),
    ("glpat-aB3d_aB3d-aB3daB3d", "glpat-", "api_key"),
    ("xoxb-1234567890-abcdef", "xoxb-", "api_key"),
    ("xoxp-1234567890-abcdef", "xoxp-", "api_key"),
    ("id AKIAIOSFODNN7EXAMPLE.", "AKIA", "api_key"),
    ("id ASIAIOSFODNN7EXAMPLE.", "ASIA", "api_key"),
    ("AIza" + "Sy-_7" * 7, "AIza", "api_key"),
    ("ya29.a0AfH6SMBx-7_aB3daB3d", "ya29", "api_key"),
    ("SG.aB3daB3daB3daB3daB3d.aB3daB3daB3daB3daB3d", "SG.", "api_key"),
    ("npm_" + "aB3d" * 9, "npm_", "api_key"),
    ("pypi-AgEIcHlwaS5vcmc" + "aB3d" * 9, "AgEIcHl", "api_key"),
    ("hf_" + "aB3d" * 8, "hf_", "api_key"),
    (f"lsv2_pt_{HEX32}_0123456789", "lsv2_", "api_key"),
    ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_", "api_key"),
    ("pk_test_4eC39HqLyjWDarjtT1zdp7dc", "pk_test_", "api_key"),
    ("rk_live_4eC39HqLyjWDarjtT1zdp7dc", "rk_live_", "api_key"),
    ("https://hooks.slack.com/services/T0001/B0001/aB3daB3d", "T0001", "api_key"),
    ("https://chat.googleapis.com/v1/spaces/A1/messages?key=k1&token=t2", "t2", "api_key"),
    ("Authorization: Bearer opensesame", "opensesame", "bearer"),
    ("curl -H 'authorization: bearer abc.def-1'", "abc.def-1", "bearer"),
    ("sent Bearer aB3daB3daB3d then", "aB3daB3d", "bearer"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", "bearer"),
    ("it was Basic dXNlcjpwYXNz there", "dXNlcjpwYXNz", "bearer"),
    ("postgres://app:hunter2@db.internal:5432/x", "hunter2", "password"),
    ("redis://:hunter2@localhost", "hunter2", "password"),
    ("https://bob:p@ss:word@example.com/", "p@ss:word", "password"),
    (f"jwt {JWT} end", "eyJhbGci", "jwt"),
    (f"before {PEM} after", "MIIEpAIB", "private_key"),
    (PEM.replace("\n", "\\n"), "MIIEpAIB", "private_key"),
    (PEM.replace("\n", "\\\\n"), "MIIEpAIB", "private_key"),
    (PEM[:90], "MIIEpAIB", "private_key"),
    (PEM[:90].replace("\n", "\\n"), "MIIEpAIB", "private_key"),
    (PEM.replace("RSA ", ""), "MIIEpAIB", "private_key"),
    (PEM.replace("RSA", "OPENSSH"), "MIIEpAIB", "private_key"),
    ("write to bob.o'neil+x@mail.example.co.uk, please", "neil", "email"),
    ("<mailto:bob@example.com>", "bob@", "email"),
    ("jürgen@müller.example", "rgen", "email"),
    ("card 4111111111111111.", "4111", "card"),
    ("card 4111 1111 1111 1111.", "1111 1111", "card"),
    ("card 5555-5555-5555-4444, ok", "5555", "card"),
    ("amex 3782 822463 10005", "822463", "card"),
    ("amex 378282246310005", "378282", "card"),
    ("diners 30569309025904", "305693", "card"),
    ("mastercard 2223003122003222", "222300", "card"),
    ("discover 6011111111111117", "601111", "card"),
    ("jcb 3530111333300000", "353011", "card"),
    ("old visa 4222222222222", "422222", "card"),
    ("api_key=abc123def", "abc123def", "secret"),
    ("https://x.example/?q=1&api_key=abcdef&z=2", "abcdef", "secret"),
    ("password: hunter2, then", "hunter2", "secret"),
    ("DB_PASSWORD=hunter2", "hunter2", "secret"),
    ("password = 'opensesame'", "opensesame", "secret"),
    ("client_secret => abc-123", "abc-123", "secret"),
    ("token: aB3daB3d9", "aB3daB3d9", "secret"),
    ("Cookie: sid=opensesame; theme=dark", "opensesame", "secret"),
    ("cvv: 731", "731", "secret"),
    ("the password is hunter2, keep it", "hunter2", "password"),
    ("das Passwort lautet: hunter2.", "hunter2", "password"),
    ("curl -u bob:opensesame https://x.example", "opensesame", "password"),
    ("curl --user 'bob:opensesame' https://x.example", "opensesame", "password"),
    ("mysql -u app -popensesame1 shop", "opensesame1", "password"),
    ("<db:password>opensesame1</db:password>", "opensesame1", "password"),
    ("IBAN DE89 3704 0044 0532 0130 00, please", "0532", "iban"),
    ("GB82WEST12345698765432", "WEST", "iban"),
    ("my number is 536-22-8726.", "536-22", "ssn"),
    ("bot 1234567890:AAaB3daB3daB3daB3daB3daB3daB3daB3d1", "AAaB3d", "api_key"),
]
PLANTED = [
    *IN_FIELDS,
    *IN_JSON_STRINGS,
    *[({"content": text}, secret, rule) for text, secret, rule in IN_TEXT],
    *[({text: "in a key"}, secret, rule) for text, secret, rule in IN_TEXT],
    *[({"a": json_in_json({"q": text}, 2)}, secret, rule) for text, secret, rule in IN_TEXT],
    *[({"base64": in_base64(f"<p>{text}</p>")}, secret, rule) for text, secret, rule in IN_TEXT],
    ({"card": 4111111111111111}, "4111111111111111", "card"),
    ([378282246310005], "378282246310005", "card"),
]

HARMLESS = [
    "the password is required and the password was changed; the pin is wrong",
    "cp -p file1 dir2; docker run -p8080:80 -u 1000:1000; mysql is up -p",
    "<token>short names</b> and <pin/>, DE00 3704 0044 0532 0130 00, 000-12-3456, 2024-10-1234 555-12-345",
    {"spin": "fast", "map_pins": 3, "pinned": "yes", "ibanez": "guitar", "otps": 2},
    {"max_tokens": 500, "input_tokens": 12345678, "token_count": "12345678"},
    {"tokens": {"input": 5}, "token": {"input": 5}},
    {"token": 12345678, "next_page_token": "CAoQAA12"},
    {"token": "12345678"},
    {"token": "short"},
    {"logprobs": [{"token": "important", "logprob": -0.25, "bytes": [1]}]},
    {"token": " important matter"},
    {"password": True, "secret": None, "api_key": ""},
    {"required": ["password", "username"], "rows": [["password", "a", "b"], ["token", "longer-word", 1]]},
    {"properties": {"password": {"type": "string", "description": "Of the user"}}},
    {"properties": {"token": {"type": "string"}, "secret": {"anyOf": [{"type": "null"}]}}},
    {"name": "lookup", "value": "opensesame"},
    {"secretary": "Ann", "tokenizer": "cl100k_base", "passwords_checked": 5},
    {"tool_call_id": "call_7Qx1", "id": "toolu_01A09q90qw90lq917835lq9"},
    {"id": "resp_0001", "item": "msg_68a1b2c3d4e5f60718293a4b"},
    {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"},
    {"at": "2025-01-02T03:04:05.678901Z", "day": "2025-01-02 2025-01-03"},
    {"ms": 1735787045123, "us": 1735787045123456, "ns": 1735787045123456789},
    {"ns": "1735787045123456789"},
    {"sha": "9fceb02d0ae598e95dc970b74767f19372d61af8"},
    {"uuid": "550e8400-e29b-41d4-a716-446655440000"},
    {"uuid": "11111111-4111-4111-8111-111111111111"},
    {"order": "4111111111111112", "n": 4111111111111112},
    {"order": "ORD4111111111111111", "part": "4111111111111111X"},
    {"ratio": "0.4111111111111111", "n": 0.4111111111111111},
    {"long": "41111111111111111111111"},
    {"bar code that fits Visa, too": "4006381000093"},
    {"phone": "+4111111111111111"},
    "run it with --token=$TOKEN and --password option required, or --max-tokens 4096",
    "git clone git@github.com:org/repo.git",
    "npm install react@18.2.0 @types/node@20",
    "icon@2x.png and @app.route('/x')",
    "the password: required, token: optional, secret: none",
    "login(user=user, password=password, api_key=api_key, token=self.token)",
    "api_key = os.environ['OPENAI_API_KEY']",
    "class Flow: REFRESH_TOKEN = 'REFRESH_TOKEN'",
    "password=${PASSWORD} password: <password> api_key='{key}'",
    '{"password": "string", "token": "str',
    "max_tokens: 500, token_count=500, tokens: 12345678, token: 12345678",
    "class sk-folding-cube-wrapper, task-management-for-everyone-2024",
    "risk-assessment-framework-2024-final-version",
    "Use Bearer authentication or Basic authentication, see basic structures",
    "Authorization: Bearer <token>",
    "http://localhost:8000/a@b http://host:80/?q=a@b",
    "postgres://user:${PASSWORD}@db/x and https://user:****@host/",
    "look for -----BEGIN PRIVATE KEY----- in the files",
    "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7bq0\n-----END CERTIFICATE-----",
    "eyJ is how a token begins; eyJhbGciOiJIUzI1NiJ9 alone is a header",
    "cookies: 2 cups of sugar; cookie: sweet",
    "[email:1a2b3c4d] [api_key:1a2b3c4d] password: [secret:1a2b3c4d]",
    {"base64": base64.b64encode(b"\xff\xfe bob@example.com").decode()},
]


def all_text(document: bytes) -> str:
    """Everything one can read in a document: keys, values, JSON in strings, and base64."""
    return "\n".join(readable_parts(json.loads(document)))


def readable_parts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from readable_parts(key)
            yield from readable_parts(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from readable_parts(inside)
    else:
        yield str(value)
        for decode in (json.loads, lambda text: base64.b64decode(text, validate=True).decode()):
            with contextlib.suppress(ValueError, TypeError):
                decoded = decode(value)
                if decoded != value:
                    yield from readable_parts(decoded)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(("value", "secret", "rule"), PLANTED)
def test_redact_takes_out_planted_secret(value, secret, rule, ascii_only):
    document = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert secret in all_text(document)

    redacted = REDACTOR.redact(document)

    assert secret not in all_text(redacted.content)
    assert secret not in redacted.content.decode()
    assert redacted.counts.get(rule, 0) >= 1
    assert REDACTOR.redact(redacted.content).content == redacted.content


@pytest.mark.parametrize("value", HARMLESS)
def test_redact_leaves_harmless_values(value):
    document = json.dumps(value).encode()

    redacted = REDACTOR.redact(document)

    assert redacted.content == document
    assert redacted.counts == {}


@pytest.mark.parametrize("line", ["deploy --password hunter8secret now", "deploy --api-key=hunter8secret"])
def test_a_secret_on_a_command_line_is_taken(line):
    assert "hunter8secret" not in REDACTOR.redact_text(line)
    assert "deploy --" in REDACTOR.redact_text(line)
