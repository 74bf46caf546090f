"""Python's garbage collector, for processes that live long and make many objects that soon go by themselves."""

import gc

_NEW_OBJECTS = 20_000
"""Before the young ones are looked at; Python's own 700 come together in a single run of a few steps."""


def settle() -> None:
    """To be called when a process has loaded what it needs: nothing of that is looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
