import django.db.models.deletion
from django.db import migrations, models

from sessions_app.core.packed_nodes import unpack_nodes

_ROW = """
INSERT INTO sessions_app_historynode (project_id, digest, parent, message) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


def write_rows(apps, schema_editor):
    """Before the table goes: code from before looks for the nodes among the rows."""
    histories = apps.get_model("sessions_app", "RunHistory").objects.values_list("run__project_id", "nodes")
    with schema_editor.connection.cursor() as cursor:
        for project, nodes in histories.iterator(100):
            rows = [
                (project, bytes.fromhex(digest), parent and bytes.fromhex(parent), bytes.fromhex(message))
                for digest, (parent, message) in unpack_nodes(bytes(nodes)).items()
            ]
            cursor.executemany(_ROW, rows)


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0012_step_blocks"),
    ]

    operations = [
        migrations.CreateModel(
            name="RunHistory",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="own_history",
                        serialize=False,
                        to="sessions_app.run",
                    ),
                ),
                ("count", models.IntegerField()),
                ("nodes", models.BinaryField()),
            ],
        ),
        migrations.RunPython(migrations.RunPython.noop, write_rows),
        # Those of new rows are the first half of what they were.
        migrations.RunSQL(
            "UPDATE sessions_app_step SET request_key = substring(request_key FOR 16),"
            " result_key = substring(result_key FOR 16)"
            " WHERE octet_length(request_key) > 16 OR octet_length(result_key) > 16",
            migrations.RunSQL.noop,
        ),
        # Digests do not get smaller.
        migrations.RunSQL(
            "ALTER TABLE sessions_app_runhistory ALTER COLUMN nodes SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
