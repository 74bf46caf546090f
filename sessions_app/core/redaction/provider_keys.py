"""Keys and tokens that providers mark with a prefix."""

import re

from .rare_signs import finder
from .rules import TextRule

WORD = r"[A-Za-z0-9_-]"
PREFIXES = (
    # prefix, what follows
    ("sk-", WORD + r"{16,}"),  # OpenAI and many like it
    ("sk-ant-", WORD + r"{6,}"),
    ("sk-proj-", WORD + r"{6,}"),
    ("gsk_", r"[A-Za-z0-9]{20,}"),  # Groq
    ("ghp_", r"[A-Za-z0-9]{16,}"),  # GitHub
    ("gho_", r"[A-Za-z0-9]{16,}"),
    ("ghu_", r"[A-Za-z0-9]{16,}"),
    ("ghs_", r"[A-Za-z0-9]{16,}"),
    ("ghr_", r"[A-Za-z0-9]{16,}"),
    ("github_pat_", r"[A-Za-z0-9_]{16,}"),
    ("glpat-", WORD + r"{16,}"),  # GitLab
    ("xoxa-", r"[A-Za-z0-9-]{10,}"),  # Slack
    ("xoxb-", r"[A-Za-z0-9-]{10,}"),
    ("xoxe-", r"[A-Za-z0-9-]{10,}"),
    ("xoxp-", r"[A-Za-z0-9-]{10,}"),
    ("xoxr-", r"[A-Za-z0-9-]{10,}"),
    ("xoxs-", r"[A-Za-z0-9-]{10,}"),
    ("xapp-", r"[A-Za-z0-9-]{16,}"),
    ("rpk_", WORD + r"{32,}"),  # our own
    ("AKIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])"),  # AWS
    ("ASIA", r"[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("AIza", WORD + r"{35}"),  # Google
    ("ya29.", WORD + r"{16,}"),
    ("SG.", WORD + r"{16,}\." + WORD + r"{16,}"),  # SendGrid
    ("npm_", r"[A-Za-z0-9]{30,}"),
    ("pypi-", WORD + r"{32,}"),
    ("hf_", r"[A-Za-z0-9]{20,}"),  # Hugging Face
    ("lsv2_", r"[A-Za-z0-9_]{20,}"),  # LangSmith
    ("pk_live_", r"[A-Za-z0-9]{10,}"),  # Stripe
    ("pk_test_", r"[A-Za-z0-9]{10,}"),
    ("sk_live_", r"[A-Za-z0-9]{10,}"),
    ("sk_test_", r"[A-Za-z0-9]{10,}"),
    ("rk_live_", r"[A-Za-z0-9]{10,}"),
    ("rk_test_", r"[A-Za-z0-9]{10,}"),
    ("whsec_", r"[A-Za-z0-9+/=]{20,}"),
    ("https://hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}"),
    ("https://chat.googleapis.com/v1/spaces/", r"[\w/-]{1,200}\?[\w=&%.~-]{8,}"),
    ("https://discord.com/api/webhooks/", r"[0-9]{1,30}/[\w-]{8,}"),
)
_KEBAB_WORDS = re.compile(r"[a-z]+-[a-z]+(?:-[a-z]*)*+")


def _key_pattern(prefix: str, rest: str) -> re.Pattern[str]:
    # What must not stand before it comes after the prefix: a pattern that begins with plain
    # characters is searched for several times faster.
    literal = re.escape(prefix)
    return re.compile(f"{literal}(?<![A-Za-z0-9]{literal})(?P<rest>{rest})")


def _mark(prefix: str) -> str:
    """The prefix, or the host where it is an address: slashes may be spelled with a backslash."""
    return prefix.removeprefix("https://").partition("/")[0]


_has_mark = finder(_mark(prefix) for prefix, _ in PREFIXES)


def _is_key(match: re.Match[str]) -> bool:
    """`sk-folding-cube-wrapper` is a class in a style sheet, not a key."""
    return not match[0].startswith(("sk-", "pypi-")) or not _KEBAB_WORDS.fullmatch(match["rest"])


PROVIDER_KEY_RULE = TextRule(
    name="api_key",
    patterns=tuple(_key_pattern(prefix, rest) for prefix, rest in PREFIXES),
    may_hit=_has_mark,
    may_hit_in=lambda spelled: _has_mark(spelled.text),
    accepts=_is_key,
)
