"""The callable that web servers run."""

import os
import sys

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replay_web.settings.base")

application = get_wsgi_application()

# The web process announces replays, so its messages must go where the settings say.
from replay_web import garbage, patience  # noqa: E402
from replay_web.celery import app as celery_app  # noqa: E402, F401
from replay_web.supervisor.processes import end_with_server  # noqa: E402

# Seconds. A page that comes while spans are taken in waits so long for its turn, after each of its queries.
sys.setswitchinterval(0.001)
garbage.settle()
end_with_server()
patience.bound_waits(settings.DATABASES["default"])
