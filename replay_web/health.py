"""Is the process up, and can it do its work?"""

from collections.abc import Callable
from functools import cache

import redis
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from sessions_app.mapping.payloads import blob_store
from sessions_app.queries.blobs import blobs_elsewhere


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; touches nothing else, so that a sick database does not restart the web."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Each thing the work needs, with `ok` or what is wrong. Without Redis the work goes on: workers look for it by
    themselves, later. Where some payloads are elsewhere, pages show the rest."""
    checks = {name: check() for name, check in CHECKS.items()}
    wrong = [name for name, answer in checks.items() if answer != "ok"]
    is_ready = set(wrong) <= _HELPFUL
    facts = {"ready": is_ready, "degraded": is_ready and bool(wrong), "checks": checks}
    return JsonResponse(facts, status=200 if is_ready else 503)


def database() -> str:
    return _reached(database_error())


def database_error() -> DatabaseError | None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return error
    return None


def broker() -> str:
    return _reached(broker_error())


def broker_error() -> redis.RedisError | None:
    try:
        redis_client().ping()
    except redis.RedisError as error:
        return error
    return None


def _reached(error: Exception | None) -> str:
    """Anybody may ask: what the service itself said stays out."""
    return f"unreachable ({type(error).__name__})" if error else "ok"


@cache
def redis_client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)


def migrations() -> str:
    try:
        pending = pending_migrations()
    except DatabaseError as error:
        return f"unknown ({type(error).__name__})"
    return f"{len(pending)} pending" if pending else "ok"


_seen_complete: list[bool] = []


def pending_migrations() -> list[str]:
    """Names of the migrations this code has and the database has not; once none is left, none comes back."""
    if _seen_complete:
        return []
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        _seen_complete.append(True)
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def static_files() -> str:
    """Every page names some; without the list of them each page fails."""
    try:
        staticfiles_storage.url("css/base.css")
    except ValueError:
        return "not collected"
    return "ok"


def blobs() -> str:
    return blob_store().problem() or "ok"


def shared_blobs() -> str:
    """Web and workers have to see one folder, or what one of them stored is answered 410 by the others."""
    try:
        missing, looked_for = blobs_elsewhere(_BLOBS_LOOKED_FOR)
    except (DatabaseError, OSError) as error:
        return f"unknown ({type(error).__name__})"
    return f"{missing} of {looked_for} payloads are not there" if missing else "ok"


_BLOBS_LOOKED_FOR = 8

CHECKS: dict[str, Callable[[], str]] = {
    "database": database,
    "redis": broker,
    "migrations": migrations,
    "static_files": static_files,
    "blobs": blobs,
    "shared_blobs": shared_blobs,
}
_HELPFUL = {"redis", "shared_blobs"}
