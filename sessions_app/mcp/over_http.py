"""The same tools at the address `/mcp`, for clients on other machines: the protocol's streamable HTTP.

Each request is whole in itself and answered with one JSON body, as the protocol lets a server do: no session is kept,
so any web process answers, and a key that is revoked opens nothing from the next request on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from sessions_app.api.auth import sent_key
from sessions_app.api.errors import refusal
from sessions_app.mcp.keys import KeyMayOnlySend, KeyRefused, key_in_force

if TYPE_CHECKING:
    from httpx2 import Response
    from mcp.server.mcpserver import MCPServer

_OF_THE_PROTOCOL = ("accept", "content-type", "mcp-")


@csrf_exempt  # opened by a key, which no browser sends by itself
def endpoint(request: HttpRequest) -> HttpResponse:
    """One message of a client, by POST; there is no stream of the server's own to open by GET."""
    if request.method != "POST":
        return refusal(405, "method_not_allowed", "Allowed here: POST.", Allow="POST")
    key = sent_key(request)
    try:
        key_in_force(key)
        return _answer(request, key)
    except KeyMayOnlySend as refused:
        return refusal(403, "wrong_scope", str(refused))
    except KeyRefused as refused:
        return refusal(401, "unauthorized", str(refused), **{"WWW-Authenticate": "Bearer"})
    except RequestDataTooBig:
        return refusal(413, "too_large", "A message of a client is smaller.")


def _answer(request: HttpRequest, key: str) -> HttpResponse:
    # Only now, for no other request of a web process needs the SDK.
    import anyio

    from sessions_app.mcp.server import server_for

    answer = anyio.run(_answered_by, server_for(key), request.body, _headers(request))
    kept = {name: value for name, value in answer.headers.items() if name.startswith(_OF_THE_PROTOCOL)}
    return HttpResponse(answer.content, status=answer.status_code, headers=kept)


def _headers(request: HttpRequest) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.lower().startswith(_OF_THE_PROTOCOL)}


async def _answered_by(server: MCPServer, body: bytes, headers: dict[str, str]) -> Response:
    """The SDK speaks ASGI, and web processes WSGI."""
    from httpx2 import ASGITransport, AsyncClient
    from mcp.server.transport_security import TransportSecuritySettings

    # Django has looked at the host already, and a page of a stranger has no key.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unguarded)
    async with (
        server.session_manager.run(),
        AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as client,
    ):
        return await client.post("/mcp", content=body, headers=headers)
