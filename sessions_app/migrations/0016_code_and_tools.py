from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0015_refused_calls")]

    operations = [
        migrations.AlterField(
            model_name="replay",
            name="mode",
            field=models.CharField(
                choices=[
                    ("recording", "Recording"),
                    ("code", "Code"),
                    ("code_and_tools", "Code And Tools"),
                    ("fork", "Fork"),
                    ("resume", "Resume"),
                    ("sampling", "Sampling"),
                ],
                default="recording",
                max_length=16,
            ),
        ),
    ]
