from django.db import migrations, models

MODES = [
    ("recording", "Recording"),
    ("code", "Code"),
    ("code_and_tools", "Code And Tools"),
    ("live", "Live"),
    ("fork", "Fork"),
    ("resume", "Resume"),
    ("sampling", "Sampling"),
]
MODE = models.CharField(choices=MODES, default="recording", max_length=16)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0019_session_replays")]

    operations = [
        migrations.AlterField("replay", "mode", MODE),
        migrations.AlterField("sessionreplay", "mode", MODE),
    ]
