"""`python -m replay_web.worker_health`: whether the worker of this machine answers. For health checks of containers."""

import socket
import sys

from replay_web.celery import app

_PATIENCE = 5.0
"""Seconds."""


def main() -> int:
    own = f"celery@{socket.gethostname()}"
    return 0 if app.control.inspect(destination=[own], timeout=_PATIENCE, limit=1).ping() else 1


if __name__ == "__main__":
    sys.exit(main())
