"""Fixtures that any test may ask for. PostgreSQL and Redis are there already: see tests/private_services.py."""

import gc
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from urllib.parse import urlsplit

import pytest
from django.db import connection
from hypothesis import settings as hypothesis_settings

from replay_recorder.writing import code_facts
from replay_web.celery import app
from replay_web.garbage import settle
from replay_web.supervisor.home import PROJECT_ROOT
from tests import emptying
from tests.instances import Instance, instance_in, open_folder

emptying.install()

# No test is timed: an example takes what the machine's other work leaves it.
hypothesis_settings.register_profile("untimed", deadline=None)
hypothesis_settings.load_profile("untimed")

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",  # as root, and in containers, it does not start otherwise
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
BROWSER_FIXTURES = {"browser", "page"}


def pytest_configure(config: pytest.Config) -> None:
    """Once: of several processes by the one that starts the others."""
    if not hasattr(config, "workerinput") and shutil.which("git"):
        refresh_index()


def refresh_index() -> None:
    """The recorder asks git for changes many hundreds of times. Until the index of a fresh checkout is written again,
    git reads the files themselves, which takes four to seven times as long."""
    subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=PROJECT_ROOT, capture_output=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is loaded and collected stays until the end: the garbage collector need not look through it every time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        settle()


@pytest.fixture(scope="session", autouse=True)
def no_authorities() -> Iterator[None]:
    """HTTP clients trust nobody here: reading the certificates of all authorities takes each new one 20 ms."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_verify_locations", "set_default_verify_paths"):
            patch.setattr(ssl.SSLContext, name, lambda *_, **__: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def git_asked_once() -> Iterator[None]:
    """In each folder: no test changes the commit under the recorders of its own process."""
    ask = code_facts._git
    answers = cache(lambda folder, *arguments: ask(*arguments))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_facts, "_git", lambda *arguments: answers(os.getcwd(), *arguments))
        yield


@pytest.fixture(scope="session")
def running_instance() -> Iterator[Instance]:
    """The product as a person starts it, on an empty home; shared, so leave it as you found it."""
    with open_folder() as folder, instance_in(folder) as instance:
        yield instance


@pytest.fixture
def celery_worker_process(transactional_db: None) -> Iterator[subprocess.Popen[bytes]]:
    """A real worker on the database of the tests; it sees what was committed."""
    name = connection.settings_dict["NAME"]
    environment = os.environ | {"DATABASE_URL": urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()}
    process = subprocess.Popen([sys.executable, "-m", "replay_web.worker"], env=environment, cwd=PROJECT_ROOT)
    try:
        wait_for_worker()
        yield process
    finally:
        process.terminate()
        process.wait(20)


def wait_for_worker(seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not app.control.inspect(timeout=0.5, limit=1).ping():
        assert time.monotonic() < until, "the worker does not answer"


def chromium() -> str | None:
    return next((found for name in CHROMIUM_NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium through Playwright, which downloads nothing here."""
    from playwright.sync_api import sync_playwright

    # Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_ARGUMENTS))
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def page(browser):
    """A fresh window: no cookies, nothing stored."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Every test that asks for a browser carries the mark; without one it is skipped.

    They run last, whatever others make of the order: from the first of them on Playwright's event loop stays in this
    thread, and `asyncio.run`, which other tests need, refuses to work beside it. Each kind of a file has one process;
    the largest file that uses a browser begins first, lest one process be left alone with it at the end.
    """
    of_a_file = Counter(item.path for item in items if uses_browser(item))
    for item in items:
        if uses_browser(item):
            item.add_marker("browser")
            if chromium() is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium on PATH"))
        item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}{' in a browser' if uses_browser(item) else ''}"))
    yield
    items.sort(key=lambda item: (uses_browser(item), -of_a_file[item.path]))


def uses_browser(item: pytest.Item) -> bool:
    return not BROWSER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    whole_modules = {str(report.longrepr[2]) for report in reports if isinstance(report, pytest.CollectReport)}
    for reason in sorted(whole_modules):
        terminalreporter.write_line(f"NOT TESTED: {reason.removeprefix('Skipped: ')}.", red=True, bold=True)
    skipped = [report for report in reports if "browser" in getattr(report, "keywords", ())]
    if skipped:
        terminalreporter.write_line(
            f"NOT TESTED IN A BROWSER: {len(skipped)} tests were skipped, for there is no Chromium on PATH "
            "(on Debian: apt install chromium).",
            red=True,
            bold=True,
        )
