"""Mantile: what an LLM deployment can really reach, as a workbook in which every number is a live formula."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mantile.auditing import audit
    from mantile.calibration import calibrate
    from mantile.comparison import compare
    from mantile.estimation import estimate
    from mantile.explanation import explain
    from mantile.importing import import_workbook
    from mantile.library.errors import InputError
    from mantile.library.measurements import load_measurements
    from mantile.library.models import load_model
    from mantile.library.scenario import load_scenario
    from mantile.reconciliation import prepare, reconcile
    from mantile.sweeping import sweep
    from mantile.verification import verify
    from mantile.workbook.rules import lint
    from mantile.workbook.write import build_workbook

__version__ = "0.6.0"
__all__ = ["InputError", "__version__", "audit", "build_workbook", "calibrate", "compare", "estimate", "explain", "import_workbook", "lint",
           "load_measurements", "load_model", "load_scenario", "prepare", "reconcile", "sweep", "verify"]  # fmt: skip

_HOMES = {  # imported on first use: `import mantile` itself costs nothing
    "InputError": "mantile.library.errors",
    "audit": "mantile.auditing",
    "build_workbook": "mantile.workbook.write",
    "calibrate": "mantile.calibration",
    "compare": "mantile.comparison",
    "estimate": "mantile.estimation",
    "explain": "mantile.explanation",
    "import_workbook": "mantile.importing",
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
