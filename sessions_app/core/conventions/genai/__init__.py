"""The convention's reader; what it reads is said in `span`."""

from sessions_app.core.conventions.genai.span import read

__all__ = ["read"]
