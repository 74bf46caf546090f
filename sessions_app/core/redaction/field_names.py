"""Field names that hold secrets, and how names are compared."""

import re
from functools import cache

from .rules import FieldRule

SECRET_FIELDS = frozenset(
    {
        "api_key",
        "api_keys",
        "api_token",
        "api_secret",
        "secret_key",
        "signing_key",
        "encryption_key",
        "authorization",
        "proxy_authorization",
        "cookie",
        "cookies",
        "set_cookie",
        "session_cookie",
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "passwort",
        "kennwort",
        "password_hash",
        "connection_string",
        "account_key",
        "shared_access_key",
        "client_key",
        "client_key_data",
        "x_amz_signature",
        "x_amz_security_token",
        "otp",
        "otp_code",
        "pin",
        "pin_code",
        "ssn",
        "social_security_number",
        "iban",
        "secret",
        "client_secret",
        "credentials",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "session_token",
        "bearer_token",
        "bot_token",
        "csrf_token",
        "private_key",
        "secret_access_key",
        "aws_secret_access_key",
        "credit_card",
        "credit_card_number",
        "card_number",
        "cvv",
        "cvc",
    }
)

FIELD_RULE = FieldRule(name="secret", fields=SECRET_FIELDS, token_fields=frozenset({"token"}))

_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = str.maketrans("-. ", "___")
LONGEST_NAME = 100
"""Longer keys are data, not field names."""


def fold_name(name: str) -> str:
    """`X-Api-Key`, `xApiKey` and `x.api_key` as `x_api_key`."""
    return _CAMEL_BORDER.sub("_", name).translate(_SEPARATORS).lower().strip("_")


def is_secret_field(rule: FieldRule, folded: str) -> bool:
    """Whether the name is a field of the rule, run together (`apikey`), or ends in one."""
    if folded in rule.fields or _run_together(folded) in _all_run_together(rule.fields):
        return True
    return any(folded[place + 1 :] in rule.fields for place, sign in enumerate(folded) if sign == "_")


@cache
def _all_run_together(fields: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_run_together, fields))


def _run_together(name: str) -> str:
    return name.replace("_", "")
