"""Doing something to a module when, and only if, it is imported."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from replay_recorder.guard import guard

Callback = Callable[[ModuleType], None]


def when_imported(module: str, callback: Callback) -> None:
    """Call back with the module: at once when it is loaded, and after each time that it is loaded from now on.

    A module that is reloaded has lost what was done to it, so the callback must bear to be called again.
    """
    _finder().callbacks[module] = callback
    loaded = sys.modules.get(module)
    if loaded is not None:
        with guard(f"the hook of {module}"):
            callback(loaded)


def leave_imports_alone() -> None:
    """Call nobody back any more. What was done to modules that are loaded stays."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]


class _Finder(MetaPathFinder):
    """Stands first in `sys.meta_path` and leaves the finding to the others."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Callback] = {}
        self._searches: set[tuple[int, str]] = set()
        """Thread and module of what is being looked for: another finder may ask all finders as well."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        callback = self.callbacks.get(name)
        search = (threading.get_ident(), name)
        if callback is None or search in self._searches:
            return None
        self._searches.add(search)
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self._searches.discard(search)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, callback)
        return spec

    def _found_by_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is not self and find_spec is not None:
                spec: ModuleSpec | None = find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


class _Loader(Loader):
    """Loads with another loader, which takes its place before the module can see it."""

    def __init__(self, loader: Any, callback: Callback) -> None:
        self._loader = loader
        self._callback = callback

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with guard(f"the hook of {module.__name__}"):
            self._callback(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _finder() -> _Finder:
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            return finder
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    return finder
