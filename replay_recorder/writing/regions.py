"""Where a model is served, as far as its address says."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

_REGION = re.compile(
    r"^bedrock(?:-runtime)?(?:-fips)?\.(?P<aws>[a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com"
    r"|^(?P<vertex>[a-z]+-[a-z]+\d)-aiplatform\.googleapis\.com$"
    r"|\.(?P<azure>[a-z]+\d?)\.(?:inference\.ai|models\.ai|api\.cognitive)\.(?:azure|microsoft)\.com$"
    r"|^(?P<prefix>eu|us|au|in)\.api\.[a-z]+\.com$"
)


@lru_cache(maxsize=64)
def region_in(url: str | None) -> str | None:
    """The region that a provider's host name holds; None where it holds none, and nothing is guessed."""
    host = urlsplit(url).hostname if url else None
    found = _REGION.search(host) if host else None
    return next((group for group in found.groups() if group), None) if found else None
