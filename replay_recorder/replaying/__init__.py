"""Recorded runs played again on this machine, with the team's own agent.

Nothing here imports a framework before a replay asks for one.
"""
