"""Tokens that open something for whoever holds them: shown once, stored by their digest."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """256 random bits in 43 characters that an address may hold."""
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    """SHA-256; rows are looked up by it, so nothing is compared in the clear."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
