"""`python -m replay_recorder`: the same as the command `replay-recorder`."""

from replay_recorder.cli import leave

if __name__ == "__main__":
    leave()
