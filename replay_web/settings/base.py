"""Settings as they are shipped. What an installation may change comes from its environment: docs/deploying.md."""

from datetime import timedelta
from typing import Any

from replay_web.settings import addresses, env
from replay_web.supervisor.home import Home, bundled

HOME = Home.from_environment()
# What `manage.py up` keeps in its home serves every other command as well: `manage.py shell` just works.
OF_HOME = HOME.environment()

# --- Who may talk to us

SECRET_KEY = env.required_secret(
    "SECRET_KEY",
    "`manage.py up` makes one by itself; elsewhere set either. "
    "To work on the code use DJANGO_SETTINGS_MODULE=replay_web.settings.dev.",
    OF_HOME.get("SECRET_KEY", ""),
)
DEBUG = False
# Loopback names always: health checks of the same machine use them.
ALLOWED_HOSTS = [*env.words("ALLOWED_HOSTS"), "127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

HTTPS = env.boolean("HTTPS")
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_ENGINE = "sessions_app.services.sign_ins"

SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains: other services of the domain are not ours to decide on
    "security.W021",  # HSTS preload: likewise, and it cannot be taken back
]
if not HTTPS:
    SILENCED_SYSTEM_CHECKS += [
        # Without HTTPS=1 we serve plain HTTP, on loopback unless told otherwise:
        "security.W004",  # HSTS would lock people out
        "security.W008",  # there is nothing to redirect to
        "security.W011",  # a secure session cookie would never come back
        "security.W016",  # nor would the CSRF cookie
    ]

# --- What it is made of

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "django_htmx",
    "sessions_app",
    "replay_web",
]
MIDDLEWARE = [
    "replay_web.request_ids.name_requests",
    "django.middleware.security.SecurityMiddleware",
    "sessions_app.api.otlp.serve_exporters",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "replay_web.middleware.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "sessions_app.web.clock.in_shown_zone",
    "sessions_app.web.errors.views.explain_wrong_methods",
]
ROOT_URLCONF = "replay_web.urls"
WSGI_APPLICATION = "replay_web.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [bundled("templates")],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

CSRF_FAILURE_VIEW = "sessions_app.web.errors.views.csrf_failed"

LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# Behind a proxy all come from one address, so that is not enough to tell who tries.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_CLIENT_IP_CALLABLE = "sessions_app.web.account.throttle.address_of"
AXES_LOCKOUT_CALLABLE = "sessions_app.web.account.throttle.locked_out"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

# --- Static files: names carry a hash of the contents, so browsers may keep them for ever

STATIC_URL = "/static/"
STATICFILES_DIRS = [bundled("static")]
# Ours alone: packages bring files that no page of ours asks for.
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
STATIC_ROOT = env.text("STATIC_ROOT", str(HOME.static))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "replay_web.static.HashedStaticFilesStorage"},
}

# --- PostgreSQL

DATABASES: dict[str, dict[str, Any]] = {}
# A network that swallows packets is noticed in seconds; otherwise it takes TCP a quarter of an hour.
_LOST_NETWORK = {"connect_timeout": "5", "tcp_user_timeout": "10000", "keepalives_idle": "10"}
DATABASE_URL = env.secret("DATABASE_URL", OF_HOME.get("DATABASE_URL", ""))
if DATABASE_URL:
    DATABASES["default"] = addresses.database(DATABASE_URL)
    DATABASES["default"]["OPTIONS"] = {**_LOST_NETWORK, **DATABASES["default"]["OPTIONS"]}
    # Web and worker threads come and go; a pool bounds their connections and keeps them warm.
    # 0 is for commands that end soon, and for those who run a pool of their own.
    if _pool_size := env.number("DATABASE_POOL_SIZE", 10):
        # The pause between two tries to connect doubles until the pool gives up, after a second here; then the next
        # request tries anew. So it does not matter how long the database was away.
        DATABASES["default"]["OPTIONS"]["pool"] = {
            "min_size": 1,
            "max_size": _pool_size,
            "timeout": 2,
            "reconnect_timeout": 1,
        }
        # Connections of our own pool stay, and with them what PostgreSQL has planned. `server_side_binding` would plan
        # more, but cuts numbers that a column cannot hold, where PostgreSQL would refuse them.
        DATABASES["default"]["OPTIONS"]["prepare_threshold"] = 5

# --- Redis and Celery. The database is the truth of the queue; a message only wakes a worker up

