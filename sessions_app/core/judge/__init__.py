"""Judges of a recorded run: can it be replayed, what is odd about it, and what was not captured."""
