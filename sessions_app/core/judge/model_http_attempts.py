"""What a model's step sent before its last exchange: attempts that failed, and were made again.

Only what is known to be an attempt at the request of the step is held against it: code of the team's may ask a model
something else in between, such as a router.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import key_given_twice, parsed
from sessions_app.core.judge.model_http_requests import asked_otherwise, is_sent_whole
from sessions_app.core.judge.reading import as_object
from sessions_app.core.payload import JsonValue
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.run import HttpExchange, ModelCall, Run
from sessions_app.core.spans.provider_messages.wire import body_value, said_in

ANSWERED = range(200, 300)
_COUNT = "x-stainless-retry-count"
"""How many attempts came before: clients of OpenAI and Anthropic send it, with the same body each time."""
_FALLBACK = "fallback:"
"""How Pydantic AI names a model that asks one after the other."""


def earlier_exchanges(run: Run) -> Mapping[int | None, Sequence[HttpExchange]]:
    """By the step that they were sent in."""
    found: dict[int | None, list[HttpExchange]] = defaultdict(list)
    for step in run.steps:
        if step.kind == "other" and step.http is not None:
            found[step.parent].append(step.http)
    return found


def attempted_otherwise(call: ModelCall, earlier: Sequence[HttpExchange], last: HttpExchange) -> str | None:
    """How an attempt contradicts the one that was made after it, or the step."""
    for http, after in pairwise([*earlier, last]):
        repeated = _repeated_otherwise(http, after) if _is_repeated(after) else None
        said = repeated or told_twice(http) or _asked_otherwise(call, http, last)
        if said is not None:
            return repeated or f"has an earlier attempt that {said}"
    return None


def told_twice(http: HttpExchange) -> str | None:
    """A body that says two things under one key."""
    bodies = (said_in(body) for body in (http.request_body, http.response_body))
    texts = (text for said in bodies for text in (said if isinstance(said, list) else [said]))
    found = next((key for key in map(key_given_twice, texts) if key is not None), None)
    return None if found is None else f"holds the key {found!r} twice in one object, with two values"


def _is_repeated(http: HttpExchange) -> bool:
    return any(name.lower() == _COUNT and value not in ("", "0") for name, value in http.request_headers)


def _repeated_otherwise(http: HttpExchange, after: HttpExchange) -> str | None:
    if (http.method, http.url) != (after.method, after.url) or _is_other_body(http, after):
        return "repeats an attempt that sent another request"
    was_left = any(http.extra.get(name) for name in ("error", "incomplete")) and not _is_streamed(http)
    is_answered = http.status in ANSWERED and not was_left
    return f"repeats an attempt that was answered with the status {http.status}" if is_answered else None


def _is_other_body(http: HttpExchange, after: HttpExchange) -> bool:
    if not (is_sent_whole(http) and is_sent_whole(after)):
        return False
    one, other = _body(http), _body(after)
    return not same_json(one, other) and not any(PLACEHOLDER.search(str(each)) for each in (one, other))


def _is_streamed(http: HttpExchange) -> bool:
    """What is lost of a stream that has begun, no client asks for again."""
    return as_object(_body(http)).get("stream") is True


def _body(http: HttpExchange) -> JsonValue:
    return parsed(body_value(http.request_body))


def _asked_otherwise(call: ModelCall, http: HttpExchange, last: HttpExchange) -> str | None:
    """Of an attempt that failed. Each model of a fallback has settings and tools of its own."""
    is_fallback = (call.model or "").startswith(_FALLBACK)
    is_same = http.url == last.url and as_object(_body(http)).get("model") == as_object(_body(last)).get("model")
    if http.status in ANSWERED or not (is_fallback or is_same):
        return None
    asked = replace(call, settings=None, parameters=None, tools=None) if is_fallback else call
    return asked_otherwise(asked, http)
