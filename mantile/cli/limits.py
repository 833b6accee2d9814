"""Flags of limits, declared once for all commands that choose a deployment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.commands import RARELY, set_parameters

if TYPE_CHECKING:
    from mantile.search.objective import Limit


@dataclass(frozen=True)
class LimitFlag:
    """A limit of a measure.

    Args:
        of: the measure, by an alias.
        names: of the flag; the first is what errors say.
        unit: in which it is typed.
        help: what it bounds, and on which side.
        si: what a typed 1 is in SI units.
        common: whether most people who choose set it.
        whole: bounds of a whole number, the least and the most; None: any number.
    """

    of: str
    names: tuple[str, ...]
    unit: str
    help: str
    si: float = 1.0
    common: bool = False
    whole: tuple[int, int] | None = None

    @property
    def parameter(self) -> inspect.Parameter:
        """Of a command."""
        least, most = self.whole or (None, None)
        panel = None if self.common else RARELY
        option = typer.Option(
            *self.names,
            metavar=f"<{self.unit}>",
            help=self.help,
            min=least,
            max=most,
            rich_help_panel=panel,
        )
        kind = int if self.whole else float
        return inspect.Parameter(
            self.of,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, option],
        )


def _most(of: str, what: str, unit: str, *others: str, common: bool = False) -> LimitFlag:
    plain = of.replace("_", "-")
    return LimitFlag(of, (f"--{plain}-max", *others), unit, f"{what}, at most.", common=common)


LIMIT_FLAGS = (
    _most("ttft", "TTFT, mean", "s", "--ttft"),
    _most("ttft_p95", "TTFT, p95", "s", "--ttft-p95", common=True),
    _most("tpot", "TPOT", "s", "--tpot", common=True),
    _most("e2e", "End to end, mean", "s", "--e2e"),
    _most("e2e_p95", "End to end, p95", "s", "--e2e-p95"),
    LimitFlag(
        "interactivity",
        ("--interactivity-min",),
        "token/s",
        "Tokens per second and user, at least.",
        common=True,
    ),
    _most("usd_per_million", "USD per million output tokens", "USD"),
    _most("usd_per_hour", "USD per hour", "USD/h"),
    _most("usd_per_month", "USD per month", "USD", "--budget-usd-month"),
    LimitFlag("power", ("--kw-max",), "kW", "Power in the building, at most.", 1e3),
    LimitFlag("headroom", ("--headroom-min",), "share", "Share of memory that stays free, at least."),
    LimitFlag(
        "evidence",
        ("--evidence-min",),
        "1..3",
        "3: runs of such plans were measured; 2: of the framework; 1: none, at least.",
        whole=(1, 3),
    ),
)
DefaultLimits = Annotated[
    bool,
    typer.Option(
        "--default-limits/--no-default-limits",
        help="Where no limit of TTFT or end-to-end time is given: p95 TTFT of 10 s at most; of prompts above "
        "10k tokens 1 s for each 1k, 60 s at most.",
        rich_help_panel=RARELY,
    ),
]
_OTHERS = inspect.Parameter(
    "limit",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE<=N",
            help="A limit of any measure, in SI units: power_w<=9e3; repeatable.",
            rich_help_panel=RARELY,
        ),
    ],
)


def with_limits(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of limits; it receives those given as its argument `limits`."""
    parameters = [*inspect.signature(command, eval_str=True).parameters.values()]
    place = [parameter.name for parameter in parameters].index("limits")
    added = [*(flag.parameter for flag in LIMIT_FLAGS), _OTHERS]
    given = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*parameters[:place], *added, *parameters[place + 1 :])
    ]

    @wraps(command)
    def run(**arguments: Any) -> None:
        bounds = {name: arguments.pop(name) for name in (flag.of for flag in LIMIT_FLAGS)}
        others = arguments.pop("limit") or []
        command(**arguments, limits=_limits(bounds, others))

    set_parameters(run, given)
    return run


def _limits(bounds: Mapping[str, float | None], others: list[str]) -> list[Limit]:
    from mantile.search.objective import limit, read_limit

    stated = [(flag, bound) for flag in LIMIT_FLAGS if (bound := bounds[flag.of]) is not None]
    return [
        *(limit(flag.of, float(bound) * flag.si, flag.names[0]) for flag, bound in stated),
        *(read_limit(text) for text in others),
    ]
