"""The same engine over HTTP, and the page: every number is one of the graph's.

FastAPI is needed (`pip install 'mantile[serve]'`); the rest of the package never imports this folder, but
the command line, which starts it.
"""
