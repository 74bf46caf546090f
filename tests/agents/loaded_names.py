"""A forked process that says which of the names it was told are loaded."""

import json
import sys


def main() -> None:
    print(json.dumps([name in sys.modules for name in sys.argv[2:]]), flush=True)
