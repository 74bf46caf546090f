"""Recordings that a new server shows, and the agents that made them."""
