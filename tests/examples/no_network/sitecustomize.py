"""Python imports this first in an example that is tested: nothing outside this machine can be reached.

What `HIDE` names in the environment cannot be imported, as if it were not installed.
"""

import os
import sys
from typing import Any

HERE = ("127.0.0.1", "localhost", "::1", "", None)


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in HERE:
        raise PermissionError(f"The example wants to reach {host}.")


sys.addaudithook(refuse)
for name in filter(None, os.environ.get("HIDE", "").split(",")):
    sys.modules[name] = None  # type: ignore[assignment]
