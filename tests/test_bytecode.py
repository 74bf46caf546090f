"""The tests keep compiled modules, whatever the environment says."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.bytecode import prune


def cached(module: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(module)))


def test_what_a_child_compiles_is_kept(tmp_path: Path):
    (tmp_path / "compiled_once.py").write_text("SEEN = True")

    subprocess.run([sys.executable, "-c", "import compiled_once"], cwd=tmp_path, check=True)

    assert cached(tmp_path / "compiled_once.py").is_file()


def test_what_was_compiled_of_folders_that_are_gone_is_dropped(tmp_path: Path):
    """Control: what is there keeps it."""
    compiled, source = tmp_path / "compiled", tmp_path / "source"
    (source / "package").mkdir(parents=True)
    kept, dropped = compiled / "package/module.pyc", compiled / "package/gone/module.pyc"
    for each in (kept, dropped):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.touch()

    prune(compiled, source)

    assert (kept.exists(), dropped.parent.exists()) == (True, False)
