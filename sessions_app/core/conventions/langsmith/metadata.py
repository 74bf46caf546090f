"""What LangChain and LangSmith write into the metadata of a run; other products pass it on under their own prefix.

Source: https://docs.langchain.com/langsmith/ls-metadata-parameters (`ls_*`), and `langchain_core`, `langgraph`.
"""

from __future__ import annotations

from sessions_app.core.payload import JsonObject
from sessions_app.core.spans.attributes import Read, as_text
from sessions_app.core.spans.provider_messages.requests import settings_of

_SETTINGS = (
    *("temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens", "max_output_tokens", "stop"),
    *("frequency_penalty", "presence_penalty", "tool_choice", "parallel_tool_calls", "response_format"),
)


class RunMetadata:
    """The metadata below one prefix, such as `langsmith.metadata.`."""

    def __init__(self, read: Read, prefix: str) -> None:
        self._read = read
        self._prefix = prefix

    def text(self, *names: str) -> str | None:
        return self._read.text(*(self._prefix + name for name in names))

    def object(self, name: str) -> JsonObject | None:
        return self._read.object(self._prefix + name)

    @property
    def framework(self) -> str | None:
        named = (self.text("ls_integration") or "").partition("_")[0]
        if any(name.startswith(f"{self._prefix}langgraph_") for name in self._read.names()):
            return "langgraph"
        return named if named in ("langchain", "langgraph") else None

    @property
    def framework_version(self) -> str | None:
        versions = self.object("lc_versions") or {}
        return as_text(versions.get(self.framework or "")) or as_text(versions.get("langchain-core"))

    @property
    def settings(self) -> JsonObject:
        """Parameters of a model call: `ls_*` are LangSmith's names for those that all providers have."""
        said = {name: self._read.json(self._prefix + name) for name in _SETTINGS}
        sent = {**said, **(self.object("ls_invocation_params") or {})}
        found = settings_of(sent) or {}
        return {**self._general(found), **found}

    def _general(self, found: JsonObject) -> JsonObject:
        general = {"temperature": self._read.number(f"{self._prefix}ls_temperature")}
        limit = self._read.count(f"{self._prefix}ls_max_tokens")
        if not any(name in found for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")):
            general["max_tokens"] = limit
        general["stop"] = self._read.json(f"{self._prefix}ls_stop")
        return {name: value for name, value in general.items() if value is not None}
