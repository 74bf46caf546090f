"""What goes wrong in redaction."""


class RedactionFailed(Exception):
    """A document could not be redacted, so nothing of it may be stored."""
