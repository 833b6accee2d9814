"""What a workbook was, for the Log of the one that follows it."""

from __future__ import annotations

from mantile.equations.metrics import TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS, Metric
from mantile.equations.stamp import READABLE
from mantile.estimates.estimate import Estimate
from mantile.library.since import Version
from mantile.workbook.sheets.frame import cut

WORDS = 120  # characters of a text of a scenario


def version(estimates: Estimate) -> Version:
    """What a workbook was when it was made, for the Log of the one that follows it.

    Its checks are those of the file: cells could be read, else there was no such workbook.
    """
    checks = [check for check in estimates.equations.checks.checks if check.error]
    columns = len(estimates.columns)
    readable = columns * (len(READABLE) + (estimates.scenario.decision is not None))
    passed = sum(
        bool(estimates.values(column)[check.result]) for column in range(columns) for check in checks
    )

    def shown(metric: Metric) -> float | None:
        """In the unit that people quote; None where nobody knows it."""
        value = estimates.metrics()[metric]
        return None if value is None else metric.shown(value)

    return Version(
        date=estimates.scenario.date or estimates.made_on,
        what=cut(estimates.title, WORDS),
        why=estimates.scenario.why,
        checks=f"{passed + readable} of {len(checks) * columns + readable} pass",
        ttft_ms=shown(TTFT),
        tpot_ms=shown(TPOT),
        usd_per_million=shown(USD_PER_MILLION_OUTPUT_TOKENS),
    )
