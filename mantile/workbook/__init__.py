"""An estimate as a workbook, and back: sheets are laid out from the graph, then written, linted and read."""
