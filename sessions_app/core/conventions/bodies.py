"""A provider's own request and answer, as far as they were understood, in a reading."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.spans.provider_messages import ProviderRequest, ProviderResponse
from sessions_app.core.spans.reading import Reading


def with_request(reading: Reading, request: ProviderRequest) -> Reading:
    """All that the request says takes the place of what the reading said."""
    return replace(
        reading,
        messages=request.messages,
        instructions=request.instructions,
        tools=request.tools,
        model=request.model,
        settings=request.settings,
    )


def with_response(reading: Reading, response: ProviderResponse) -> Reading:
    """Likewise for the answer."""
    return replace(
        reading,
        answer=response.answer,
        answered_model=response.model,
        response_id=response.response_id,
        finish_reason=response.finish_reason,
        input_tokens=response.input_tokens,
        output_tokens=response.output_tokens,
    )
