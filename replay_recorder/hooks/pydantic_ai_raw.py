"""An answer as the model gave it, where hooks behind the request make another one of it: a replay gives it to the hooks
of today."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

_STAMPS = frozenset(
    {"run_id", "conversation_id", "model_id", "failed_attempts", "workspace_ref", "history_digest", "state"}
)
"""What the loop itself puts on an answer."""


class RawAnswer:
    """Copied, for a hook may change the answer in its place; shallow where it can be, as this is done at every step."""

    __slots__ = ("message",)

    def __init__(self, response: Any) -> None:
        self.message = copy(response)
        self.message.parts = [_copied(part) for part in response.parts]

    @property
    def is_begun(self) -> bool:
        """Whether the provider is asked to go on with it; what comes then is put together with it."""
        return bool(getattr(self.message, "state", None) == "suspended")

    def is_in(self, response: Any) -> bool:
        """Whether the loop was given what the model said."""
        said = vars(self.message)
        return all(said.get(name) == value for name, value in vars(response).items() if name not in _STAMPS)


def _copied(part: Any) -> Any:
    made = copy(part)
    for name in ("args", "content"):
        value = getattr(part, name, None)
        if isinstance(value, dict | list):
            setattr(made, name, deepcopy(value))
    return made
