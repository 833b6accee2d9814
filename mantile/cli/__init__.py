"""The command line.

Each command parses, calls one public function and prints; heavy modules are imported inside.
"""

from mantile.cli import (
    bench,
    drift,
    estimates,
    keys,
    launch,
    library,
    lists,
    measured,
    optimize,
    records,
    roundtrip,
    serve,
    size,
    sweeps,
    traces,
    workbooks,
)
from mantile.cli.application import app, main

__all__ = [
    "app",
    "bench",
    "drift",
    "estimates",
    "keys",
    "launch",
    "library",
    "lists",
    "main",
    "measured",
    "optimize",
    "records",
    "roundtrip",
    "serve",
    "size",
    "sweeps",
    "traces",
    "workbooks",
]
