"""What can be wrong with an OTLP request."""

from __future__ import annotations

from sessions_app.core.errors import ReplayProductError


class OtlpError(ReplayProductError):
    """A request, or one record of it, cannot be read; the words quote nothing of what was sent."""


class OtlpTooLarge(OtlpError):
    """A request holds more than the limits allow, so none of it is read."""
