"""Measuring a server that serves: what is asked of it, how long it takes, and the record of it."""
