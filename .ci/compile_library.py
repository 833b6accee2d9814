"""Puts into a wheel what the YAML files of profiles say, as JSON. Hatchling calls it when it builds one."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Compile(BuildHookInterface[Any]):
    """Of the wheel alone: an editable installation reads the files themselves."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file, and have it put beside the module that reads it."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from mantile.library.compiled import FILE, compile_profiles

        self.folder = TemporaryDirectory()
        path = Path(self.folder.name) / FILE
        path.write_text(compile_profiles(Path(self.root) / "profiles"), encoding="utf-8")
        build_data["force_include"][str(path)] = f"mantile/library/{FILE}"
