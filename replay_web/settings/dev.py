"""For working on the code: pages show errors, static files are served as they lie."""

import os

os.environ.setdefault("SECRET_KEY", "for development only, never for an installation")

from replay_web.settings.base import *  # noqa: F403 - the secret has to be there first

DEBUG = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATIC_ROOT = ""
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
