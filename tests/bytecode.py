"""A pytest plugin: compiled modules are kept, also where the environment says PYTHONDONTWRITEBYTECODE.

The tests start many hundreds of Python processes. Compiling what one of them imports takes twice as long as the rest of
its start. Where nothing may be written beside the modules, what was compiled lies in the folder of pytest's cache.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT_ROOT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT_ROOT / ".pytest_cache" / "bytecode"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    """A wrapper, to be there before the services start and Django reads its settings."""
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        keep_elsewhere()
    yield


def keep_elsewhere() -> None:
    """From here on, and in every process that inherits our environment."""
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(FOLDER)
    os.environ["PYTHONPYCACHEPREFIX"] = str(FOLDER)
    del os.environ["PYTHONDONTWRITEBYTECODE"]


def prune(folder: Path, source: Path) -> None:
    """Drop what was compiled of folders that are gone, such as the temporary ones of tests."""
    for each in folder.iterdir():
        if each.is_dir():
            if (source / each.name).is_dir():
                prune(each, source / each.name)
            else:
                shutil.rmtree(each, ignore_errors=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Once: of several processes by the one that started the others."""
    if not hasattr(config, "workerinput") and FOLDER.is_dir():
        prune(FOLDER, Path("/"))
