"""Measured runs that an estimate stands beside: what was asked of each, what was measured and estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from mantile.library.documents import Strict

NOT_STATED = "not stated"
NOTHING_NEAR = "nothing near was measured"
MOST = 24
"""Of how many runs a workbook of a model that nobody measured may choose."""
LIKE, REACH = 2.0, 2.8
"""How many times as many active parameters a model may have whose runs stand beside those of a model, for
chips and engines of which it has none; and whose runs stand in for those of a model that has none at all."""


class Times(Strict):
    """Mean times in seconds; None where a run does not report one."""

    ttft_s: float | None = Field(None, gt=0)
    tpot_s: float | None = Field(None, gt=0)


class MeasuredRun(Strict):
    """A measured run in a line.

    `family` is the kind of model (`ModelGraph.family`), `active_parameters` are those a token goes through.
    `accelerator` is that of the prefill workers where these are apart, `degrees` those of parallelism by
    field, `decode_degrees` those of decode workers of their own, `plan` the same in a few letters,
    `accelerators` how many there are in all, `concurrency` requests in flight on all of them.
    """

    id: str
    model: str
    family: str
    active_parameters: int | float = Field(gt=0)
    accelerator: str
    framework: str
    weights_dtype: str
    kv_dtype: str
    serving: str
    degrees: dict[str, int]
    decode_degrees: dict[str, int] = Field(default_factory=dict)
    plan: str
    accelerators: int = Field(ge=1)
    input_tokens: int | float = Field(gt=0)
    output_tokens: int | float = Field(gt=0)
    concurrency: int | float = Field(gt=0)
    measured: Times
    estimated: Times
    source: str
    date: str = NOT_STATED


class MeasuredRuns(Strict):
    """Measured runs, the newest first, with what the release `estimated_by` estimates of each."""

    estimated_by: str = ""
    runs: tuple[MeasuredRun, ...] = ()

    def near(self, model: str, family: str, active_parameters: float) -> tuple[MeasuredRun, ...]:
        """The runs that can be near an estimate of a model, in their order.

        All of the model, and of models of its kind and size one of each accelerator and framework of which it
        has none. Of a model that nobody measured at most `MOST` of its kind: one of each accelerator and
        framework before a second one, and of these the nearest in active parameters.
        """

        def times(run: MeasuredRun) -> float:
            return max(run.active_parameters / active_parameters, active_parameters / run.active_parameters)

        of_model = [run for run in self.runs if run.model == model]
        alike = (run for run in self.runs if run.family == family)
        in_reach = sorted((run for run in alike if times(run) <= (LIKE if of_model else REACH)), key=times)
        in_turn = sorted(_in_turn(in_reach), key=lambda pair: pair[0])
        if of_model:
            own = {(run.accelerator, run.framework) for run in of_model}
            firsts = [run for turn, run in in_turn if turn == 0]
            chosen = of_model + [run for run in firsts if (run.accelerator, run.framework) not in own]
        else:
            chosen = [run for _, run in in_turn][:MOST]
        ids = {run.id for run in chosen}
        return tuple(run for run in self.runs if run.id in ids)


def _in_turn(runs: list[MeasuredRun]) -> Iterator[tuple[int, MeasuredRun]]:
    """Runs with how many of the same accelerator and framework come before them."""
    seen: Counter[tuple[str, str]] = Counter()
    for run in runs:
        yield seen[run.accelerator, run.framework], run
        seen[run.accelerator, run.framework] += 1
