from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0016_code_and_tools"),
    ]

    operations = [
        migrations.AlterField(
            model_name="step",
            name="source",
            field=models.CharField(max_length=32),
        ),
    ]
