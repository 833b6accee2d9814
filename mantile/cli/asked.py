"""What flags stand for that is no field by itself: accelerators in all, defaults, files of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mantile.cli.output import look
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.library.profiles import Library

_WITHIN = ("pp", "cp", "attention_dp")  # degrees of a replica besides TP
_CHIPS = ("accelerator", "decode_accelerator", "prefill_accelerator")


def asked(
    data: Mapping[str, Any] | None, flags: Mapping[str, Any], model: str | None = None
) -> dict[str, Any]:
    """The flags of a command line as fields of a scenario.

    Args:
        data: the scenario that they change; None where they are all there is.
        model: that they are of, where no scenario says it.

    Raises:
        InputError: naming the flag, and a way out.
    """
    fields = _of_devices(_beside_cpu(dict(flags), {"model": model} | dict(data or {})))
    if data is None:
        from mantile.cli.config import defaults

        fields = defaults(fields) | fields
    if "preset" in fields:
        from mantile.cli.presets import preset_fields

        fields = preset_fields(str(fields.pop("preset")), data or {}, fields)
    if "gpus" in fields:
        fields = _spread(int(fields.pop("gpus")), data or {}, fields)
    for name in _CHIPS:
        if isinstance(fields.get(name), str):
            fields[name] = ",".join(map(own_file, fields[name].split(",")))
            tell_chip(name, fields[name])
    return fields


def _beside_cpu(fields: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The flags --cpu and --ngl as two devices: the CPU with the first layers, then the accelerator."""
    layers, cpu, away, kv_stays = (
        fields.pop(name, None) for name in ("ngl", "cpu", "n_cpu_moe", "no_kv_offload")
    )
    if cpu is None:
        for flag, stated in (
            (f"--ngl {layers}", layers is not None),
            (f"--n-cpu-moe {away}", away is not None),
            ("--no-kv-offload", bool(kv_stays)),
        ):
            if stated:
                raise InputError(f"{flag}: expected the CPU that holds the rest, such as --cpu ryzen-9-9950x")
        return fields
    if "device" in fields:
        raise InputError("--cpu beside --device: list the CPU as a device, first")
    from mantile.library.beside_cpu import ALL, beside_cpu
    from mantile.library.profiles import load_library

    if (away or kv_stays) and layers is None:
        layers = ALL
    chip = fields.pop("accelerator", data.get("accelerator"))
    if chip is None:
        raise InputError(
            "--cpu: expected --accelerator beside it, or leave --ngl out and take the CPU for one"
        )
    count = fields.pop("tp", data.get("tp", 1))
    model = fields.get("model", data.get("model"))
    named = None if model is None else str(model)
    return fields | beside_cpu(
        load_library(), str(cpu), str(chip), int(count), layers, named, away or 0, bool(kv_stays)
    )


def _of_devices(fields: dict[str, Any]) -> dict[str, Any]:
    """The flags with --device as fields of a scenario."""
    if "device" not in fields:
        return fields
    from mantile.cli.devices import device_fields

    found = device_fields(fields.pop("device"))
    for name in ("accelerator", "tp", "system", "gpus"):
        if name in fields:
            raise InputError(
                f"--{name} beside --device: a device states its own; expected CHIP:COUNT,system=NAME of "
                "the first --device"
            )
    for device in found["devices"][1:]:
        device["accelerator"] = own_file(device["accelerator"])
        tell_chip("device", device["accelerator"])
    return fields | found


