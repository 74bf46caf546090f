"""Every address of the product."""

from django.urls import include, path

from replay_web import health
from sessions_app.mcp import over_http

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("sessions_app.api.urls")),
    path("mcp", over_http.endpoint, name="mcp"),
    path("", include("sessions_app.web.urls")),
]

handler400 = "sessions_app.web.errors.views.bad_request"
handler403 = "sessions_app.web.errors.views.forbidden"
handler404 = "sessions_app.web.errors.views.not_found"
handler500 = "sessions_app.web.errors.views.server_error"
