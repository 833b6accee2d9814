"""A workbook opened in LibreOffice: for scripts that are run by a Python that has `uno`.

python3 SCRIPT FILE.xlsx TASK.json PROFILE
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException


@contextmanager
def opened(path: str, profile: str) -> Iterator[tuple[Any, Any]]:
    """The document, and the context of the office that was started for it."""
    pipe = f"mantile{abs(hash(profile))}"
    office = subprocess.Popen(
        ["soffice", f"-env:UserInstallation=file://{profile}", "--headless", "--norestore",
         f"--accept=pipe,name={pipe};urp;"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        context = _connected(pipe)
        desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
        hidden = PropertyValue(Name="Hidden", Value=True)
        document = desktop.loadComponentFromURL(Path(path).as_uri(), "_blank", 0, (hidden,))
        yield document, context
        document.close(True)
        desktop.terminate()
        office.wait(60)
    finally:
        office.terminate()


def _connected(pipe: str) -> Any:
    """The context of an office that was just started."""
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    for _ in range(300):
        try:
            return resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
        except NoConnectException:
            time.sleep(0.2)
    raise SystemExit(f"no office answers on {pipe}")
