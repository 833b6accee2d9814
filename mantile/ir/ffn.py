"""Feed-forward networks: dense, and mixtures of experts with router, routed and shared experts."""

from __future__ import annotations

from mantile.graph.quantity import Node
from mantile.ir.draft import BlockFacts, DecoderBuilder, small, step
from mantile.ir.modules import Elementwise, GroupedMatMul, MatMul, Module, Tensor


def ffn(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of a dense FFN, gated or plain."""
    hidden, matrices = draft.facts["hidden_size"], roles["ffn_input_matrices"]
    inner, bias = draft.columns(roles["ffn_size"]), roles.value("ffn_bias")
    gated = roles.value("ffn_input_matrices") == 2
    if gated and draft.names.fused_gate_up:
        stored = draft.matrix("gate_up", matrices * inner, hidden, "ffn", bias)
    elif gated:
        stored = draft.matrix("gate", inner, hidden, "ffn", bias) + draft.matrix(
            "up", inner, hidden, "ffn", bias
        )
    else:
        stored = draft.matrix("up", inner, hidden, "ffn", bias)
    return [
        step(
            "ffn_up",
            "FFN gate + up" if gated else "FFN up",
            "gate + up" if gated else "FFN up",
            "ffn",
            MatMul(hidden, matrices * inner, "ffn"),
            stored,
            kind="dense",
        ),
        small(
            "activation",
            "Activation",
            "activation",
            Elementwise("activation", (matrices + 1) * inner),
            kind="dense",
        ),
        step(
            "ffn_down",
            "FFN down",
            "down",
            "ffn",
            MatMul(inner, hidden, "ffn"),
            draft.matrix("down", hidden, inner, "ffn", bias),
            reduces=True,
            kind="dense",
        ),
    ]


def moe(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of a mixture of experts."""
    hidden, count, chosen = draft.facts["hidden_size"], roles["experts"], roles["experts_per_token"]
    matrices = roles["ffn_input_matrices"]
    inner = draft.columns(roles["expert_size"])
    gated = roles.value("ffn_input_matrices") == 2
    work = roles.get("latent_size", hidden)
    router = draft.matrix("router", count, hidden, "router", roles.value("router_bias"))
    if roles.value("correction_bias"):
        router += (draft.vector("correction", count, suffix="", buffer=True),)
    if roles.value("routing_table"):
        router += (draft.vector("routing_table", draft.facts["vocabulary"], chosen, suffix="", buffer=True),)
    modules: list[Module] = []
    if roles.value("router_scales"):
        router += (draft.vector("expert_scale", count, suffix=""),)
        scale = (draft.vector("router_scale", hidden, suffix=""),)
        modules.append(
            small("router_norm", "Router norm", "norm router", Elementwise("norm", hidden), scale, kind="moe")
        )
    modules += [
        step("router", "Router", "router", "experts", MatMul(hidden, count, "router"), router, kind="moe"),
        small("routing", "Routing", "routing", Elementwise("routing", count), kind="moe"),
    ]
    if "latent_size" in roles:
        modules.append(
            step(
                "latent_down",
                "Latent down",
                "latent in",
                "experts",
                MatMul(hidden, work, "ffn"),
                draft.matrix("latent_down", work, hidden, "ffn"),
                kind="moe",
            )
        )
    modules += [
        step(
            "experts_up",
            "Experts gate + up" if gated else "Experts up",
            "experts up",
            "experts",
            GroupedMatMul(work, matrices * inner, count, chosen),
            _expert_up(draft, roles, inner, work, gated),
            kind="moe",
        ),
        small(
            "experts_activation",
            "Experts activation",
            "activation",
            Elementwise("activation", (matrices + 1) * inner * chosen),
            kind="moe",
        ),
        step(
            "experts_down",
            "Experts down",
            "experts down",
            "experts",
            GroupedMatMul(inner, work, count, chosen),
            _expert_down(draft, roles, inner, work),
            reduces=True,
            kind="moe",
        ),
    ]
    if "latent_size" in roles:
        modules.append(
            step(
                "latent_up",
                "Latent up",
                "latent out",
                "experts",
                MatMul(work, hidden, "ffn"),
                draft.matrix("latent_up", hidden, work, "ffn"),
                kind="moe",
            )
        )
    shared = _shared(draft, roles, hidden, matrices, gated) if "shared_expert_size" in roles else []
    if not roles.value("branch_norms"):
        return shared + modules  # their results are summed before the ranks' are

    def norm(key: str, label: str, short: str) -> Module:
        return small(
            f"{key}_norm",
            f"{label} norm",
            short,
            Elementwise("norm", hidden),
            draft.norm(key, hidden),
            kind="moe",
        )

    return [
        *shared,
        norm("shared_after", "Shared expert", "norm shared"),
        norm("experts_before", "Experts", "norm in"),
        *modules,
        norm("experts_after", "Experts result", "norm out"),
    ]


def _expert_up(
    draft: DecoderBuilder, roles: BlockFacts, inner: Node, work: Node, gated: bool
) -> tuple[Tensor, ...]:
    count, bias = roles["experts"], roles.value("expert_bias")
    if draft.names.experts == "separate":
        stored = draft.matrix("expert_up", inner, work, "experts", bias, copies=count, routed=True)
        return (
            draft.matrix("expert_gate", inner, work, "experts", bias, copies=count, routed=True) + stored
            if gated
            else stored
        )
    both = roles["ffn_input_matrices"] * inner
    return _fused(draft, "experts_gate_up", both, work, count, bias)


def _expert_down(draft: DecoderBuilder, roles: BlockFacts, inner: Node, work: Node) -> tuple[Tensor, ...]:
    count, bias = roles["experts"], roles.value("expert_bias")
    if draft.names.experts == "separate":
        return draft.matrix("expert_down", work, inner, "experts", bias, copies=count, routed=True)
    return _fused(draft, "experts_down", work, inner, count, bias)


def _fused(
    draft: DecoderBuilder, key: str, outputs: Node, inputs: Node, count: Node, bias: int
) -> tuple[Tensor, ...]:
    name = f"{draft.names.layer}{draft.names[key]}"
    shape = (count, outputs, inputs) if draft.names.experts == "output first" else (count, inputs, outputs)
    weight = Tensor(name, shape, weights="experts", routed=True)
    return (
        (weight, Tensor(f"{name}_bias", (count, outputs), matrix=False, routed=True)) if bias else (weight,)
    )


def _shared(
    draft: DecoderBuilder, roles: BlockFacts, hidden: Node, matrices: Node, gated: bool
) -> list[Module]:
    """Experts every token goes through, as one FFN of their common width."""
    inner = draft.columns(roles["shared_expert_size"])
    stored = draft.matrix("shared_up", inner, hidden, "ffn")
    if gated:
        stored = draft.matrix("shared_gate", inner, hidden, "ffn") + stored
    modules = [
        step(
            "shared_up",
            "Shared expert gate + up" if gated else "Shared expert up",
            "shared up",
            "ffn",
            MatMul(hidden, matrices * inner, "ffn"),
            stored,
            kind="moe",
        ),
        small(
            "shared_activation",
            "Shared expert activation",
            "activation",
            Elementwise("activation", (matrices + 1) * inner),
            kind="moe",
        ),
        step(
            "shared_down",
            "Shared expert down",
            "shared down",
            "ffn",
            MatMul(inner, hidden, "ffn"),
            draft.matrix("shared_down", hidden, inner, "ffn"),
            reduces=bool(roles.value("branch_norms")),
            kind="moe",
        ),
    ]
    if roles.value("shared_expert_gate"):
        one = roles["shared_expert_gate"]
        modules.append(
            step(
                "shared_weight",
                "Shared expert gate weight",
                "shared gate",
                "small",
                MatMul(hidden, one, "router"),
                draft.matrix("shared_weight", one, hidden, "router"),
                kind="moe",
            )
        )
    return modules
