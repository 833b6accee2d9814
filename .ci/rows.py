"""The rows of many structures: to show that a subject which moved to text has the rows it had.

    python .ci/rows.py keep OLD.pickle            rows of all structures, as the code makes them now
    python .ci/rows.py compare OLD.pickle         what differs from those, by id
    python .ci/rows.py print OLD.pickle SUBJECT   rows of a subject as text, with their shapes

Goes with the last subject that is not text.
"""

from __future__ import annotations

import gzip
import pickle
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mantile.equations.build import build_graph
from mantile.equations.graph import EstimateGraph
from mantile.graph import quantity as q
from mantile.ir.build import build_ir
from mantile.library.models import load_model
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, parse_scenario
from mantile.library.scenario_fields import STATED_FIELDS

MODELS = ("llama-3.1-8b", "llama-3.3-70b", "mixtral-8x7b", "qwen3-next-80b", "qwen3-vl-8b", "deepseek-r1")
MODELS = (*MODELS, "minimax-m3-nvfp4@1", "gpt-oss-120b")
NEEDS = sorted(set(STATED_FIELDS.values()) - {"devices"})
ALL = frozenset(NEEDS)
DEMAND = Path(__file__).parents[1] / "workbooks/capacity-llama-3.3-70b-b200.yaml"
SIGNS = {"add": ("+", 5), "subtract": ("-", 5), "multiply": ("*", 6), "divide": ("/", 6), "power": ("**", 8)}
SIGNS |= {"less": ("<", 3), "less_equal": ("<=", 3), "greater": (">", 3), "greater_equal": (">=", 3)}
SIGNS |= {"equal": ("==", 3)}
CALLS = {"maximum": "max", "minimum": "min", "all_of": "all", "logarithm": "ln", "exponential": "exp"}
CALLS |= {"total": "sum", "number": "number_of", "absolute": "abs"}

Case = tuple[str, tuple[Any, ...]]


def classes(request: Mapping[str, Any], **own: Any) -> Scenario:
    """Two classes of requests."""
    lengths = {"input_spread": 0.3, "output_spread": 0.5}
    chat = {"name": "chat", "share": 3, "input_tokens": 800, "output_tokens": 300} | lengths | own
    rag = {"name": "rag", "share": 1, "input_tokens": 5000, "output_tokens": 100} | lengths | own
    fields = {"model": MODELS[0], "accelerator": "h100-sxm", "classes": [chat, rag]}
    return parse_scenario(fields | dict(request), "rows")


def cases() -> Iterator[tuple[str, Case]]:
    """Structures by name: a model, and the arguments of `build_graph` behind model and library."""
    nothing: frozenset[str] = frozenset()
    demand = parse_scenario(yaml.safe_load(DEMAND.read_text("utf-8")), "rows").capacity
    for model in MODELS:
        yield model, (model, (False, False, False, nothing, (), None, 0))
        yield f"{model} all", (model, (True, True, True, ALL, (), None, 0))
        yield f"{model} all alone", (model, (False, True, True, ALL, (), None, 0))
    for model in ("llama-3.1-8b", "deepseek-r1"):
        for apart, rate, caches in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1)):
            parts = (bool(apart), bool(rate), bool(caches), nothing, (), None, 0)
            yield f"{model} {apart}{rate}{caches}", (model, parts)
        for need in NEEDS:
            for apart in (False, True):
                parts = (apart, False, False, frozenset({need}), (), None, 0)
                yield f"{model} {need}{' apart' * apart}", (model, parts)
    for apart, rate in ((False, False), (False, True), (True, False), (True, True)):
        of_demand = (apart, rate, False, nothing, (), demand, 0)
        yield f"demand {apart:d}{rate:d}", ("llama-3.3-70b", of_demand)
    for count, model, rate in (
        (2, MODELS[0], False),
        (4, MODELS[0], False),
        (2, MODELS[2], False),
        (2, MODELS[0], True),
    ):
        of_devices = (False, rate, False, frozenset({"devices"}), (), None, count)
        yield f"{model} devices {count} {rate:d}", (model, of_devices)
    turns = {"turns": 4, "shared_prefix": 200}
    for name, asked in (
        ("classes", classes({"concurrency": 8})),
        ("classes rate", classes({"request_rate": 3})),
        ("classes turns", classes({"concurrency": 8}, **turns)),
        ("classes sessions", classes({"sessions": 60}, think_time=5, **turns)),
    ):
        yield name, (MODELS[0], (*asked.parts, asked.classes, None, 0))


