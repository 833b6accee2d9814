"""One file per sheet, or per kind of sheet where several share a layout."""
