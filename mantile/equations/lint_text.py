"""Whether every name in the text of the equations is somebody's, and every row can be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mantile.equations.alternative import alternative, typed
from mantile.equations.build import build_graph
from mantile.equations.compare import compare
from mantile.equations.decide import decide
from mantile.equations.display import Currency
from mantile.equations.graph import EstimateGraph
from mantile.equations.placement import BAND, Placement
from mantile.equations.ready_columns import counted
from mantile.equations.tables import Equations
from mantile.equations.text import EquationError, Line, subjects
from mantile.graph.quantity import Input, Node, Quantity, ancestors, children
from mantile.ir.build import build_ir
from mantile.library.architecture import Model
from mantile.library.capacity import CapacityAsked
from mantile.library.correction import load_correction
from mantile.library.decision import Decision
from mantile.library.device import AWAY
from mantile.library.evidence import EvidenceBase
from mantile.library.models import load_model
from mantile.library.profiles import Library
from mantile.library.request_classes import RequestClass
from mantile.library.scenario_fields import STATED_FIELDS

_ALL = frozenset(STATED_FIELDS.values()) - {"devices"}
_STATED = {"open_loop": True, "caches_prefixes": True, "stated": _ALL}
_DEMAND = {"demand": CapacityAsked(requests_per_day=1_000_000)}
_LENGTHS: dict[str, Any] = {
    "input_tokens": 900,
    "output_tokens": 90,
    "input_spread": 0.1,
    "output_spread": 0.0,
}


def _classes(**own: Any) -> dict[str, Any]:
    return {"classes": tuple(RequestClass(name=name, **_LENGTHS, **own) for name in ("chat", "search"))}


_MODELS = (
    *("deepseek-r1", "gpt-oss-120b", "jamba-v0.1", "mamba-codestral-7b", "minimax-m3-nvfp4@1", "olmo-2-7b"),
    *("llama-4-scout", "qwen3-30b-a3b", "qwen3-next-80b", "qwen3-vl-8b"),
)
_DENSE = "llama-3.1-8b"
_STRUCTURES: dict[str, tuple[str, dict[str, Any]]] = {  # by name: a model, and what is asked of it
    "nothing stated, nothing measured, corrected by kind": (_DENSE, {}),
    "nothing stated, nothing measured, decode workers apart": (_DENSE, {"disaggregated": True}),
    "all stated": ("qwen3-30b-a3b", _STATED),
    **{
        f"{model}, nothing stated": (model, {})
        for model in ("deepseek-v3.2", "deepseek-v4-flash", "llama-4-scout")
    },
    "matrices in several data types": ("mixtral-8x7b", {}),
    **{f"{model}, decode workers apart": (model, _STATED | {"disaggregated": True}) for model in _MODELS},
    "devices that are not alike": (_DENSE, {"stated": frozenset({"devices"}), "devices": 2} | _DEMAND),
    "devices, links and drafts": (
        _DENSE,
        {"stated": frozenset({"devices", "links", "speculation", "launches"}), "devices": 6}
        | {"caches_prefixes": True},
    ),
    "mixture of experts on devices, drafts": (
        "mixtral-8x7b",
        {
            "stated": frozenset({"devices", "speculation", *AWAY.values()}),
            "devices": 2,
            "open_loop": True,
            "caches_prefixes": True,
        },
    ),
    "capacity, decode workers apart": (_DENSE, {"disaggregated": True, "open_loop": True} | _DEMAND),
    "capacity of sessions in classes": (
        _DENSE,
        {"caches_prefixes": True, "stated": frozenset({"sessions"})}
        | _DEMAND
        | _classes(turns=2, think_time=9.0),
    ),
    "classes": (_DENSE, _classes()),
    "KV heads of several kinds": ("mimo-v2-flash", {}),
}


def _in_several_types(name: str) -> Model:
    """A model with some matrices of its products in data types of their own."""
    model = load_model(name)
    kept = {"stored": {"v": "fp8", "gate": "fp8", "expert_up": "fp8"}}
    blocks = {key: block.model_copy(update=kept) for key, block in model.architecture.blocks.items()}
    architecture = model.architecture.model_copy(update={"blocks": blocks})
    return model.model_copy(update={"architecture": architecture})


@dataclass(frozen=True)
class Linted:
    """What was found.

    Args:
        rows: that were made, of all structures.
        findings: with file and line, what cannot be read or made, and rows of no structure; names that nobody
            uses.
    """

    files: int
    structures: int
    rows: int
    findings: tuple[str, ...]


def lint_text(library: Library) -> Linted:
    """Make every row of the text in structures that together have all features.

    Example:
        lint_text(load_library()).findings
    """
    made, findings = 0, [*_unused()]
    places = set[str]()
    shipped = load_correction()
    by_kind = tuple(one.model_copy(update={"everywhere": False}) for one in shipped.metrics)
    corrected = library.model_copy(update={"correction": shipped})
    bands = tuple(band for band in EvidenceBase().bands if band.level != "apart")
    of_kinds = {
        "correction": shipped.model_copy(update={"metrics": by_kind}),
        "evidence": EvidenceBase(bands=bands),
    }
    unknown = library.model_copy(update=of_kinds)
    for name, (model, asked) in _STRUCTURES.items():
        try:
            graph = build_graph(
                build_ir(_in_several_types(model) if "several data types" in name else load_model(model)),
                corrected if asked.keys() - {"disaggregated"} else unknown,
                **asked,
            )
            rows = graph.rows
            findings += (f"a circle: {identifier} ({name})" for identifier in _circles(graph))
            placed = Placement(graph.decode_workers, "placement", BAND, BAND).rows
            for view in (rows, placed, *_views(graph)):
                places |= view.make_all()
            made += len(rows)
        except EquationError as error:
            findings.append(f"{error} ({name})")
    missed = {line.place: line.id for line in _lines() if line.place not in places}
    findings += (f"{place}: no structure makes {identifier}" for place, identifier in missed.items())
    return Linted(len(subjects()), len(_STRUCTURES), made, tuple(findings))


def _circles(graph: EstimateGraph) -> Iterator[str]:
    """Rows of a structure that follow from themselves."""
    met = set[Node]()
    for node in ancestors(*graph.figures.values()):
        met.add(node)
        yield from (
            part.id for part in children(node) if isinstance(part, Input | Quantity) and part not in met
        )


def _views(graph: EstimateGraph) -> Iterator[Equations]:
    """The rows of several scenarios, of which the last has a name only where somebody typed one; of a choice
    among two plans, and of another accelerator.
    """
    yield compare(graph, "AB", (), Currency(), {1}, counted(2)).rows.rows
    yield decide(graph, Decision(objective="tpot"), 2, Currency()).rows
    yield alternative(graph, typed(graph), 1, Currency(), None).rows


def _lines() -> Iterator[Line]:
    """All rows of the text, what is laid over them, and names, but for checks made with a workbook."""
    for subject in subjects().values():
        yield from subject.names
        for block in subject.blocks:
            if "workbook" not in block.when:
                yield from (line for line in block.lines if line.parts)


def _unused() -> Iterator[str]:
    """Names for expressions with parameters that no line asks for."""
    said = list[str]()
    for subject in subjects().values():
        said += [line.parts.get("body", "") for block in subject.blocks for line in block.lines]
        said += [line.parts.get("body", "") for line in subject.names]
        said += [body for _, body in subject.macros.values()]
    for subject in subjects().values():
        for name in subject.macros:
            if not any(f"{name}(" in body for body in said):
                yield f"{subject.name}.eq: nobody uses {name}(...)"
