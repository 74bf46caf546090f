"""Token counts under their many names."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject
from sessions_app.core.spans.attributes import as_count
from sessions_app.core.spans.provider_messages.fields import first

_INPUT = ("prompt_tokens", "promptTokenCount", "prompt_token_count", "promptTokens", "prompt_eval_count")
_INPUT_BARE = ("input_tokens", "inputTokens")
_OUTPUT = (
    *("completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count"),
    *("outputTokens", "completionTokens", "eval_count"),
)
_CACHED_APART = (
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
    *("cacheReadInputTokens", "cacheWriteInputTokens"),
)
"""Anthropic and Bedrock count these beside `input_tokens`; all others count them with it."""
_THOUGHTS_APART = ("thoughtsTokenCount", "thoughts_token_count")
"""Google counts thinking beside the answer."""


def usage_of(said: JsonObject) -> tuple[int | None, int | None]:
    """Input with all that came from a cache, and output with thinking, of a provider's own `usage` object."""
    whole = as_count(first(said, *_INPUT))
    return _sum(said, _INPUT_BARE, _CACHED_APART) if whole is None else whole, _sum(said, _OUTPUT, _THOUGHTS_APART)


def _sum(said: JsonObject, names: tuple[str, ...], apart: tuple[str, ...]) -> int | None:
    count = as_count(first(said, *names))
    if count is None:
        return None
    return count + sum(as_count(said.get(name)) or 0 for name in apart)
