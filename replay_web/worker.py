"""`python -m replay_web.worker`: what `celery worker` does, without loading its command line (12 MB, half a second).

Threads are enough, for a replay runs in a child process of its own. Gossip and mingle serve workers that talk
to each other; ours talk to the database.
"""

import sys

from django.conf import settings

from replay_web.celery import app


def main() -> int:
    worker = app.Worker(
        pool="threads",
        concurrency=settings.WORKER_THREADS,
        without_gossip=True,
        without_mingle=True,
        loglevel=settings.LOG_LEVEL,
        quiet=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
