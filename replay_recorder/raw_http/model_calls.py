"""Model steps of loops without a framework: each request to a provider inside of a recorded function is one.

A step holds the exchange alone; the server reads the messages, the tools and the answer out of it.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from replay_recorder.context import current_scope
from replay_recorder.raw_http.exchange import Exchange, Headers
from replay_recorder.writing.json_text import name
from replay_recorder.writing.run_writer import RunWriter

_PATH = re.compile(r"/(chat/completions|responses|v1/messages|[^/]+:(generateContent|streamGenerateContent))/?\Z")
"""Of OpenAI's two interfaces, which many other providers speak, of Anthropic's and of Google's."""


def open_model_step(method: str, url: str) -> tuple[RunWriter, int] | None:
    """A step that begins now; None outside of a recorded function, and for requests to anybody else."""
    scope = current_scope()
    if scope is None or method != "POST" or not _PATH.search(urlsplit(url).path):
        return None
    place = scope.open_place()
    return None if place is None else (place.run, place.run.begin("model"))


class ModelExchange(Exchange):
    """The exchange of a model's step, which ends with it."""

    def __init__(
        self, run: RunWriter, step: int, method: str, url: str, headers: Headers, *, limit: int, kept: frozenset[str]
    ) -> None:
        super().__init__(method, url, headers, limit=limit, kept=kept)
        self._run, self._step = run, step
        self.response.on_end = self._end

    def _end(self) -> None:
        first = self.response.first_at
        self._run.end(self._step, name=name(self.title), first_token_at=first, error=self.error, http=self.fields())
