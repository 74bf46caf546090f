"""The rules every project starts with. Where hits overlap the earlier rule wins."""

from .cards import CARD_RULE
from .field_names import FIELD_RULE
from .personal_numbers import IBAN_RULE, SSN_RULE
from .provider_keys import PROVIDER_KEY_RULE
from .rules import Rule
from .text_forms import CARD_CODE_RULE, COOKIE_RULE, NAMED_VALUE_RULE
from .text_patterns import BEARER_RULE, EMAIL_RULE, JWT_RULE, PASSWORD_RULE, PRIVATE_KEY_RULE

BUILT_IN_RULES: tuple[Rule, ...] = (
    FIELD_RULE,
    PRIVATE_KEY_RULE,
    JWT_RULE,
    PROVIDER_KEY_RULE,
    PASSWORD_RULE,
    BEARER_RULE,
    NAMED_VALUE_RULE,
    COOKIE_RULE,
    CARD_CODE_RULE,
    CARD_RULE,
    IBAN_RULE,
    SSN_RULE,
    EMAIL_RULE,
)
