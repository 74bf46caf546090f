"""Whether this machine has the folder of large payloads that the others write to."""

from __future__ import annotations

from sessions_app.mapping.payloads import blob_store
from sessions_app.models import StoredPayload


def blobs_elsewhere(most: int) -> tuple[int, int]:
    """Of some payloads that lie in the folder: how many are not in this machine's, and how many were looked for.
    Which of them is as good as by chance: they come by their digest.
    """
    folder, kept = blob_store(), StoredPayload.objects.filter(data=None).defer("data")
    rows = list(kept.order_by("digest")[:most])
    missing = [row for row in rows if not folder.has(row.project_id, str(row))]
    gone = [row for row in missing if not kept.filter(pk=row.pk).exists()]  # deleted meanwhile
    return len(missing) - len(gone), len(rows)