def _spread(total: int, data: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Accelerators in all as degrees: TP takes what others leave, or DP where TP is stated."""
    from mantile.library.scenario import merge_fields

    if any(name.startswith(("decode_", "prefill_")) for name in fields) or data.get("decode"):
        raise InputError(
            "--gpus: prefill and decode workers have accelerators each; expected --prefill-tp, "
            "--decode-tp and "
            "--prefill-workers, --decode-workers"
        )
    stated = merge_fields(dict(data), {**fields}, "command line") if data else fields
    degrees = {name: stated.get(name) for name in ("tp", "dp", *_WITHIN)}
    auto = next((name for name, value in degrees.items() if not isinstance(value, int | None)), None)
    if auto is not None:
        raise InputError(f"--gpus {total}: --{auto} {degrees[auto]} chooses how many; leave one of them out")
    within = prod(degrees[name] or 1 for name in _WITHIN)
    free = "tp" if degrees["tp"] is None else "dp"
    taken = within * ((degrees["dp"] or 1) if free == "tp" else (degrees["tp"] or 1))
    if free == "dp" and degrees["dp"] is not None and "dp" in fields:
        if taken * degrees["dp"] != total:
            raise InputError(
                f"--gpus {total}: the degrees given make {taken * degrees['dp']} accelerators; "
                f"leave --gpus or "
                "--dp out"
            )
        return fields
    if total % taken:
        near = max(taken, total // taken * taken)
        raise InputError(
            f"--gpus {total}: the degrees given need a multiple of {taken} accelerators, such as {near} or "
            f"{near + taken}"
        )
    return fields | {free: total // taken}


def swept(
    values: Mapping[str, tuple[Any, ...]], document: Callable[[], Any], flags: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    """Axes of a sweep as fields: accelerators in all are TP, or DP where TP is stated or an axis.

    Args:
        values: of each axis, by the names that were given.
        document: reads what the file of a scenario or workbook holds, if one is swept.

    Raises:
        InputError: for accelerators in all that the degrees cannot make, and for presets, with a way out.
    """
    from mantile.library.scenario_fields import field_name

    if "as" in values:
        raise InputError("--over as: a preset sets several fields; run a sweep for each, with --as")
    if "profile" in values and "profiles" in values:
        raise InputError("--over profile beside --over profiles: the same parameter; leave one out")
    values = {"profiles" if name == "profile" else name: given for name, given in values.items()}
    own = {"model": own_model} | dict.fromkeys(_CHIPS, own_file)
    values = {
        name: tuple(own[field](str(value)) for value in given) if field in own else given
        for name, given in values.items()
        for field in [field_name(name)]
    }
    name = next((name for name in values if field_name(name) in ("gpus", "num_gpus")), None)
    if name is None:
        return dict(values)
    if "gpus" in flags:
        raise InputError(f"--over {name} beside --gpus: leave one of them out")
    axes = {field_name(axis) for axis in values}
    data = document()
    stated = {**(data if isinstance(data, dict) else {}), **flags}
    free = "dp" if "tp" in axes or stated.get("tp") is not None else "tp"
    others = [degree for degree in ("tp", "dp", *_WITHIN) if degree != free]
    also = next((degree for degree in (*others, free) if degree in axes), None)
    if also is not None:
        raise InputError(f"--over {name} beside --over {also}: each sets the accelerators; leave one out")
    within = prod(stated.get(degree) or 1 for degree in others)
    wrong = next((total for total in values[name] if not isinstance(total, int) or total % within), None)
    if wrong is not None:
        raise InputError(f"--over {name}: {wrong}: the degrees given need a multiple of {within}")
    return {
        free if axis == name else axis: tuple(total // within for total in given) if axis == name else given
        for axis, given in values.items()
    }


def own_file(name: str) -> str:
    """The file of an accelerator in a library folder of the user's own; the name as it is of any other."""
    from mantile.cli.config import library_folders

    if name.endswith((".yaml", ".yml")):
        return name
    for folder in library_folders():
        for place in (folder, folder / "accelerators"):
            path = place / f"{name.lower()}.yaml"
            if path.is_file():
                return str(path)
    return name


def with_own(library: Library, names: Iterable[str | None]) -> Library:
    """A library with the accelerators of these names that lie in library folders of the user's own."""
    from mantile.library.profiles import with_accelerator

    known = {chip.id for chip in library.accelerators}
    for name in dict.fromkeys(filter(None, names)):
        file = name if name in known else own_file(name)
        if file != name:
            library, _ = with_accelerator(library, Path(file))
    return library


def own_model(name: str) -> str:
    """The file of a model in a library folder of the user's own; the name as it is of any other."""
    from mantile.cli.config import library_folders

    if "/" in name or Path(name).suffix:
        return name
    for folder in library_folders():
        for path in (folder / f"{name.lower()}.yaml", folder / "models" / f"{name.lower()}.yaml"):
            if path.is_file() and path.parent != Path():
                from mantile.library.models import is_model_file

                if is_model_file(str(path)):
                    return str(path)
    return name


def tell_chip(flag: str, name: str) -> None:
    """Say which of several forms of a chip is taken, where the name leaves it open."""
    from mantile.library.profiles import is_file, load_library

    if is_file(name) or name in ("auto", "all") or "," in name:
        return
    chips = [chip.id for chip in load_library().accelerators]
    if name in chips:
        return
    taken = load_library().accelerator(name).id
    others = [chip for chip in chips if chip != taken and chip.startswith(taken.rpartition("-")[0] + "-")]
    if others and taken.endswith("-sxm") and "sxm" not in name.lower():
        spelt = f"--{flag.replace('_', '-')}"
        look.note(f"{spelt} {name}: taken as {taken}; also there: {', '.join(others)}")
