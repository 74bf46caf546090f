import django.db.models.deletion
from django.db import migrations, models

import sessions_app.models.packed


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0011_packed_kits"),
    ]

    operations = [
        migrations.CreateModel(
            name="StepBlock",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run", "first", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("first", models.IntegerField()),
                ("data", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_blocks",
                        to="sessions_app.run",
                    ),
                ),
            ],
        ),
        migrations.AlterField(
            model_name="step",
            name="detail",
            field=sessions_app.models.packed.PackedField(null=True),
        ),
        # zstd's frames get no smaller by PostgreSQL's own compression.
        migrations.RunSQL(
            "ALTER TABLE sessions_app_stepblock ALTER COLUMN data SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
