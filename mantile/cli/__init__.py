"""The command line.

Each command parses, calls one public function and prints; heavy modules are imported inside.
"""

from mantile.cli import (
    bench,
    compare,
    drift,
    estimates,
    imports,
    launch,
    library,
    lists,
    measured,
    optimize,
    records,
    serve,
    set_up,
    size,
    sweeps,
    workbooks,
)
from mantile.cli.application import app, main

__all__ = [
    "app",
    "bench",
    "compare",
    "drift",
    "estimates",
    "imports",
    "launch",
    "library",
    "lists",
    "main",
    "measured",
    "optimize",
    "records",
    "serve",
    "set_up",
    "size",
    "sweeps",
    "workbooks",
]
