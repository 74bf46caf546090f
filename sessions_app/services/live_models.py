"""Which live models a project may ask: that of the server's environment, and those connected to the project."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from sessions_app.agents.live_model.endpoint import Endpoint, ModelUnavailable, Target
from sessions_app.models import ConnectedModel, Project
from sessions_app.models.connected_models import Provider
from sessions_app.services.sealing import SealBroken, unseal

ENVIRONMENT = "environment"
"""Name of the model that the server's environment configures."""
NONE = "No live model is connected to this project."


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveModel:
    """One that may be asked, unless `refusal` says why not."""

    name: str
    host: str
    model: str | None
    """Asked for in place of the recorded model."""
    left_today: int | None = None
    """Requests; None where no day has a budget."""
    refusal: str = ""
    row: ConnectedModel | None = None

    @property
    def words(self) -> str:
        place = f" at {self.host}" if self.host else ""
        return f"the server's own model{place}" if self.row is None else f"{self.name}{place}"

    @property
    def most_requests(self) -> int:
        """Of one replay, as far as is known now."""
        most: int = settings.REPLAY_MODEL_MAX_REQUESTS
        return most if self.left_today is None else min(most, self.left_today)

    def endpoint(self) -> Endpoint:
        """With its key. Raises `ModelUnavailable`."""
        return _of_environment() if self.row is None else _of_row(self.row, key=_key_of(self.row))


def live_models(project: Project) -> list[LiveModel]:
    """That of the environment first, then those connected by name; also those that cannot be asked now."""
    rows = ConnectedModel.objects.filter(project=project).order_by("name")
    return [*([_environment()] if settings.REPLAY_MODEL_ENDPOINT else []), *map(connected, rows)]


def live_model(project: Project, name: str | None) -> LiveModel:
    """The one of this name; without a name that of the environment, or the only one that is connected. Raises
    `ModelUnavailable`, also for one that cannot be asked now."""
    return pick(live_models(project), name)


def pick(known: list[LiveModel], name: str | None) -> LiveModel:
    """As `live_model` does, of those that were read."""
    found = [each for each in known if name in (None, each.name)]
    if name is None and found and found[0].row is None:
        found = found[:1]
    if not found:
        raise ModelUnavailable(NONE if name is None else f"No live model {name!r} is connected to this project.")
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise ModelUnavailable(f"Several live models are connected; name the one to ask: {names}.")
    if found[0].refusal:
        raise ModelUnavailable(found[0].refusal)
    return found[0]


def spend(row: ConnectedModel) -> None:
    """Count a request that is about to be sent. Raises `ModelUnavailable` where the day has none left."""
    today, rows = timezone.now().date(), ConnectedModel.objects.filter(pk=row.pk)
    if rows.exclude(sent_on=today).update(sent_on=today, requests_sent=1):
        return
    left = rows.filter(requests_sent__lt=F("requests_per_day"))
    if not left.update(requests_sent=F("requests_sent") + 1):
        raise ModelUnavailable(_spent(row) if rows.exists() else f"The model {row.name} is no longer connected.")


def _spent(row: ConnectedModel) -> str:
    budget = f"{row.requests_per_day:,} request{'' if row.requests_per_day == 1 else 's'}"
    return f"The budget of {row.name} for today ({budget}) is spent; it resets at 00:00 UTC."


# --- endpoints ---------------------------------------------------------------------------------


def _environment() -> LiveModel:
    model = settings.REPLAY_MODEL_NAME or None
    try:
        return LiveModel(name=ENVIRONMENT, host=_of_environment().target.host, model=model)
    except ModelUnavailable as problem:
        refusal = f"{problem.reason} REPLAY_MODEL_ENDPOINT and REPLAY_MODEL_KEY configure it."
        return LiveModel(name=ENVIRONMENT, host="", model=model, refusal=refusal)


def connected(row: ConnectedModel) -> LiveModel:
    host, refusal = "", "" if row.left_today else _spent(row)
    try:
        host = _of_row(row).target.host
    except ModelUnavailable as problem:
        refusal = problem.reason
    model, left = row.model or None, row.left_today
    return LiveModel(name=row.name, host=host, model=model, left_today=left, refusal=refusal, row=row)


def _of_environment() -> Endpoint:
    return _endpoint(settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_KEY, settings.REPLAY_MODEL_NAME)


def _of_row(row: ConnectedModel, *, key: str = "") -> Endpoint:
    endpoint = _endpoint(row.base_url, key, row.model)
    if row.provider == Provider.ANTHROPIC:
        endpoint = replace(endpoint, protocol="messages")
    if not _is_allowed(endpoint.target):
        raise ModelUnavailable("This server may not connect to its host: REPLAY_MODEL_HOSTS does not list it.")
    return endpoint


def _endpoint(url: str, key: str, model: str) -> Endpoint:
    """With the limits of this server."""
    return Endpoint(
        url=url,
        key=key,
        model=model or None,
        timeout_seconds=settings.REPLAY_MODEL_TIMEOUT_SECONDS,
        max_answer_bytes=settings.REPLAY_MODEL_MAX_ANSWER_BYTES,
        allow_private=settings.REPLAY_MODEL_ALLOW_PRIVATE,
        max_requests=settings.REPLAY_MODEL_MAX_REQUESTS,
    )


def check_address(row: ConnectedModel) -> None:
    """That it may be asked at all. Raises `ModelUnavailable`."""
    _of_row(row)


def _is_allowed(target: Target) -> bool:
    """A host without a port is allowed at the port of its scheme alone."""
    usual = 443 if target.is_tls else 80
    names = {f"{target.host}:{target.port}", *([target.host] if target.port == usual else [])}
    return any(fnmatchcase(name, allowed.lower()) for allowed in settings.REPLAY_MODEL_HOSTS for name in names)


def _key_of(row: ConnectedModel) -> str:
    try:
        return unseal(row.sealed_key) if row.sealed_key else ""
    except SealBroken:
        words = f"The key of {row.name} was stored under another SECRET_KEY of the server"
        raise ModelUnavailable(f"{words}; enter it again in Settings → Models.") from None
