"""A choice in words: names of plans, why others lost, how far the winner is ahead, and what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.constant import MEGA, MILLI
from mantile.equations.decide.figures import (
    NONE,
    SHARED,
    SPREAD,
    TOLD_MORE,
    Figures,
    Judged,
    as_typed,
    in_case,
)
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
)
from mantile.equations.roofline import NETWORK
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    absolute,
    all_of,
    as_node,
    equal,
    exponential,
    if_error,
    index,
    is_number,
    join,
    match,
    maximum,
    number_of,
    percent,
    rounded,
    span,
    where,
)

_DEGREES = (("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))


def tell_name(make: Figures, graph: EstimateGraph, case: int) -> None:
    """What a plan is called, from its cells: B200 SXM · 3 × TP1 · nvfp4, fp8 KV · trtllm."""
    workers = graph.decode_workers
    inputs = workers.inputs.named()

    def of(name: str) -> Node:
        return in_case(inputs[name], case)

    ranks = rounded(of("tp"), 0)
    told = make(
        "name.replicas",
        "Replicas and TP, in words",
        "1",
        where(of("dp") > 1, join(rounded(of("dp"), 0), " × TP", ranks), join("TP", ranks)),
    )
    for name, short in _DEGREES:
        more = join(told, f" {short}", rounded(of(name), 0))
        told = make(f"name.{name}", f"Degrees to {short}, in words", "1", where(of(name) > 1, more, told))
    make("name.formats", "Data types, in words", "1", join(of("weights_dtype"), ", ", of("kv_dtype"), " KV"))
    if len(graph.workers) > 1:
        told = _of_both(make, graph, case, told)
    moved = make("name.moved", "Memory asked of the host", "GB", of("offload_weights") + of("offload_kv"))
    framework = of("framework")
    hosted = where(moved > 0, join(framework, " · ", rounded(moved, 0), " GB on the host"), framework)
    make("name.host", "Framework and host memory, in words", "1", hosted)
    chip = in_case(workers.hardware.name, case)
    words = join(chip, " · ", told, " · ", make["name.formats"], " · ", make["name.host"])
    make("name", "Plan", "1", words)


def _of_both(make: Figures, graph: EstimateGraph, case: int, last: Quantity) -> Quantity:
    """Degrees of prefill workers, an arrow, and those of decode workers; of plans with both those alone."""
    inputs = graph.prefill_workers.inputs.named()

    def of(name: str) -> Node:
        return in_case(inputs[name], case)

    ranks = rounded(of("tp"), 0)
    several = join(rounded(of("dp"), 0), " × TP", ranks)
    told = make(
        "name.prefill", "Prefill workers, in words", "1", where(of("dp") > 1, several, join("TP", ranks))
    )
    more = join(told, " DPA", rounded(of("attention_dp"), 0))
    told = make("name.prefill_dpa", "The same, with DPA", "1", where(of("attention_dp") > 1, more, told))
    both = join(told, " → ", last)
    return make("name.both", "Both, in words", "1", where(equal(of("serving"), "disaggregated"), both, last))


def beyond_limit(value: Quantity, limit: Quantity) -> Node:
    ratio = number_of(value) / limit
    return if_error(absolute(ratio - 1), 0)


def chip_in(graph: EstimateGraph, case: int) -> Node:
    inputs = graph.decode_workers.inputs
    return join(in_case(inputs.accelerator, case), " ", in_case(inputs.framework, case))


def offers_in(graph: EstimateGraph, case: int) -> Node:
    """That there is no price of the basis, and what there is of others."""
    workers = graph.decode_workers
    told: list[Node] = []
    for name, unit in (("cloud", " USD/h"), ("rental", " USD/h"), ("purchase", " USD")):
        price = in_case(workers.hardware.prices[name], case)
        told.append(where(price > 0, join(f"; {name} price ", rounded(price, 2), unit), ""))
    basis = in_case(workers.inputs.price_basis, case)
    return join("no ", basis, " price, so no rank", *told)


def links_in(graph: EstimateGraph, case: int) -> Node:
    decode = graph.decode
    return if_error(in_case(decode.parts[NETWORK], case) / in_case(decode.time, case), 0)


def tell_beside(row: Figures, rows: Sequence[Figures], number: Input, of: Figures) -> None:
    """A plan beside the winner: how far behind it is, whether that is more than the error, and why."""

    def best(name: str) -> Node:
        return index(span([other[name] for other in rows]), of["at"])

    gap = number_of(row["score"]) - number_of(best("score"))
    row("gap", "Behind the winner, as a logarithm", "1", gap)
    placed = is_number(row["rank"])
    row("behind", "Worse than the winner", "1", where(placed, exponential(row["gap"]) - 1, NONE))
    row(
        "same",
        "On the chip and framework of the winner",
        "1",
        where(equal(row["chip"], best("chip")), SHARED, 0),
    )
    row("best_deviation", "Standard deviation of the winner", "1", best("deviation"))
    mine, theirs = row["deviation"], row["best_deviation"]
    row(
        "variance",
        "Variance of the difference",
        "1",
        mine * mine + theirs * theirs - row["same"] * mine * (theirs + theirs),
        "what both plans share cancels",
    )
    row("error", "Range of the difference", "1", exponential(SPREAD * row["variance"] ** 0.5) - 1)
    within = number_of(row["behind"]) <= row["error"]
    row("holds", "Whether the difference holds", "1", where(within, "within the error", "holds"))
    row("real", "Whether it holds, of a plan with a rank", "1", where(placed, row["holds"], NONE))
    row("told", "The difference, in words", "1", where(equal(row["rank"], 1), "winner", row["real"]))
    second = index(span([other["cost"] for other in rows]), maximum(1, of["second"]))
    row(
        "even",
        "Cost per million to break even with",
        "USD/Mtoken",
        where(equal(row["rank"], 1), second, best("cost")),
    )
    due = if_error(row["even"] * row["hourly_tokens"] / MEGA, NOT_KNOWN)
    row(
        "price_due",
        "Price at which it costs what the winner does",
        "USD/h",
        due,
        "per accelerator and hour; of the winner, what the second costs",
    )
    row("price_change", "Change of the price", "1", if_error(row["price_due"] / row["price"] - 1, NOT_KNOWN))
    row("dearer", "Dearer per accelerator and hour", "1", if_error(row["price"] / best("price") - 1, 0))
    row("fewer", "Fewer tokens per accelerator", "1", if_error(1 - row["tokens"] / best("tokens"), 0))
    row("best_share", "Share of links, the winner's", "1", best("share"))
    _lost(row, number, of)


def _lost(row: Figures, number: Input, of: Figures) -> None:
    """Why a plan lost: the first cause that holds, in words."""
    more = row["share"] - row["best_share"]
    unknown = all_of(row["misses"] > 0, row["value_known"] <= 0)
    causes: dict[str, tuple[Node, Node]] = {
        "cannot": (row["possible"] <= 0, join("cannot be: ", row["reason"])),
        "unknown": (unknown, join(row["label"], " is not known: no limit is kept")),
        "missed": (
            row["misses"] > 0,
            join(row["label"], " is ", percent(row["beyond"], 0), " beyond its limit"),
        ),
        "unpriced": (
            all_of(row["unknown"] > 0, row["price_known"] <= 0),
            as_node(row["offers"]),
        ),
        "unranked": (row["unknown"] > 0, as_node("what is wanted is not known: it has no rank")),
        "won": (equal(number, of["winner"]), as_node("the best of those that keep every limit")),
        "links": (
            all_of(more >= TOLD_MORE, more + more >= row["fewer"]),
            join(
                "links take ",
                percent(row["share"], 0),
                " of a step; the winner's ",
                percent(row["best_share"], 0),
            ),
        ),
        "price": (
            all_of(row["dearer"] >= TOLD_MORE, row["dearer"] >= row["fewer"]),
            join("an accelerator costs ", percent(row["dearer"], 0), " more per hour"),
        ),
        "tokens": (
            row["fewer"] >= TOLD_MORE,
            join(percent(row["fewer"], 0), " fewer tokens per accelerator"),
        ),
        "else": (as_node(1) > 0, as_node("small differences in everything")),
    }
    flags = [
        row(f"is.{name}", f"Cause: {name}", "flag", where(holds, 1, 0)) for name, (holds, _) in causes.items()
    ]
    words = [row(f"words.{name}", f"Words: {name}", "1", words) for name, (_, words) in causes.items()]
    row("lost", "Why it lost", "1", index(span(words), match(1, span(flags))))


def tell_finding(
    rows: Sequence[Figures], judged: Sequence[Judged], amounts: Sequence[Input], of: Figures
) -> tuple[Quantity, Quantity]:
    """Who wins, and how sure that is."""
    for row, number in zip(rows, range(len(rows)), strict=True):
        values = span([one.values[number] for one in judged])
        row("wanted", "What is wanted", "1", index(values, maximum(1, of["wanted"])))
        factor = exponential(SPREAD * row["deviation"])
        row("low", "Lower end of 80 %", "1", if_error(row["wanted"] / factor, NONE))
        row("high", "Upper end of 80 %", "1", if_error(row["wanted"] * factor, NONE))
    of("best", "The winner's", "1", index(span([row["wanted"] for row in rows]), of["at"]))
    called = span([row["name"] for row in rows])
    of("name", "Name of the winner", "1", index(called, of["at"]))
    for name, key in (("speed", INTERACTIVITY.column), ("rate", OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column)):
        values = span(next(one for one in judged if one.measure.key == key).values)
        of(name, f"The winner's {name}, for the picture", "1", number_of(index(values, of["at"])))
    of(
        "what",
        "What is wanted, in words",
        "1",
        index(span(amounts), maximum(1, of["wanted"])),
    )
    amount = join(of["name"], ": ", rounded(number_of(of["best"]), 2), " ", of["what"])
    of("amount", "The winner, and what it reaches", "1", where(of["wanted"] > 0, amount, of["name"]))
    nothing = "! nothing is wanted: choose an objective, or type weights"
    of("none", "Why none wins", "1", where(of["asks"] > 0, "No plan keeps every limit", nothing))
    title = of(
        "title",
        "Finding",
        "1",
        where(of["winner"] > 0, join("Take ", of["amount"]), of["none"]),
    )
    place = maximum(1, of["second"])
    of("second_name", "Name of the second", "1", index(called, place))
    of(
        "second_behind",
        "The second, behind",
        "1",
        number_of(index(span([row["behind"] for row in rows]), place)),
    )
    of("second_told", "Whether that holds", "1", index(span([row["told"] for row in rows]), place))
    ahead = join(percent(of["second_behind"], 1), " ahead of ", of["second_name"], ": ", of["second_told"])
    of(
        "ahead",
        "The winner against the second",
        "1",
        where(of["second"] > 0, ahead, "no other plan has a rank"),
    )
    reason = of(
        "reason", "Why", "1", where(of["winner"] > 0, of["ahead"], "what each plan misses stands below")
    )
    return title, reason


def tell_between(rows: Sequence[Figures], pair: tuple[Input, Input], of: Figures) -> None:
    """How far two plans are apart, and whether that is more than the error that they do not share."""

    def both(name: str) -> tuple[Quantity, Quantity]:
        """A figure of the two plans."""
        column = span([row[name] for row in rows])
        ends = zip(("one", "other"), pair, strict=True)
        first, second = (
            of(
                f"{end}.{name}",
                f"{name} of the {end} plan",
                "1",
                if_error(index(column, number_of(as_typed(at))), NONE),
            )
            for end, at in ends
        )
        return first, second

    scores, spreads, chips, names = (both(name) for name in ("score", "deviation", "chip", "name"))
    known = all_of(is_number(scores[0]), is_number(scores[1]))
    gap = number_of(scores[1]) - number_of(scores[0])
    apart = of("apart", "The other plan against the one", "1", where(known, exponential(gap) - 1, NONE))
    shared = of("apart.shared", "Error that both share", "1", where(equal(*chips), SHARED, 0))
    one, other = (number_of(spread) for spread in spreads)
    variance = of(
        "apart.variance",
        "Variance of their difference",
        "1",
        one * one + other * other - shared * one * (other + other),
        "what both plans share cancels",
    )
    error = of("apart.error", "Range of their difference", "1", exponential(SPREAD * variance**0.5) - 1)
    within = absolute(number_of(apart)) <= error
    holds = of("apart.within", "The same of known ones", "1", where(within, "within the error", "holds"))
    held = of("apart.holds", "Whether the difference holds", "1", where(known, holds, NONE))
    worse = where(number_of(apart) < 0, "better", "worse")
    way = of("apart.way", "Which way", "1", worse)
    size = percent(absolute(number_of(apart)), 1)
    told = join(
        names[1], " is ", size, " ", way, " than ", names[0], ", range ± ", percent(error, 0), ": ", held
    )
    unknown = "! no difference is known: type numbers of two plans of which what is wanted is known"
    of("apart.told", "Two plans, in words", "1", where(all_of(known, of["asks"] > 0), told, unknown))


def tell_drawn(rows: Sequence[Figures], judged: Sequence[Judged], of: Figures) -> None:
    """What pictures show: the bars of ranges, and the speed that limits ask for."""
    for row in rows:
        low, middle, high = (number_of(row[name]) for name in ("low", "wanted", "high"))
        best = equal(row["rank"], 1)
        row("bar.begin", "Where the bar begins", "1", low)
        below = row("bar.below", "From there to what is expected", "1", middle - low)
        above = row("bar.above", "From what is expected to its end", "1", high - middle)
        for name, part_ in (("below", below), ("above", above)):
            row(f"bar.best.{name}", f"The same {name}, of the winner", "1", where(best, part_, 0))
            row(f"bar.other.{name}", f"The same {name}, of others", "1", where(best, 0, part_))
    bounds = {one.measure.key: one.bound for one in judged}
    slowest = bounds.get(TPOT.column)
    speed = bounds.get(INTERACTIVITY.column)
    asked: list[Node] = [] if speed is None else [speed]
    asked += [] if slowest is None else [if_error(MILLI / slowest, 0)]
    of("limit_speed", "Least speed that limits allow, 0 without", "token/s", maximum(0, *asked))
