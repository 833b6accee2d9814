"""Is it right about reality? Measured runs, reconciliation, calibration."""
