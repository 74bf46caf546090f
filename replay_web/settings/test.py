"""For the tests: fast hashes, static files without a collecting step."""

import os

os.environ.setdefault("SECRET_KEY", "for tests only, never for an installation")

from replay_web.settings.base import *  # noqa: F403 - the secret has to be there first

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATIC_ROOT = ""
WHITENOISE_USE_FINDERS = True
# Tests post many requests a second and look at the runs at once.
OTLP_BUSY_REQUESTS_PER_SECOND = 1_000_000
# Tests read the description of the API as any file.
API_DOCS_PUBLIC = True
