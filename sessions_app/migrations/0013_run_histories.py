import django.db.models.deletion
from django.db import migrations, models


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
