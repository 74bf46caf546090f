"""Doing something to a module when, and only if, it is imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from replay_recorder.guard import guard

Callback = Callable[[ModuleType], None]


def when_imported(module: str, callback: Callback) -> None:
    """Call back with the module: at once when it is loaded, else right after it has been."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        with guard(f"hook of {module}"):
            callback(loaded)
    else:
        _finder().waiting[module] = callback


class _Finder(MetaPathFinder):
    """Stands first in `sys.meta_path` and leaves the finding to the others."""

    def __init__(self) -> None:
        self.waiting: dict[str, Callback] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        callback = self.waiting.pop(name, None)
        if callback is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            self.waiting[name] = callback
            return None
        spec.loader = _Loader(spec.loader, callback)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Any, callback: Callback) -> None:
        self._loader = loader
        self._callback = callback

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with guard(f"hook of {module.__name__}"):
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
