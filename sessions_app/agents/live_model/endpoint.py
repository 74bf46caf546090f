"""Where a live model is: its address, its key and its limits.

The settings of the server or an administrator of the project name it; nothing that was recorded can.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from sessions_app.core.errors import ReplayProductError

Protocol = Literal["completions", "messages"]
"""OpenAI's chat completions, or Anthropic's messages."""
_PATHS: dict[Protocol, str] = {"completions": "/chat/completions", "messages": "/messages"}


class ModelUnavailable(ReplayProductError):
    """The live model gave no answer; `reason` is one sentence without keys, addresses or recorded text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """An address in its parts. `netloc` is host and port as they stand in the `Host` header."""

    is_tls: bool
    host: str
    port: int
    netloc: str
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """`url` is the base, such as `https://models.example.org/v1`. Raises `ModelUnavailable` naming a bad setting."""

    url: str = field(repr=False)
    key: str = field(default="", repr=False)
    protocol: Protocol = "completions"
    model: str | None = None
    """Asked for in place of the recorded model."""
    timeout_seconds: float = 60
    """Of one answer, from the first byte of the request to the last of the answer, other attempts included."""
    max_answer_bytes: int = 1024 * 1024
    allow_private: bool = False
    """Whether it may be on this machine or in a private network, and then also without TLS."""
    max_requests: int = 200
    """Of one sampling, repeated ones included."""

    def __post_init__(self) -> None:
        if not (self.key.isascii() and self.key.isprintable()):
            raise ModelUnavailable("Its key contains a character that is not allowed in a header.")
        if not self.target.is_tls and not self.allow_private:
            raise ModelUnavailable("Its address must begin with https://.")

    @property
    def target(self) -> Target:
        """Where requests go."""
        try:
            return _target(self.url, _PATHS[self.protocol])
        except ValueError:
            raise ModelUnavailable("Its address must look like https://host/v1.") from None


def _target(url: str, end: str) -> Target:
    parts = urlsplit(url)
    is_plain = url.isascii() and url.isprintable() and not {" ", "@", "#", "\\"} & set(url)
    if not is_plain or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError
    is_tls = parts.scheme == "https"
    path = f"{parts.path.rstrip('/')}{end}"
    return Target(
        is_tls=is_tls,
        host=parts.hostname,
        port=parts.port or (443 if is_tls else 80),
        netloc=parts.netloc,
        path=f"{path}?{parts.query}" if parts.query else path,
    )
