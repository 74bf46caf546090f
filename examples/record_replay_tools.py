"""Tool calls are recorded once and played back for ever: with the network off, and in words where they differ.

    python -m examples.record_replay_tools

The tools ask an order service, which runs here on a port of its own. Recorded is what they really got; then the
network is switched off, so that every answer after that can only come from the recording.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from unittest import mock

from replay_recorder import ReplayMismatch, ToolRecorder, ToolReplayer, recorded_tool

CallTool = Callable[[str, dict[str, Any]], Any]

# --- the agent


def cancel_on_request(order_id: str, call_tool: CallTool) -> str:
    """Cancels an order if it can be cancelled. It does not know whether its tools are real."""
    order = call_tool("lookup_order", {"order_id": order_id})
    if not order["cancellable"]:
        return f"Order {order_id} cannot be cancelled: it is {order['status']}."
    done = call_tool("cancel_order", {"order_id": order_id})
    return f"Order {order_id} is {done['status']}."


# --- its tools


class OrderService(BaseHTTPRequestHandler):
    """Stands for a service somewhere in the network: `GET /ORD-1` and `DELETE /ORD-1`."""

    def do_GET(self) -> None:
        self._answer({"status": "paid", "cancellable": True})

    def do_DELETE(self) -> None:
        self._answer({"status": "cancelled", "cancellable": False})

    def _answer(self, order: dict[str, Any]) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(order).encode())

    def log_message(self, *arguments: Any) -> None:
        return None


@contextmanager
def order_service() -> Iterator[str]:
    """Its address while it runs."""
    with HTTPServer(("127.0.0.1", 0), OrderService) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def real_tools(address: str, recorder: ToolRecorder) -> CallTool:
    """Tools that ask the service; whatever they answer, or raise, is recorded."""

    def ask(method: str, order_id: str) -> Any:
        with closing(HTTPConnection(address, timeout=10)) as connection:
            connection.request(method, f"/{order_id}")
            return json.load(connection.getresponse())

    @recorded_tool(kind="read", recorder=recorder)
    def lookup_order(order_id: str) -> Any:
        return ask("GET", order_id)

    @recorded_tool(kind="write", recorder=recorder)
    def cancel_order(order_id: str) -> Any:
        return ask("DELETE", order_id)

    tools = {"lookup_order": lookup_order, "cancel_order": cancel_order}
    return lambda tool_name, args: tools[tool_name](**args)


# --- record, then replay


@contextmanager
def network_off() -> Iterator[None]:
    """No connection can be opened inside the block."""
    refused = OSError("the network is off")
    with mock.patch.object(socket.socket, "connect", side_effect=refused):
        yield


def main(folder: str) -> None:
    with order_service() as address:
        recorder = ToolRecorder()
        call_real_tool = real_tools(address, recorder)
        print("Recorded:", cancel_on_request("ORD-5521", call_real_tool))
        recorder.save("run_abc123", folder)
        with network_off():
            show_replay(folder, call_real_tool)


def show_replay(folder: str, call_real_tool: CallTool) -> None:
    replayer = ToolReplayer("run_abc123", folder)
    print("Replayed:", cancel_on_request("ORD-5521", replayer.replay))
    print("Recorded calls that nobody asked for:", len(replayer.left_over()))
    try:
        cancel_on_request("ORD-5521", call_real_tool)
    except OSError as error:
        print("The real tools:", error)
    try:
        cancel_on_request("ORD-9999", ToolReplayer("run_abc123", folder).replay)
    except ReplayMismatch as mismatch:
        print("Another order:", mismatch)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
