"""The log for machines."""

import json
import subprocess
import sys

from replay_web.supervisor.home import PROJECT_ROOT
from tests.instances import clean_environment

CODE = """
import django, logging
django.setup()
from django.test import Client
Client(headers={"X-Request-ID": "looked-for-1"}).get("/api/v1/nothing")
logging.getLogger("shop").warning("%s is gone", "/shared/a-secret-token")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("shop").exception("it\\nfailed")
"""


def lines(log_format: str) -> list[str]:
    settings = {"DJANGO_SETTINGS_MODULE": "replay_web.settings.test", "ALLOWED_HOSTS": "testserver"}
    environment = clean_environment(**settings, LOG_FORMAT=log_format)
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True)
    return done.stderr.splitlines()


def test_each_line_is_an_object_with_the_request_and_the_traceback():
    refused, masked, failed = map(json.loads, lines("json"))

    assert (refused["request_id"], refused["logger"], refused["level"]) == ("looked-for-1", "django.request", "WARNING")
    assert masked["message"] == "/shared/… is gone"
    assert (failed["level"], failed["message"]) == ("ERROR", "it\nfailed")
    assert "ZeroDivisionError" in failed["traceback"]


def test_an_unknown_format_is_refused_in_words():
    assert any("LOG_FORMAT is 'xml'; it has to be one of line, json." in line for line in lines("xml"))
