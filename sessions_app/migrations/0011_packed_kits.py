import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import sessions_app.models.packed

KIT_LACKS = """
UPDATE sessions_app_run SET kit_lacks = ARRAY(
    SELECT line ->> 'key' FROM jsonb_array_elements(kit -> 'lines') WITH ORDINALITY AS given (line, number)
    WHERE line ->> 'status' <> 'captured' ORDER BY number
)
"""
# JSON text that is not compressed is read as it is.
PACK_KIT = "ALTER TABLE sessions_app_run ALTER COLUMN kit TYPE bytea USING convert_to(kit::text, 'UTF8')"


def without_index(model: str, name: str, to: str, related_name: str | None = None) -> migrations.AlterField:
    """Another index begins with this column, or nobody looks for it but who deletes a project."""
    named = {} if related_name is None else {"related_name": related_name}
    key = models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to=to, **named)
    return migrations.AlterField(model_name=model, name=name, field=key)


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0010_smaller_rows"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="kit_lacks",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
        ),
        migrations.RunSQL(KIT_LACKS, migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(PACK_KIT)],
            state_operations=[
                migrations.AlterField(
                    model_name="run",
                    name="kit",
                    field=sessions_app.models.packed.PackedKitField(default=dict),
                ),
            ],
        ),
        without_index("payloadblock", "project", "sessions_app.project"),
        without_index("run", "project", "sessions_app.project", "runs"),
        without_index("run", "session", "sessions_app.session", "runs"),
        without_index("session", "project", "sessions_app.project", "sessions"),
        without_index("trace", "project", "sessions_app.project", "traces"),
        without_index("spanbatch", "trace", "sessions_app.trace", "batches"),
        migrations.AlterField(
            model_name="storedpayload",
            name="size",
            field=models.IntegerField(),
        ),
        migrations.AlterField(
            model_name="storedpayload",
            name="stored_size",
            field=models.IntegerField(),
        ),
    ]
