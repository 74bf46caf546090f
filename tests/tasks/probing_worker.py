"""The worker as it is, but for its replay processes, which also run probes."""

import sys


def main() -> int:
    import django

    from replay_web.celery import app  # noqa: F401 - sets Django up

    django.setup()
    from sessions_app.tasks import replays
    from tests.agents.probing_child import ProbingChild

    replays.children._start = ProbingChild
    from replay_web.worker import main as work

    return work()


if __name__ == "__main__":
    sys.exit(main())
