"""How much a difference between a file and its bundle matters."""

from __future__ import annotations

from typing import Literal

Severity = Literal["changes the answer", "changes what is shown", "cosmetic"]
ANSWER: Severity = "changes the answer"
SHOWN: Severity = "changes what is shown"
COSMETIC: Severity = "cosmetic"
SEVERITIES = (ANSWER, SHOWN, COSMETIC)
