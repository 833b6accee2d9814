"""The version of Mantile, below everything that writes it down."""

__version__ = "0.23.0"
