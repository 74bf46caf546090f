"""Keeping secrets out of recordings before they are written.

    install(redact=mask(r"sk-[A-Za-z0-9]+", r"[0-9]{16}"))

The server redacts once more; what is taken out here never leaves the process.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from re import Pattern
from typing import Any
from urllib.parse import quote, unquote_plus

from replay_recorder.settings import Redact

REDACTED = "[redacted]"
_BASE64 = re.compile(r"(?:[\w+/-]{4})+(?:[\w+/-]{2}==|[\w+/-]{3}=)?|[\w+/-]{2}==|[\w+/-]{3}=", re.ASCII)


def mask(*patterns: str | Pattern[str], with_: str = REDACTED) -> Redact:
    """A hook for `install(redact=...)`: every match in every string, however deep, becomes `with_`.

    Keys stay as they are; bytes are looked into when they are text, also where a message holds them as base64. Raises
    `re.error` for a wrong pattern.
    """
    compiled = [re.compile(pattern) for pattern in patterns]

    def masked_text(text: str) -> str:
        for pattern in compiled:
            text = pattern.sub(lambda _: with_, text)
        return text

    def masked_bytes(said: str) -> str:
        """Base64 of a text, as records and messages hold the bytes of tools; anything else is left as it is."""
        is_for_addresses = "-" in said or "_" in said
        try:
            text = base64.b64decode(said, b"-_" if is_for_addresses else None, validate=True).decode()
        except ValueError:
            return said
        found = masked_text(text)
        if found == text:
            return said
        encode = base64.urlsafe_b64encode if is_for_addresses else base64.b64encode
        return encode(found.encode()).decode()

    def masked(value: Any) -> Any:
        if isinstance(value, str):
            found = masked_text(value)
            return masked_bytes(value) if found == value and _BASE64.fullmatch(value) else found
        if isinstance(value, dict):
            return {key: masked(item) for key, item in value.items()}
        if isinstance(value, list):
            return [masked(item) for item in value]
        return value

    return masked


def compose(*hooks: Redact) -> Redact:
    """One hook that calls these from left to right."""

    def composed(value: Any) -> Any:
        for hook in hooks:
            value = hook(value)
        return value

    return composed


# --- headers

_KEPT_HEADERS = frozenset(
    {"accept", "accept-encoding", "age", "cache-control", "cf-ray", "content-encoding", "content-length",
     "content-type", "date", "etag", "expires", "last-modified", "location", "openai-model", "openai-organization",
     "openai-processing-ms", "openai-project", "openai-version", "request-id", "retry-after",
     "retry-after-ms", "server", "transfer-encoding", "user-agent", "vary", "via", "x-amzn-requestid",
     "x-cloud-trace-context", "x-ms-region", "x-ms-request-id", "x-request-id", "x-should-retry"}
)  # fmt: skip
_KEPT_BEGINNINGS = ("anthropic-ratelimit-", "ratelimit-", "x-ratelimit-", "x-stainless-")
_NEVER_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-goog-api-key"}
)


def safe_headers(
    headers: Mapping[Any, Any] | Iterable[tuple[Any, Any]], extra: frozenset[str] = frozenset()
) -> list[list[str]]:
    """Headers that hold no secret as `[name, value]`, in their order; those not known to be harmless are left out.

    `extra` names more of them, in any case. Credentials and cookies are left out whatever `extra` says. The address of
    a redirect is kept as any address is.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    wanted = frozenset(name.lower() for name in extra)
    texts = [(_text(name), _text(value)) for name, value in pairs]
    return [
        [name, safe_url(value) if name.lower() == "location" else value]
        for name, value in texts
        if _is_kept(name.lower(), wanted)
    ]


def header_names(headers: Any) -> Any:
    """Headers in any form that a client takes, with `[redacted]` for their values."""
    try:
        return dict.fromkeys(map(str, dict(headers)), REDACTED)
    except (TypeError, ValueError):
        return REDACTED


def _is_kept(name: str, extra: frozenset[str]) -> bool:
    if name in _NEVER_HEADERS:
        return False
    return name in _KEPT_HEADERS or name in extra or (name.startswith(_KEPT_BEGINNINGS) and not _is_secret(name))


