"""A choice in words: names of plans, why others lost, how far the winner is ahead, and what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mantile.equations.constant import MEGA, MILLI
from mantile.equations.decide.figures import (
    NONE,
    SHARED,
    SMALL,
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
    Named,
    Node,
    Quantity,
    absolute,
    all_of,
    as_node,
    at_least,
    count_where,
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
    trimmed,
    where,
)

_DEGREES = (("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))


def tell_name(make: Figures, graph: EstimateGraph, stored: Input, case: int) -> None:
    """What a plan is called, from its cells: B200 SXM · 3 × TP1 · nvfp4 instead of bf16, fp8 KV · trtllm.

    Args:
        stored: the data type of the checkpoint's weights.
    """
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
    other = join(of("weights_dtype"), " instead of ", stored)
    weights = make(
        "name.weights",
        "Weights, in words",
        "1",
        where(equal(of("weights_dtype"), stored), stored, other),
        "what the checkpoint has, if the plan has something else",
    )
    make("name.formats", "Data types, in words", "1", join(weights, ", ", of("kv_dtype"), " KV"))
    if len(graph.workers) > 1:
        told = _of_both(make, graph, case, told)
    moved = make("name.moved", "Memory asked of the host", "GB", of("offload_weights") + of("offload_kv"))
    framework = of("framework")
    hosted = where(moved > 0, join(framework, " · ", rounded(moved, 0), " GB on the host"), framework)
    make("name.host", "Framework and host memory, in words", "1", hosted)
    chip = in_case(workers.rows["hardware.name"], case)
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
        price = in_case(workers.rows[f"hardware.price_{name}"], case)
        told.append(where(price > 0, join(f"; {name} price ", rounded(price, 2), unit), ""))
    basis = in_case(workers.inputs.price_basis, case)
    return join("no ", basis, " price, so no rank", *told)


def links_in(graph: EstimateGraph, case: int) -> Node:
    decode = graph.decode
    return if_error(in_case(decode.parts[NETWORK], case) / in_case(decode.time, case), 0)


def tell_beside(
    row: Figures,
    rows: Sequence[Figures],
    judged: Sequence[Judged],
    kinds: Mapping[str, Sequence[Input]],
    number: Input,
    of: Figures,
) -> None:
    """A plan beside the winner: how far behind it is, whether that is more than the error, and why."""

    def best(name: str) -> Node:
        return index(span([other[name] for other in rows]), of["at"])

    gap = if_error((number_of(row["score"]) - number_of(best("score"))) / of["asks"], 0)
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
    even = where(equal(row["rank"], 1), of["cost_second"], of["cost_first"])
    row("even", "Cost per million to break even with", "USD/Mtoken", even)
    due = where(
        equal(row["even"], NONE), NONE, if_error(row["even"] * row["hourly_tokens"] / MEGA, NOT_KNOWN)
    )
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
    lead = _lead(row, judged, kinds, best)
    _lost(row, lead, number, of)


def _lead(
    row: Figures,
    judged: Sequence[Judged],
    kinds: Mapping[str, Sequence[Input]],
    best: Callable[[str], Node],
) -> Node:
    """The measure in which a plan loses most, in words: TPOT is 54% higher."""
    losses = [
        row(f"loss.{key}", f"Loss in {one.measure.metric.label}", "1", row[name] - best(name))
        for one in judged
        for key in (one.measure.key,)
        for name in (f"part.{key}",)
    ]
    place = row("lead", "Where it loses most", "number", match(maximum(span(losses)), span(losses)))

    def at(name: str, label: str, members: Sequence[Named]) -> Quantity:
        return row(f"lead.{name}", f"Where it loses most: {label}", "1", index(span(members), place))

    at("label", "which it is", [one.label for one in judged])
    weighs = at("weighs", "its weight", [one.weighs for one in judged])
    for name in ("sign", "per_token", "by_steps"):
        at(name, name, kinds[name])
    size = if_error(row["lead.sign"] * index(span(losses), place) / weighs, 0)
    row("lead.change", "Where it loses most: against the winner", "1", exponential(size) - 1)
    way = where(row["lead.sign"] > 0, " higher", " lower")
    return join(row["lead.label"], " is ", percent(absolute(row["lead.change"]), 1), way)


def _lost(row: Figures, lead: Node, number: Input, of: Figures) -> None:
    """Why a plan lost: the first cause that holds, in words.

    Args:
        lead: the measure in which it loses most, in words.
    """
    more = row("more_share", "Share of links, more than the winner's", "1", row["share"] - row["best_share"])
    unknown = all_of(row["misses"] > 0, row["value_known"] <= 0)
    per_token = row["lead.per_token"] > 0
    beyond = where(number_of(row["value"]) > row["limit"], " above its limit", " below its limit")
    causes: dict[str, tuple[Node, Node]] = {
        "invalid": (of["no_choice"] > 0, as_node("no choice can be made: see above")),
        "cannot": (row["possible"] <= 0, join("cannot be: ", row["reason"])),
        "unknown": (unknown, join(row["label"], " is not known: its limit is not kept")),
        "missed": (
            row["misses"] > 0,
            join(row["label"], " is ", percent(row["beyond"], 1), beyond),
        ),
        "unpriced": (
            all_of(row["unknown"] > 0, row["price_known"] <= 0),
            as_node(row["offers"]),
        ),
        "unranked": (row["unknown"] > 0, join(row["lacking"], " is not known: it has no rank")),
        "won": (equal(number, of["winner"]), as_node("the best of those that keep every limit")),
        "even": (number_of(row["behind"]) <= SMALL, as_node("as good as the winner, and listed after it")),
        "links": (
            all_of(
                *(row["lead.by_steps"] > 0, more >= TOLD_MORE),
                more + more >= absolute(row["lead.change"]),
            ),
            join(
                "links take ",
                percent(row["share"], 0),
                " of a step; the winner's ",
                percent(row["best_share"], 0),
            ),
        ),
        "price": (
            all_of(per_token, row["dearer"] >= TOLD_MORE, row["dearer"] >= row["fewer"]),
            join("an accelerator costs ", percent(row["dearer"], 0), " more per hour"),
        ),
        "tokens": (
            all_of(per_token, row["fewer"] >= TOLD_MORE),
            join(percent(row["fewer"], 0), " fewer tokens per accelerator"),
        ),
        "else": (as_node(1) > 0, lead),
    }
    flags = [
        row(f"is.{name}", f"Cause: {name}", "flag", where(holds, 1, 0)) for name, (holds, _) in causes.items()
    ]
    words = [row(f"words.{name}", f"Words: {name}", "1", words) for name, (_, words) in causes.items()]
    row("lost", "Why it lost", "1", index(span(words), match(1, span(flags))))


def tell_finding(
    rows: Sequence[Figures],
    judged: Sequence[Judged],
    amounts: Sequence[Input],
    scales: Sequence[Input],
    message: Node,
    last: Input,
    of: Figures,
) -> tuple[Quantity, Quantity]:
    """Who wins, and how sure that is.

    Args:
        message: the first cell that holds what cannot be, in words.
        last: the number of the last plan.
    """
    one_wanted = of["wanted"] > 0
    for row, number in zip(rows, range(len(rows)), strict=True):
        values = span([one.values[number] for one in judged])
        row("wanted", "What is wanted", "1", index(values, maximum(1, of["wanted"])))
        factor = exponential(SPREAD * row["deviation"])
        low, high = (
            where(one_wanted, if_error(end, NONE), NONE)
            for end in (row["wanted"] / factor, row["wanted"] * factor)
        )
        row("low", "Lower end of 80 %", "1", low)
        row("high", "Upper end of 80 %", "1", high)
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
    size = of(
        "best_said",
        "The winner's, as it is said",
        "1",
        number_of(of["best"]) * index(span(scales), maximum(1, of["wanted"])),
    )
    small = join(trimmed(size, 4), "")
    said = of("said", "The same with its digits", "1", where(size >= 1, rounded(size, 2), small))
    amount = join(of["name"], ": ", said, " ", of["what"])
    of("amount", "The winner, and what it reaches", "1", where(one_wanted, amount, of["name"]))
    missing = count_where(span([row["misses"] for row in rows]), at_least(1))
    missed = where(missing >= last, "No plan keeps every limit", "No plan can be chosen")
    of("no_plan", "Why none has a rank", "1", missed)
    nothing = "! nothing is wanted: choose an objective, or type weights"
    of("none", "Why none wins", "1", where(of["asks"] > 0, of["no_plan"], nothing))
    take = where(of["winner"] > 0, join("Take ", of["amount"]), of["none"])
    found = of("found", "Finding, of cells that can be", "1", take)
    title = of("title", "Finding", "1", where(of["faults"] > 0, join("! ", message), found))
    place = of["next"]
    of("second_name", "Name of the second", "1", index(called, place))
    of(
        "second_behind",
        "The second, behind",
        "1",
        number_of(index(span([row["behind"] for row in rows]), place)),
    )
    of("second_told", "Whether that holds", "1", index(span([row["told"] for row in rows]), place))
    ahead = join(percent(of["second_behind"], 1), " ahead of ", of["second_name"], ": ", of["second_told"])
    even = join("no better than ", of["second_name"], ", which is listed after it")
    of(
        "ahead_said",
        "The winner against the second, in words",
        "1",
        where(of["second_behind"] > SMALL, ahead, even),
    )
    of(
        "ahead",
        "The winner against the second",
        "1",
        where(of["second"] > 0, of["ahead_said"], "no other plan has a rank"),
    )
    until = "no plan has a rank until that cell is mended"
    of("against", "Why none", "1", where(of["faults"] > 0, until, "what is against each plan stands below"))
    reason = of("reason", "Why", "1", where(of["winner"] > 0, of["ahead"], of["against"]))
    return title, reason


def tell_between(rows: Sequence[Figures], pair: Sequence[tuple[Input, Quantity]], of: Figures) -> None:
    """How far two plans are apart, and whether that is more than the error that they do not share.

    Args:
        pair: numbers of two plans as they are typed, each with whether it can be.
    """
    places = [
        of(f"{end}.at", f"Place of the {end} plan", "number", where(as_typed(valid) > 0, as_typed(typed), 1))
        for end, (typed, valid) in zip(("one", "other"), pair, strict=True)
    ]

    def both(name: str) -> tuple[Quantity, Quantity]:
        """A figure of the two plans."""
        column = span([row[name] for row in rows])
        first, second = (
            of(f"{end}.{name}", f"{name} of the {end} plan", "1", index(column, at))
            for end, at in zip(("one", "other"), places, strict=True)
        )
        return first, second

    scores, spreads, chips, names = (both(name) for name in ("score", "deviation", "chip", "name"))
    known = all_of(is_number(scores[0]), is_number(scores[1]), of["faults"] <= 0, of["asks"] > 0)
    gap = if_error((number_of(scores[1]) - number_of(scores[0])) / of["asks"], 0)
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
    of("apart.told", "Two plans, in words", "1", where(known, told, unknown))


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
