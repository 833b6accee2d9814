"""Mantile: what an LLM deployment can really reach, as a workbook in which every number is a live formula."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mantile.library.version import __version__

if TYPE_CHECKING:
    from mantile.answers.estimate import answer
    from mantile.answers.why import compare
    from mantile.estimates.estimate import Estimate, estimate
    from mantile.estimates.explain import explain, trace
    from mantile.estimates.launch_files import launch_files
    from mantile.estimates.plan import plan
    from mantile.estimates.sensitivity import drivers
    from mantile.estimates.sweep import sweep
    from mantile.library.errors import InputError
    from mantile.library.launch import read_launch
    from mantile.library.launch_line import launch_line
    from mantile.library.models import load_model
    from mantile.library.profiles import load_library
    from mantile.library.scenario import Scenario, load_scenario
    from mantile.measured.calibrate import calibrate
    from mantile.measured.calibrate_workbook import calibrate_workbook
    from mantile.measured.load import load_measurements
    from mantile.measured.match import match_runs
    from mantile.measured.read_runs import read_runs
    from mantile.measured.reconcile import reconcile
    from mantile.roundtrip.audit import audit
    from mantile.roundtrip.import_workbook import import_workbook
    from mantile.search.hardware_first import fits
    from mantile.search.largest import largest_model
    from mantile.search.optimize import optimize
    from mantile.search.size import size
    from mantile.verification.verify import verify
    from mantile.workbook.lint import lint
    from mantile.workbook.write import build_workbook

_HOMES = {  # imported on first use: `import mantile` itself costs nothing
    "Estimate": "mantile.estimates.estimate",
    "InputError": "mantile.library.errors",
    "Scenario": "mantile.library.scenario",
    "answer": "mantile.answers.estimate",
    "audit": "mantile.roundtrip.audit",
    "build_workbook": "mantile.workbook.write",
    "calibrate": "mantile.measured.calibrate",
    "calibrate_workbook": "mantile.measured.calibrate_workbook",
    "compare": "mantile.answers.why",
    "drivers": "mantile.estimates.sensitivity",
    "estimate": "mantile.estimates.estimate",
    "explain": "mantile.estimates.explain",
    "fits": "mantile.search.hardware_first",
    "import_workbook": "mantile.roundtrip.import_workbook",
    "largest_model": "mantile.search.largest",
    "launch_files": "mantile.estimates.launch_files",
    "launch_line": "mantile.library.launch_line",
    "lint": "mantile.workbook.lint",
    "load_library": "mantile.library.profiles",
    "load_measurements": "mantile.measured.load",
    "load_model": "mantile.library.models",
    "load_scenario": "mantile.library.scenario",
    "match_runs": "mantile.measured.match",
    "optimize": "mantile.search.optimize",
    "plan": "mantile.estimates.plan",
    "read_launch": "mantile.library.launch",
    "read_runs": "mantile.measured.read_runs",
    "reconcile": "mantile.measured.reconcile",
    "size": "mantile.search.size",
    "sweep": "mantile.estimates.sweep",
    "trace": "mantile.estimates.explain",
    "verify": "mantile.verification.verify",
}

__all__ = [
    "Estimate",
    "InputError",
    "Scenario",
    "__version__",
    "answer",
    "audit",
    "build_workbook",
    "calibrate",
    "calibrate_workbook",
    "compare",
    "drivers",
    "estimate",
    "explain",
    "fits",
    "import_workbook",
    "largest_model",
    "launch_files",
    "launch_line",
    "lint",
    "load_library",
    "load_measurements",
    "load_model",
    "load_scenario",
    "match_runs",
    "optimize",
    "plan",
    "read_launch",
    "read_runs",
    "reconcile",
    "size",
    "sweep",
    "trace",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


# Estimates know nothing of workbooks: here, above both, they learn who writes one.
import_module("mantile.estimates.writers").register(
    ".xlsx", lambda: import_module("mantile.workbook.write").build_workbook
)
