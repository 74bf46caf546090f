from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0015_refused_calls"),
    ]

    operations = [
        migrations.AlterField(
            model_name="step",
            name="source",
            field=models.CharField(max_length=32),
        ),
    ]
