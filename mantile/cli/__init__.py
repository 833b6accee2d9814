"""The command line.

Each command parses, calls one public function and prints; heavy modules are imported inside.
"""

from mantile.cli import (
    estimates,
    keys,
    launch,
    library,
    lists,
    measured,
    optimize,
    roundtrip,
    serve,
    size,
    sweeps,
    traces,
    workbooks,
)
from mantile.cli.app import app, main

__all__ = [
    "app",
    "estimates",
    "keys",
    "launch",
    "library",
    "lists",
    "main",
    "measured",
    "optimize",
    "roundtrip",
    "serve",
    "size",
    "sweeps",
    "traces",
    "workbooks",
]
