"""Mantile: what an LLM deployment can really reach, as a workbook in which every number is a live formula."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mantile.calibration import calibrate
    from mantile.estimation import estimate
    from mantile.explanation import explain
    from mantile.library.errors import InputError
    from mantile.library.measurements import load_measurements
    from mantile.library.models import load_model
    from mantile.library.scenario import load_scenario
    from mantile.reconciliation import prepare, reconcile
    from mantile.sweeping import sweep
    from mantile.verification import verify
    from mantile.workbook.rules import lint
    from mantile.workbook.write import build_workbook

__version__ = "0.4.0"
__all__ = ["InputError", "__version__", "build_workbook", "calibrate", "estimate", "explain", "lint", "load_measurements", "load_model",
           "load_scenario", "prepare", "reconcile", "sweep", "verify"]  # fmt: skip

_HOMES = {  # imported on first use: `import mantile` itself costs nothing
    "InputError": "mantile.library.errors",
    "build_workbook": "mantile.workbook.write",
    "calibrate": "mantile.calibration",
    "estimate": "mantile.estimation",
    "explain": "mantile.explanation",
    "lint": "mantile.workbook.rules",
    "load_measurements": "mantile.library.measurements",
    "load_model": "mantile.library.models",
    "load_scenario": "mantile.library.scenario",
    "prepare": "mantile.reconciliation",
    "reconcile": "mantile.reconciliation",
    "sweep": "mantile.sweeping",
    "verify": "mantile.verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
