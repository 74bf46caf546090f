"""How fast recordings are read, as JSON: `.venv/bin/python -m benchmarks.reading [--spans N]`.

A fresh instance is filled with sessions of ten steps, `--sent` of them sent and the others copied from these inside the
database, and with one run each of 20, 200 and 2,000 spans. Then lists, pages, runs with all their content, and the
search for a word that one session in a hundred holds are asked for in turn, many times: what else the machine does
slows all of them alike.
"""

from __future__ import annotations

import argparse
import http.cookiejar
import json
import statistics
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from functools import partial

from benchmarks.filling import fill
from benchmarks.measured import database, memory
from benchmarks.posting import Client, post_all, wait_for_runs
from benchmarks.traces import RARE_WORD, Shape, requests
from sessions_app.core.payload import JsonObject
from tests.instances import Instance, instance_in, open_folder, wait_for_worker

_REPEATS = 30
_STEPS = (10, 100, 1000)
_PROJECT = """
SELECT p.slug FROM sessions_app_project p JOIN sessions_app_run r ON r.project_id = p.id
WHERE r.source_format = 'otlp' LIMIT 1
"""


def sign_in(instance: Instance) -> Callable[[str], bytes]:
    """Gets pages as somebody who signed in."""
    cookies = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    browser.open(f"{instance.url}/sign-in").read()
    token = next(cookie.value for cookie in cookies if "csrf" in cookie.name)
    form = {"username": instance.username, "password": instance.password, "csrfmiddlewaretoken": token}
    browser.open(f"{instance.url}/sign-in", urllib.parse.urlencode(form).encode()).read()

    def get(path: str) -> bytes:
        with browser.open(instance.url + path) as answer:
            content: bytes = answer.read()
        return content

    return get


def send_sized(instance: Instance) -> dict[int, str]:
    """One run of each size; run id by spans."""
    found = {}
    for steps in _STEPS:
        sent = list(requests(f"sized-{steps}", 1, Shape(steps=steps, result_bytes=60), spans_each=200))
        ended = Client(instance).ended_runs() + 1
        post_all(instance, sent, connections=1)
        wait_for_runs(instance, ended)
        found[2 * steps] = sent[-1].ended[0]
    return found


def timed(asks: dict[str, Callable[[], bytes]], repeats: int) -> dict[str, JsonObject]:
    size = {name: len(ask()) for name, ask in asks.items()}
    seconds: dict[str, list[float]] = {name: [] for name in asks}
    for _ in range(repeats):
        for name, ask in asks.items():
            began = time.perf_counter()
            ask()
            seconds[name].append(time.perf_counter() - began)
    return {name: {**_spread(sorted(seconds[name])), "bytes": size[name]} for name in asks}


def _spread(seconds: list[float]) -> JsonObject:
    p95 = seconds[min(len(seconds) - 1, int(len(seconds) * 0.95))]
    return {"p50_ms": round(statistics.median(seconds) * 1000, 1), "p95_ms": round(p95 * 1000, 1)}


def measure(instance: Instance, runs: dict[int, str]) -> JsonObject:
    client, page = Client(instance), sign_in(instance)
    with database(instance) as connection:
        found = connection.execute(_PROJECT).fetchone()
    assert found is not None
    sessions = f"/p/{found[0]}/sessions"
    lists = {
        "list_json": lambda: client.get("/api/v1/sessions?limit=50"),
        "text_search_json": lambda: client.get(f"/api/v1/sessions?limit=50&q={RARE_WORD}"),
        "list_page": lambda: page(sessions),
        "list_with_overview": lambda: page(f"{sessions}?overview=1"),
        "text_search_page": lambda: page(f"{sessions}?q={RARE_WORD}"),
        "text_search_with_overview": lambda: page(f"{sessions}?q={RARE_WORD}&overview=1"),
    }
    opened: dict[str, Callable[[], bytes]] = {
        f"open_run_of_{spans}_spans": partial(client.get, f"/api/v1/runs/{run}/record") for spans, run in runs.items()
    }
    opened["page_of_2000_spans"] = partial(page, f"/p/{found[0]}/s/{runs[2000]}")
    return {**timed(lists, _REPEATS), **timed(opened, 10)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--sent", type=int, default=500, help="sessions that are sent; the others are copies")
    chosen = parser.parse_args()
    with open_folder() as folder, instance_in(folder) as instance:
        wait_for_worker(instance)
        fill(instance, chosen.spans, sent=chosen.sent)
        runs = send_sized(instance)
        print(json.dumps({"spans": chosen.spans, **measure(instance, runs), "memory_mb": memory(instance) // 10**6}))


if __name__ == "__main__":
    main()
