"""Blobs in a bucket of an S3-compatible store, named as in the folder. What the store is and who may use it, `obstore`
takes from the environment (`AWS_ENDPOINT`, `AWS_ACCESS_KEY_ID` …)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

_Made = TypeVar("_Made")
_PATIENCE = {"timeout": "5s", "connect_timeout": "2s"}
_TRIES = {"max_retries": 2, "retry_timeout": timedelta(seconds=8)}


_CODE = re.compile(r"<Code>(\w+)</Code>")
"""What a store says is wrong; its client has no name for most of it."""


class StoreRefused(OSError):
    """The store answered, and with this code."""


class BlobBucket:
    """As `BlobFolder`. A store that does not answer is an `OSError`, as a disk that does not."""

    def __init__(self, address: str) -> None:
        from obstore.store import from_url

        with _as_disk():
            self._store: Any = from_url(address, client_options=_options(), retry_config=_TRIES)

    def write(self, project_id: int, digest: str, content: bytes) -> None:
        with _as_disk():
            self._store.put(_path(project_id, digest), content)

    def read(self, project_id: int, digest: str) -> bytes | None:
        return self._unless_missing(lambda: bytes(self._store.get(_path(project_id, digest)).bytes()))

    def has(self, project_id: int, digest: str) -> bool:
        return self._unless_missing(lambda: self._store.head(_path(project_id, digest))) is not None

    def delete(self, project_id: int, digest: str) -> None:
        self._unless_missing(lambda: self._store.delete(_path(project_id, digest)))

    def digests(self, project_id: int, *, written_before: float) -> set[str]:
        before = datetime.fromtimestamp(written_before, UTC)
        with _as_disk():
            found = [each for page in self._store.list(f"{project_id}/") for each in page]
        return {each["path"].rpartition("/")[2] for each in found if each["last_modified"] < before}

    def projects(self) -> list[int]:
        with _as_disk():
            prefixes = self._store.list_with_delimiter()["common_prefixes"]
        names = (prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes)
        return sorted(int(name) for name in names if name.isdecimal())

    def leftovers(self, *, written_before: float) -> list[Any]:
        """A blob is there whole or not at all."""
        return []

    def problem(self) -> str | None:
        try:
            self.projects()
        except StoreRefused as refused:
            return f"the bucket cannot be used: {refused}"
        except OSError:
            return "the bucket cannot be reached"
        return None

    def _unless_missing(self, do: Callable[[], _Made]) -> _Made | None:
        try:
            with _as_disk():
                return do()
        except FileNotFoundError:
            return None


def _options() -> dict[str, Any]:
    """Given at all, they have to say themselves what the environment says of HTTP."""
    return {**_PATIENCE, "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")}


def _path(project_id: int, digest: str) -> str:
    return f"{project_id}/{digest[:2]}/{digest}"


@contextmanager
def _as_disk() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, ValueError) as error:
        if code := _CODE.search(str(error)):
            raise StoreRefused(code[1]) from None
        raise OSError(f"The bucket of blobs does not answer ({type(error).__name__}).") from None
