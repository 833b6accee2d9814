"""Immutable records of measured runs: what one is, and databases and tables that hold them."""
