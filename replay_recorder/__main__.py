"""`python -m replay_recorder`: the same as the command `replay-recorder`."""

import sys

from replay_recorder.cli import main

if __name__ == "__main__":
    sys.exit(main())
