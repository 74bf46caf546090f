"""Token counts in `langfuse.observation.usage_details`, whatever words the sender chose.

Source: https://langfuse.com/docs/observability/features/token-and-cost-tracking: any names may stand there; those of
the providers are common, and `input`, `output`, `total` with parts such as `input_cache_read` are Langfuse's own. Parts
are mostly taken out of `input` and `output` (the integration of LangChain does), so that all of them make the `total`.
"""

from __future__ import annotations

from sessions_app.core.payload import JsonObject
from sessions_app.core.spans.attributes import as_count
from sessions_app.core.spans.provider_messages.usage import usage_of


def tokens_of(usage: JsonObject) -> tuple[int | None, int | None]:
    """Input (with what came from a cache) and output."""
    if "input" in usage or "output" in usage:
        return _with_parts(usage)
    return usage_of(usage)


def _with_parts(usage: JsonObject) -> tuple[int | None, int | None]:
    plain = as_count(usage.get("input")), as_count(usage.get("output"))
    if None not in plain and sum(count or 0 for count in plain) == as_count(usage.get("total")):
        return plain
    return _sum_of("input", usage), _sum_of("output", usage)


def _sum_of(word: str, usage: JsonObject) -> int | None:
    counts = [count for name, value in usage.items() if word in name and (count := as_count(value)) is not None]
    return sum(counts) if counts else None
