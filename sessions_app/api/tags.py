"""Tags of a session."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from sessions_app.api.auth import FullKeyHolder
from sessions_app.api.reads import find_session
from sessions_app.api.schemas import TagList, TagRequest
from sessions_app.core.payload import JsonObject
from sessions_app.services.tags import change_tags, read_tags

router = Router(auth=FullKeyHolder(), tags=["sessions"])


@router.post("/sessions/{path:session_id}/tags", response={200: TagList})
def post_tags(request: HttpRequest, session_id: str, wanted: TagRequest) -> JsonObject:
    """Add and remove tags of a session. Adding a tag that is there, or removing one that is not, does nothing. The
    answer has all of its tags; find sessions by tag with `q=tag:…`."""
    session = find_session(request, session_id)
    add, remove = read_tags(wanted.add), read_tags(wanted.remove, "remove")
    return {"tags": change_tags([session], add=add, remove=remove)[0].tags}
