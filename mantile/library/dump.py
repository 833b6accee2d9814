"""Scenarios and efficiency profiles as YAML: scenarios in the order people write them, profiles one line a
factor."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from mantile.library.architecture import Model
from mantile.library.efficiency import EfficiencyProfile, FitReport
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.models import load_model
from mantile.library.scenario import Case, Scenario
from mantile.library.scenario_fields import Spread

_WIDTH = 150
_HEAD = ("title", "date", "why", "template", "name", "model")
_TAIL = (
    "decode",
    "devices",
    "profiles",
    "prices",
    "correction",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "request_rate",
    "sessions",
    "think_time",
    "classes",
    "capacity",
    "overrides",
    "without",
    "measured",
    "sweep",
    "alternative",
    "decision",
    "sensitivity",
    "variants",
    "ready_columns",
    "versions",
    "since",
)
_ORDER = (
    *_HEAD,
    *Spread.model_fields,
    *(name for name in Case.model_fields if name not in (*_HEAD, *Spread.model_fields, *_TAIL)),
    *_TAIL,
)
assert set(_ORDER) == set(Scenario.model_fields)


_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C where PyYAML was built with it


class _Dumper(_Base):  # type: ignore[misc]
    """Quotes every text that YAML 1.1 or 1.2 would read as something else, such as no, 1e5 or a date."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+.0-9][-+.0-9eE]*$"), list("-+.0123456789")
)


def dump_yaml(data: Mapping[str, Any]) -> str:
    """Plain objects as YAML that every version of it reads back alike, in their order.

    A field is a line; what holds no further collections stands on one line in braces.
    """
    flat: Any = None  # as the library has it: braces where nothing is nested
    node: Any = yaml.representer.SafeRepresenter(default_flow_style=flat, sort_keys=False).represent_data(
        dict(data)
    )
    node.flow_style = False
    return str(yaml.serialize(node, Dumper=_Dumper, allow_unicode=True, width=_WIDTH))


def dump_model(model: Model) -> str:
    """A model as a file of models/, which `load_model` reads back: a fact, a matrix and a layer is a line."""
    return dump_yaml(model.model_dump(mode="json", exclude_defaults=True))


def dump_scenario(data: Mapping[str, Any]) -> str:
    """The fields of a scenario that are given, as a scenario file in the order people write them:
    `load_scenario` reads it back."""

    def ordered(case: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: case[name] for name in _ORDER if name in case}
        return (
            fields | {"variants": [ordered(variant) for variant in fields["variants"]]}
            if fields.get("variants")
            else fields
        )

    return dump_yaml(ordered(data))


def dump_profile(profile: EfficiencyProfile) -> str:
    """A profile as YAML that `load` reads back: one line a factor, below them how they were fitted."""
    lines = [
        f"{name}: {_scalar(value)}"
        for name in ("id", "version", "generation", "accelerator", "framework", "topology", "link")
        if (value := getattr(profile, name)) is not None
    ]
    lines.append("factors:" if profile.factors else "factors: []")
    lines += [f"  - {_flow(factor.model_dump(exclude_none=True))}" for factor in profile.factors]
    if profile.fit is not None:
        lines += ["fit:", *(f"  {line}" for line in _fit(profile.fit))]
    return "\n".join(lines) + "\n"


def _fit(fit: FitReport) -> Iterator[str]:
    yield f"runs: {fit.runs}"
    yield f"source: {_scalar(fit.source)}"
    yield f"metrics: [{', '.join(fit.metrics)}]"
    yield f"spread: {_scalar(fit.spread)}"
    for name in ("before", "after"):
        yield from _errors(name, getattr(fit, name))
    if fit.out_of_sample:
        yield "out_of_sample:"
        for kept, metrics in fit.out_of_sample.items():
            yield from (f"  {line}" for line in _errors(kept, metrics))
    yield "moved:" if fit.moved else "moved: []"
    for moved in fit.moved:
        yield f"  - {_flow(moved.model_dump(exclude_none=True))}"


def _errors(name: str, metrics: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Errors by metric; fractions with as many digits as mean something."""
    stated = {
        metric: figures
        for metric, figures in metrics.items()
        if figures.get("n") and all(map(math.isfinite, figures.values()))
    }
    yield f"{name}:" if stated else f"{name}: {{}}"
    for metric, figures in stated.items():
        digits = {key: int(value) if key == "n" else float(f"{value:.4g}") for key, value in figures.items()}
        yield f"  {metric}: {_flow(digits)}"


def _flow(fields: Mapping[str, Any]) -> str:
    """A mapping on one line; the order is that of the profiles we ship."""
    order = sorted(fields, key=lambda key: key in ("status", "date", "source"))
    last = sorted(order[-3:], key=("status", "date", "source").index) if "source" in fields else []
    keys = [key for key in order if key not in last] + last
    return "{" + ", ".join(f"{key}: {_scalar(fields[key], key == 'source')}" for key in keys) + "}"


def _scalar(value: Any, quoted: bool = False) -> str:
    """One value as YAML; texts are quoted where plain ones would be read as something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    if not isinstance(value, str):
        return str(value)
    plain = (
        not quoted
        and value.replace("-", "").replace(".", "").replace("_", "").isalnum()
        and not value.replace(".", "").replace("-", "").isdigit()
    )
    if plain and value[0].isalpha() and value.lower() not in ("true", "false", "null", "nan", "inf"):
        return value
    return str(yaml.safe_dump(value, default_style='"', width=math.inf, allow_unicode=True)).rstrip("\n")


def write_profiles(profiles: Sequence[EfficiencyProfile], folder: Path) -> tuple[Path, ...]:
    """Write profiles as FOLDER/id@version.yaml; the folder is made if need be.

    Raises:
        InputError: naming a file that is there already or cannot be written; none is then written.
    """
    files = tuple(folder / f"{profile.id}@{profile.version}.yaml" for profile in profiles)
    for file in files:
        if file.exists():
            raise InputError(f"{file}: there is such a file already; it is never overwritten")
    folder.mkdir(exist_ok=True)
    done: list[Path] = []
    try:
        for profile, file in zip(profiles, files, strict=True):
            with replacing(file, overwrite=False) as temporary:
                temporary.write_text(dump_profile(profile), encoding="utf-8")
            done.append(file)
    except InputError:
        for file in done:
            file.unlink(missing_ok=True)
        raise
    return files


def add_model(name: str, folder: Path, today: date, trust_remote_code: bool = False) -> Path:
    """Write a model as FOLDER/ID.yaml; nothing else is needed to load it afterwards.

    Args:
        name, trust_remote_code: as `load_model` takes them.
        today: the day it was read.

    Returns: the path of the file.

    Raises:
        InputError: if there is no such model, or there is such a file already.
    """
    model = load_model(name, trust_remote_code)
    path = folder / f"{model.id}.yaml"
    entry = model.model_copy(update={"version": "1", "date": today.isoformat()})
    with replacing(path, overwrite=False) as temporary:
        temporary.write_text(dump_model(entry), encoding="utf-8")
    return path
