import django.db.models.deletion
from django.contrib.postgres.indexes import HashIndex
from django.db import migrations, models

import sessions_app.models.packed


def keyed_by(model: str, *key: str) -> list[migrations.SeparateDatabaseAndState]:
    """A constraint says already that there is one row a key: its index is all that is needed."""
    pair = models.CompositePrimaryKey(*key, blank=True, editable=False, primary_key=True, serialize=False)
    drop = migrations.RunSQL(f"ALTER TABLE sessions_app_{model} DROP COLUMN id")
    state = [migrations.RemoveField(model, "id"), migrations.AddField(model, "pk", pair)]
    return [migrations.SeparateDatabaseAndState(database_operations=[drop], state_operations=state)]


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0009_forks"),
    ]

    operations = [
        migrations.CreateModel(
            name="PayloadBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("data", models.BinaryField()),
                (
                    "project",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="sessions_app.project"),
                ),
            ],
        ),
        migrations.AddField(
            model_name="storedpayload",
            name="block",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="sessions_app.payloadblock",
            ),
        ),
        migrations.AddField(
            model_name="storedpayload",
            name="place",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="step",
            name="tool_name",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="step",
            name="has_state",
            field=models.BooleanField(null=True),
        ),
        migrations.AlterField(
            model_name="step",
            name="detail",
            field=sessions_app.models.packed.PackedField(),
        ),
        migrations.AlterField(
            model_name="run",
            name="header",
            field=sessions_app.models.packed.PackedField(),
        ),
        migrations.AlterField(
            model_name="storedpayload",
            name="project",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, to="sessions_app.project"
            ),
        ),
        migrations.AlterField(
            model_name="historynode",
            name="project",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, to="sessions_app.project"
            ),
        ),
        migrations.AlterField(
            model_name="step",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="own_steps",
                to="sessions_app.run",
            ),
        ),
        migrations.RemoveIndex(model_name="step", name="equal_calls"),
        migrations.RemoveIndex(model_name="step", name="equal_requests"),
        migrations.AddIndex(
            model_name="step",
            index=HashIndex(
                fields=["arguments_key"], name="equal_calls", condition=models.Q(arguments_key__isnull=False)
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=HashIndex(
                fields=["request_key"], name="equal_requests", condition=models.Q(request_key__isnull=False)
            ),
        ),
        *keyed_by("storedpayload", "project", "digest"),
        *keyed_by("historynode", "project", "digest"),
        *keyed_by("step", "run", "index"),
        # zstd's frames get no smaller by PostgreSQL's own compression.
        migrations.RunSQL(
            "ALTER TABLE sessions_app_payloadblock ALTER COLUMN data SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
