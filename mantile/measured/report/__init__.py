"""The report of a reconciliation: a workbook whose errors are live formulas over its runs, and the table of
all runs."""
