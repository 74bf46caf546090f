"""Telling a worker that there is work. A lost message costs time and nothing else."""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

from sessions_app.models import Replay

logger = logging.getLogger(__name__)
TASK = "sessions_app.run_replay"


def wake(replay: Replay) -> bool:
    """False when the broker is away; the sweeper sees the row and sends again."""
    try:
        current_app.send_task(TASK, kwargs={"replay_id": replay.pk}, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("No wake-up for replay %s: %s", replay.replay_id, type(error).__name__)
        return False
    return True
