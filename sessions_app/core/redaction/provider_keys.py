"""Keys and tokens that providers mark with a prefix.

Sources: the providers' documentation; for those after Stripe's, the formats that gitleaks' rules describe.
"""

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
    ("xai-", r"[A-Za-z0-9]{40,}"),
    ("pplx-", r"[A-Za-z0-9]{40,}"),  # Perplexity
    ("r8_", r"[A-Za-z0-9]{30,}"),  # Replicate
    ("pcsk_", r"[A-Za-z0-9_]{20,}"),  # Pinecone
    ("fw_", r"[A-Za-z0-9]{22,}(?![A-Za-z0-9])"),  # Fireworks
    ("tvly-", WORD + r"{20,}"),  # Tavily
    ("SK", r"[0-9a-fA-F]{32}(?![0-9A-Za-z])"),  # Twilio
    ("AC", r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("dop_v1_", r"[a-f0-9]{64}"),  # DigitalOcean
    ("doo_v1_", r"[a-f0-9]{64}"),
    ("dor_v1_", r"[a-f0-9]{64}"),
    ("dapi", r"[a-f0-9]{32}(?![0-9A-Za-z])(?:-[0-9])?"),  # Databricks
    ("shpat_", r"[a-fA-F0-9]{32}"),  # Shopify
    ("shpca_", r"[a-fA-F0-9]{32}"),
    ("shppa_", r"[a-fA-F0-9]{32}"),
    ("shpss_", r"[a-fA-F0-9]{32}"),
    ("hvs.", WORD + r"{24,}"),  # Vault
    ("hvb.", WORD + r"{24,}"),
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    ("glsa_", r"[A-Za-z0-9_]{32,}"),  # Grafana
    ("glc_", r"[A-Za-z0-9+/=]{32,}"),
    ("lin_api_", r"[A-Za-z0-9]{32,}"),  # Linear
    ("ntn_", r"[A-Za-z0-9]{40,}"),  # Notion
    ("NRAK-", r"[A-Z0-9]{27}"),  # New Relic
    ("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),  # Postman
    ("pnu_", r"[A-Za-z0-9]{36}"),  # Prefect
    ("pul-", r"[a-f0-9]{40}"),  # Pulumi
    ("pscale_", r"(?:tkn|oauth|pw)_[\w=.-]{32,64}"),  # PlanetScale
    ("rubygems_", r"[a-f0-9]{48}"),
    ("xkeysib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),  # Brevo
    ("sntryu_", r"[a-f0-9]{64}"),  # Sentry
    ("sntrys_", r"[A-Za-z0-9+/=_]{40,}"),
    ("sq0atp-", WORD + r"{22,60}"),  # Square
    ("shippo_live_", r"[a-fA-F0-9]{40}"),
    ("dp.pt.", r"[A-Za-z0-9]{43}"),  # Doppler
    ("dt0c01.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),  # Dynatrace
    ("fo1_", WORD + r"{43}"),  # Fly
    ("sgp_", r"[A-Za-z0-9_]{40,}"),  # Sourcegraph
    ("A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),  # 1Password
    ("sha256~", WORD + r"{43}"),  # OpenShift
    ("rdme_", r"[a-z0-9]{70}"),  # ReadMe
    ("EAAA", WORD + r"{50,60}(?![\w-])"),  # Square
    ("https://hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}"),
    ("https://chat.googleapis.com/v1/spaces/", r"[\w/-]{1,200}\?[\w=&%.~-]{8,}"),
    ("https://discord.com/api/webhooks/", r"[0-9]{1,30}/[\w-]{8,}"),
)
_TELEGRAM = re.compile(r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")
"""Behind the number of a bot, which is no secret."""
_KEBAB_WORDS = re.compile(r"[a-z]+-[a-z]+(?:-[a-z]*)*+")


def _key_pattern(prefix: str, rest: str) -> re.Pattern[str]:
    # What must not stand before it comes after the prefix: a pattern that begins with plain
    # characters is searched for several times faster.
    literal = re.escape(prefix)
    return re.compile(f"{literal}(?<![A-Za-z0-9]{literal})(?P<rest>{rest})")


def _mark(prefix: str) -> str:
    """The prefix, or the host where it is an address: slashes may be spelled with a backslash."""
    return prefix.removeprefix("https://").partition("/")[0]


_has_mark = finder([":AA", *(_mark(prefix) for prefix, _ in PREFIXES)])


def _is_key(match: re.Match[str]) -> bool:
    """`sk-folding-cube-wrapper` is a class in a style sheet, not a key."""
    return (
        match.re is _TELEGRAM or not match[0].startswith(("sk-", "pypi-")) or not _KEBAB_WORDS.fullmatch(match["rest"])
    )


PROVIDER_KEY_RULE = TextRule(
    name="api_key",
    patterns=(*(_key_pattern(prefix, rest) for prefix, rest in PREFIXES), _TELEGRAM),
    may_hit=_has_mark,
    may_hit_in=lambda spelled: _has_mark(spelled.text),
    accepts=_is_key,
)
