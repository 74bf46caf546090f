"""The one Django app."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in

        from sessions_app.services.sign_ins import note_where

        user_logged_in.connect(note_where, dispatch_uid="note_where")
