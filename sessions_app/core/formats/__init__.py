"""Recordings in, runs out. Each parser is bytes to `Run` and touches nothing else."""
