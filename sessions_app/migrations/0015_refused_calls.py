from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0014_run_of_an_order"),
    ]

    operations = [
        migrations.DeleteModel(
            name="ToolExecution",
        ),
        migrations.AddField(
            model_name="replay",
            name="refused_calls",
            field=models.IntegerField(null=True),
        ),
    ]
