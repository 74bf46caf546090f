"""Secrets known by their look: tokens, private keys, passwords in addresses, e-mail addresses."""

import base64
import re

from .rare_signs import finder
from .rules import Spelled, TextRule

JWT = re.compile(r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+){1,3}")
JWT_RULE = TextRule(
    name="jwt", patterns=(JWT,), may_hit=lambda text: "eyJ" in text, may_hit_in=lambda spelled: "eyJ" in spelled.text
)

_LINE_END = r"(?:[ \t]*(?:[\r\n]|\\++[rn]))"
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]++|-(?!----(?:BEGIN|END) ))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    # Cut off before its end: the lines that look like the key, a last short one included.
    rf"|(?:{_LINE_END}++(?:[A-Za-z][A-Za-z-]{{2,20}}: [^\r\n\\]*+|[A-Za-z0-9+/=]++))++)"
)
PRIVATE_KEY_RULE = TextRule(
    name="private_key",
    patterns=(PRIVATE_KEY,),
    may_hit=lambda text: "PRIVATE KEY" in text,
    may_hit_in=lambda spelled: "PRIVATE KEY" in spelled.text,
)

URL_PASSWORD = re.compile(r"://[^\s/?#:@\"'<>\\]{0,128}:(?P<secret>[^\s/?#\"'<>\\]{1,128})@(?=[\w\[])")
TEMPLATE = re.compile(r"\$?\{.*\}|<.*>|%.{0,20}|[*x.…]+", re.DOTALL | re.IGNORECASE)
"""What stands for a secret in documentation and code: `${PASSWORD}`, `<password>`, `****`."""

_OPTION_NAME = r"--(?i:password|passwd|secret|token|api-?key|access-?token|client-?secret)"
OPTION = re.compile(
    rf"(?<![\w-]){_OPTION_NAME}(?:=|\s{{1,4}})(?P<secret>[^\s\"'\\-][^\s\"'\\]{{3,127}})", re.IGNORECASE
)
"""On a command line."""
_has_option = re.compile(_OPTION_NAME).search
USER = re.compile(r"(?<![\w-])(?:-u|--user)[ =][\"']?[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\]{3,128})")
"""`curl -u name:password`."""
CLIENT_OPTION = re.compile(
    r"\bmysql(?:dump|admin)?(?: -[^p\s][^\s|;]{0,60}(?: [\w.-]{1,60})?){0,6} -p(?P<secret>[^\s\"'\\]{4,128})"
)
"""`mysql -u app -psecret`."""
_NAMES_SAID = ("password", "passwd", "passphrase", "passwort", "kennwort", "pin", "otp")
_SAID = rf"(?:{'|'.join(_NAMES_SAID)})"
SAID = re.compile(
    rf"\b{_SAID} (?:is|was|ist|war|lautet)[: ] ?[\"'`]?(?P<secret>[^\s\"'`\\,;]{{4,127}}[^\s\"'`\\,;.!?])",
    re.IGNORECASE,
)
"""`The password is hunter2`."""
ELEMENT = re.compile(
    rf"<(?P<tag>[\w:.-]{{0,40}}?(?:{_SAID}|secret|token|api-?_?key))>\s{{0,8}}(?P<secret>[^<>\s][^<>]{{2,200}})</",
    re.IGNORECASE,
)
"""Of XML."""


_BESIDE_WORDS = (OPTION, SAID, CLIENT_OPTION, ELEMENT)


def _is_password(match: re.Match[str]) -> bool:
    """After an option may stand a word of a sentence: there it has to look like a secret."""
    is_plain_word = match.re in _BESIDE_WORDS and not any(sign.isdigit() for sign in match["secret"])
    is_group = match.re is USER and match["secret"].rstrip(";").isdigit()  # docker run -u 1000:1000
    return not is_plain_word and not is_group and TEMPLATE.fullmatch(match["secret"]) is None


def _may_hold_password(text: str) -> bool:
    return (
        "--" in text
        or "</" in text
        or ("://" in text and "@" in text)
        or _has_user(text)
        or _says_password(text.lower())
    )


_says_password = finder(f"{name} {verb}" for name in _NAMES_SAID for verb in "iwl")
_has_user = finder(("-u ", "-u=", "--user ", "--user=", "mysql"))
_names_password = finder(
    [
        *(f"{name}{verb}" for name in _NAMES_SAID for verb in ("is", "was", "ist", "war", "lautet")),
        # A sign of XML, as it is or escaped.
        *(f"{name}{sign}" for name in (*_NAMES_SAID, "secret", "token", "apikey") for sign in (">", "u000e")),
    ]
)
"""In what is folded."""


def _may_hold_password_in(spelled: Spelled) -> bool:
    text = spelled.text
    return "@" in text or _has_user(text) or _has_option(text) is not None or _names_password(spelled.folded)


PASSWORD_RULE = TextRule(
    name="password",
    patterns=(URL_PASSWORD, OPTION, USER, CLIENT_OPTION, SAID, ELEMENT),
    may_hit=_may_hold_password,
    may_hit_in=_may_hold_password_in,
    accepts=_is_password,
)

EMAIL = re.compile(
    r"(?<!\w)\w[\w.%+'-]{0,63}@"
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?P<ending>[^\W\d_]{2,24}|xn--[a-z0-9]{2,30})(?![\w-])"
)
_FILE_ENDINGS = frozenset({"png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json"})


def _is_email(match: re.Match[str]) -> bool:
    """`git@host` is how code is fetched, and `icon@2x.png` is a picture."""
    return match["ending"].lower() not in _FILE_ENDINGS and not match[0].startswith("git@")


EMAIL_RULE = TextRule(
    name="email",
    patterns=(EMAIL,),
    may_hit=lambda text: "@" in text,
    may_hit_in=lambda spelled: "@" in spelled.text,
    accepts=_is_email,
)

_TOKEN = r"(?P<secret>[A-Za-z0-9._~+/-]{3,}+=*+)"
AFTER_AUTHORIZATION = re.compile(
    r"authorization[\\\"']{0,8}\s{0,4}[:=,]\s{0,4}[\\\"']{0,8}"
    rf"(?:bearer|basic|token|digest|apikey|negotiate)\s{{1,4}}{_TOKEN}",
    re.IGNORECASE,
)
BEARER = re.compile(rf"\b(?P<scheme>bearer|basic)\s{{1,4}}{_TOKEN}", re.IGNORECASE)
_STAND_INS = frozenset({"token", "access_token", "your_token", "api_key", "key", "jwt", "xxx"})


def _is_credential(match: re.Match[str]) -> bool:
    secret = match["secret"]
    if match.re is AFTER_AUTHORIZATION:
        return secret.lower() not in _STAND_INS
    if match["scheme"].lower() == "basic":
        return _holds_user_and_password(secret)
    return len(secret) >= 20 or (len(secret) >= 8 and any(sign.isdigit() for sign in secret))


def _holds_user_and_password(encoded: str) -> bool:
    try:
        return ":" in base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return False


def _has_credential_word(lower: str) -> bool:
    return "bearer" in lower or "basic" in lower or "authorization" in lower


BEARER_RULE = TextRule(
    name="bearer",
    patterns=(AFTER_AUTHORIZATION, BEARER),
    may_hit=lambda text: _has_credential_word(text.lower()),
    may_hit_in=lambda spelled: _has_credential_word(spelled.folded),
    accepts=_is_credential,
)