def _text(value: Any) -> str:
    """Headers come as text or as bytes, and these are Latin-1."""
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray | memoryview) else str(value)


# --- names that sound like a secret

_SECRET_PARAMETERS = frozenset(
    {"auth", "authorization", "awsaccesskeyid", "bearer", "clientassertion", "code", "codeverifier", "cookie",
     "credential", "credentials", "jwt", "key", "otp", "pass", "passphrase", "passwd", "password", "pwd",
     "samlresponse", "secret", "session", "sessionid", "sid", "sig", "signature", "ticket", "token", "xamzcredential",
     "xgoogcredential"}
)  # fmt: skip
"""Names of parameters and fields without their case and their signs between letters."""
_SECRET_ENDINGS = ("accesskey", "accesskeyid", "apikey", "authkey", "password", "privatekey", "secret", "secretkey",
                   "secrets", "signature", "subscriptionkey", "token")  # fmt: skip
_PARTS = re.compile(r"[.\[\]]+")
_PAGING = frozenset({"continuationtoken", "nextpagetoken", "nexttoken", "pagetoken"})


def _is_secret(parameter: str) -> bool:
    """Also `user[key]` and `auth.token`, by each of their parts."""
    said = unquote_plus(parameter).lower()
    names = [re.sub(r"[^a-z0-9]", "", part) for part in (said, *_PARTS.split(said))]
    return any(name in _SECRET_PARAMETERS or (name.endswith(_SECRET_ENDINGS) and name not in _PAGING) for name in names)


def safe_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a request without secrets: of headers the names alone; fields, and parameters of addresses, that
    sound like one are `[redacted]`, however deep."""
    return {name: _safe_setting(name, value, _DEEPEST) for name, value in settings.items()}


_HEADERS = ("extra_headers", "headers", "http_headers", "default_headers")
_FREE = ("extra_body", "extra_query")
"""Anything goes there, and not only as names with values."""
_DEEPEST = 50


def _safe_setting(name: str, value: Any, levels: int) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if levels == 0 or _is_secret(name) or (name in _FREE and not isinstance(value, Mapping)):
        return REDACTED
    if name.lower() in _HEADERS:
        return header_names(value)
    if isinstance(value, str):
        return safe_url(value) if "://" in value or name == "url" else value
    if isinstance(value, Mapping):
        return {key: _safe_setting(str(key), item, levels - 1) for key, item in value.items()}
    return [_safe_setting("", item, levels - 1) for item in value] if isinstance(value, (list, tuple)) else value


# --- addresses

_AUTHORITY = re.compile(r"\A(\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]+|[/\\]{2}))([^/?#\\]*@)")
_FIRST_PARAMETER = re.compile(r"(?=[?#])")
_PARAMETER = re.compile(r"(?<=[?#&;])([^?#&;=]*)=([^#&;]*)")
_PATH_PARAMETER = re.compile(r"(?<=;)([^;=/]*)=([^;/]*)")
_WITHIN = 4
"""Addresses within addresses, each encoded once more."""


def safe_url(url: str) -> str:
    """The address without its user and password, and `[redacted]` for every parameter that sounds like a secret.

    The same for an address that is the value of a parameter. Everything else stays byte for byte.
    """
    return _safe_url(url, _WITHIN)


def _safe_url(url: str, levels: int) -> str:
    bare = _AUTHORITY.sub(r"\1", url)
    path, *rest = _FIRST_PARAMETER.split(bare, maxsplit=1)

    def safe(found: re.Match[str]) -> str:
        is_secret = found[2] and _is_secret(found[1])
        return f"{found[1]}={REDACTED if is_secret else _safe_value(found[2], levels)}"

    return _PATH_PARAMETER.sub(safe, path) + "".join(_PARAMETER.sub(safe, part) for part in rest)


def _safe_value(value: str, levels: int) -> str:
    """Of a parameter; it may be an address, as it is or encoded once more or twice."""
    plain = unquote_plus(value)
    is_address = "://" in plain or plain.startswith("/")
    if not is_address and (plain == value or "%" not in plain):
        return value
    if levels == 0:
        return REDACTED
    safe = _safe_url(plain, levels - 1) if is_address else _safe_value(plain, levels - 1)
    if safe == plain:
        return value
    return safe if value == plain else quote(safe, safe="")
