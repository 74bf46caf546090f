"""The Celery application; tasks live in sessions_app."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replay_web.settings.base")

app = Celery("replay_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
