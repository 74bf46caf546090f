import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import sessions_app.models.contents
import sessions_app.models.goldens
import sessions_app.models.packed
import sessions_app.models.projects
import sessions_app.models.replays
import sessions_app.models.sharing
import sessions_app.models.spelled


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_id", models.CharField(max_length=512)),
                ("origin", models.CharField(max_length=8)),
                ("parent_run_id", models.CharField(max_length=512, null=True)),
                ("parent_step", models.PositiveIntegerField(null=True)),
                ("status", models.CharField(max_length=8)),
                ("content_digest", models.BinaryField()),
                ("source_format", models.CharField(max_length=40)),
                ("source_digest", models.BinaryField(null=True)),
                ("received_at", models.DateTimeField(auto_now_add=True)),
                ("is_example", models.BooleanField(default=False)),
                ("span_id", models.CharField(max_length=16, null=True)),
                ("agent_name", models.TextField(null=True)),
                ("agent_version", models.TextField(null=True)),
                ("commit", models.TextField(null=True)),
                ("model", models.TextField(null=True)),
                ("provider", models.TextField(null=True)),
                ("user_id", models.TextField(null=True)),
                ("tenant_id", models.TextField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("duration_ms", models.FloatField(null=True)),
                ("input_preview", models.TextField(null=True)),
                ("output_preview", models.TextField(null=True)),
                ("error_preview", models.TextField(null=True)),
                ("step_count", models.IntegerField()),
                ("model_call_count", models.IntegerField()),
                ("tool_call_count", models.IntegerField()),
                ("message_count", models.IntegerField()),
                ("input_tokens", models.BigIntegerField(null=True)),
                ("output_tokens", models.BigIntegerField(null=True)),
                (
                    "tool_names",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
                ),
                (
                    "model_names",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
                ),
                (
                    "step_kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
                ),
                ("strip", models.TextField()),
                ("verdict", models.CharField(max_length=20)),
                ("verdict_step", models.IntegerField(null=True)),
                ("verdict_reasons", models.JSONField(default=list)),
                ("anomalies", models.JSONField(default=list)),
                ("kit", sessions_app.models.packed.PackedKitField(default=dict)),
                (
                    "kit_lacks",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
                ),
                ("kit_captured", models.SmallIntegerField()),
                ("story", models.TextField()),
                ("answer_sources", models.JSONField(default=dict)),
                ("failure_group", models.CharField(max_length=10, null=True)),
                ("search", django.contrib.postgres.search.SearchVectorField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("member", "Member"), ("admin", "Admin")],
                        default="member",
                        max_length=8,
                    ),
                ),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=64, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("redaction_secret", models.BinaryField(default=sessions_app.models.projects.new_redaction_secret)),
                ("redaction", models.TextField(blank=True, default="")),
                ("anomaly_rules", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("members", models.ManyToManyField(through="sessions_app.Membership", to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name="membership",
            name="project",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="sessions_app.project"),
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("member", "Member"), ("admin", "Admin")],
                        default="member",
                        max_length=8,
                    ),
                ),
                ("digest", models.BinaryField(unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="IngestNote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("door", models.CharField(max_length=32)),
                ("status", models.SmallIntegerField()),
                ("words", models.CharField(max_length=300)),
                ("count", models.IntegerField(default=0)),
                ("times", models.IntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ingest_notes",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HistoryNode",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "project", "digest", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("digest", models.BinaryField()),
                ("parent", models.BinaryField(null=True)),
                ("message", models.BinaryField()),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="sessions_app.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GoldenBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "golden_batch_id",
                    models.CharField(
                        default=sessions_app.models.goldens.new_golden_batch_id, max_length=40, unique=True
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=200)),
                ("is_deploy", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="golden_batches",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Golden",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "golden_id",
                    models.CharField(default=sessions_app.models.goldens.new_golden_id, max_length=40, unique=True),
                ),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                ("expected_outcome", models.TextField(blank=True)),
                ("checks", sessions_app.models.spelled.SpelledJsonField()),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("recording", "Recording"),
                            ("code", "Code"),
                            ("code_and_tools", "Code And Tools"),
                            ("live", "Live"),
                            ("fork", "Fork"),
                            ("resume", "Resume"),
                            ("sampling", "Sampling"),
                        ],
                        default="recording",
                        max_length=16,
                    ),
                ),
                ("order", sessions_app.models.spelled.SpelledJsonField(default=dict)),
                (
                    "fails_on",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=512), default=list, size=None
                    ),
                ),
                (
                    "passes_on",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=512), default=list, size=None
                    ),
                ),
                ("is_decided_by_code", models.BooleanField(default=False)),
                ("quarantined_at", models.DateTimeField(null=True)),
                ("quarantine_reason", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="goldens",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("prefix", models.CharField(max_length=16)),
                ("digest", models.BinaryField(unique=True)),
                (
                    "scope",
                    models.CharField(
                        choices=[("ingest", "Ingest"), ("full", "Full"), ("admin", "Admin")],
                        default="ingest",
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("replaced_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="keys", to="sessions_app.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RedactionJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rules", models.TextField(blank=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("counting", "Counting"),
                            ("counted", "Counted"),
                            ("applying", "Applying"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="counting",
                        max_length=10,
                    ),
                ),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("traces", "Traces"),
                            ("contents", "Contents"),
                            ("words", "Words"),
                            ("remains", "Remains"),
                        ],
                        default="contents",
                        max_length=10,
                    ),
                ),
                ("position", models.BigIntegerField(default=0)),
                ("looked_at", models.IntegerField(default=0)),
                ("counts", models.JSONField(default=dict)),
                ("changed", models.JSONField(default=dict)),
                ("unchanged", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="redaction_jobs",
                        to="sessions_app.project",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "started_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "replay_id",
                    models.CharField(default=sessions_app.models.replays.new_replay_id, max_length=40, unique=True),
                ),
                ("number", models.IntegerField()),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("recording", "Recording"),
                            ("code", "Code"),
                            ("code_and_tools", "Code And Tools"),
                            ("live", "Live"),
                            ("fork", "Fork"),
                            ("resume", "Resume"),
                            ("sampling", "Sampling"),
                        ],
                        default="recording",
                        max_length=16,
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        choices=[("replays", "Replays"), ("code", "Code")], default="replays", max_length=10
                    ),
                ),
                ("order", sessions_app.models.spelled.SpelledJsonField(default=dict)),
                ("course", sessions_app.models.spelled.SpelledJsonField(default=dict)),
                ("is_golden", models.BooleanField(default=False)),
                ("fork_id", models.CharField(max_length=512, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("claimed", "Claimed"),
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("crashed", "Crashed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("request_key", models.CharField(max_length=120, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("attempt", models.IntegerField(default=0)),
                ("fence", models.BigIntegerField(default=0)),
                ("worker", models.CharField(max_length=120, null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("woken_at", models.DateTimeField(null=True)),
                ("claimed_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("is_cancel_wanted", models.BooleanField(default=False)),
                (
                    "cancelled_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("takeovers", models.JSONField(default=list)),
                ("progress_done", models.IntegerField(default=0)),
                ("progress_total", models.IntegerField(default=0)),
                ("verdict", models.CharField(max_length=24, null=True)),
                ("divergence", sessions_app.models.spelled.SpelledJsonField(null=True)),
                ("live_calls", models.IntegerField(null=True)),
                ("refused_calls", models.IntegerField(null=True)),
                ("facts", sessions_app.models.spelled.SpelledJsonField(default=dict)),
                ("error", models.TextField(null=True)),
                ("stopped_at", sessions_app.models.spelled.SpelledJsonField(null=True)),
                ("expectation_met", models.BooleanField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="replays", to="sessions_app.project"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GoldenRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "golden_run_id",
                    models.CharField(default=sessions_app.models.goldens.new_golden_run_id, max_length=40, unique=True),
                ),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("pass", "Passed"),
                            ("fail", "Failed"),
                            ("could_not_run", "Could not run"),
                            ("nothing_covered", "Not judged"),
                        ],
                        max_length=16,
                        null=True,
                    ),
                ),
                ("words", models.TextField(blank=True)),
                ("checks", sessions_app.models.spelled.SpelledJsonField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "batch",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="sessions_app.goldenbatch",
                    ),
                ),
                (
                    "golden",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="sessions_app.golden"
                    ),
                ),
                (
                    "replay",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="golden_run", to="sessions_app.replay"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Trace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("trace_id", models.CharField(max_length=32)),
                ("batches_received", models.IntegerField(default=0)),
                ("batches_assembled", models.IntegerField(default=0)),
                ("span_count", models.IntegerField(default=0)),
                ("said_bytes", models.BigIntegerField(default=0)),
                ("changed_at", models.DateTimeField(auto_now_add=True)),
                ("is_closed", models.BooleanField(default=False)),
                ("problem", models.TextField(null=True)),
                (
                    "joined",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="others",
                        to="sessions_app.trace",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="traces",
                        to="sessions_app.project",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="trace",
                        to="sessions_app.run",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="runs",
                to="sessions_app.project",
            ),
        ),
        migrations.AddField(
            model_name="replay",
            name="produced_run",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="produced_by",
                to="sessions_app.run",
            ),
        ),
        migrations.AddField(
            model_name="replay",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="replays", to="sessions_app.run"
            ),
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("step", models.IntegerField(null=True)),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "key",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to="sessions_app.apikey"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notes", to="sessions_app.run"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="golden",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="goldens", to="sessions_app.run"
            ),
        ),
        migrations.CreateModel(
            name="ColdCase",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.TextField()),
                (
                    "missing",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
                ),
                ("marked_at", models.DateTimeField(auto_now_add=True)),
                (
                    "marked_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="cold_case", to="sessions_app.run"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RunContent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BinaryField()),
                ("header", sessions_app.models.packed.PackedField()),
                ("outline", models.BinaryField()),
                ("step_count", models.IntegerField()),
                ("change_count", models.IntegerField()),
                (
                    "keys",
                    sessions_app.models.contents.NumbersField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("prior_node", models.IntegerField(null=True)),
                ("final_node", models.IntegerField(null=True)),
                ("nodes", models.BinaryField(null=True)),
                ("node_count", models.IntegerField(default=0)),
                ("first_node", models.IntegerField(default=0)),
                ("piece_count", models.IntegerField(default=0)),
                ("first_piece", models.IntegerField(default=0)),
                ("base_steps", models.IntegerField(default=0)),
                ("released_at", models.DateTimeField(null=True)),
                (
                    "base",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="followers",
                        to="sessions_app.runcontent",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="contents",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="content",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.RESTRICT, related_name="run", to="sessions_app.runcontent"
            ),
        ),
        migrations.AddField(
            model_name="replay",
            name="content",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.RESTRICT, related_name="replays", to="sessions_app.runcontent"
            ),
        ),
        migrations.CreateModel(
            name="ContentBlock",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "content", "first", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("first", models.IntegerField()),
                ("data", models.BinaryField()),
                (
                    "content",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_blocks",
                        to="sessions_app.runcontent",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SavedQuery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("address", models.TextField()),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_queries",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_id", models.CharField(max_length=512)),
                ("started_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), db_default=[], default=list, size=None
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="runs",
                to="sessions_app.session",
            ),
        ),
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
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("recording", "Recording"),
                            ("code", "Code"),
                            ("code_and_tools", "Code And Tools"),
                            ("live", "Live"),
                            ("fork", "Fork"),
                            ("resume", "Resume"),
                            ("sampling", "Sampling"),
                        ],
                        default="recording",
                        max_length=16,
                    ),
                ),
                ("order", sessions_app.models.spelled.SpelledJsonField(default=dict)),
                ("contradictions", models.JSONField(default=list)),
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
        migrations.CreateModel(
            name="ShareLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BinaryField(unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(default=sessions_app.models.sharing.default_expiry)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("views", models.IntegerField(default=0)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="share_links",
                        to="sessions_app.project",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="share_links", to="sessions_app.run"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SignIn",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("signed_in_at", models.DateTimeField(null=True)),
                ("browser", models.CharField(blank=True, max_length=200)),
                ("address", models.GenericIPAddressField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sign_ins",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SpanBatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BinaryField()),
                ("content", models.BinaryField()),
                ("is_compressed", models.BooleanField()),
                ("holder", models.BigIntegerField(null=True)),
                ("received_at", models.DateTimeField(auto_now_add=True)),
                (
                    "trace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="sessions_app.trace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StoredPayload",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "project", "digest", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("digest", models.BinaryField()),
                ("size", models.IntegerField()),
                ("stored_size", models.IntegerField()),
                ("data", models.BinaryField(null=True)),
                ("is_compressed", models.BooleanField()),
                ("is_doomed", models.BooleanField(default=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="sessions_app.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LoneCall",
            fields=[
                (
                    "trace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="lone_call",
                        serialize=False,
                        to="sessions_app.trace",
                    ),
                ),
                ("continues", models.BinaryField(null=True)),
                ("leaves", models.BinaryField(null=True)),
                ("response", models.BinaryField(null=True)),
                ("scope", models.TextField()),
                ("is_answered", models.BooleanField()),
                ("began_ns", models.BigIntegerField()),
                ("ended_ns", models.BigIntegerField()),
                ("is_told_again", models.BooleanField(default=False)),
                ("is_settled", models.BooleanField(default=False)),
                (
                    "after",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="sessions_app.trace",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sessions_app.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ModelPrice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=200)),
                ("since", models.DateField(null=True)),
                ("input_price", models.DecimalField(decimal_places=6, max_digits=12)),
                ("output_price", models.DecimalField(decimal_places=6, max_digits=12)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="prices", to="sessions_app.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "model", "since"), name="one_price_a_model_and_day", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(fields=("project", "user"), name="one_role_a_project"),
        ),
        migrations.AddIndex(
            model_name="ingestnote",
            index=models.Index(fields=["project", "-last_at"], name="ingest_notes_newest"),
        ),
        migrations.AddConstraint(
            model_name="redactionjob",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["counting", "counted", "applying"])),
                fields=("project",),
                name="one_open_redaction_a_project",
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(
                condition=models.Q(("batches_assembled__lt", models.F("batches_received"))),
                fields=["changed_at"],
                name="traces_to_assemble",
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(condition=models.Q(("is_closed", False)), fields=["changed_at"], name="traces_open"),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(
                condition=models.Q(("run__isnull", True)),
                fields=["trace_id"],
                name="traces_without_run",
                opclasses=["text_pattern_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(
                condition=models.Q(("problem__isnull", False)),
                fields=["project", "-changed_at"],
                name="traces_not_read",
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(condition=models.Q(("joined__isnull", False)), fields=["joined"], name="traces_joined"),
        ),
        migrations.AddConstraint(
            model_name="trace",
            constraint=models.UniqueConstraint(fields=("project", "trace_id"), name="one_trace_an_id"),
        ),
        migrations.AddIndex(
            model_name="golden",
            index=models.Index(fields=["project", "-id"], name="goldens_newest_first"),
        ),
        migrations.AddIndex(
            model_name="runcontent",
            index=models.Index(
                condition=models.Q(("base__isnull", False)), fields=["base"], name="followers_of_a_content"
            ),
        ),
        migrations.AddIndex(
            model_name="runcontent",
            index=models.Index(
                condition=models.Q(("released_at__isnull", False)), fields=["released_at"], name="released"
            ),
        ),
        migrations.AddIndex(
            model_name="runcontent",
            index=django.contrib.postgres.indexes.GinIndex(fields=["keys"], name="contents_by_key"),
        ),
        migrations.AddConstraint(
            model_name="savedquery",
            constraint=models.UniqueConstraint(fields=("project", "name"), name="one_saved_query_a_name"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=django.contrib.postgres.indexes.GinIndex(fields=["tags"], name="sessions_by_tag"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("tags", []), _negated=True), fields=["project"], name="tagged_sessions"
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["project", "-last_at", "-id"], name="sessions_newest_first"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["session_id"], name="session_prefix", opclasses=["text_pattern_ops"]),
        ),
        migrations.AddConstraint(
            model_name="session",
            constraint=models.UniqueConstraint(fields=("project", "session_id"), name="one_session_an_id"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["session", "id"], name="runs_of_a_session"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["run_id"], name="run_prefix", opclasses=["text_pattern_ops"]),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["project", "parent_run_id"], name="runs_of_a_parent"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("span_id__isnull", False)), fields=["span_id"], name="runs_of_a_span"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status", "ok"), _negated=True), fields=["project", "-id"], name="runs_with_errors"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("failure_group__isnull", False)),
                fields=["project", "failure_group"],
                name="runs_by_failure",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=django.contrib.postgres.indexes.GinIndex(fields=["search"], name="runs_search"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=django.contrib.postgres.indexes.GinIndex(fields=["tool_names"], name="runs_tools"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(fields=("project", "run_id"), name="one_run_an_id"),
        ),
        migrations.AddConstraint(
            model_name="sessionreplay",
            constraint=models.UniqueConstraint(
                fields=("project", "request_key"), name="one_session_replay_a_request_key"
            ),
        ),
        migrations.AddIndex(
            model_name="replay",
            index=models.Index(
                condition=models.Q(("state__in", ["queued", "claimed", "running", "paused"])),
                fields=["id"],
                name="open_replays",
            ),
        ),
        migrations.AddIndex(
            model_name="replay",
            index=models.Index(fields=["project", "-id"], name="replays_newest_first"),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(fields=("project", "fork_id"), name="one_fork_an_id"),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("is_golden", False), models.Q(("mode__in", ["fork", "resume", "sampling"]), _negated=True)
                ),
                fields=("run", "number"),
                name="one_attempt_a_number",
            ),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_golden", True)), fields=("run", "number"), name="one_golden_run_a_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(
                condition=models.Q(("mode__in", ["fork", "resume", "sampling"])),
                fields=("run", "number"),
                name="one_fork_a_number",
            ),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(fields=("project", "request_key"), name="one_replay_a_request_key"),
        ),
        migrations.AddConstraint(
            model_name="spanbatch",
            constraint=models.UniqueConstraint(fields=("trace", "digest"), name="one_batch_a_digest"),
        ),
        migrations.AddIndex(
            model_name="storedpayload",
            index=models.Index(condition=models.Q(("data", None)), fields=["digest"], name="payload_in_folder"),
        ),
        migrations.AddIndex(
            model_name="storedpayload",
            index=models.Index(condition=models.Q(("is_doomed", True)), fields=["project"], name="payloads_doomed"),
        ),
        migrations.AddIndex(
            model_name="lonecall",
            index=models.Index(
                condition=models.Q(("continues", None), _negated=True),
                fields=["project", "continues"],
                name="calls_by_start",
            ),
        ),
        migrations.AddIndex(
            model_name="lonecall",
            index=models.Index(
                condition=models.Q(("leaves", None), _negated=True), fields=["project", "leaves"], name="calls_by_end"
            ),
        ),
        migrations.AddIndex(
            model_name="lonecall",
            index=models.Index(
                condition=models.Q(("response", None), _negated=True),
                fields=["project", "response"],
                name="calls_by_answer",
            ),
        ),
        migrations.AddIndex(
            model_name="lonecall",
            index=models.Index(condition=models.Q(("is_settled", False)), fields=["project"], name="calls_to_settle"),
        ),
        migrations.CreateModel(
            name="ConnectedModel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                (
                    "provider",
                    models.CharField(
                        choices=[
                            ("openai", "OpenAI"),
                            ("anthropic", "Anthropic"),
                            ("openai-compatible", "OpenAI-compatible"),
                        ],
                        max_length=20,
                    ),
                ),
                ("base_url", models.CharField(max_length=300)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("sealed_key", models.TextField(blank=True)),
                ("requests_per_day", models.IntegerField()),
                ("requests_sent", models.IntegerField(default=0)),
                ("sent_on", models.DateField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="connected_models",
                        to="sessions_app.project",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "name"), name="one_connected_model_a_name")],
            },
        ),
        migrations.CreateModel(
            name="BulkJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "bulk_job_id",
                    models.CharField(default=sessions_app.models.bulk_jobs.new_bulk_job_id, max_length=40, unique=True),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("replay", "Replay"),
                            ("cancel", "Cancel"),
                            ("cold", "Cold"),
                            ("tag", "Tag"),
                            ("untag", "Untag"),
                        ],
                        max_length=10,
                    ),
                ),
                ("words", models.TextField(blank=True)),
                ("query", models.TextField(blank=True)),
                ("since", models.DateTimeField(null=True)),
                ("until", models.DateTimeField(null=True)),
                ("newest", models.BigIntegerField()),
                ("total", models.IntegerField()),
                ("position", models.BigIntegerField(default=0)),
                ("looked_at", models.IntegerField(default=0)),
                ("changed", models.IntegerField(default=0)),
                ("request_key", models.CharField(max_length=120)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="bulk_jobs", to="sessions_app.project"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("finished_at", None)), fields=["id"], name="bulk_jobs_at_work")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "request_key"), name="one_bulk_job_a_request_key")
                ],
            },
        ),
        # zstd's frames and digests get no smaller by PostgreSQL's own compression.
        migrations.RunSQL(
            [
                "ALTER TABLE sessions_app_contentblock ALTER COLUMN data SET STORAGE EXTERNAL",
                "ALTER TABLE sessions_app_runcontent ALTER COLUMN header SET STORAGE EXTERNAL",
                "ALTER TABLE sessions_app_runcontent ALTER COLUMN outline SET STORAGE EXTERNAL",
                "ALTER TABLE sessions_app_runcontent ALTER COLUMN nodes SET STORAGE EXTERNAL",
                "ALTER TABLE sessions_app_runcontent ALTER COLUMN keys SET STORAGE EXTERNAL",
                "ALTER TABLE sessions_app_storedpayload ALTER COLUMN data SET STORAGE EXTERNAL",
                "ALTER TABLE sessions_app_spanbatch ALTER COLUMN content SET STORAGE EXTERNAL",
            ],
            migrations.RunSQL.noop,
        ),
    ]
