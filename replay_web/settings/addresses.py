"""Addresses of services, from the form people write to the form the libraries want."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def database(url: str) -> dict[str, Any]:
    """Django's settings for postgresql://user:password@host:port/name?option=value."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres") or len(parts.path) < 2:
        raise ImproperlyConfigured(
            "DATABASE_URL has to look like postgresql://user:password@host:5432/name; PostgreSQL is the only database."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": options.pop("port", str(parts.port or "")),
        "OPTIONS": options,
    }


def celery_broker(redis_url: str) -> str:
    """Celery calls a Redis on a unix socket redis+socket, and its database virtual_host."""
    if not redis_url.startswith("unix://"):
        return redis_url
    parts = urlsplit(redis_url)
    database_number = dict(parse_qsl(parts.query)).get("db", "0")
    credentials = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"redis+socket://{credentials}{parts.path}?virtual_host={database_number}"
