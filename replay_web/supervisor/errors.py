"""What can keep the product from starting, said so that the reader can act."""


class CannotStart(Exception):
    """Something outside of the product has to change before it can run; the text says what."""
