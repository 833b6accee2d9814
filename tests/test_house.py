"""The house: what may import what, where a formula stands, and who makes one."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import mantile
from mantile.equations.build import build_graph
from mantile.equations.graph import EstimateGraph
from mantile.estimates.estimate import Estimate
from mantile.graph import quantity
from mantile.graph.quantity import Quantity
from mantile.ir.build import build_ir
from mantile.library.models import load_model
from mantile.library.profiles import Library
from mantile.library.scenario_fields import STATED_FIELDS
from mantile.workbook.layout import lay_out

PACKAGE = Path(mantile.__file__).parent
# Circles that are still there. Whoever opens one up deletes its line; the tuple is to become empty.
KNOWN_CIRCLES: tuple[frozenset[str], ...] = ()


def module_files() -> dict[str, Path]:
    """Every module of the package by its dotted name; a folder stands for its __init__.py."""
    files = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def imported(tree: ast.AST, module: str, modules: frozenset[str]) -> Iterator[str]:
    """Modules of the package that a module imports: at its top, inside functions and under TYPE_CHECKING."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are written in full"
            # `from folder import file` imports the file; `from file import name` imports the file too.
            names = [
                whole if (whole := f"{node.module}.{alias.name}") in modules else str(node.module)
                for alias in node.names
            ]
        yield from (name for name in names if name in modules and name != module)


def arrows(text: str) -> dict[str, set[str]]:
    """The folders that each folder imports, as the diagram of mantile/README.md has them."""
    lines = re.findall(r"^(\w+) +-> (.+)$", text, re.MULTILINE)
    return {folder: set(others.split()) for folder, others in lines}


def test_the_diagram_is_what_the_code_imports() -> None:
    """Arrows between folders in mantile/README.md, and in the order of the table none that points up."""
    files = module_files()
    names = frozenset(files)
    imports: dict[str, set[str]] = {}
    for module, path in files.items():
        folder = module.partition(".")[2].partition(".")[0]
        if not folder or folder == "__main__":  # the public face and the program stand above all folders
            continue
        for other in imported(tree(path), module, names):
            if other != "mantile" and (target := other.split(".")[1]) != folder:
                imports.setdefault(folder, set()).add(target)
    text = (
        (PACKAGE / "README.md").read_text(encoding="utf-8").partition("## The folders")[2].partition("## ")[0]
    )
    assert arrows(text) == imports
    order = re.findall(r"^\| `(\w+)`", text, re.MULTILINE)
    assert set(order) == {*imports, *(other for others in imports.values() for other in others)}
    assert all(order.index(other) > order.index(folder) for folder in imports for other in imports[folder])


