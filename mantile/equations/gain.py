"""What drafts bring: how much faster a decode step gives its tokens, and up to how many requests.

A step that checks drafts reads weights once for several tokens of each request: with few requests it takes
little longer, with many it multiplies more. The gain is taken of the step as it is, with one request and with
all slots taken, and where it ends between them on a straight line over the logarithm of the requests.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST, TOKENS_PER_STEP
from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.speculation import Speculation
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, maximum, minimum, where
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows

FEW, MANY = "gain.one.", "gain.most."


@dataclass(frozen=True)
class Gain:
    """What drafts bring.

    Args:
        speedup: tokens per second of a step with drafts, over those of one without.
        requests: of a replica that decode at a time.
        break_even: requests of a replica that decode at which drafts bring nothing any more.
    """

    speedup: Quantity
    requests: Quantity
    break_even: Quantity
    sections: tuple[Section, ...]


def gain(workers: Workers, decoding: Decoding, step: Pass) -> Gain | None:
    """The gain of drafts; None where no scenario speculates."""
    drafts, plain = workers.speculation, step.plain
    if drafts is None or plain is None:
        return None
    rows, memory = Rows("gain"), workers.memory
    ends = Rows("gain")
    most = ends("most", "Most requests in a batch", "request", maximum(1, memory.capacity_sequences))
    speedup = _speedup(rows, "speedup", "Gain of drafts", drafts, plain, step.time)
    figures = tuple(figure for section in step.sections for figure in section.figures())

    def at(requests: Node, id_prefix: str, suffix: str) -> tuple[Quantity, Section]:
        batches = dict.fromkeys((memory.batch, memory.allowed, decoding.batch), requests)
        again = GraphRewrite(batches, (), id_prefix, suffix, figures)
        name = f"speedup_{id_prefix.split('.')[1]}"
        found = _speedup(
            rows,
            name,
            f"Gain of drafts{suffix}",
            drafts,
            again.rewrite(plain),
            again.rewrite(step.time),
        )
        made = again.made(figures)
        return found, Section(f"Step{suffix}", made, "made again for the gain of drafts")

    few, of_few = at(ONE_REQUEST, FEW, ", one request")
    many, of_many = at(most, MANY, ", most requests")
    below = speedup < 1
    start = rows("start", "Gain at fewer requests", "1", where(below, few, speedup))
    end = rows("end", "Gain at more requests", "1", where(below, speedup, many))
    fewest = rows("fewest", "Fewer requests", "request", where(below, ONE_REQUEST, decoding.batch))
    further = rows("further", "More requests", "request", maximum(fewest, where(below, decoding.batch, most)))
    share = rows(
        "share",
        "Way from fewer to more requests on which drafts bring something",
        "1",
        where(start > end, minimum(1, maximum(0, start - 1) / (start - end)), 1),
        "the gain lies on a straight line over the logarithm of the requests",
    )
    break_even = rows(
        "break_even",
        "Requests up to which drafts bring something",
        "request",
        where(few > 1, fewest * (further / fewest) ** share, 0),
        "of a replica, that decode at a time; at most as many as memory holds",
    )
    note = "against the same step without them"
    return Gain(
        speedup,
        decoding.batch,
        break_even,
        (
            ends.section("Most requests", "that memory holds"),
            of_few,
            of_many,
            rows.section("Gain of drafts", note),
        ),
    )


def _speedup(
    rows: Rows, name: str, label: str, drafts: Speculation, plain: Quantity, step: Quantity
) -> Quantity:
    more = drafts.emitted / TOKENS_PER_STEP * plain / step
    return rows(name, label, "1", where(drafts.on > 0, more, 1), "tokens per second of a step")