def tree(node: q.Node) -> Any:
    """An expression as nested tuples."""
    if isinstance(node, q.Input | q.Quantity):
        return node.id
    if isinstance(node, q.Literal):
        return f"'{node.value}" if isinstance(node.value, str) else node.value
    if isinstance(node, q.Apply):
        return (node.operation, *map(tree, node.arguments))
    if isinstance(node, q.Span):
        return ("span", *(member.id for member in node.members))
    return repr(node)


def rows_of(graph: EstimateGraph) -> dict[str, tuple[Any, ...]]:
    """Label, unit, note, source, name and body of each row by its id."""
    return {
        node.id: (node.label, node.unit, node.note, node.source, node.name, node.factor, tree(node.body))
        for node in q.ancestors(*graph.figures.values())
        if isinstance(node, q.Quantity)
    }


def made() -> dict[str, dict[str, tuple[Any, ...]]]:
    library = load_library()
    return {
        name: rows_of(build_graph(build_ir(load_model(model)), library, *parts))
        for name, (model, parts) in cases()
    }


def text(body: Any, subject: str, tight: int = 0) -> str:
    """An expression as a subject writes it."""
    if isinstance(body, str):
        short = body.removeprefix(f"{subject}.").removeprefix("constant.")
        return f"{body}'" if body.startswith("'") else short
    if not isinstance(body, tuple):
        return repr(body)
    operation, *arguments = body
    if operation == "span":
        return f"[{', '.join(text(member, subject) for member in arguments)}]"
    if operation == "negative":
        return f"-{text(arguments[0], subject, 7)}"
    if operation in SIGNS:
        sign, binds = SIGNS[operation]
        left, right = text(arguments[0], subject, binds), text(arguments[1], subject, binds + 1)
        said = f"{left}**{right}" if sign == "**" else f"{left} {sign} {right}"
        return f"({said})" if binds < tight else said
    last = -1 if operation in ("match", "match_at_most", "round_up") else None
    said = ", ".join(text(argument, subject) for argument in arguments[:last])
    return f"{CALLS.get(operation, operation)}({said})"


def line(identifier: str, row: tuple[Any, ...], subject: str) -> str:
    label, unit, note, source, called, factor, body = row
    shown = f"{label}{f' ({called})' if called else ''} [{unit}{', factor' * factor}] = {text(body, subject)}"
    short = identifier.removeprefix(f"{subject}.")
    return f"{short}  {shown}{f' ; {note}' if note else ''}{f' @ {source}' if source else ''}"


def compare(old: dict[str, dict[str, tuple[Any, ...]]]) -> int:
    """Print what differs; how many ids do."""
    differ: dict[str, tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    for name, rows in made().items():
        for identifier in {*rows, *old[name]}:
            was, now = old[name].get(identifier), rows.get(identifier)
            if was != now:
                counts[identifier] += 1
                lines = ("–" if row is None else line(identifier, row, "") for row in (was, now))
                differ.setdefault(identifier, tuple(lines))  # type: ignore[arg-type]
    for identifier, count in counts.most_common():
        print(f"{count} {identifier}", *differ[identifier], sep="\n    ")
    return len(counts)


def shapes(old: dict[str, dict[str, tuple[Any, ...]]], subject: str) -> None:
    """Print the rows of a subject, and of each the structures in which it has another shape."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, rows in old.items():
        for identifier, row in rows.items():
            if re.match(rf"{re.escape(subject)}\.", identifier):
                found[identifier][line(identifier, row, subject)].append(name)
    for of_one in found.values():
        for said, names in of_one.items():
            print(said if len(of_one) == 1 else f"    ** {said}   << {len(names)} {names[:4]}")


if __name__ == "__main__":
    what, path, *rest = sys.argv[1:]
    if what == "keep":
        with gzip.open(path, "wb", 3) as file:
            pickle.dump(made(), file)
    else:
        with gzip.open(path) as file:
            kept = pickle.load(file)  # a file of one's own, just made
        if what == "print":
            shapes(kept, rest[0])
        else:
            sys.exit(1 if compare(kept) else 0)
