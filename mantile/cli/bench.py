"""The command that measures a server: bench."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, app, must_exist
from mantile.cli.asked import with_own
from mantile.cli.numbers import real, whole
from mantile.library.errors import InputError, quoted
from mantile.library.typed_numbers import number_of

_SWEEP, _SERVED, _KEPT = "What is asked", "What serves", "What is kept"
_RARE_SWEEP, _RARE_SERVED, _RARE_KEPT = f"{_SWEEP} (rare)", f"{_SERVED} (rare)", f"{_KEPT} (rare)"
_WORKLOAD = {
    "input_tokens", "output_tokens", "concurrency", "request_rate", "sessions", "think_time",
    "prompts_per_slot", "load_duration", "name", "measured",
}  # fmt: skip


def _flag(help: str, panel: str, *names: str, metavar: str | None = None, parser: Any = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, parser=parser)


@app.command(
    group="Measured runs",
    examples=("mantile bench http://localhost:8000 --accelerator h100-sxm --isl 256,2k --concurrency 1,8",),
)
def bench(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Of an OpenAI-compatible server: http://localhost:8000.")
    ],
    input_tokens: Annotated[
        str | None,
        _flag(
            "Lengths of prompts, with commas.  [default: 256,2k,8k,32k,128k, as far as the model takes them]",
            _SWEEP,
            "--input-tokens",
            "--isl",
            metavar="<n,...>",
        ),
    ] = None,
    output_tokens: Annotated[
        str, _flag("Lengths of answers, with commas.", _SWEEP, "--output-tokens", "--osl", metavar="<n,...>")
    ] = "128",
    concurrency: Annotated[
        str | None,
        _flag(
            "Requests in flight, with commas: closed loop.  [default: 1,2,4,8,16,32]",
            _SWEEP,
            metavar="<n,...>",
        ),
    ] = None,
    request_rate: Annotated[
        str | None,
        _flag(
            "Requests per second in place of --concurrency, with commas: open loop, Poisson arrivals.",
            _SWEEP,
            "--request-rate",
            "--rate",
            metavar="<number,...>",
        ),
    ] = None,
    repeats: Annotated[
        int,
        _flag(
            "Measured requests of each slot, 10 or more; at a rate ten times as many in all.",
            _RARE_SWEEP,
            parser=whole(10, 100_000),
            metavar="<n>",
        ),
    ] = 10,
    warmup: Annotated[
        int, _flag("Requests of each slot before those.", _RARE_SWEEP, parser=whole(0, 1000), metavar="<n>")
    ] = 1,
    seed: Annotated[
        int, _flag("Of the made-up words and of arrivals.", _RARE_SWEEP, parser=whole(0), metavar="<n>")
    ] = 0,
    chat: Annotated[
        bool, _flag("Ask /v1/chat/completions; without, /v1/completions.", _RARE_SWEEP, "--chat")
    ] = False,
    timeout: Annotated[
        float,
        _flag(
            "Without a byte for so long a request has failed.", _RARE_SWEEP, parser=real(0.1), metavar="<s>"
        ),
    ] = 600.0,
    model: Annotated[
        str | None, _flag("The model, where the server's name for it is not known here.", _SERVED)
    ] = None,
    served: Annotated[
        str | None,
        _flag(
            "What the server calls the model, where it lists several, or not this one.",
            _RARE_SERVED,
            "--served-as",
            metavar="NAME",
        ),
    ] = None,
    accelerator: Annotated[
        str | None, _flag("The accelerator: servers do not tell.", _SERVED, "--accelerator", "--gpu")
    ] = None,
    framework: Annotated[str | None, _flag("The engine, where the server does not tell.", _SERVED)] = None,
    tp: Annotated[
        int | None, _flag("TP, where the server does not tell.", _SERVED, parser=whole(1), metavar="<n>")
    ] = None,
    weights_dtype: Annotated[
        str | None, _flag("Data type of weights; without it what the engine takes.", _RARE_SERVED)
    ] = None,
    scenario: Annotated[
        Path | None,
        _flag(
            "A scenario that says how it is deployed; its load does not count.", _RARE_SERVED, metavar="FILE"
        ),
    ] = None,
    token_from: Annotated[
        str | None,
        _flag(
            "Name of the environment variable with the token that it asks for.", _RARE_SERVED, metavar="NAME"
        ),
    ] = None,
    records: Annotated[
        Path, _flag("The database that gets the records.", _KEPT, "--output", "-o", metavar="FILE.db")
    ] = Path("records.db"),
    manifest: Annotated[
        Path, _flag("The file of the sweep; given again, it goes on.", _RARE_KEPT, metavar="FILE.json")
    ] = Path("bench.json"),
    sign: Annotated[
        Path | None,
        _flag(
            "Sign the records with this key, of `mantile config keys new`.", _RARE_KEPT, metavar="FILE.key"
        ),
    ] = None,
    telemetry: Annotated[
        bool,
        _flag("Sample power, clocks, memory and PCIe of this machine meanwhile.", _RARE_KEPT, "--telemetry"),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a server: TTFT, TPOT and rates by prompt length and load, each point a record. Exit status 1 if
    a point has none."""
    from mantile.bench.bench import Target
    from mantile.bench.bench import bench as run
    from mantile.bench.sweep import BUCKETS, CONCURRENCY, Sweep
    from mantile.cli.output.bench import print_bench
    from mantile.cli.output.runs import counting
    from mantile.cli.output.tables import print_json
    from mantile.library.profiles import load_library
    from mantile.library.signing import read_private_key

    if concurrency and request_rate:
        raise InputError("--concurrency and --request-rate: expected one of them")
    rates = _numbers(request_rate, "--request-rate", float) if request_rate is not None else []
    sweep = Sweep(
        prompts=tuple(_numbers(input_tokens, "--input-tokens", int)) if input_tokens is not None else BUCKETS,
        outputs=tuple(_numbers(output_tokens, "--output-tokens", int)),
        concurrency=()
        if rates
        else tuple(_numbers(concurrency, "--concurrency", int))
        if concurrency
        else CONCURRENCY,
        rates=tuple(rates),
        repeats=repeats,
        warmup=warmup,
        seed=seed,
        chat=chat,
    )
    stated = {
        "model": model,
        "accelerator": accelerator,
        "framework": framework,
        "tp": tp,
        "weights_dtype": weights_dtype,
    }
    deployment = _deployment(scenario) | {name: value for name, value in stated.items() if value}
    target = Target(
        url=url,
        deployment=deployment,
        library=with_own(load_library(), [str(deployment.get("accelerator", ""))]),
        records=records,
        manifest=manifest,
        key=None if sign is None else read_private_key(sign),
        telemetry=telemetry,
        token=_token(token_from),
        timeout=timeout,
        served=served,
    )
    with counting("benching", len(sweep.points())) as step:
        benched = run(target, sweep, lambda done, name: step(done))
    if as_json:
        print_json(benched.to_dict() | {"records": str(records), "manifest": str(manifest)})
    else:
        print_bench(benched, records, manifest)
    if any(point.state == "failed" for point in benched.manifest.points.values()):
        raise typer.Exit(1)


def _numbers(text: str, flag: str, kind: type[int] | type[float]) -> list[Any]:
    """Numbers with commas: 256,2k."""
    found = [number_of(part) for part in text.split(",")]
    wrong = next(
        (
            part
            for part, value in zip(text.split(","), found, strict=True)
            if value is None or value <= 0 or (kind is int and not isinstance(value, int))
        ),
        None,
    )
    if wrong is not None:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(
            f"{flag} {text}: {quoted(wrong)}; expected {what} above 0 with commas, such as 256,2k"
        )
    return [kind(value) for value in found if value is not None]


def _deployment(path: Path | None) -> dict[str, Any]:
    """What a scenario says of its deployment."""
    if path is None:
        return {}
    from mantile.library.scenario import Case, load_scenario

    must_exist(path)
    scenario = load_scenario(str(path))
    stated = scenario.model_dump(mode="json", exclude_defaults=True, include={"model", *Case.model_fields})
    return {name: value for name, value in stated.items() if name not in _WORKLOAD}


def _token(variable: str | None) -> str | None:
    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise InputError(f"--token-from {variable}: there is no such environment variable, or it is empty")
    return token
