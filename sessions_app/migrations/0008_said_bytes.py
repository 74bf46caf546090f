from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0007_span_ids"),
    ]

    operations = [
        migrations.AddField(
            model_name="trace",
            name="said_bytes",
            field=models.BigIntegerField(default=0),
        ),
    ]
