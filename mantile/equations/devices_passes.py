"""The passes of devices that are not alike: each runs its layers at its own pace, one after the other.

id                                              function
----------------------------------------------  ------------------------
devices.<n>.<phase>.*                           on_devices: its modules
devices.<phase>.<module>.* .<n>.<module>.*      on_devices: their means
devices.<phase>.<n>.layer.<kind> .<n>.stage     stage_times
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mantile.equations.constant import SLIVER
from mantile.equations.devices import Device, Devices, Stage
from mantile.equations.devices_away import OF_RUN, on_device_before
from mantile.equations.draft import AGAIN
from mantile.equations.forward import OnDevice, Pass
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    ancestors,
    as_node,
    expression,
    maximum,
    span,
    substitute,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rewrite import GraphRewrite, order
from mantile.graph.rows import Rows
from mantile.ir.modules import Layer, ModelGraph


def on_devices(ir: ModelGraph, base: Workers, devices: Devices, work: Pass) -> tuple[Pass, Devices]:
    """A pass through all devices, and the devices with their part of it.

    Args:
        base: the deployment; `work` its pass as if all devices were like the first.
    """
    phase = work.phase
    listed = [figure for section in work.sections for figure in section.figures()]
    blocks = [
        figure
        for section in work.sections[1:]
        for figure in section.figures()
        if isinstance(figure, Quantity)
    ]
    first = Rows(f"devices.{phase.id}", f", {phase.id}")  # what the rows of the pass follow from
    passes = [_pass_of(device, work, listed, blocks) for device in devices.devices]
    passes = on_device_before(first, ir, base, base.inputs.devices, devices.links, work, passes)
    replaced: dict[Node, Node] = {}
    runs: dict[str, list[Node]] = {}
    in_layers: dict[str, list[Node]] = {}
    counts = _counts(first, base, devices, work)
    for place, block in enumerate(work.blocks):
        of_each = [one.blocks[place] for one in passes]
        if block.id == "p2p":
            sent = _sent(first, base.rows.rows, devices, phase.id, block)
            of_all = first.added("sent", "Activations over links", "s", sent)
            mean = of_all / maximum(1, base.inputs.pp - 1)
            replaced[block.layer_time] = replace(
                block.layer_time, body=mean, note="mean over the links in use"
            )
        elif block.id == "host":
            replaced |= _hosts(first, base, block, of_each)
        else:
            if block.repeats is not None:
                runs[block.id], in_layers[block.id] = _runs(first, base, devices, block, counts)
            replaced |= _means(first, devices, block, of_each, runs.get(block.id, []))
    replaced |= _step(first, devices, work, passes)
    whole = GraphRewrite(replaced, (), "", "", tuple(listed)).rewrite(work)
    rows = Rows(f"devices.{phase.id}", f", {phase.id}")
    times = stage_times(rows, ir, base, devices, whole, passes, runs)
    whole = _held_against(rows, devices, whole, times.stages)
    known = base.rows.rows
    known.know(*first.quantities())
    first.add(*_rows(known, "All activations over links", phase.id))
    if phase.id == "prefill":
        first.add(*_rows(known, "The busiest link", phase.id))
    modules = _sections(devices, whole, times, listed)
    found = replace(
        devices,
        stages={**devices.stages, phase.id: times.stages},
        of_layer={**devices.of_layer, phase.id: times.of_layer},
        passes={
            **devices.passes,
            phase.id: (rows.section(f"Stages of {phase.id}, by device", "seconds of a pass"),),
            f"{phase.id}.modules": (
                *modules,
                first.section(f"All devices together, {phase.id}", "what the rows of the pass are means of"),
            ),
        },
    )
    apart = [
        OnDevice(
            time=stage.time,
            part=device.layers / ir.total_layers,
            last=device.last,
            blocks={
                block.id: (own, in_layers[block.id][device.number - 1])
                for block, own in zip(work.blocks, one.blocks, strict=True)
                if block.id in in_layers
            },
        )
        for device, stage, one in zip(devices.devices, times.stages, passes, strict=True)
    ]
    return replace(whole, devices=tuple(apart)), found


def _pass_of(device: Device, work: Pass, listed: list[Named], blocks: list[Quantity]) -> Pass:
    """The pass as if all of it ran on accelerators like those of a device."""
    phase = work.phase
    entering = (phase.requests, phase.tokens, phase.rank_requests, phase.passes, phase.coverage)
    pins: dict[Node, Node] = {figure: figure for figure in entering if figure is not None}
    of_device = device.workers.rows
    if "prefixes" in of_device.features:  # what a step of the drafter follows from too
        pins |= {of_device.rows[name]: of_device[name] for name in ("prefix.computed", "prefix.found")}
    rewrite = GraphRewrite(
        {**device.rewrite.rewritten, **pins},
        (),
        device.prefix,
        f", device {device.number}",
        tuple(listed),
        tuple(blocks),
    )
    return rewrite.rewrite(work)


def _in_counts(body: Node, counts: frozenset[Node]) -> Node:
    """An expression with no named figure between it and the counts of layers that it follows from."""
    between = {
        figure: _in_counts(figure.body, counts)
        for figure in expression(body)
        if isinstance(figure, Quantity) and not counts.isdisjoint(ancestors(figure))
    }
    return substitute(body, {figure: node for figure, node in between.items()})


def _counts(rows: Rows, base: Workers, devices: Devices, work: Pass) -> list[GraphRewrite]:
    """For each device what counts messages, with the layers that it holds in place of all."""
    messages = order(
        *(_repeats(block) for block in work.blocks if block.network and block.repeats is not None)
    )
    held = base.plan.stages.layers
    return [
        GraphRewrite(
            {kind: of_stages[device.number - 1] for kind, of_stages in held.items()},
            (),
            f"{rows.prefix}.{device.number}.held.",
            f", device {device.number}",
            messages,
        )
        for device in devices.devices
    ]


def _runs(
    rows: Rows, base: Workers, devices: Devices, block: Block, counts: Sequence[GraphRewrite]
) -> tuple[list[Node], list[Node]]:
    """How often a module runs on each device, from how often it runs in the model; and in its layers.

    A message that is sent once beside those of the layers is the last device's.

    Args:
        counts: of each device, what counts its messages; the rows that are made are added.
    """
    assert block.repeats is not None
    held = base.plan.stages.layers
    unfolded = _in_counts(_repeats(block), frozenset(held))
    if not block.network:
        runs: list[Node] = [
            substitute(unfolded, {kind: of_stages[device.number - 1] for kind, of_stages in held.items()})
            for device in devices.devices
        ]
        return runs, runs
    runs = []
    for own_counts in counts:
        known = {*own_counts.made(())}
        runs.append(own_counts.rewrite(_repeats(block)))
        rows.add(*(row for row in own_counts.made(()) if row not in known))
    once = rows(
        f"{block.id}.once",
        f"Messages outside layers, {block.label}",
        "number",
        1 * substitute(unfolded, dict.fromkeys(held, as_node(0))),
    )
    own = Rows(rows.prefix, f", {block.label}{rows.suffix}", rows.rows)
    every = [
        own(
            f"{device.number}.{block.id}.all",
            f"Messages with those outside, device {device.number}",
            "number",
            run,
        )
        for run, device in zip(runs, devices.devices, strict=True)
    ]
    of_devices: list[Node] = [
        own(
            f"{device.number}.{block.id}.runs",
            f"Messages of device {device.number}",
            "number",
            number - where(device.last, 0, once),
        )
        for number, device in zip(every, devices.devices, strict=True)
    ]
    return of_devices, [number - once for number in every]


def _repeats(block: Block) -> Node:
    """How often a module runs; of messages what the row says, which stands below what is made here."""
    assert block.repeats is not None
    return block.repeats.body if block.network and isinstance(block.repeats, Quantity) else block.repeats


def _means(
    rows: Rows, devices: Devices, block: Block, of_each: Sequence[Block], runs: Sequence[Node]
) -> dict[Node, Node]:
    """The figures of one run of a module: the mean over its runs, or that of the end where it stands."""
    replaced: dict[Node, Node] = {}
    at_start = block.id in ("embedding", "vision")
    own = Rows(rows.prefix, f", {block.label}{rows.suffix}", rows.rows)
    repeats = block.repeats
    if block.network and runs:
        repeats = own(f"{block.id}.count", "Messages of all devices", "number", sum_of(list(runs)))
    for name, unit in OF_RUN.items():
        figure = getattr(block, name)
        if figure is None or figure in replaced or (block.network and name == "bytes"):
            continue  # a message is as large on every device, and two kinds may share its size
        each = [getattr(one, name) for one in of_each]
        label = figure.label if isinstance(figure, Quantity) else name.replace("_", " ").capitalize()
        if repeats is None:
            ends = [device.first if at_start else device.last for device in devices.devices]
            parts = [where(end, one, 0) for end, one in zip(ends, each, strict=True)]
            body = own.added(f"{block.id}.{name}", label.partition(",")[0], unit, parts, 3)
        else:
            products = [number * one for number, one in zip(runs, each, strict=True)]
            whole = own.added(f"{block.id}.{name}", label.partition(",")[0], unit, products, 2)
            body = where(repeats > 0, whole / maximum(SLIVER, repeats), 0)
        replaced[figure] = (
            replace(figure, body=body, note="mean over the layers of all devices")
            if isinstance(figure, Quantity)
            else body
        )
    return replaced


def _sent(first: Rows, rows: Equations, devices: Devices, phase: str, block: Block) -> tuple[Quantity, ...]:
    """Seconds of the activations of a pass from each device to the next; 0 over a link that is not used."""
    size = next(
        figure
        for figure in block.section.figures()
        if isinstance(figure, Quantity) and figure.id.endswith("message_bytes")
    )
    rows.know_as(f"{phase}.activations", size.body)
    first.add(*_rows(rows, "Activations over links", phase))
    return tuple(rows[f"devices.{phase}.{link.name}.sent"] for link in devices.links)


def _rows(rows: Equations, title: str, phase: str) -> Iterator[Row]:
    """The rows of a pass under a title."""
    for section in rows.sections("devices", title, prefix=f"devices.{phase}."):
        yield from section.rows


def _hosts(rows: Rows, base: Workers, block: Block, of_each: Sequence[Block]) -> dict[Node, Node]:
    """What lies on hosts: each device reads its own."""
    body = rows.added("host", "Reading of hosts", "s", [one.time for one in of_each], 4) / base.inputs.pp
    return {block.time: replace(block.time, body=body, note="each device reads what lies on its own host")}


def _step(rows: Rows, devices: Devices, work: Pass, passes: Sequence[Pass]) -> dict[Node, Node]:
    """Host time of a pass: that of the device which samples."""
    section = next(section for section in work.sections if section.title == "Step overhead")
    time = section.rows[-1]
    assert isinstance(time, Quantity)
    place = work.sections.index(section)
    each = [one.sections[place].rows[-1] for one in passes]
    parts: list[Node] = [
        where(device.last, own, 0)
        for device, own in zip(devices.devices, each, strict=True)
        if isinstance(own, Node)
    ]
    body = rows.added("step", "Host time of a pass", "s", parts, 3)
    return {time: replace(time, body=body, note="of the device that samples")}


def _held_against(rows: Rows, devices: Devices, whole: Pass, stages: Sequence[Stage]) -> Pass:
    """The pass held against peaks and bandwidths of all devices, each for the time that it works."""
    worked = rows("worked", "Time on all devices", "s", sum_of([stage.time for stage in stages]))

    def mean(name: str, label: str, unit: str, of_each: Sequence[Node]) -> Node:
        work: list[Node] = [stage.time * own for stage, own in zip(stages, of_each, strict=True)]
        return rows(name, label, unit, rows.added(f"{name}.part", label, unit, work, 3) / worked)

    peaks = [
        rows(
            f"{device.number}.peak",
            f"Largest peak of device {device.number}",
            "FLOP/s",
            maximum(
                *(
                    kind.linear_peak
                    for name, kind in device.workers.formats.classes.items()
                    if name != "router"
                )
            ),
        )
        for device in devices.devices
    ]
    peak = mean("peak", "Peak of the devices that work", "FLOP/s", peaks)
    bandwidth = mean(
        "bandwidth",
        "Bandwidth of the devices that work",
        "B/s",
        [one.rows["hardware.memory_bandwidth"] for one in devices.sets],
    )
    held = {
        whole.peak: replace(whole.peak, body=1 * peak, note="of each device for the time that it works"),
        whole.mbu: replace(whole.mbu, body=whole.bytes / (whole.time * bandwidth)),
    }
    listed = tuple(figure for section in whole.sections for figure in section.figures())
    return GraphRewrite(held, (), "", "", listed).rewrite(whole)


@dataclass(frozen=True)
class _Stages:
    """Seconds of a pass on each device; on the slowest; of a layer of each kind by device."""

    stages: tuple[Stage, ...]
    slowest: Quantity
    of_layer: tuple[Mapping[Input, Quantity], ...]


def stage_times(
    rows: Rows,
    ir: ModelGraph,
    base: Workers,
    devices: Devices,
    whole: Pass,
    passes: Sequence[Pass],
    runs: Mapping[str, Sequence[Node]],
) -> _Stages:
    """Seconds of a pass on each device, and on the one that takes most.

    A layer of each kind takes what its modules take; what is not in layers, such as embedding, messages and
    host time, is spread over the layers, but for the LM head and the drafter, which the last device has.
    """
    kinds, total = list(ir.layers), ir.total_layers
    once = _in_a_layer(rows, kinds, whole)
    of_layers: list[Quantity] = []
    kinds_of: list[dict[Input, Quantity]] = []
    for device, one in zip(devices.devices, passes, strict=True):
        place = device.number - 1
        parts = []
        by_kind: dict[Input, Quantity] = {}
        for kind in kinds:
            times = [
                block.layer_time * once[original.id, kind.count]
                for block, original in zip(one.blocks, whole.blocks, strict=True)
                if (original.id, kind.count) in once
            ]
            name = kind.count.id.removeprefix("model.")
            own = Rows(rows.prefix, f", device {device.number}{rows.suffix}", rows.rows)
            of_kind = own(
                f"{device.number}.layer.{name}",
                f"Time of a layer, {kind.name}",
                "s",
                own.added(
                    f"{device.number}.layer.{name}.part", f"Time of a layer, {kind.name}", "s", times, 4
                ),
            )
            by_kind[kind.count] = of_kind
            parts.append(base.plan.stages.layers[kind.count][place] * of_kind)
        kinds_of.append(by_kind)
        of_layers.append(
            rows(
                f"{device.number}.layers",
                f"Time of the layers of device {device.number}",
                "s",
                sum_of(parts),
            )
        )
    in_layers = rows("layers", "Time of all layers", "s", sum_of(of_layers))
    last = sum_of([block.time for block in whole.blocks if block.id in ("lm_head", "draft")])
    at_end = rows("end", "Time of LM head and drafter", "s", last)
    common = rows(
        "common", "Time of all else", "s", whole.time - in_layers - at_end, "spread over the layers"
    )
    stages = []
    for device, one, layered in zip(devices.devices, passes, of_layers, strict=True):
        time = rows(
            f"{device.number}.stage",
            f"Time on device {device.number}",
            "s",
            layered + common * (device.layers / total) + where(device.last, at_end, 0),
        )
        own = Rows(rows.prefix, f", device {device.number}{rows.suffix}", rows.rows)
        stages.append(Stage(time, _parts(own, device, one, whole, runs)))
    slowest = rows("slowest", "Time on the slowest device", "s", maximum(*(stage.time for stage in stages)))
    return _Stages(tuple(stages), slowest, tuple(kinds_of))


def know_ends(rows: Equations, *passes: Pass) -> None:
    """Name what stands behind the layers in passes: LM head and drafter."""
    for work in passes:
        times = [block.time for block in work.blocks if block.id in ("lm_head", "draft")]
        rows.know_as(f"{work.phase.id}.at_end", sum_of(times))


def _in_a_layer(rows: Rows, kinds: Sequence[Layer], whole: Pass) -> dict[tuple[str, Input], Node]:
    """How often a module runs in a layer of a kind, by module and count of the kind."""
    found: dict[tuple[str, Input], Node] = {}
    nothing: dict[Node, Node] = {kind.count: as_node(0) for kind in kinds}
    for block in whole.blocks:
        if block.repeats is None or block.id == "p2p":
            continue
        runs = _in_counts(block.repeats, frozenset(nothing))
        for kind in kinds:
            if not any(part is kind.count for part in expression(runs)):
                continue
            alone: Node = substitute(runs, nothing | {kind.count: as_node(1)})
            if not block.network:
                found[block.id, kind.count] = alone
                continue
            name = kind.count.id.removeprefix("model.")
            own = Rows(rows.prefix, f", {block.label}, {kind.name}{rows.suffix}", rows.rows)
            of_all = own(f"{block.id}.{name}.all", "Messages with those outside layers", "number", 1 * alone)
            outside = own(
                f"{block.id}.{name}.outside",
                "Messages outside layers",
                "number",
                1 * substitute(runs, nothing),
            )
            found[block.id, kind.count] = own(
                f"{block.id}.{name}.once", "Messages of a layer", "number", of_all - outside
            )
    return found


def _parts(
    rows: Rows, device: Device, one: Pass, whole: Pass, runs: Mapping[str, Sequence[Node]]
) -> dict[str, Quantity]:
    """Seconds of the layers of a device by what binds: compute, memory, network, overhead."""
    times: dict[str, list[Node]] = {limit: [] for limit in (COMPUTE, MEMORY, NETWORK, OVERHEAD)}
    for block, original in zip(one.blocks, whole.blocks, strict=True):
        if original.repeats is None or block.id == "p2p":
            continue
        number = runs[block.id][device.number - 1]
        rest: Node = block.layer_time
        if block.launch is not None:
            times[OVERHEAD].append(block.launch * number)
            rest = rest - block.launch
        worked = rows(
            f"{device.number}.{block.id}.worked", f"Time without launches, {block.label}", "s", rest * number
        )
        for limit in (COMPUTE, MEMORY, NETWORK):
            share = limited(block, limit, worked)
            if share is not None:
                times[limit].append(share)
    parts: dict[str, Quantity] = {}
    for limit, of_limit in times.items():
        label = f"{limit.capitalize()} time of its layers"
        some = [of_limit[start : start + 2] for start in range(0, len(of_limit), 2)] or [[as_node(0)]]
        members = [
            rows(f"{device.number}.{limit}.part.{place}", f"{label}, part {place}", "s", sum_of(few))
            for place, few in enumerate(some, start=1)
        ]
        parts[limit] = rows(f"{device.number}.{limit}", label, "s", sum_range(span(members)))
    return parts


def _of_stages(times: _Stages) -> Iterator[Quantity]:
    yield times.slowest
    for stage in times.stages:
        yield from stage.parts.values()


def _sections(devices: Devices, whole: Pass, times: _Stages, listed: Sequence[Named]) -> tuple[Section, ...]:
    """The rows of all devices that the pass is made of, a block for each device."""
    needed = [
        node
        for node in ancestors(
            whole.time, *_of_stages(times), *(f for section in whole.sections for f in section.figures())
        )
        if isinstance(node, Quantity)
    ]
    places = {figure.id: place for place, figure in enumerate(listed)}
    sections = []
    for device in devices.devices:
        begin = tuple(f"{device.prefix}{part}{whole.phase.id}." for part in ("", AGAIN))
        begin += (f"{device.prefix}{AGAIN}speculation.",) if whole.phase.decode else ()
        own = [node for node in needed if node.id.startswith(begin)]
        own.sort(key=lambda node: places.get(node.id.removeprefix(device.prefix), -1))
        sections.append(
            Section(f"Modules on device {device.number}", tuple(own), "one run of each, on its accelerators")
        )
    return tuple(sections)