REDIS_URL = env.secret("REDIS_URL", OF_HOME.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
# Loaded by whoever wakes a worker: web processes, commands and a shell do not all need Celery.
QUEUE_APP = "replay_web.celery"
CELERY_BROKER_URL = addresses.celery_broker(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = {"unacked_restore_throttle": 1}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_DEFAULT_QUEUE = "replays"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False  # the lease in the database brings lost work back, without redelivery storms
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TIMEZONE = "UTC"
WORKER_THREADS = env.number("WORKER_THREADS", 2, at_least=1)
# "code" is for replays with the team's own agents; where runners serve it elsewhere, leave it out here.
WORKER_QUEUES = env.words("WORKER_QUEUES", OF_HOME.get("WORKER_QUEUES", "")) or ["replays", "code"]

# --- Replays

REPLAY_LEASE_SECONDS = env.number("REPLAY_LEASE_SECONDS", 30, at_least=1)
REPLAY_SWEEP_SECONDS = env.number("REPLAY_SWEEP_SECONDS", 5, at_least=1)
REPLAY_MAX_ATTEMPTS = env.number("REPLAY_MAX_ATTEMPTS", 3, at_least=1)
REPLAY_TIME_LIMIT_SECONDS = env.number("REPLAY_TIME_LIMIT_SECONDS", 600, at_least=1)

# --- The live model of the server, for all projects, and where those that projects connect may be

REPLAY_MODEL_ENDPOINT = env.text("REPLAY_MODEL_ENDPOINT", OF_HOME.get("REPLAY_MODEL_ENDPOINT", ""))
REPLAY_MODEL_KEY = env.secret("REPLAY_MODEL_KEY")
REPLAY_MODEL_NAME = env.text("REPLAY_MODEL_NAME", OF_HOME.get("REPLAY_MODEL_NAME", ""))
REPLAY_MODEL_HOSTS = env.words(
    "REPLAY_MODEL_HOSTS", OF_HOME.get("REPLAY_MODEL_HOSTS") or "api.openai.com, api.anthropic.com"
)
REPLAY_MODEL_ALLOW_PRIVATE = env.boolean("REPLAY_MODEL_ALLOW_PRIVATE", OF_HOME.get("REPLAY_MODEL_ALLOW_PRIVATE", ""))
REPLAY_MODEL_TIMEOUT_SECONDS = env.number("REPLAY_MODEL_TIMEOUT_SECONDS", 60, at_least=1)
REPLAY_MODEL_MAX_ANSWER_BYTES = env.number("REPLAY_MODEL_MAX_ANSWER_BYTES", 1024 * 1024, at_least=1024)
REPLAY_MODEL_MAX_REQUESTS = env.number("REPLAY_MODEL_MAX_REQUESTS", 200, at_least=1)

# --- The team's own agents, by name; docs/code-replay.md. A fresh installation has those of the example recordings

REPLAY_AGENTS = env.agents(
    "REPLAY_AGENTS",
    OF_HOME.get("REPLAY_AGENTS")
    or "order_desk=sessions_app.examples.agents:order_desk, "
    "order_desk_fixed=sessions_app.examples.agents:order_desk_fixed, "
    "order_desk_repaired=sessions_app.examples.agents:order_desk_repaired, "
    "v2_with_empty_check=sessions_app.examples.agents:v2_with_empty_check, "
    "order_lookup=sessions_app.examples.agents:order_lookup, "
    "order_lookup_scoped=sessions_app.examples.agents:order_lookup_scoped, "
    "billing_desk=sessions_app.examples.agents:billing_desk",
)
REPLAY_AGENT_ENV = {
    **env.folders("PYTHONPATH", OF_HOME),
    **env.passed_on("REPLAY_AGENT_ENV", OF_HOME.get("REPLAY_AGENT_ENV", "")),
}
REPLAY_CODE_MEMORY_MB = env.number("REPLAY_CODE_MEMORY_MB", 1024, at_least=256)
REPLAY_CODE_SECONDS = env.number("REPLAY_CODE_SECONDS", 60, at_least=1)
REPLAY_CODE_OUTPUT_MB = env.number("REPLAY_CODE_OUTPUT_MB", 16, at_least=1)

# --- Limits. The doors for records read their bodies themselves, within these

REPLAY_MAX_BODY_BYTES = env.number("REPLAY_MAX_BODY_BYTES", 4 * 1024 * 1024, at_least=1024)
REPLAY_MAX_INFLATED_BYTES = env.number("REPLAY_MAX_INFLATED_BYTES", 20 * 1024 * 1024, at_least=1024)
# Of one web process; beyond them OTLP senders are told to come back. Fewer requests than threads: pages want some too.
OTLP_MAX_REQUESTS_IN_FLIGHT = env.number("OTLP_MAX_REQUESTS_IN_FLIGHT", 6, at_least=1)
# From so many on a worker makes the runs of what they bring, so that pages are as fast as before.
OTLP_BUSY_REQUESTS_PER_SECOND = env.number("OTLP_BUSY_REQUESTS_PER_SECOND", 5, at_least=1)
# Of one web process; a request with `wait` holds a thread until what it waits for has ended.
API_DOCS_PUBLIC = env.boolean("API_DOCS_PUBLIC")
API_MAX_WAITING_REQUESTS = env.number("API_MAX_WAITING_REQUESTS", 4, at_least=0)
OTLP_MAX_BYTES_IN_FLIGHT = env.number("OTLP_MAX_BYTES_IN_FLIGHT", 64 * 1024 * 1024, at_least=1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = REPLAY_MAX_BODY_BYTES
# Larger payloads (compressed) lie in a folder and not in the database.
REPLAY_BLOBS = env.place("REPLAY_BLOBS", str(HOME.path / "blobs"))
REPLAY_BLOB_THRESHOLD_BYTES = env.number("REPLAY_BLOB_THRESHOLD_BYTES", 1024 * 1024, at_least=1024)
# A trace whose topmost span has not come for so long is shown as incomplete.
OTLP_QUIET_SECONDS = env.number("OTLP_QUIET_SECONDS", 60, at_least=1)
REPLAY_ERROR_WORDS = env.words("REPLAY_ERROR_WORDS")

# --- Logging: never a payload

LOG_LEVEL = env.text("LOG_LEVEL", "WARNING").upper()
LOG_FORMAT = env.one_of("LOG_FORMAT", "line", "json")
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s%(request_id)s %(name)s: %(message)s"},
        "json": {"()": "replay_web.json_logs.JsonLines"},
    },
    "filters": {
        "mask": {"()": "replay_web.log_masks.MaskShareTokens"},
        "request": {"()": "replay_web.request_ids.NameRequest"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["mask", "request"]}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    # Its own handler would mail or print requests' data.
    "loggers": {"django": {"handlers": [], "propagate": True}},
}
