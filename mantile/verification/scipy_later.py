"""The functions of the `formulas` package without scipy, until one of them needs it.

The package imports scipy.stats beside MAX and COUNTIFS, for distributions that no workbook of ours has; that
takes longer than to evaluate a workbook.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python asks of any module
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def _interp1d(*arguments: Any, **options: Any) -> Any:
    """The class of this name, which is imported by itself."""
    return importlib.import_module("scipy.interpolate").interp1d(*arguments, **options)


def import_functions() -> None:
    """Import the functions of the package; where scipy is imported already, as they are."""
    if "scipy.stats" in sys.modules:
        return
    scipy, interpolate = ModuleType("scipy"), ModuleType("scipy.interpolate")
    scipy.stats, scipy.linalg = _Later("scipy.stats"), _Later("scipy.linalg")  # type: ignore[attr-defined]
    interpolate.interp1d = _interp1d  # type: ignore[attr-defined]
    instead = {"scipy": scipy, "scipy.interpolate": interpolate}
    before = {name: sys.modules[name] for name in instead if name in sys.modules}
    try:
        sys.modules |= instead
        importlib.import_module("formulas.functions.stat")
    finally:
        for name in instead:
            del sys.modules[name]
        sys.modules |= before
