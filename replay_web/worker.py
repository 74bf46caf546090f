"""`python -m replay_web.worker`: what `celery worker` does, without loading its command line (12 MB, half a second).

It takes up what WORKER_QUEUES names. Threads are enough, for a replay runs in a child process of its own. Gossip and
mingle serve workers that talk to each other; ours talk to the database.
"""

import os
import sys

from django.conf import settings

# Django's system checks would load every page and the API; the worker serves neither.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from replay_web import garbage
from replay_web.celery import app

_NICENESS = 5
"""Pages and senders come first where processors are few."""


def main() -> int:
    os.nice(_NICENESS)
    worker = app.Worker(
        pool="threads",
        queues=settings.WORKER_QUEUES,
        concurrency=settings.WORKER_THREADS,
        without_gossip=True,
        without_mingle=True,
        loglevel=settings.LOG_LEVEL,
        quiet=True,
    )
    garbage.settle()
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
