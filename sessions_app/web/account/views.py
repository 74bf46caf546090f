"""Sign in, sign out, and the settings of one's own browser."""

from __future__ import annotations

from zoneinfo import available_timezones

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.models import Project
from sessions_app.queries.access import NoSuchProject, project_for
from sessions_app.services.sign_ins import end_sign_ins, own_sign_ins
from sessions_app.web.access import signed_in
from sessions_app.web.clock import known_zone
from sessions_app.web.frame import THEMES
from sessions_app.web.keys import SHEET, keys_are_on
from sessions_app.web.link_preview import preview_of

YEAR = 365 * 24 * 3600


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    target = safe_next(request)
    if request.user.is_authenticated and request.method == "GET":
        return redirect(target)
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        login(request, form.get_user())
        return redirect(target)
    status = 422 if form.is_bound else 200
    facts = {"form": form, "next": target, "preview": preview_of(target)}
    return render(request, "account/sign_in.html", facts, status=status)


def safe_next(request: HttpRequest) -> str:
    """Back to where one was, as long as that is here."""
    asked = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(asked, {request.get_host()}, require_https=request.is_secure())
    return asked if is_ours else settings.LOGIN_REDIRECT_URL


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("sign_in")


@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def password(request: HttpRequest) -> HttpResponse:
    """A new password ends all other sessions of the person."""
    assert request.user.is_authenticated
    form = PasswordChangeForm(request.user, request.POST or None)
    if not form.is_valid():
        return render(request, "account/password.html", {"form": form}, status=422 if form.is_bound else 200)
    update_session_auth_hash(request, form.save())
    messages.info(request, "Your password is changed. You are signed out everywhere else.")
    return redirect("me")


@signed_in
@require_http_methods(["GET", "POST"])
def me(request: HttpRequest) -> HttpResponse:
    """Kept in cookies: they belong to the browser, as its screen and its keyboard do."""
    zone = request.POST.get("zone", "").strip()
    if request.method == "POST" and (not zone or known_zone(zone)):
        return _remembered(request, zone)
    assert request.user.is_authenticated
    facts = {
        "groups": SHEET,
        "themes": THEMES,
        "theme_now": request.COOKIES.get("theme", "system"),
        "keys_on": keys_are_on(request.COOKIES),
        "is_mine": request.COOKIES.get("clock") == "mine",
        "zone": zone or known_zone(request.COOKIES.get("zone", "")),
        "browser_zone": known_zone(request.COOKIES.get("browser_zone", "")),
        "zones": sorted(available_timezones()),
        "zone_error": f"There is no time zone {zone!r}. Use a name such as Europe/Berlin." if zone else "",
        "sign_ins": own_sign_ins(request.user, request.session.session_key),
        "project": (project := _project_in(request)),
        "section": "settings" if project else "",
    }
    return render(request, "account/me.html", facts, status=422 if zone else 200)


def _project_in(request: HttpRequest) -> Project | None:
    """The one whose settings led here."""
    try:
        return project_for(request.user, request.GET.get("in", ""))
    except NoSuchProject:
        return None


def _remembered(request: HttpRequest, zone: str) -> HttpResponse:
    project = _project_in(request)
    address = f"{reverse('me')}?in={project.slug}" if project else reverse("me")
    response, theme = redirect(address), request.POST.get("theme", "")
    remember(response, "theme", theme if theme in THEMES else "system")
    remember(response, "keys", "on" if request.POST.get("keys") else "off")
    remember(response, "clock", "mine" if request.POST.get("clock") == "mine" else "utc")
    remember(response, "zone", zone)
    messages.info(request, "Kept.")
    return response


@require_POST
@signed_in
def end_sign_in(request: HttpRequest) -> HttpResponse:
    """The one that is named, or all but this one."""
    assert request.user.is_authenticated
    here, name = request.session.session_key, request.POST.get("sign_in")
    ended = end_sign_ins(request.user, names=None if name is None else [name], here=here)
    messages.info(request, f"{ended} session{'' if ended == 1 else 's'} ended.")
    return redirect("me")


def remember(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(name, value, max_age=YEAR, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE)
