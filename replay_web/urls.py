"""Every address of the product."""

from django.urls import include, path

from replay_web import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("sessions_app.api.urls")),
    path("", include("sessions_app.web.urls")),
]
