"""Formulas of 0.9.0 that are others since, by the ids of their rows, as regular expressions both."""

from __future__ import annotations

WHY = (
    "speeds of all computation and of all links are inputs, 1 unless stated; 0.9.0 took what datasheet and "
    "efficiency give"
)


def _figure(identifier: str) -> str:
    """A reference to a figure, or to a copy of it."""
    return rf"\[(?:[\w.]+\.)?{identifier}\]"


_MESH = _figure("hardware.is_mesh")
_LINK = f"{_figure('hardware.pair_bandwidth')},{_figure('hardware.link_bandwidth')}"
_PEAK = _figure(r"hardware\.(?:\w+\.linear|sixteen)_peak")
_FRACTION = _figure(r"efficiency\.fraction\.[\w.]+")
_STREAMED = rf"{_FRACTION}\*{_figure('hardware.memory_bandwidth')}"
_WIDENED = f"{_figure('efficiency.moe_widening')}/{_figure('efficiency.moe_slower')}"
_INSIDE = _figure(r"network\.\w+\.inside")
FORMULAS = {
    r"efficiency\.rate\.(?:gemm_flops\.\w+|(?:moe|attention|latent)_flops)": rf"={_FRACTION}\*{_PEAK}",
    r"efficiency\.rate\.moe_bytes": (
        rf"=IF\({_figure('hardware.experts.widened')}>0,MIN\({_STREAMED},{_WIDENED}\),{_STREAMED}\)"
    ),
    r"network\.out": (
        rf"={_figure('efficiency.network_bandwidth')}\*{_figure('hardware.scale_out_bandwidth')}"
    ),
    r"network\.(?:tp|stage)\.bandwidth": rf"=IF\({_MESH}>0,MAX\(1,{_INSIDE}-1\)\*{_LINK}\)",
    r"network\.p2p\.inside": rf"={_figure('efficiency.p2p_bandwidth')}\*IF\({_MESH}>0,{_LINK}\)",
    r"decode\.(?:\w+\.)?\w*attention\w*\.compute_time": (
        rf"=\[[\w.]+\.flops\]/{_figure('hardware.sixteen_peak')}"
    ),
}
