"""What model providers and their client libraries write as JSON, in the words of `spans.reading`.

`messages_of`, `request_of`, `response_of` and `tools_of` take any JSON value (or its text) and answer None when it is
not what they look for; they never raise. Each message, part and tool is told by its own shape, so that mixed lists
work. Read are: OpenAI chat completions and Responses, Anthropic messages, Amazon Bedrock Converse, Google
generateContent (camel and snake case), LangChain's serialised messages, and the Vercel AI SDK's model messages.
"""

from sessions_app.core.spans.provider_messages.failures import failure_of
from sessions_app.core.spans.provider_messages.messages import (
    langchain_fields,
    last_words,
    messages_in_state,
    messages_of,
)
from sessions_app.core.spans.provider_messages.requests import ProviderRequest, request_of
from sessions_app.core.spans.provider_messages.responses import ProviderResponse, is_response, response_of
from sessions_app.core.spans.provider_messages.streams import events_in
from sessions_app.core.spans.provider_messages.tools import tools_of

__all__ = [
    "ProviderRequest",
    "ProviderResponse",
    "events_in",
    "failure_of",
    "is_response",
    "langchain_fields",
    "last_words",
    "messages_in_state",
    "messages_of",
    "request_of",
    "response_of",
    "tools_of",
]
