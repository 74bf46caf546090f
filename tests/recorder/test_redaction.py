"""What is taken out before anything is written."""

import asyncio
import base64
import re
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from replay_recorder import compose, mask, record
from replay_recorder.redaction import safe_headers, safe_url
from tests.recorder.recordings import records_of


def test_mask_replaces_matches_in_every_string_and_leaves_keys_and_numbers():
    hook = mask(r"sk-\w+", re.compile("paris", re.IGNORECASE))
    value = {"sk-key": ["sk-1 and sk-2", {"city": "PARIS"}], "count": 12, "ok": True, "none": None}

    assert hook(value) == {
        "sk-key": ["[redacted] and [redacted]", {"city": "[redacted]"}],
        "count": 12,
        "ok": True,
        "none": None,
    }


def test_mask_takes_its_replacement_literally_and_changes_nothing_given():
    value = ["a1"]

    assert mask(r"(\d)", with_=r"\1<\g<0>>")(value) == [r"a\1<\g<0>>"]
    assert value == ["a1"]


def test_mask_twice_is_mask_once():
    hook = mask(r"sk-\w+")

    assert hook(hook("sk-1")) == hook("sk-1") == "[redacted]"


def test_a_wrong_pattern_is_refused_at_once():
    with pytest.raises(re.error):
        mask("(")


def test_compose_calls_from_left_to_right():
    hook = compose(mask("one", with_="two"), mask("two", with_="three"))

    assert hook("one") == "three"
    assert compose()("one") == "one"


def test_a_masked_secret_is_in_no_byte_of_the_record():
    @record
    def answer(question: str) -> dict[str, str]:
        return {"key": "sk-12345 was used"}

    def ask() -> None:
        answer("is it sk-12345?")

    (plain,) = records_of(ask)
    (masked,) = records_of(ask, redact=mask(r"sk-\d+"))

    assert b"sk-12345" in plain
    assert b"sk-12345" not in masked
    assert b"is it [redacted]?" in masked


def test_safe_headers_keeps_the_harmless_ones_in_order_and_as_spelled():
    headers = [
        (b"Content-Type", b"application/json"),
        ("Authorization", "Bearer x"),
        ("openai-processing-ms", "12"),
        ("X-RateLimit-Remaining", "3"),
        ("anthropic-ratelimit-tokens-limit", "9"),
        ("Set-Cookie", "a=b"),
        ("X-Mine", "7"),
        ("content-type", "twice"),
    ]

    assert safe_headers(headers) == [
        ["Content-Type", "application/json"],
        ["openai-processing-ms", "12"],
        ["X-RateLimit-Remaining", "3"],
        ["anthropic-ratelimit-tokens-limit", "9"],
        ["content-type", "twice"],
    ]
    assert ["X-Mine", "7"] in safe_headers(headers, frozenset({"x-MINE"}))
    assert safe_headers({"Retry-After": "1"}) == [["Retry-After", "1"]]


def test_safe_headers_keeps_the_address_of_a_redirect_without_its_secrets():
    assert safe_headers({"Location": "https://u:p@h/x?page=2&token=abc"}) == [
        ["Location", "https://h/x?page=2&token=[redacted]"]
    ]


SECRET_HEADERS = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"]


def test_addresses_within_addresses_come_to_an_end():
    assert "secret" not in safe_url("https://h/?a=" + "https%3A%2F%2Fh%3Fa%3D" * 1500 + "secret")
    assert safe_url("https://h/?" + "a=x://?" * 1500)


def test_safe_headers_looks_behind_a_harmless_beginning():
    assert safe_headers({"X-RateLimit-Token": "secret", "X-RateLimit-Limit-Tokens": "9"}) == [
        ["X-RateLimit-Limit-Tokens", "9"]
    ]


