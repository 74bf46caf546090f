"""Is the process up, and can it do its work?"""

from collections.abc import Callable
from functools import cache

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; touches nothing else, so that a sick database does not restart the web."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Each thing the work needs, with `ok` or what is wrong."""
    checks = {name: check() for name, check in CHECKS.items()}
    is_ready = all(answer == "ok" for answer in checks.values())
    return JsonResponse({"ready": is_ready, "checks": checks}, status=200 if is_ready else 503)


def database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"unreachable ({type(error).__name__})"
    return "ok"


def broker() -> str:
    try:
        redis_client().ping()
    except redis.RedisError as error:
        return f"unreachable ({type(error).__name__})"
    return "ok"


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


CHECKS: dict[str, Callable[[], str]] = {"database": database, "redis": broker, "migrations": migrations}
