"""The convention's reader; what it reads is said in `span`."""

from sessions_app.core.conventions.openinference.span import read

__all__ = ["read"]
