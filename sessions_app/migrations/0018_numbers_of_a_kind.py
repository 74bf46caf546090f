from django.db import migrations, models
from django.db.models import Q

FORK_MODES = ["fork", "resume", "sampling"]


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0017_longer_sources")]

    operations = [
        migrations.RemoveConstraint(model_name="replay", name="one_attempt_a_number"),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(
                fields=("run", "number"), name="one_attempt_a_number", condition=~Q(mode__in=FORK_MODES)
            ),
        ),
        migrations.AddConstraint(
            model_name="replay",
            constraint=models.UniqueConstraint(
                fields=("run", "number"), name="one_fork_a_number", condition=Q(mode__in=FORK_MODES)
            ),
        ),
    ]
