"""Feed-forward networks: dense, and mixtures of experts with router, routed and shared experts."""

from __future__ import annotations

from mantile.graph.quantity import Node
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise
from mantile.ir.modules import GroupedMatMul, MatMul, Module, Tensor


def ffn(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of a dense FFN, gated or plain."""
    hidden, matrices = facts["hidden_size"], facts["ffn_input_matrices"]
    inner, bias = builder.columns(facts["ffn_size"]), facts.value("ffn_bias")
    gated = _gated(facts)
    if gated and builder.names.fused_gate_up:
        inputs = builder.matrix("gate_up", matrices * inner, hidden, "ffn", bias)
    else:
        gates, ups = _stored_apart(facts)
        inputs = builder.matrix("gate", inner, hidden, "ffn", bias, copies=gates) if gated else ()
        inputs += builder.matrix("up", inner, hidden, "ffn", bias, copies=ups)
    return [
        build_module(
            "ffn_up",
            MatMul(hidden, matrices * inner, "ffn"),
            inputs,
            label="FFN gate + up" if gated else "FFN up",
            short="gate + up" if gated else "FFN up",
            part="ffn",
            kind="dense",
        ),
        elementwise(
            "activation",
            "activation",
            (matrices + 1) * inner,
            label="Activation",
            short="activation",
            kind="dense",
        ),
        build_module(
            "ffn_down",
            MatMul(inner, hidden, "ffn"),
            builder.matrix("down", hidden, inner, "ffn", bias),
            label="FFN down",
            short="down",
            part="ffn",
            kind="dense",
            reduces=True,
        ),
    ]


def moe(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of a mixture of experts.

    Experts work in the hidden size, or in a latent between two projections.
    """
    routed = [
        *_router(builder, facts),
        *_latent(builder, facts, "down"),
        *_experts(builder, facts),
        *_latent(builder, facts, "up"),
    ]
    shared = _shared(builder, facts) if "shared_expert_size" in facts else []
    if not facts.value("branch_norms"):
        return shared + routed  # their results are summed before those of the ranks are
    return [
        *shared,
        _branch_norm(builder, facts, "shared_after", label="Shared expert norm", short="norm shared"),
        _branch_norm(builder, facts, "experts_before", label="Experts norm", short="norm in"),
        *routed,
        _branch_norm(builder, facts, "experts_after", label="Experts result norm", short="norm out"),
    ]


def _gated(facts: BlockFacts) -> bool:
    return facts.value("ffn_input_matrices") == 2


def _stored_apart(facts: BlockFacts) -> tuple[Node, Node | None]:
    """How many matrices there are of the gate's name, and of the other; None for one.

    They follow the fact when somebody types another number of input matrices.
    """
    matrices = facts["ffn_input_matrices"]
    return matrices - 1, None if _gated(facts) else matrices


def _branch_norm(builder: DecoderBuilder, facts: BlockFacts, key: str, *, label: str, short: str) -> Module:
    hidden = facts["hidden_size"]
    tensors = builder.norm(key, hidden)
    return elementwise(f"{key}_norm", "norm", hidden, tensors, label=label, short=short, kind="moe")


def _router(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """What chooses the experts of a token: a norm in some families, a matrix, and the choice itself."""
    hidden, experts = facts["hidden_size"], facts["experts"]
    tensors = builder.matrix("router", experts, hidden, "router", facts.value("router_bias"))
    if facts.value("correction_bias"):
        tensors += (builder.vector("correction", experts, suffix="", buffer=True),)
    if facts.value("routing_table"):
        shape = facts["vocabulary"], facts["experts_per_token"]
        tensors += (builder.vector("routing_table", *shape, suffix="", buffer=True),)
    modules: list[Module] = []
    if facts.value("router_scales"):
        tensors += (builder.vector("expert_scale", experts, suffix=""),)
        scale = (builder.vector("router_scale", hidden, suffix=""),)
        modules.append(
            elementwise(
                "router_norm", "norm", hidden, scale, label="Router norm", short="norm router", kind="moe"
            )
        )
    return [
        *modules,
        build_module(
            "router",
            MatMul(hidden, experts, "router"),
            tensors,
            label="Router",
            short="router",
            part="experts",
            kind="moe",
        ),
        elementwise("routing", "routing", experts, label="Routing", short="routing", kind="moe"),
    ]


def _latent(builder: DecoderBuilder, facts: BlockFacts, direction: str) -> list[Module]:
    """The projection down to the latent that experts work in, or up from it, where there is one."""
    if "latent_size" not in facts:
        return []
    hidden, latent = facts["hidden_size"], facts["latent_size"]
    inputs, outputs = (hidden, latent) if direction == "down" else (latent, hidden)
    return [
        build_module(
            f"latent_{direction}",
            MatMul(inputs, outputs, "ffn"),
            builder.matrix(f"latent_{direction}", outputs, inputs, "ffn"),
            label=f"Latent {direction}",
            short="latent in" if direction == "down" else "latent out",
            part="experts",
            kind="moe",
        )
    ]


def _experts(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The routed experts."""
    experts, chosen, matrices = facts["experts"], facts["experts_per_token"], facts["ffn_input_matrices"]
    width, inner = facts.get("latent_size", facts["hidden_size"]), builder.columns(facts["expert_size"])
    return [
        elementwise(
            "experts_sorted",
            "sorted",
            (chosen + 1) * width,
            label="Tokens by expert",
            short="sort",
            kind="moe",
        ),
        build_module(
            "experts_up",
            GroupedMatMul(width, matrices * inner, experts, chosen),
            _expert_inputs(builder, facts, inner, width),
            label="Experts gate + up" if _gated(facts) else "Experts up",
            short="experts up",
            part="experts",
            kind="moe",
        ),
        elementwise(
            "experts_activation",
            "activation",
            (matrices + 1) * inner * chosen,
            label="Experts activation",
            short="activation",
            kind="moe",
        ),
        build_module(
            "experts_down",
            GroupedMatMul(inner, width, experts, chosen),
            _expert_matrix(builder, facts, "expert_down", width, inner)
            if builder.names.experts == "separate"
            else _fused_experts(builder, facts, "experts_down", width, inner),
            label="Experts down",
            short="experts down",
            part="experts",
            kind="moe",
            reduces=True,
        ),
        elementwise(
            "experts_summed",
            "sorted",
            (chosen + 1) * width,
            label="Results by token",
            short="sum",
            kind="moe",
        ),
    ]


def _expert_inputs(
    builder: DecoderBuilder, facts: BlockFacts, inner: Node, width: Node
) -> tuple[Tensor, ...]:
    """The input matrices of all experts: gate and up, or up alone."""
    if builder.names.experts != "separate":
        outputs = facts["ffn_input_matrices"] * inner
        return _fused_experts(builder, facts, "experts_gate_up", outputs, width)
    gates, ups = _stored_apart(facts)
    gate = _expert_matrix(builder, facts, "expert_gate", inner, width, gates) if _gated(facts) else ()
    return gate + _expert_matrix(builder, facts, "expert_up", inner, width, ups)


def _expert_matrix(
    builder: DecoderBuilder,
    facts: BlockFacts,
    key: str,
    outputs: Node,
    inputs: Node,
    each: Node | None = None,
) -> tuple[Tensor, ...]:
    """A matrix of [outputs, inputs] for every expert, or `each` of them, stored by themselves."""
    experts, bias = facts["experts"], facts.value("expert_bias")
    copies = experts if each is None else experts * each
    return builder.matrix(key, outputs, inputs, "experts", bias, copies=copies, routed=True)


def _fused_experts(
    builder: DecoderBuilder, facts: BlockFacts, key: str, outputs: Node, inputs: Node
) -> tuple[Tensor, ...]:
    """The matrices of all experts of a layer in one tensor."""
    experts, name = facts["experts"], f"{builder.names.layer}{builder.names[key]}"
    output_first = builder.names.experts == "output first"
    shape = (experts, outputs, inputs) if output_first else (experts, inputs, outputs)
    weight = Tensor(name, shape, weights="experts", routed=True)
    if not facts.value("expert_bias"):
        return (weight,)
    return (weight, Tensor(f"{name}_bias", (experts, outputs), matrix=False, routed=True))


def _shared(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The experts that every token goes through, as one FFN of their common width."""
    hidden, matrices = facts["hidden_size"], facts["ffn_input_matrices"]
    inner = builder.columns(facts["shared_expert_size"])
    gates, ups = _stored_apart(facts)
    gate = builder.matrix("shared_gate", inner, hidden, "ffn", copies=gates) if _gated(facts) else ()
    modules = [
        build_module(
            "shared_up",
            MatMul(hidden, matrices * inner, "ffn"),
            gate,
            builder.matrix("shared_up", inner, hidden, "ffn", copies=ups),
            label="Shared expert gate + up" if _gated(facts) else "Shared expert up",
            short="shared up",
            part="ffn",
            kind="moe",
        ),
        elementwise(
            "shared_activation",
            "activation",
            (matrices + 1) * inner,
            label="Shared expert activation",
            short="activation",
            kind="moe",
        ),
        build_module(
            "shared_down",
            MatMul(inner, hidden, "ffn"),
            builder.matrix("shared_down", hidden, inner, "ffn"),
            label="Shared expert down",
            short="shared down",
            part="ffn",
            kind="moe",
            reduces=bool(facts.value("branch_norms")),
        ),
    ]
    if facts.value("shared_expert_gate"):
        single = facts["shared_expert_gate"]  # a flag: 1 channel where it is set
        modules.append(
            build_module(
                "shared_weight",
                MatMul(hidden, single, "router"),
                builder.matrix("shared_weight", single, hidden, "router"),
                label="Shared expert gate weight",
                short="shared gate",
                part="small",
                kind="moe",
            )
        )
    return modules
