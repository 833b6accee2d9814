"""What factors and hardware come to: rows "efficiency.fraction" and "efficiency.rate".

A fraction is a factor times its scale, the share of a peak that is reached: what the checks look at. A rate
is a fraction times the datasheet figure, in FLOP/s or B/s, worked out once for all blocks; so are launch
times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import HALF, RANKS_TO_ACCELERATORS
from mantile.equations.factors import KINDS
from mantile.equations.formats import Formats, class_label
from mantile.equations.inputs import CURRENT, EARLY, Ranks, Workload
from mantile.equations.tables import Equations
from mantile.graph.quantity import Node, Quantity, Section, equal, maximum, minimum, span, where
from mantile.graph.rows import Rows

REACHED = "What is reached"
"""Title of the block of fractions of a peak."""
_LINKS = ("one_shot", "two_shot", "in_switch", "ring", "torus", "gather", "all_to_all", "network", "p2p")


@dataclass(frozen=True)
class Rates:
    """What is reached.

    Args:
        by_name: times in s, FLOP/s and B/s, by the end of their ids.
        largest, smallest: of all fractions of a peak.
        fractions, rates: their blocks.
    """

    by_name: dict[str, Quantity]
    largest: Quantity
    smallest: Quantity
    fractions: Section
    rates: Section


def rates(
    factors: Mapping[str, Quantity],
    by_user: Mapping[tuple[str, str], Quantity],
    inputs: Workload,
    ranks: Ranks,
    rows: Equations,
    formats: Formats,
) -> Rates:
    """What the factors of a model come to on its hardware.

    Args:
        factors: by name.
        by_user: by name and the class of matrices or group of ranks that uses it.
    """
    made = _Rates(factors, by_user, inputs, ranks, rows, formats)
    if inputs.engine_release is not None:
        made.release(inputs.engine_release)
    made.gemm()
    if "moe_launch" in factors:
        made.experts()
    made.attention()
    if "latent_launch" in factors:
        made.latent_attention()
    if "state_launch" in factors:
        made.states()
    made.memory()
    made.links()
    largest = Quantity("efficiency.largest", "Largest fraction", "1", maximum(span(made.fractions)))
    smallest = Quantity("efficiency.smallest", "Smallest fraction", "1", minimum(span(made.fractions)))
    return Rates(
        by_name=made.by_name,
        largest=largest,
        smallest=smallest,
        fractions=Section(
            "Fractions of a peak",
            (*made.scales, *made.fractions, largest, smallest),
            "factor × scale; what the checks look at",
        ),
        rates=made.rates.section(REACHED, "fraction × datasheet figure"),
    )


class _Rates:
    """The rows of fractions and rates while they are made.

    Args:
        factors, by_user: as for `rates`.
    """

    def __init__(
        self,
        factors: Mapping[str, Quantity],
        by_user: Mapping[tuple[str, str], Quantity],
        inputs: Workload,
        ranks: Ranks,
        rows: Equations,
        formats: Formats,
    ) -> None:
        self.factors, self.by_user = factors, by_user
        self.inputs, self.ranks, self.rows, self.formats = inputs, ranks, rows, formats
        self.bandwidth, self.speed = rows["hardware.memory_bandwidth"], inputs.compute_speed
        self.scales: list[Quantity] = []
        self.fractions: list[Quantity] = []
        self.rates = Rows("efficiency.rate")
        self.by_name: dict[str, Quantity] = {}
        self.launches: Node = factors["launch_scale"]
        self.newer: Quantity | None = None

    def rate(self, name: str, label: str, unit: str, body: Node) -> None:
        """Add a time or a rate."""
        self.by_name[name] = self.rates(name, label, unit, body)

    def fraction(self, name: str, label: str, body: Node) -> Quantity:
        """Add a fraction of a peak."""
        quantity = Quantity(
            f"efficiency.fraction.{name}", f"Fraction, {label}", "1", body, name=f"{label} fraction"
        )
        self.fractions.append(quantity)
        return quantity

    def users(self, factor: str) -> list[tuple[str, Quantity]]:
        """The classes of matrices or groups of ranks that use a factor, and the factor of each."""
        return [(user, quantity) for (name, user), quantity in self.by_user.items() if name == factor]

    def release(self, engine_release: Node) -> None:
        """Launches as the release of the engine has them."""
        newer = Quantity(
            "efficiency.launch_release",
            "Launches against those of earlier engines",
            "1",
            where(equal(engine_release, CURRENT), self.factors["launch_current"], 1),
        )
        launches = Quantity(
            "efficiency.launch_in_use",
            "Launch overhead scale of the release",
            "1",
            self.factors["launch_scale"] * newer,
        )
        self.scales += [newer, launches]
        self.newer, self.launches = newer, launches
        self.rate("small_kernel", "Small kernel time", "s", self.factors["small_kernel"] * newer)

    def gemm(self) -> None:
        """Matrix products, by class of matrices."""
        for name, factor in self.users("gemm_launch"):
            self.rate(
                f"gemm_launch_time.{name}",
                f"GEMM launch time, {class_label(name)}",
                "s",
                factor * self.launches,
            )
        for name, factor in self.users("gemm_compute"):
            share = self.fraction(f"gemm_compute.{name}", f"GEMM compute, {class_label(name)}", factor)
            self.rate(
                f"gemm_flops.{name}",
                f"GEMM FLOP/s reached, {class_label(name)}",
                "FLOP/s",
                share * self.formats.classes[name].linear_peak * self.speed,
            )
        for name, factor in self.users("gemm_bandwidth"):
            share = self.fraction(
                f"gemm_bandwidth.{name}",
                f"GEMM bandwidth, {class_label(name)}",
                factor * self.factors["gemm_bandwidth_scale"],
            )
            self.rate(
                f"gemm_bytes.{name}",
                f"GEMM bandwidth reached, {class_label(name)}",
                "B/s",
                share * self.bandwidth,
            )

    def experts(self) -> None:
        """Grouped products of experts, slower in early engines."""
        assert self.inputs.engine_release is not None and self.newer is not None
        slower = Quantity(
            "efficiency.moe_slower",
            "Expert kernels against current ones",
            "1",
            where(equal(self.inputs.engine_release, EARLY), self.factors["moe_early"], 1),
        )
        self.scales.append(slower)
        self.rate(
            "moe_launch_time",
            "Expert launch time",
            "s",
            self.factors["moe_launch"] * self.factors["moe_launch_scale"] * self.newer * slower,
        )
        compute = self.fraction("moe_compute", "expert compute", self.factors["moe_compute"] / slower)
        peak = self.formats.classes["experts"].linear_peak
        self.rate("moe_flops", "Expert FLOP/s reached", "FLOP/s", compute * peak * self.speed)
        sent = maximum(compute, minimum(HALF, compute * self.factors["moe_sent"]))
        self.rate(
            "moe_sent_flops", "Expert FLOP/s reached over sent tokens", "FLOP/s", sent * peak * self.speed
        )
        streaming = self.fraction(
            "moe_bandwidth",
            "expert bandwidth",
            self.factors["moe_bandwidth"] * self.factors["moe_bandwidth_scale"] / slower,
        )
        streamed, widened = streaming * self.bandwidth, self.formats.classes["experts"].widened
        assert widened is not None
        self.rate(
            "moe_widened",
            "Expert widening reached",
            "B/s",
            self.factors["moe_widening"] * self.speed / slower,
        )
        self.rate(
            "moe_bytes",
            "Expert bandwidth reached",
            "B/s",
            where(widened > 0, minimum(streamed, self.by_name["moe_widened"]), streamed),
        )

    def attention(self) -> None:
        """Attention in prefill and decode."""
        prefill = self.fraction(
            "attention_prefill",
            "prefill attention",
            self.factors["attention_prefill"] * self.factors["attention_prefill_scale"],
        )
        peak = self.formats.sixteen_peak
        self.rate("attention_flops", "Attention FLOP/s reached", "FLOP/s", prefill * peak * self.speed)
        if "attention_prefill_fp8" in self.factors:
            faster = where(equal(self.formats.kv_format, "fp8"), self.factors["attention_prefill_fp8"], 1)
            self.rate(
                "cached_attention_flops",
                "Attention FLOP/s reached over the cache",
                "FLOP/s",
                self.by_name["attention_flops"] * faster,
            )
        if "attention_launch" in self.factors:
            self.rate(
                "attention_launch_time",
                "Attention launch time",
                "s",
                self.factors["attention_launch"] * self.launches,
            )
        if "attention_decode" in self.factors:
            decode = self.fraction(
                "attention_decode",
                "decode attention",
                self.factors["attention_decode"] * self.factors["attention_decode_scale"],
            )
            self.rate("kv_read", "KV cache bandwidth reached", "B/s", decode * self.bandwidth)

    def latent_attention(self) -> None:
        """Attention over latents."""
        decode = self.fraction(
            "latent_decode",
            "latent attention",
            self.factors["latent_decode"] * self.factors["attention_decode_scale"],
        )
        self.rate(
            "latent_launch_time",
            "Latent attention launch time",
            "s",
            self.factors["latent_launch"] * self.launches,
        )
        self.rate("latent_read", "Latent bandwidth reached", "B/s", decode * self.bandwidth)
        compute = self.fraction("latent_compute", "latent attention compute", self.factors["latent_compute"])
        peak = self.formats.sixteen_peak
        self.rate("latent_flops", "Latent attention FLOP/s reached", "FLOP/s", compute * peak * self.speed)

    def states(self) -> None:
        """Recurrent states."""
        self.rate(
            "state_launch_time",
            "State update launch time",
            "s",
            self.factors["state_launch"] * self.launches,
        )
        share = self.fraction("state_bandwidth", "state update", self.factors["state_bandwidth"])
        self.rate("state_bytes", "State bandwidth reached", "B/s", share * self.bandwidth)

    def memory(self) -> None:
        """Elementwise kernels, memory that the engine takes, and the link to the host."""
        streaming = self.fraction("elementwise", "elementwise", self.factors["elementwise_bandwidth"])
        self.rate("streaming", "Elementwise bandwidth reached", "B/s", streaming * self.bandwidth)
        self.fraction("memory_usable", "usable memory", self.factors["memory_usable"])
        host = self.fraction("host_link", "host link", self.factors["host_link"])
        link, known = self.rows["hardware.host_bandwidth"], self.rows["hardware.host_memory_bandwidth"]
        # Of devices that are not alike each is a machine of its own.
        ranks = self.ranks.stage if self.inputs.devices else self.ranks.deployment
        accelerators = minimum(ranks, self.rows["hardware.host_accelerators"])
        self.rate(
            "host_memory",
            "Bandwidth of host memory for an accelerator",
            "B/s",
            where(
                known > 0,
                known / self.rows["hardware.hosts_of_domain"] * RANKS_TO_ACCELERATORS / accelerators,
                link,
            ),
        )
        self.rate(
            "host_bytes",
            "Host link bandwidth reached",
            "B/s",
            host * minimum(link, self.by_name["host_memory"]),
        )

    def links(self) -> None:
        """Links between accelerators, by group of ranks where factors differ."""
        for kind in KINDS:
            if not kind.fraction or kind.name.removesuffix("_bandwidth") not in _LINKS:
                continue
            label = kind.label.removesuffix(" efficiency").lower()
            alike = len(kind.groups) == 1 or kind.condition is None
            for user, factor in self.users(kind.name):
                self.fraction(
                    kind.name if alike else f"{kind.name}.{user}",
                    label if alike else f"{label}, {user}",
                    factor,
                )
