"""A pass in time: all layers in the order of the model, and one layer of a kind by its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from mantile.equations.forward import Pass
from mantile.equations.roofline import NETWORK, OVERHEAD, Block
from mantile.ir.modules import Layer
from mantile.server.page import charts
from mantile.server.page.answers import Answer
from mantile.server.page.state import State
from mantile.server.page.text import scaled


@dataclass(frozen=True)
class _Step:
    """A step of a layer: seconds in one layer, what binds it, and whether it is sent over a link."""

    id: str
    label: str
    seconds: float
    bound: str
    on_link: bool

    @property
    def words(self) -> str:
        return scaled(self.seconds, "s")

    @property
    def kind(self) -> str:
        if self.on_link:
            return NETWORK
        return self.bound if self.bound in charts.LIMITS else OVERHEAD


def timeline(found: Answer, phase: str, state: State, picked: str = "") -> dict[str, Any] | None:
    """A pass in time, and below it a layer: kernels one after the other, messages on the link below them.

    Args:
        picked: the number of a layer, from 1; one of the most frequent kind if it is none.
    """
    graph, values = found.estimate.equations, found.estimate.values()
    work: Pass = graph.prefill if phase == "prefill" else graph.decode
    kinds = {kind.blocks: kind for kind in graph.ir.layers}
    order = [kinds[blocks] for blocks in graph.ir.model.architecture.sequence() if blocks in kinds]
    steps = {kind.blocks: _steps(kind, work, values) for kind in kinds.values()}
    if not order or not any(steps.values()):
        return None
    number = int(picked) if picked.isdecimal() and 0 < len(picked) < 6 else 0
    if not 0 < number <= len(order):
        largest = max(graph.ir.layers, key=lambda kind: float(values[kind.count]))
        number = order.index(largest) + 1 if largest in order else 1
    shown = steps[order[number - 1].blocks]
    length = sum(step.seconds for step in shown)
    if not length:
        return None
    longest = max(shown, key=lambda step: step.seconds)
    title = (
        f"Layer {number} of {len(order)} lasts {scaled(length, 's')}, one operation after the other; "
        f"{longest.label} takes longest, {longest.words}"
    )
    total = float(values[work.time])
    return {
        "title": title,
        "chart": _layer(shown, length, f"{title}."),
        "steps": shown,
        "pass": _all_layers(order, steps, number, total, phase, state),
        "total": scaled(total, "s"),
        "count": len(order),
        "number": number,
        "near": [
            (words, state.link("/drill", phase=phase, layer=place))
            for words, place in (("Layer before", number - 1), ("Layer after", number + 1))
            if 0 < place <= len(order)
        ],
    }


def _steps(kind: Layer, work: Pass, values: Mapping[Any, Any]) -> list[_Step]:
    """The steps of a layer of a kind that take time, in order."""
    blocks = {block.id: block for block in work.blocks}
    steps = []
    for module in kind.modules:
        block = blocks.get(module.id)
        if block is None:
            continue
        steps.append(_step(block, values, False))
        if block.module is not None and block.module.reduces:
            sent = next((one for one in work.after.values() if one.id == "all_reduce"), None)
            if sent is not None and float(values[sent.time]) > 0:
                steps.append(_step(sent, values, True))
    return [step for step in steps if step.seconds > 0]


def _step(block: Block, values: Mapping[Any, Any], on_link: bool) -> _Step:
    seconds, bound = float(values[block.layer_time]), str(values[block.bound])
    return _Step(block.layer_time.id, block.label, seconds, bound, on_link)


def _layer(steps: Sequence[_Step], length: float, label: str) -> Markup:
    """The steps of a layer from left to right."""
    left, drawn = 0.0, []
    for step in steps:
        width = 100 * step.seconds / length
        y = 48 if step.on_link else 4
        inner = [
            charts.tag("title", f"{step.label}: {step.words}, {step.bound}"),
            charts.tag(
                "rect",
                x=charts.at(left),
                width=charts.at(width),
                y=y,
                height=36,
                class_=f"fill-{step.kind} step",
            ),
        ]
        if width > 13:
            x = charts.at(left + 0.6)
            inner.append(charts.tag("text", step.label, x=x, y=y + 15, class_=f"on-{step.kind} strong"))
            inner.append(charts.tag("text", step.words, x=x, y=y + 30, class_=f"on-{step.kind}"))
        drawn.append(charts.tag("g", *inner))
        left += width
    return charts.tag("svg", *drawn, class_="timeline", height=90, role="img", aria_label=label)


def _most(steps: Sequence[_Step]) -> str:
    """The limit under which the steps of a layer take most of its time."""
    spent = dict.fromkeys(charts.LIMITS, 0.0)
    for step in steps:
        spent[step.kind] += step.seconds
    return max(spent, key=lambda limit: spent[limit])


def _all_layers(
    order: Sequence[Layer],
    steps: Mapping[tuple[str, ...], Sequence[_Step]],
    number: int,
    total: float,
    phase: str,
    state: State,
) -> Markup:
    """Every layer of a pass from left to right, each a link; what is behind the last is no layer."""
    lengths = [sum(step.seconds for step in steps[kind.blocks]) for kind in order]
    whole = max(total, sum(lengths))
    left, drawn = 0.0, []
    for place, (kind, seconds) in enumerate(zip(order, lengths, strict=True), 1):
        width = 100 * seconds / whole
        most = _most(steps[kind.blocks])
        words = f"Layer {place}, {kind.name}: {scaled(seconds, 's')}, most of it {most}"
        drawn.append(
            charts.tag(
                "a",
                charts.tag("title", words),
                charts.tag(
                    "rect",
                    x=charts.at(left),
                    width=charts.at(width),
                    y=2,
                    height=24,
                    class_=f"fill-{most} step{' now' if place == number else ''}",
                ),
                href=state.link("/drill", phase=phase, layer=place),
                aria_label=words,
                tabindex=-1,
            )
        )
        left += width
    if left < 99.9:
        rest = "Once per pass, and waits between stages"
        drawn.append(
            charts.tag(
                "g",
                charts.tag("title", f"{rest}: {scaled(whole * (1 - left / 100), 's')}"),
                charts.tag(
                    "rect",
                    x=charts.at(left),
                    width=charts.at(100 - left),
                    y=2,
                    height=24,
                    class_="fill-overhead step",
                ),
            )
        )
    label = "All layers of the pass"
    return charts.tag("svg", *drawn, class_="pass", height=28, role="group", aria_label=label)
