"""Takes secrets out of received documents before they are stored."""

from .builtin import BUILT_IN_RULES
from .errors import RedactionFailed
from .redactor import Redacted, Redactor
from .rules import FieldRule, Rule, TextRule

__all__ = [
    "BUILT_IN_RULES",
    "FieldRule",
    "Redacted",
    "RedactionFailed",
    "Redactor",
    "Rule",
    "TextRule",
]
