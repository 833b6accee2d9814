"""`python -m mantile` is the command line."""

from mantile.cli import main

main()
