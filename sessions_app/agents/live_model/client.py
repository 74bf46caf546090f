"""A live model, asked over OpenAI's chat completions or Anthropic's messages with the standard library alone.

The worker asks, never the child process in which a replay runs: that one has no network and no key.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sessions_app.agents.live_model.answers import error_words, read_answer
from sessions_app.agents.live_model.anthropic import VERSION, as_completion, messages_body, not_sent_as_messages
from sessions_app.agents.live_model.bodies import chat_body, settings_not_sent
from sessions_app.agents.live_model.endpoint import Endpoint, ModelUnavailable
from sessions_app.agents.live_model.guarded_http import Deadline, Reply, Resolve, post, resolve
from sessions_app.core.payload import JsonObject, compact_json

ATTEMPTS = 3
MAX_WAIT_SECONDS = 10
"""What a busy server may ask us to wait; who asks for more is not asked again."""

_REFUSALS = {
    400: "It refused the request",
    401: "It refused the key",
    403: "It refused the key",
    404: "It knows no such model or address",
    413: "The conversation is too long for it",
    429: "It is busy",
}


class LiveModelClient:
    """`requests` counts what was sent, repeated requests included; it may begin with what was sent before. `spend` is
    called before each and may refuse it."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        requests: int = 0,
        spend: Callable[[], None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
        resolve: Resolve = resolve,
    ) -> None:
        self.requests = requests
        self._endpoint, self._spend = endpoint, spend
        self._sleep, self._resolve = sleep, resolve

    def answer(
        self,
        messages: list[JsonObject],
        parameters: JsonObject | None = None,
        *,
        model: str | None,
        settings: JsonObject | None = None,
    ) -> JsonObject:
        """The model's response to messages, as Pydantic AI keeps both. `model` is the recorded one.

        Settings that are not sent are named in the response's `metadata`. Raises `ModelUnavailable`. Takes up to
        `timeout_seconds` of the endpoint.
        """
        asked = self._endpoint.model or model
        if not asked:
            raise ModelUnavailable("The recording names no model, and neither does the connection.")
        body, not_sent = chat_body(messages, parameters, model=asked, settings=settings), settings_not_sent(settings)
        if self._endpoint.protocol == "messages":
            content, not_sent = as_completion(self._sent(messages_body(body))), not_sent + not_sent_as_messages(body)
        else:
            content = self._sent(self._with_own_names(body))
        return read_answer(content, model=asked, not_sent=sorted(not_sent), now=datetime.now(UTC))

    def _with_own_names(self, body: JsonObject) -> JsonObject:
        """OpenAI's own models take the limit of an answer under its new name only, most others under the old one."""
        if "max_tokens" not in body or not self._endpoint.target.host.endswith("openai.com"):
            return body
        return {**{k: v for k, v in body.items() if k != "max_tokens"}, "max_completion_tokens": body["max_tokens"]}

    def _sent(self, body: JsonObject) -> bytes:
        deadline, content = Deadline(self._endpoint.timeout_seconds), compact_json(body)
        for attempt in range(1, ATTEMPTS + 1):
            reply = self._post(content, deadline)
            wait = _wait(reply, attempt)
            if attempt == ATTEMPTS or wait is None or not deadline.leaves(wait):
                break
            self._sleep(wait)
        if reply.status != 200:
            raise ModelUnavailable(_refusal(reply, body))
        return reply.content

    def _post(self, content: bytes, deadline: Deadline) -> Reply:
        if self.requests >= self._endpoint.max_requests:
            raise ModelUnavailable(f"The budget of {self._endpoint.max_requests} requests is spent.")
        self._spend()
        self.requests += 1
        try:
            return post(
                self._endpoint.target,
                self._headers(),
                content,
                deadline=deadline,
                max_bytes=self._endpoint.max_answer_bytes,
                allow_private=self._endpoint.allow_private,
                resolve=self._resolve,
            )
        except (OSError, http.client.HTTPException) as error:
            raise ModelUnavailable(_failure(error, deadline.seconds)) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        key = self._endpoint.key
        if self._endpoint.protocol == "messages":
            return {**headers, "anthropic-version": VERSION, "x-api-key": key}
        return {**headers, "Authorization": f"Bearer {key}"} if key else headers


def _wait(reply: Reply, attempt: int) -> float | None:
    """Seconds until it may be asked again; None when there is no use in it."""
    if reply.status != 429 and reply.status < 500:
        return None
    told = (reply.retry_after or "").strip()
    seconds = float(told) if told.isdecimal() and len(told) < 6 else 2.0 ** (attempt - 2)
    return seconds if seconds <= MAX_WAIT_SECONDS else None


def _refusal(reply: Reply, body: JsonObject) -> str:
    if 300 <= reply.status < 400:
        return f"It redirects elsewhere ({reply.status}), which is not followed."
    words = _REFUSALS.get(reply.status, "It failed" if reply.status >= 500 else "It gave no answer")
    return f"{words} ({reply.status}{error_words(reply.content, body)})."


def _failure(error: OSError | http.client.HTTPException, seconds: float) -> str:
    """Fixed words: what these errors say themselves may quote the answer."""
    match error:
        case TimeoutError():
            return f"It gave no whole answer within {seconds:g} seconds."
        case socket.gaierror():
            return "Its name leads nowhere."
        case ssl.SSLCertVerificationError():
            return "Its certificate is not valid for its name."
        case ssl.SSLError():
            return "No encrypted connection to it could be made."
        case ConnectionRefusedError():
            return "Nothing answers at its address."
        case http.client.HTTPException() | ConnectionError():
            return "It broke off, or does not speak HTTP."
        case _:
            return "No connection to it could be made."
