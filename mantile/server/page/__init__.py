"""The page: one HTML view for each question, drawn on the server from the same graph as everything else."""

from __future__ import annotations

from mantile.server.page.routes import router

__all__ = ["router"]
