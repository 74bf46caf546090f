"""Recorded HTTP exchanges in the place of the network, for tools that run in a replay.

The server's replays use this as well as those on a person's own machine, so it imports nothing else of this package.
"""
