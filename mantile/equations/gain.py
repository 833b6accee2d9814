"""What drafts bring: how much faster a decode step gives its tokens, and up to how many requests.

A step that checks drafts reads weights once for several tokens of each request: with few requests it takes
little longer, with many it multiplies more. What it saves is taken of the step as it is, with one request and
with as many as memory holds, and on a straight line between them: far from the batch at which drafts bring
nothing any more that batch is known to two fifths.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST, SMALLEST, TOKENS_PER_STEP
from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.speculation import Speculation
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, maximum, where
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows

FEW, MANY = "gain.one.", "gain.most."


@dataclass(frozen=True)
class Gain:
    """What drafts bring.

    Args:
        speedup: tokens per second of a step with drafts, over those of one without.
        requests: of a replica that decode at a time.
        break_even: how many of them there may be until drafts bring nothing any more.
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
    rows = Rows("gain")
    ends = Rows("gain")
    most = ends(
        "most", "Most requests in a batch", "request", maximum(1, workers.rows["memory.capacity_sequences"])
    )
    more = drafts.emitted / TOKENS_PER_STEP * plain / step.time
    speedup = rows(
        "speedup", "Gain of drafts", "1", where(drafts.on > 0, more, 1), "tokens per second of a step"
    )
    here = _saved(rows, "saved", "", drafts, plain, step.time)
    figures = tuple(figure for section in step.sections for figure in section.figures())

    def at(requests: Node, id_prefix: str, suffix: str) -> tuple[Quantity, Section]:
        batches = dict.fromkeys(
            (workers.rows["memory.batch"], workers.rows["memory.allowed"], decoding.batch), requests
        )
        again = GraphRewrite(batches, (), id_prefix, suffix, figures)
        name = f"saved_{id_prefix.split('.')[1]}"
        found = _saved(rows, name, suffix, drafts, again.rewrite(plain), again.rewrite(step.time))
        return found, Section(f"Step{suffix}", again.made(figures), "made again for the gain of drafts")

    few, of_few = at(ONE_REQUEST, FEW, ", one request")
    many, of_many = at(most, MANY, ", most requests")
    below = here < 0
    start = rows("start", "Saved with fewer requests", "s", where(below, few, here))
    end = rows("end", "Saved with more requests", "s", where(below, here, many))
    fewest = rows("fewest", "Fewer requests", "request", where(below, ONE_REQUEST, decoding.batch))
    further = rows("further", "More requests", "request", maximum(fewest, where(below, decoding.batch, most)))
    share = rows(
        "share",
        "Way from fewer to more requests on which drafts save time",
        "1",
        where(end < 0, maximum(0, start) / maximum(SMALLEST * plain, start - end), 1),
        "what they save lies on a straight line",
    )
    break_even = rows(
        "break_even",
        "Requests up to which drafts bring something",
        "request",
        where(few > 0, fewest + share * (further - fewest), 0),
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


def _saved(
    rows: Rows, name: str, suffix: str, drafts: Speculation, plain: Quantity, step: Quantity
) -> Quantity:
    """Seconds by which a step with drafts is shorter than the steps that give as many tokens without."""
    return rows(
        name,
        f"Time that drafts save in a step{suffix}",
        "s",
        drafts.on * (drafts.emitted / TOKENS_PER_STEP * plain - step),
    )
