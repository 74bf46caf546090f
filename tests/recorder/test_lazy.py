"""Hooks on modules that are imported later, again, or never."""

import importlib
import importlib.util
import sys
import textwrap

import pytest

from replay_recorder.guard import FAULTS
from replay_recorder.lazy import when_imported


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Writes a module that can be imported until the test ends."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(name, source):
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(source))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("lazy_"):
            del sys.modules[name]


def test_a_module_that_is_imported_later_is_whole_when_the_hook_sees_it(write_module):
    write_module("lazy_later", "first = 1\nlast = 2")
    seen = []

    when_imported("lazy_later", lambda module: seen.append(vars(module).get("last")))
    assert seen == []
    lazy_later = importlib.import_module("lazy_later")

    assert seen == [2]
    assert type(lazy_later.__loader__).__name__ == "SourceFileLoader"
    assert lazy_later.__spec__.loader is lazy_later.__loader__


def test_a_module_that_is_loaded_is_hooked_at_once(write_module):
    write_module("lazy_loaded", "last = 2")
    importlib.import_module("lazy_loaded")
    seen = []

    when_imported("lazy_loaded", lambda module: seen.append(module.__name__))

    assert seen == ["lazy_loaded"]


def test_a_submodule_is_hooked_and_its_package_is_not(write_module):
    write_module("lazy_package.__init__", "")
    write_module("lazy_package.inner", "name = __name__")
    seen = []

    when_imported("lazy_package.inner", lambda module: seen.append(module.name))
    importlib.import_module("lazy_package")
    assert seen == []
    inner = importlib.import_module("lazy_package.inner")

    assert seen == [inner.name] == ["lazy_package.inner"]


def test_an_import_that_fails_is_hooked_when_it_succeeds(write_module):
    write_module("lazy_failing", "import there_is_no_such_module")
    seen = []

    when_imported("lazy_failing", lambda module: seen.append(module.fixed))
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        importlib.import_module("lazy_failing")
    assert seen == []
    write_module("lazy_failing", "fixed = 'now it works'")
    importlib.import_module("lazy_failing")

    assert seen == ["now it works"]


def test_a_module_that_is_reloaded_is_hooked_again(write_module):
    write_module("lazy_reloaded", "value = 'plain'")
    when_imported("lazy_reloaded", lambda module: setattr(module, "value", f"hooked {module.value}"))
    module = importlib.import_module("lazy_reloaded")
    assert module.value == "hooked plain"

    write_module("lazy_reloaded", "value = 'plain and longer'")
    assert importlib.reload(module) is module

    assert module.value == "hooked plain and longer"


def test_looking_whether_a_module_exists_does_not_use_the_hook_up(write_module):
    write_module("lazy_looked_for", "")
    seen = []

    when_imported("lazy_looked_for", lambda module: seen.append(module.__name__))
    assert importlib.util.find_spec("lazy_looked_for") is not None
    assert seen == []
    importlib.import_module("lazy_looked_for")

    assert seen == ["lazy_looked_for"]


def test_a_module_that_does_not_exist_is_missed_as_ever():
    when_imported("lazy_absent", lambda module: pytest.fail("there is no such module"))

    assert importlib.util.find_spec("lazy_absent") is None
    with pytest.raises(ModuleNotFoundError, match="No module named 'lazy_absent'"):
        importlib.import_module("lazy_absent")


def test_a_hook_that_fails_leaves_the_import_alone(write_module):
    write_module("lazy_hooked_badly", "value = 1")
    before = FAULTS.counts.get("the hook of lazy_hooked_badly", 0)

    def fail(module):
        raise KeyError("the framework has changed")

    when_imported("lazy_hooked_badly", fail)

    assert importlib.import_module("lazy_hooked_badly").value == 1
    assert FAULTS.counts["the hook of lazy_hooked_badly"] == before + 1


def test_a_finder_that_asks_all_finders_too_does_not_go_round_in_circles(write_module, monkeypatch):
    write_module("lazy_twice", "value = 1")
    seen = []

    class AsksAll:
        def find_spec(self, name, path, target=None):
            found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
            return next((spec for spec in found if spec is not None), None)

    when_imported("lazy_twice", lambda module: seen.append(module.value))
    monkeypatch.setattr(sys, "meta_path", [AsksAll(), *sys.meta_path])
    importlib.import_module("lazy_twice")

    assert set(seen) == {1}


def test_modules_without_a_hook_are_found_by_the_others(write_module):
    write_module("lazy_plain", "value = 1")
    write_module("lazy_hooked", "")
    when_imported("lazy_hooked", lambda module: None)

    assert importlib.import_module("lazy_plain").__loader__ is importlib.import_module("lazy_plain").__spec__.loader
    assert type(importlib.import_module("lazy_plain").__loader__).__name__ == "SourceFileLoader"
