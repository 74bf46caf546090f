"""A provider's own request and answer, as far as they were understood, in a reading."""

from __future__ import annotations

from sessions_app.core.spans.provider_messages import ProviderRequest, ProviderResponse
from sessions_app.core.spans.reading import Reading


def put_request(reading: Reading, request: ProviderRequest) -> None:
    """All that the request says takes the place of what the reading said."""
    put_messages(reading, request)
    reading.tools = request.tools
    reading.model = request.model
    reading.settings = request.settings


def put_messages(reading: Reading, request: ProviderRequest) -> None:
    """The messages alone, and what stands before them."""
    reading.messages, reading.instructions = request.messages, request.instructions
    reading.are_messages_told_otherwise |= any(each.are_calls_told_otherwise for each in request.messages)


def put_response(reading: Reading, response: ProviderResponse) -> None:
    """Likewise for the answer."""
    reading.answer = response.answer
    reading.are_messages_told_otherwise |= response.is_told_otherwise or response.answer.are_calls_told_otherwise
    reading.answered_model = response.model
    reading.response_id = response.response_id
    reading.finish_reason = response.finish_reason
    reading.input_tokens = response.input_tokens
    reading.output_tokens = response.output_tokens
