"""Typed readers of environment variables; a bad value stops the start and is named."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from sessions_app.core.registrations import read_registrations

OWN_SECRETS = frozenset(
    f"{name}{end}"
    for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "REPLAY_MODEL_KEY", "REPLAY_HOME")
    for end in ("", "_FILE")
)
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def text(name: str, default: str = "") -> str:
    return os.environ.get(name) or default


def place(name: str, default: str) -> str:
    """A folder, or a bucket where the package that speaks to it is there."""
    value = text(name, default)
    if "://" in value and find_spec("obstore") is None:
        raise ImproperlyConfigured(f"{name} names a bucket, which needs the package obstore: pip install obstore.")
    return value


def secret(name: str, default: str = "") -> str:
    """The variable itself, or the contents of the file that NAME_FILE names."""
    file = os.environ.get(f"{name}_FILE")
    if os.environ.get(name) or not file:
        return text(name, default)
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE: {file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{name}_FILE: {file} does not hold text.") from None


def required_secret(name: str, hint: str, default: str = "") -> str:
    found = secret(name, default)
    if not found:
        raise ImproperlyConfigured(f"{name} is not set, nor is {name}_FILE. {hint}")
    return found


def boolean(name: str, default: str = "") -> bool:
    value = text(name, default).lower()
    if value and value not in TRUE + FALSE:
        raise ImproperlyConfigured(f"{name} is {value!r}; it has to be one of {', '.join(TRUE + FALSE)}.")
    return value in TRUE


def one_of(name: str, *allowed: str) -> str:
    """One of these words; the first one is the default."""
    value = text(name, allowed[0]).lower()
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it has to be one of {', '.join(allowed)}.")
    return value


def number(name: str, default: int, at_least: int = 0) -> int:
    value = text(name, str(default))
    if not value.isdecimal() or int(value) < at_least:
        raise ImproperlyConfigured(f"{name} is {value!r}; it has to be a whole number of at least {at_least}.")
    return int(value)


def words(name: str, default: str = "") -> list[str]:
    """A list divided by commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def folders(name: str, otherwise: Mapping[str, str]) -> dict[str, str]:
    """The variable by its name, if it is set in the environment or `otherwise`. Replays run in another folder, so
    folders that were named from here are named whole."""
    found = [os.path.abspath(each) for each in text(name, otherwise.get(name, "")).split(os.pathsep) if each]
    return {name: os.pathsep.join(found)} if found else {}


def agents(name: str, default: str) -> dict[str, str]:
    """Where the team's agents are, by name: `name=package.module:attribute, …`."""
    try:
        return read_registrations(text(name, default))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from None


def passed_on(name: str, default: str = "") -> dict[str, str]:
    """Variables for the team's code: `NAME=value` says one, `NAME` passes our own on. Never one of our secrets."""
    given = [word.partition("=") for word in words(name, default)]
    for key, _, _ in given:
        if key in OWN_SECRETS:
            raise ImproperlyConfigured(f"{name}: {key} is a secret of this server and is not passed on.")
    return {key: value if sign else os.environ.get(key, "") for key, sign, value in given}
