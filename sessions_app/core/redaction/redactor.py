"""Redaction of a received JSON document, before anything of it is stored."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .builtin import BUILT_IN_RULES
from .document import DocumentPass
from .edits import apply_edits
from .errors import RedactionFailed
from .quick_look import quick_look
from .rules import Rule, check_rule_name

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class Redacted:
    """A document that may be stored."""

    content: bytes
    counts: Mapping[str, int]
    """Hits by rule name; rules without hits are left out."""


class Redactor:
    """Redacts with the rules and the secret of one project; one is made for a request, as it remembers what it saw."""

    def __init__(self, secret: bytes, rules: Sequence[Rule] = BUILT_IN_RULES) -> None:
        for rule in rules:
            check_rule_name(rule)
        self._look = quick_look(tuple(rules))
        self._pass = DocumentPass(secret, tuple(rules))

    def redact(self, document: bytes) -> Redacted:
        """The JSON document without its secrets; the same bytes when it holds none."""
        return _fail_closed(lambda: self._redact(document))

    def redact_text(self, text: str) -> str:
        """The same for a log line or the text of an exception."""
        return _fail_closed(lambda: self._redact_text(text))

    def _redact(self, document: bytes) -> Redacted:
        text = document.decode()
        if self._look.finds_none_in_json(text, document):
            return Redacted(content=document, counts={})
        edits = self._pass.document_edits(text, depth=0)
        counts = Counter(name for edit in edits for name in edit.rules)
        content = apply_edits(text, edits).encode() if edits else document
        return Redacted(content=content, counts=dict(counts))

    def _redact_text(self, text: str) -> str:
        if self._look.finds_none(text):
            return text
        return apply_edits(text, self._pass.text_edits(text, depth=0))


def _fail_closed(redact: Callable[[], Result]) -> Result:
    try:
        return redact()
    except Exception as error:
        kind = type(error).__name__
    # Raised outside the handler, as a chained error could carry a piece of the payload.
    raise RedactionFailed(f"Redaction stopped at a {kind}, so nothing of this may be stored.")
