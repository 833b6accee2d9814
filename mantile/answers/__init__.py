"""What each question is answered with, once: terminal, page, HTTP, Python and workbook render it."""
