"""The quantity graph: named figures, one table of operations, and its readers.

Knows nothing of LLMs or workbooks.
"""
