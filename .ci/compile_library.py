"""Puts into a wheel what was read of profiles and equations. Hatchling calls it when it builds one."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Compile(BuildHookInterface[Any]):
    """Of the wheel alone: an editable installation reads the files themselves."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write a file each, and have it put beside the module that reads it."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from mantile.equations.text import COMPILED, compile_subjects
        from mantile.library.compiled import FILE, compile_profiles

        self.folder = TemporaryDirectory()
        profiles = compile_profiles(Path(self.root) / "profiles").encode()
        for place, content in (
            (f"mantile/library/{FILE}", profiles),
            (f"mantile/equations/{COMPILED}", compile_subjects()),
        ):
            path = Path(self.folder.name) / Path(place).name
            path.write_bytes(content)
            build_data["force_include"][str(path)] = place
