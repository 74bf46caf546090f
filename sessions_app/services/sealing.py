"""Keys of providers at rest: encrypted with a key that comes of `SECRET_KEY`, so a copy of the database opens none."""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from sessions_app.core.errors import ReplayProductError

_PURPOSE = b"keys of connected models"


class SealBroken(ReplayProductError):
    """What was sealed cannot be opened with this server's `SECRET_KEY`."""


def seal(text: str) -> str:
    return _fernet().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises `SealBroken`."""
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise SealBroken from None


def _fernet() -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(settings.SECRET_KEY.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
