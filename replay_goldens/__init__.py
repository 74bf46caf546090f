"""Checks of golden traces: what a run must hold, told of a run that was made again.

The server and the pytest plugin of exported goldens judge with this code, so that both say the same. It stands on the
standard library alone.
"""