@cache
def tree(path: Path) -> ast.Module:
    """A file of the package, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


def circles(imports: dict[str, set[str]]) -> list[frozenset[str]]:
    """Groups of modules that import each other, directly or not (strongly connected components)."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        reached[module], waiting = set(), [module]
        while waiting:
            for other in imports[waiting.pop()] - reached[module]:
                reached[module].add(other)
                waiting.append(other)
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in imports
        if module in reached[module]
    }
    return sorted(groups, key=sorted)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not inside functions and not under TYPE_CHECKING either: those only hide the circle from Python."""
    files = module_files()
    names = frozenset(files)
    imports = {module: set(imported(tree(path), module, names)) for module, path in files.items()}
    assert len(imports) > 100 and sum(map(len, imports.values())) > 300
    unknown = [sorted(circle) for circle in circles(imports) if circle not in KNOWN_CIRCLES]
    assert not unknown, f"modules that import each other: {unknown}"
    opened = [sorted(circle) for circle in KNOWN_CIRCLES if circle not in circles(imports)]
    assert not opened, f"no longer a circle: delete it from KNOWN_CIRCLES: {opened}"


def test_a_circle_is_found_wherever_the_import_stands() -> None:
    """The walk sees an import in a function and under TYPE_CHECKING, of a file and of a name in it."""
    sources = {
        "house.a": "from house import b",
        "house.b": "def f() -> None:\n    import house.c",
        "house.c": "if TYPE_CHECKING:\n    from house.a import thing",
        "house.d": "from house.a import thing",
    }
    names = frozenset(sources)
    imports = {module: set(imported(ast.parse(text), module, names)) for module, text in sources.items()}
    assert circles(imports) == [frozenset({"house.a", "house.b", "house.c"})]


# First parts of ids that are no files of mantile/equations by that name, and the files that make them.
ELSEWHERE = {
    "tensor": "equations/tensors.py",
    "floor": "floors.py",
    "prefill": "equations/roofline.py",
    "decode": "equations/roofline.py",
    "single": "equations/serving.eq",
    "all_slots": "equations/load.eq",
    "estimate": "equations/load.eq",
    "system": "equations/library.py",
}


def files_of(path: Path) -> list[Path]:
    """The text of equations, a file of Python, or those of a folder of that name."""
    files = [file for file in (path.with_suffix(".eq"), path) if file.is_file()]
    return files or sorted(path.with_suffix("").glob("*.py"))


def first_parts_are_files(graph: EstimateGraph) -> set[str]:
    """The first parts of the ids of a graph, each of which has its file."""
    parts = {identifier.partition(".")[0] for identifier in graph.figures}
    for part in parts:
        path = PACKAGE / ELSEWHERE.get(part, f"equations/{part}.py")
        texts = [file.read_text(encoding="utf-8") for file in files_of(path)]
        assert texts, f"{part}: no file {path.name}"
        made = re.compile(rf'"{part}[."]|{part.upper()} = |^(\[{part}\] |again {part}\b)', re.MULTILINE)
        assert any(map(made.search, texts)), f"{path.name} makes no id that begins with {part}"
    return parts


def test_the_first_part_of_an_id_is_a_file(one_of_each: str, library: Library) -> None:
    """So that a newcomer holding a cell finds its formula: memory.used is made in equations/memory.eq."""
    first_parts_are_files(build_graph(build_ir(load_model(one_of_each)), library))


def test_no_exception_is_idle(library: Library) -> None:
    """Exceptions to the rule are of ids that there are, also of decode workers and under a request rate."""
    graph = build_graph(
        build_ir(load_model("mixtral-8x7b")),
        library,
        True,
        True,
        caches_prefixes=True,
        stated=frozenset(STATED_FIELDS.values()),
    )
    assert set(ELSEWHERE) <= first_parts_are_files(graph)


# --- Who makes a formula ------------------------------------------------------------------------------------

# Folders that read the model's figures and make none. A sheet places quantities. It may show a figure in
# another unit, by EstimateBook.displayed, whose arithmetic is equations/display.py; sum what stands above a
# total and compare two columns, by quantities that equations make; and hold inputs that belong to the
# workbook itself.
READERS = ("workbook", "cli", "roundtrip", "verification", "estimates")
# What they may name of graph/quantity.py: what nodes are, and walks over them.
NODES = {
    "Apply", "Cases", "InCase", "Input", "Line", "Literal", "Named", "Node", "Number", "Operand", "Quantity",
    "Row", "Section",
    "Span", "Table", "Value", "Words", "NOT_KNOWN",
    "ancestors", "children", "dependents", "expression", "is_named", "precedents",
    "same_in_all_cases",
}  # fmt: skip
MAKERS = {
    "Quantity",
    "Rows",
    "Apply",
    "Cases",
    "InCase",
    "Literal",
    "Section",
    "Span",
    "GraphRewrite",
}
# Where readers may do more, and what.
ALLOWED = {
    ("workbook/estimate_book.py", "Input"),  # the exchange rate of a template
    ("workbook/estimate_book.py", "span"),  # the cells of a dropdown's list
}


def made_by(path: Path) -> Iterator[tuple[str, int]]:
    """What a module takes of the makers of nodes, and the line of it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("mantile.graph.quantity"):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name not in NODES)
        if isinstance(node, ast.ImportFrom) and node.module in (
            "mantile.graph.rows",
            "mantile.graph.rewrite",
        ):
            yield from ((alias.name, node.lineno) for alias in node.names)
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in MAKERS or called == "Input":
                yield called, node.lineno


def test_readers_make_no_quantities() -> None:
    """Sheets, reports and the command line take figures and place them; equations are made in equations/."""
    found = {
        (str(path.relative_to(PACKAGE)), name): line
        for folder in READERS
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for name, line in made_by(path)
    }
    assert {place: line for place, line in found.items() if place not in ALLOWED} == {}
    assert set(found) >= ALLOWED, "an exception that nobody needs"


@pytest.mark.parametrize(
    "fields",
    [
        {
            "sweep": {"concurrency": [1, 8], "tp": [4, 8]},
            "overrides": [{"id": "efficiency.gemm_compute", "value": 0.6, "reason": "measured"}],
            "variants": [{"tp": 4}],
        },
        pytest.param(
            {
                **{"concurrency": None, "request_rate": 2.0, "pp": 2},
                **{"decode": {"tp": 4}, "variants": [{"serving": "aggregated"}]},
            },
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["variants", "workers at a rate"],
)
def test_no_arithmetic_outside_equations(
    fields: dict[str, Any], make: Callable[..., Estimate], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every operation of every formula of a workbook was written in equations/, ir/ or floors.py.

    Also operators, which no import shows: who makes an operation is seen on the stack.
    """
    estimate = make(**fields)
    estimate.values()
    made = quantity.apply
    makers: set[str] = set()

    def watched(operation: str, *arguments: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and "/graph/" in frame.f_code.co_filename:
            frame = frame.f_back
        makers.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))
        return made(operation, *arguments)

    monkeypatch.setattr(quantity, "apply", watched)
    book = lay_out(estimate)
    assert {maker for maker in makers if not maker.startswith(("equations/", "ir/", "floors.py"))} == set()
    assert {"equations/compare.py", "equations/sensitivity.py", "equations/layers.py"} <= makers | (
        {"equations/compare.py"} if book.columns == 1 else set()
    )
    for figure in book.addresses:
        part = str(getattr(figure, "id", "")).partition(".")[0]
        path = PACKAGE / ELSEWHERE.get(part, f"equations/{part}.py")
        assert not isinstance(figure, Quantity) or files_of(path), f"{figure.id}: no file {path.name}"


def test_a_module_of_the_package_is_found_by_its_path() -> None:
    """No public function stands in the place of a folder: `import mantile.estimates.sweep` is one."""
    for name in module_files():
        module = import_module(name)
        assert reduce(getattr, name.split(".")[1:], mantile) is module, name
