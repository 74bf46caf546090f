import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sessions_app.models.replays

MODES = [
    ("recording", "Recording"),
    ("code", "Code"),
    ("code_and_tools", "Code And Tools"),
    ("fork", "Fork"),
    ("resume", "Resume"),
    ("sampling", "Sampling"),
]


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sessions_app", "0018_numbers_of_a_kind"),
    ]

    operations = [
        migrations.CreateModel(
            name="SessionReplay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "session_replay_id",
                    models.CharField(
                        default=sessions_app.models.replays.new_session_replay_id, max_length=40, unique=True
                    ),
                ),
                ("mode", models.CharField(choices=MODES, default="recording", max_length=16)),
                ("order", models.JSONField(default=dict)),
                ("request_key", models.CharField(max_length=120, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="session_replays",
                        to="sessions_app.project",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="session_replays",
                        to="sessions_app.session",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="replay",
            name="session_replay",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="replays",
                to="sessions_app.sessionreplay",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionreplay",
            constraint=models.UniqueConstraint(
                fields=["project", "request_key"], name="one_session_replay_a_request_key"
            ),
        ),
    ]
