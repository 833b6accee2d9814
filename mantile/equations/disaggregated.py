"""The decode step with the requests that are in decode where prefill has workers of its own.

How many these are stands as text; here the step is made again for each estimate of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass, times_of_experts
from mantile.equations.tables import Equations
from mantile.graph.quantity import Node, Quantity, Section, ancestors, where
from mantile.graph.rewrite import GraphRewrite

PREFIX = "disaggregated"


@dataclass(frozen=True)
class InDecode:
    """The decode step with the requests that are in decode.

    Args:
        decoding: what it works on; `step` its pass.
        sections: of the Decode part, in order.
    """

    decoding: Decoding
    step: Pass
    sections: tuple[Section, ...]


def in_decode(rows: Equations, decoding: Decoding, step: Pass, batch: Quantity) -> InDecode:
    """The decode step made again for the requests that are in decode.

    Args:
        rows: a prompt by itself.
        decoding: what a decode step works on if no request is elsewhere; `step` its pass.
        batch: requests of a decode worker.
    """
    apart = rows.fork()
    apart.know(*(figure for section in step.sections for figure in section.figures()))
    copies = _Copies(apart, decoding, step, batch)
    times_of_experts(apart, step, "experts_of_few", "one.")
    apart.make_again(f"{PREFIX}.all", ", all in decode", copies.at_all)
    apart.make_again(f"{PREFIX}.one", ", few in decode", copies.at(apart[f"{PREFIX}.few"], "one", "few"))
    for number in (1, 2):
        name, words = f"estimate_{number}", f"estimate {number - 1}"
        again = copies.at(apart[f"{PREFIX}.requests_{number - 1}"], name, words)
        apart.make_again(f"{PREFIX}.{name}", f", {words} in decode", again)
    sections = apart.sections(PREFIX)
    rows.know(*(figure for section in sections for figure in section.figures()))
    together = replace(
        decoding.batch,
        id=f"{PREFIX}.together",
        label="Requests that decode where the same workers prefill",
        note="",
        name="",
    )
    settled_batch = replace(
        decoding.batch,
        body=where(rows.figure("inputs.disaggregated") > 0, rows[f"{PREFIX}.requests_2"], together),
        note="fewer than the batch where requests wait for their prefill",
    )
    settled = GraphRewrite({decoding.batch: settled_batch}, (), "", "", copies.figures)
    settled_step = settled.rewrite(step)
    entering = settled_step.sections[0]
    place = entering.rows.index(settled_batch)
    entering = replace(entering, rows=(*entering.rows[:place], together, *entering.rows[place:]))
    settled_step = replace(settled_step, sections=(entering, *settled_step.sections[1:]))
    return InDecode(settled.rewrite(decoding), settled_step, sections)


class _Copies:
    """The decode step made again, above its own rows.

    With all requests every row is copied that its time follows from; with another number only those that
    follow from it.

    Args:
        rows: the step in a pipeline.
        batch: all requests.
    """

    def __init__(self, rows: Equations, decoding: Decoding, step: Pass, batch: Quantity) -> None:
        self.decoding, time = decoding, rows["serving.decode_step"]
        (of_step,) = rows.sections("serving", "Decode step")
        listed = [figure for section in step.sections for figure in section.figures()]
        of_stages = [row for row in of_step.figures() if row in ancestors(time)]
        self.figures = (*listed, decoding.microbatches, *of_stages)
        followed = GraphRewrite({decoding.batch: batch}, (), f"{PREFIX}.all.", "", self.figures)
        needed = {*ancestors(followed.rewrite(time)), *followed.rewritten} - {decoding.batch}
        copied = tuple(figure for figure in self.figures if isinstance(figure, Quantity) and figure in needed)
        self.at_all = GraphRewrite(
            {decoding.batch: batch}, (), f"{PREFIX}.all.", ", all in decode", self.figures, copied
        )
        self.at_all.rewrite(copied)

    def at(self, requests: Node, name: str, words: str) -> GraphRewrite:
        """The figures with so many requests in decode."""
        replaced = {self.decoding.batch: requests}
        follow = GraphRewrite(replaced, (), "", "", self.figures)
        shared = {node: copy for node, copy in self.at_all.rewritten.items() if not follow.depends(node)}
        return GraphRewrite(
            {**shared, **replaced}, (), f"{PREFIX}.{name}.", f", {words} in decode", self.figures
        )
