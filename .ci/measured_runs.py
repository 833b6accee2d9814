"""Write profiles/runs.yaml: the measured runs that estimates stand beside, from workbooks/accuracy.yaml.

    python .ci/measured_runs.py

Estimates in it are those of this release with its profiles; a test holds that they are current.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mantile.equations.graph import EstimateGraph
from mantile.equations.workers import degrees
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node, join
from mantile.library.dump import dump_yaml
from mantile.library.files import replacing
from mantile.library.runs import MeasuredRuns
from mantile.library.version import __version__
from mantile.measured.load import load_measurements
from mantile.measured.match import Batch, match_runs

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "workbooks" / "accuracy.yaml"
WRITTEN = ROOT / "profiles" / "runs.yaml"
HEAD = """\
# Measured runs that estimates stand beside, the newest first: those of workbooks/accuracy.yaml that time
# output tokens, with what this release estimates of each. Made by .ci/measured_runs.py.
"""
TIMES = ("ttft_s", "tpot_s")
AS_ASKED = ("accelerator", "framework", "weights_dtype", "kv_dtype")
DEGREES = ("tp", "ep", "attention_dp", "pp", "cp", "dp")
NUMBERS = ("input_tokens", "output_tokens", "concurrency")


def measured_runs() -> MeasuredRuns:
    """The runs with what is estimated of them now."""
    measurements = load_measurements(MEASURED)
    timed = [run for run in measurements.runs if run.metrics.tpot_s is not None]
    found = [run for batch in match_runs(timed).batches for run in _of_batch(batch)]
    found.sort(key=lambda run: str(run["id"]))
    found.sort(key=lambda run: str(run.get("date", "")), reverse=True)
    return MeasuredRuns.model_validate({"estimated_by": __version__, "runs": found})


def _of_batch(batch: Batch) -> list[dict[str, Any]]:
    """The runs that one graph predicts."""
    graph = batch.equations
    plan = join(*degrees(graph.workers), "")
    times = {name: batch.outputs()[name] for name in TIMES}
    figures = (plan, graph.rows["serving.accelerators"], graph.model.active_parameters, *times.values())
    asked_of = [figure for workers in graph.workers for figure in workers.inputs.named().values()]
    program, records = Program([*figures, *asked_of]), []
    for matched in batch.runs:
        values, run, asked = program.run(matched.inputs), matched.run, matched.column.values
        measured = {name: run.metrics.given()[name] for name in TIMES if name in run.metrics.given()}
        records.append(
            {
                "id": run.id,
                "model": run.model,
                "family": graph.ir.family,
                "active_parameters": int(values[graph.model.active_parameters]),
                **{name: asked[name] for name in AS_ASKED},
                "serving": asked.get("serving", "aggregated"),
                **_degrees(graph, values),
                "plan": values[plan].strip(),
                "accelerators": int(values[graph.rows["serving.accelerators"]]),
                **{name: asked[name] for name in NUMBERS},
                "measured": measured,
                "estimated": {name: float(f"{values[times[name]]:.4g}") for name in measured},
                "source": run.source,
                **({"date": run.date} if run.date else {}),
            }
        )
    return records


def _degrees(graph: EstimateGraph, values: Mapping[Node, Any]) -> dict[str, dict[str, int]]:
    """The degrees of parallelism, and those of decode workers where they are apart."""
    apart = graph.inputs.serving is not None and values[graph.inputs.serving] == "disaggregated"
    names = ("degrees", "decode_degrees") if apart else ("degrees",)
    return {
        name: {degree: int(values[getattr(workers.inputs, degree)]) for degree in DEGREES}
        for name, workers in zip(names, graph.workers, strict=False)
    }


def main() -> None:
    """Write the file."""
    data = measured_runs().model_dump(mode="json", exclude_defaults=True)
    with replacing(WRITTEN) as temporary:
        temporary.write_text(HEAD + dump_yaml(data), encoding="utf-8")


if __name__ == "__main__":
    main()