@pytest.mark.parametrize("name", SECRET_HEADERS)
def test_safe_headers_never_keeps_credentials(name: str):
    headers = [(name.upper(), "secret"), ("x-other", "kept")]

    assert safe_headers(headers, frozenset({name, "x-other"})) == [["x-other", "kept"]]


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://user:pa%40ss@host:1/a?b=1", "https://host:1/a?b=1"),
        ("https://us@er@host/", "https://host/"),
        ("//user:pw@host/a", "//host/a"),
        ("https://host/?key=1&b=2", "https://host/?key=[redacted]&b=2"),
        ("https://host/?b=2;api_key=1", "https://host/?b=2;api_key=[redacted]"),
        ("https://host/?api%5Fkey=1", "https://host/?api%5Fkey=[redacted]"),
        ("https://host/?X-Amz-Signature=a%2Fb&X-Amz-Date=1", "https://host/?X-Amz-Signature=[redacted]&X-Amz-Date=1"),
        ("https://host/?access_token=a=b", "https://host/?access_token=[redacted]"),
        ("https://host/a;token=1;b=2/c", "https://host/a;token=[redacted];b=2/c"),
        ("https://host/?to=https://u:p@x/", "https://host/?to=https://x/"),
        ("https://host/?to=https%3A%2F%2Fx%2F%3Ftoken%3D1", "https://host/?to=https%3A%2F%2Fx%2F%3Ftoken%3D%5Bredacted%5D"),
        ("https://host/?to=https%3A%2F%2Fx%2F%3Fa%3D1", "https://host/?to=https%3A%2F%2Fx%2F%3Fa%3D1"),
        (" https://u:p@host/", " https://host/"),
        ("https:/u:p@host/", "https:/host/"),
        ("https://host/?a%5Bkey%5D=1&a[b]=2", "https://host/?a%5Bkey%5D=[redacted]&a[b]=2"),
        ("https://host/?to=/in?token=1", "https://host/?to=/in?token=[redacted]"),
        ("https://host/?to=%252Fin%253Ftoken%253D1", "https://host/?to=%252Fin%253Ftoken%253D%255Bredacted%255D"),
        ("https://host/#access_token=a&x=1", "https://host/#access_token=[redacted]&x=1"),
        ("https://host/?sig=1&token=2&password=3&secret=4", "https://host/?sig=[redacted]&token=[redacted]&password=[redacted]&secret=[redacted]"),
    ],
)  # fmt: skip
def test_safe_url_takes_secrets_out_and_nothing_else(url: str, safe: str):
    assert safe_url(url) == safe
    assert safe_url(safe) == safe


@pytest.mark.parametrize(
    "url",
    [
        "https://host/a%20b/?q=%C3%BC+x&max_tokens=5&page_token=3&monkey=1",
        "https://host/mail@example.com?to=a@b.c",
        "https://host/;case=1/x?&&=&a",
        "https://host/?key=&token",
        "https://[::1]:8000/?a=b?key=c",
        "mailto:someone@example.com",
        "",
    ],
)
def test_safe_url_leaves_everything_else_byte_for_byte(url: str):
    assert safe_url(url) == url


def test_what_a_failing_hook_has_not_redacted_is_not_written():
    def failing(value: Any) -> Any:
        raise ValueError

    @record
    def answer(question: str) -> str:
        return "secret"

    def ask() -> None:
        assert answer("secret") == "secret"

    (written,) = records_of(ask, redact=failing)

    assert b"secret" not in written


def test_mask_looks_into_bytes_that_are_text():
    def said(text: bytes) -> str:
        return base64.b64encode(text).decode()

    hook = mask(r"sk-\w+")

    assert hook({"base64": said(b"token sk-leak123")}) == {"base64": said(b"token [redacted]")}
    assert hook({"data": said(b"a sk-x"), "kind": "binary"}) == {"data": said(b"a [redacted]"), "kind": "binary"}
    assert hook({"base64": said(b"\xff\xfe")}) == {"base64": said(b"\xff\xfe")}
    assert hook({"data": "sk-plain, no base64"}) == {"data": "[redacted], no base64"}


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_mask_looks_into_base64_wherever_it_stands(encode):
    """A message holds the bytes that a tool gave under the tool's own names."""
    held = encode(b"key \xc3\xbf\xc3\xbe~~ sk-leak123 ?").decode()
    masked = mask(r"sk-\w+")({"b": held, "list": [held], "plain": "abcd"})

    assert b"sk-leak" not in base64.urlsafe_b64decode(masked["b"].replace("+", "-").replace("/", "_"))
    assert masked == {"b": encode("key ÿþ~~ [redacted] ?".encode()).decode(), "list": [masked["b"]], "plain": "abcd"}


def test_a_masked_secret_in_bytes_of_a_tool_is_in_no_byte_of_the_record():
    agent = Agent(TestModel())

    @agent.tool_plain
    def secret() -> dict[str, bytes]:
        return {"b": b"sk-abcdefghijklmnopqrstuvwxyz"}

    (written,) = records_of(lambda: asyncio.run(agent.run("Go")), redact=mask(r"sk-\w+"))

    assert base64.urlsafe_b64encode(b"sk-abcdefghijkl")[:-2] not in written
    assert base64.urlsafe_b64encode(b"[redacted]") in written
