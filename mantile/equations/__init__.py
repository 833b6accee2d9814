"""The performance model, one subject per file. Everything here builds quantities; nothing is computed or printed."""
