"""Takes secrets out of received documents before they are stored."""

from .builtin import BUILT_IN_RULES
from .errors import RedactionFailed
from .own_rules import BadRule, OwnRules, rules_of
from .redactor import Redacted, Redactor
from .rules import FieldRule, Rule, TextRule

__all__ = [
    "BUILT_IN_RULES",
    "BadRule",
    "FieldRule",
    "OwnRules",
    "Redacted",
    "RedactionFailed",
    "Redactor",
    "Rule",
    "TextRule",
    "rules_of",
]
