"""What the command line shows: tables for people, one JSON object for programs."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mantile.answers.text import SIZES
from mantile.answers.text import scaled as scaled
from mantile.cli.output import look, plain
from mantile.estimates.results import told_errors as told_errors
from mantile.library.documents import json_text

if TYPE_CHECKING:
    from mantile.estimates.explain import Branch, Explanation, Term


class Out(Console):
    """Stdout: texts and tables as the command was asked to show them."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print texts and tables; those of ours are fitted to the width, or written as Markdown or CSV."""
        if look.now().form in ("markdown", "csv"):
            sys.stdout.write(plain.written(objects, look.now().form))
            return
        for thing in objects if any(isinstance(one, FittedTable) for one in objects) else (objects,):
            if isinstance(thing, FittedTable):
                dropped = thing.fit(self.width)
                super().print(thing, **settings)
                if dropped:
                    said = f"no room at {self.width} columns for: {', '.join(dropped)}; --format csv has all"
                    super().print(Text(said, style="dim"), **settings)
            else:
                super().print(*(thing if isinstance(thing, tuple) else (thing,)), **settings)

    def on_broken_pipe(self) -> None:
        """Leave it to the command, which ends as where anything else was printed; Rich ends with status 1."""
        raise BrokenPipeError


def open_console() -> Console:
    """Stdout, without markup; as wide as the terminal, in a pipe without one as wide as the tables need."""
    columns = look.width()
    return Out(
        width=columns,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=columns == look.PIPE_WIDTH,
        no_color=None if sys.stdout.isatty() else True,
    )


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout; what is not a number becomes null."""
    print(json_text(data))


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr while something long runs; nothing where stderr is not a terminal."""
    console = Console(stderr=True, markup=False)
    if not console.is_terminal or look.now().quiet:
        yield
        return
    with console.status(what):
        yield


def new_table(
    *heads: str, right: Iterable[int] = (), drop: Iterable[int] = (), keep: Iterable[int] = ()
) -> FittedTable:
    """An empty table in our look.

    Args:
        right: the columns of numbers.
        drop: columns in the order in which they go where there is no room; the last one first without.
        keep: columns that stay; where they have no room, long words in them are folded.
    """
    table = FittedTable(box=SIMPLE_HEAD, pad_edge=False)
    table.drop, table.keep = (*drop,), frozenset(keep)
    numbers = set(right)
    for index, head in enumerate(heads):
        table.add_column(head, justify="right" if index in numbers else "left", overflow="fold")
    return table


_OF_A_NUMBER = 2  # words of a number with its unit
_PROSE = 18  # columns that running text in a table has at least


class FittedTable(Table):
    """A table whose ids and numbers are never split: where there is no room, columns go."""

    drop: tuple[int, ...] = ()
    keep: frozenset[int] = frozenset()

    def fit(self, width: int) -> list[str]:
        """Make the table as wide as there is room for.

        Returns:
            the heads of columns that went.
        """
        heads = [str(column.header) for column in self.columns]
        every = [*self.drop, *(at for at in reversed(range(1, len(heads))) if at not in self.drop)]
        needs = [self._need(at) for at in range(len(heads))]
        order = [at for at in every if at not in self.keep]
        kept = set(range(len(heads)))
        while not kept.isdisjoint(order) and sum(needs[at] for at in kept) + 3 * len(kept) - 1 > width:
            kept.discard(next(at for at in order if at in kept))
        while (over := sum(needs[at] for at in kept) + 3 * len(kept) - 1 - width) > 0:
            widest = max(kept, key=needs.__getitem__)
            if needs[widest] <= 8:
                break
            needs[widest] -= max(1, min(over, (needs[widest] - 8) // 2))
        room = width - (sum(needs[at] for at in kept) + 3 * len(kept) - 1)
        for at, column in enumerate(self.columns):
            if at not in kept:
                continue
            texts = [str(column.header), *(_text(cell) for cell in column.cells)]
            wanted = max(cell_len(line) for text in texts for line in (text.splitlines() or [""]))
            more = max(0, min(wanted - needs[at], room))
            room -= more
            column.width = max(1, min(needs[at] + more, width - 2))
        self.columns[:] = [column for at, column in enumerate(self.columns) if at in kept]
        for at, column in enumerate(self.columns):
            column._index = at  # by which rich knows the last one, which has no blank behind it
        return [head or f"column {at + 1}" for at, head in enumerate(heads) if at not in kept]

    def lines(self) -> list[list[str]]:
        """The texts of the table, heads first."""
        columns = [[str(column.header), *(_text(cell) for cell in column.cells)] for column in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def _is_prose(self, at: int) -> bool:
        """Whether a column has running text, which may go on in the next line."""
        column = self.columns[at]
        texts = [_text(cell) for cell in column.cells]
        if column.justify == "right":  # a number and its unit stay together
            return any(len(text.split()) > _OF_A_NUMBER for text in texts)
        return any(" " in text for text in texts)

    def _need(self, at: int) -> int:
        """The least width of a column."""
        column = self.columns[at]
        texts = [_text(cell) for cell in column.cells]
        lines = [line for text in texts for line in text.splitlines()]
        longest_word = max(
            (cell_len(word) for line in [*lines, str(column.header)] for word in line.split()), default=1
        )
        longest = max((cell_len(line) for line in lines), default=1)
        short = [cell_len(line) for line in lines if len(line.split()) <= _OF_A_NUMBER]
        if column.justify == "right" and self._is_prose(at):
            return max(longest_word, *short, _PROSE)
        return max(longest_word, min(longest, _PROSE)) if self._is_prose(at) else max(longest_word, longest)


def _text(cell: Any) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _with_unit(value: Any, unit: str) -> str:
    """A value and its unit, texts and unset figures without."""
    return (
        number(value) if unit == "1" or value is None or isinstance(value, str) else f"{number(value)} {unit}"
    )


def _for_people(value: Any, unit: str) -> str:
    """A value in the size of its unit that people say, where there is one."""
    if unit in SIZES and value and not isinstance(value, str):
        return scaled(float(value), unit, 6)
    return _with_unit(value, unit)


def number(value: Any, digits: int = 6) -> str:
    """A value for people: thousands separated, as many significant digits as asked for."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "error"
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}".rstrip("0").rstrip(".") if places else f"{value:,.0f}"


def print_checks(console: Console, results: Sequence[dict[str, Any]]) -> None:
    """The checks that do not hold, of each column of results; what several say in the same words once.

    Of a plan that cannot be its errors alone: what it would be like means nothing.
    """
    said: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        errors = told_errors(result)
        alerts = [] if errors and not _can_be(result) else result["checks"]["alerts"]
        for kind, checks in (("error", errors), ("alert", alerts)):
            for check in checks:
                said.setdefault((kind, check["code"], check["message"]), []).append(result["name"])
    for (kind, code, message), names in said.items():
        of = f"{', '.join(names)}: " if len(names) < len(results) else ""
        head = Text(f"  {kind} {code}: ", style="bold red" if kind == "error" else "yellow")
        console.print(hung(head, f"{of}{message}"))


def _can_be(result: dict[str, Any]) -> bool:
    return result.get("feasibility") in ("fits", "fits_with_offload")


def hung(head: Text, text: str) -> Text:
    """A line with a head; what goes on in further lines is indented, words are not split."""
    room, indent = look.width(), 4
    lines = textwrap.wrap(
        text,
        max(30, room - indent),
        initial_indent=" " * (head.cell_len - indent) if head.cell_len > indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    whole = head.copy()
    for at, line in enumerate(lines):
        whole.append(line.lstrip() if at == 0 else f"\n{' ' * indent}{line}")
    return whole


_SLICES = {
    "replica": "replica",
    "stage": "pipeline stage",
    "group": "attention-DP group",
    "context": "context-parallel part",
    "rank": "TP rank",
    "layers": "layers",
    "heads": "query heads",
    "kv_first": "first KV head",
    "kv_last": "last KV head",
    "ffn_size": "FFN columns",
    "experts": "experts",
    "expert_columns": "columns of an expert",
    "vocabulary": "vocabulary rows",
    "weights_gb": "weights, GB",
    "kv_cache_gb": "KV cache, GB",
    "working_gb": "activations, runtime, GB",
    "used_gb": "used, GB",
}


def print_plan(plan: dict[str, Any], title: str, as_exo: bool = False) -> None:
    """The placement, eight accelerators side by side, the messages, and the checks that do not hold.

    Args:
        as_exo: whether shards are shown in EXO's spelling too.
    """
    console = open_console()
    console.print(Text(f"{title}, {plan['name']}: {plan['feasibility']}", style="bold"))
    for workers in plan["sides"]:
        used = [accelerator for accelerator in workers["accelerators"] if accelerator["in_use"]]
        role = "" if workers["role"] == "all" else f"{workers['role']} workers: "
        console.print(
            f"{role}{number(workers['accelerators_in_use'])} accelerators of {workers['system']}"
            + (f"; the first {len(used)} are shown" if len(used) < workers["accelerators_in_use"] else "")
        )
        for start in range(0, len(used), 8):
            band = used[start : start + 8]
            table = new_table(
                "slice", *(f"GPU {number(accelerator['number'])}" for accelerator in band), right=range(1, 9)
            )
            for key, label in _SLICES.items():
                if key in band[0]:
                    table.add_row(label, *(number(accelerator[key], 4) for accelerator in band))
            console.print(table)
    _print_devices(console, plan.get("devices", ()))
    _print_links(console, plan["topology"])
    _print_shards(console, plan["shards"] if as_exo else ())
    for phase, messages in plan["messages"].items():
        if messages:
            title = f"messages of {'a prefill pass' if phase == 'prefill' else 'a decode step'}"
            table = new_table(
                title, "between", "algorithm", "MB each", "number", "us each", "ms", right=(3, 4, 5, 6)
            )
            for item in messages:
                table.add_row(
                    item["label"],
                    item["between"],
                    item["algorithm"] or "",
                    number(item["bytes"] / 1e6, 4),
                    number(item["count"]),
                    number(item["seconds_each"] * 1e6, 4),
                    number(item["seconds"] * 1e3, 4),
                )
            console.print(table)
    print_checks(console, [plan])


def _print_devices(console: Console, devices: Sequence[dict[str, Any]]) -> None:
    """Who holds which layers of devices that are not alike, and how long each takes."""
    if not devices:
        return
    table = new_table(
        "device",
        "count",
        "layers",
        "which",
        "used GB",
        "usable GB",
        "prefill ms",
        "decode ms",
        right=range(1, 8),
    )
    for device in devices:
        which = device["which_layers"]
        table.add_row(
            f"{device['number']} {device['name']}",
            number(device["accelerators"]),
            number(device["layers"]),
            "–" if which is None else f"{which[0]} – {which[1]}",
            *(number(device[f"memory_{name}_bytes"] / 1e9, 4) for name in ("used", "usable")),
            *(number(device[f"{phase}_s"] * 1e3, 4) for phase in ("prefill", "decode")),
        )
    console.print(table)


def _print_shards(console: Console, shards: Sequence[dict[str, Any]]) -> None:
    """Shards in EXO's spelling."""
    if not shards:
        return
    spelt = ("device_rank", "world_size", "start_layer", "end_layer", "n_layers")
    table = new_table("shard", *spelt, right=range(1, 6))
    for shard in shards:
        table.add_row(shard["shard"], *(str(shard[name]) for name in spelt))
    console.print(table)


def _print_links(console: Console, shown: dict[str, Any]) -> None:
    """Links with their bandwidth, the busiest named; a wave where one is inferred."""
    if not shown["links"]:
        return
    named = {box["id"]: box["title"] for box in shown["boxes"]}
    if len(set(named.values())) < len(named):
        named = {name: f"{place} {title}" for place, (name, title) in enumerate(named.items(), start=1)}
    table = new_table("link", "kind", "GB/s", "us", "ms of a prefill", "", right=(2, 3, 4))
    for link in shown["links"]:
        ends = named[link["from"]], named[link["to"]]
        arrow = "~~>" if link["inferred"] else "-->"
        state = link["state"] if link["state"] in ("busiest", "unused") else ""
        table.add_row(
            f"in {ends[0]}" if link["from"] == link["to"] else f"{ends[0]} {arrow} {ends[1]}",
            link["label"],
            *("–" if link[key] is None else number(link[key], 4) for key in ("gb_per_s", "latency_us")),
            "–" if link["prefill_ms"] is None else number(link["prefill_ms"], 4),
            ", ".join(word for word in (state, "inferred" if link["inferred"] else "") if word),
        )
    console.print(table)


def print_explanation(explained: Explanation, title: str) -> None:
    """A figure, how it is worked out, and its precedents."""
    console = open_console()
    console.print(Text(explained.figure.label, style="bold"), f"({explained.figure.id})")
    console.print(f"for {title}")
    figure = explained.figure
    shown, exact = _for_people(figure.value, figure.unit), _with_unit(figure.value, figure.unit)
    for label, text in (
        ("value", shown if shown == exact else f"{shown} ({exact})"),
        ("unit", "" if exact.endswith(f" {figure.unit}") else figure.unit),
        ("how" if explained.formula else "meaning", explained.how),
        ("formula", explained.formula),
        ("source", explained.source),
        ("status", explained.status),
        ("equation", explained.place),
    ):
        if text:
            console.print(f"  {label:<8} {text}")
    for head, terms in (("Follows from", explained.precedents), ("Leads to", explained.dependents)):
        if terms:
            console.print(Text(head, style="bold"))
            grid = Table.grid(padding=(0, 2))
            for term in terms:
                grid.add_row(
                    f"  {term.id}", Text(_for_people(term.value, term.unit), justify="right"), term.label
                )
            console.print(grid)


def print_trace(root: Branch, title: str) -> None:
    """A figure and what it follows from, or leads to, as a tree."""

    def grow(tree: Tree, branch: Branch) -> None:
        for inner in branch.branches:
            grow(tree.add(_line(inner)), inner)

    tree = Tree(_line(root))
    grow(tree, root)
    console = open_console()
    console.print(f"for {title}")
    console.print(tree)


def _line(branch: Branch) -> Text:
    term: Term = branch.term
    after = "  (shown elsewhere)" if branch.repeated else "  …" if branch.deeper else ""
    value = "" if term.members else f" = {_for_people(term.value, term.unit)}"
    return Text.assemble((term.id, "bold"), value, (f"  {term.label}{after}", "dim"))


def print_description(description: dict[str, Any]) -> None:
    """What a model is made of."""
    console = open_console()
    console.print(
        Text(description["id"], style="bold"),
        f"({description['model_type']}, {description['layers']} layers)",
    )
    console.print(_counts(description))
    table = new_table("fact", "value", "origin", "source", right=(1,))
    vision = {f"vision.{name}": fact for name, fact in description.get("vision", {}).items()}
    for name, fact in (description["facts"] | vision).items():
        table.add_row(name, number(fact["value"]), fact["origin"], fact["source"])
    console.print(table)
    if len(description["layer_groups"]) > 1:
        table = new_table("kind of layer", "times", right=(1,))
        for group in description["layer_groups"]:
            table.add_row(" + ".join(group["blocks"]), number(group["count"]))
        console.print(table)
    console.print(_caches(description["caches"]))
    table = new_table("module", "kind", "times", right=(2,))
    for module in description["modules"]:
        table.add_row(module["label"], module["kind"], number(module["count"]))
    console.print(table)
    _print_not_used(console, description.get("not_used", []))
    if "remarks" in description:
        table = new_table("read with remarks", "remark")
        for remark in description["remarks"]:
            table.add_row(remark["of"], remark["remark"])
        console.print(table)
    if "tensors" in description:
        table = new_table("tensor", "shape", "times", right=(2,))
        for tensor in description["tensors"]:
            table.add_row(
                tensor["name"], " × ".join(number(size) for size in tensor["shape"]), number(tensor["count"])
            )
        console.print(table)


def _print_not_used(console: Console, fields: Sequence[dict[str, Any]]) -> None:
    """Fields of a config that nothing was read from; all of those that are not known, of others how many."""
    unknown = [field for field in fields if field["why"] is None]
    if unknown:
        table = new_table("not used: not known", "value")
        for field in unknown:
            table.add_row(field["field"], field["value"])
        console.print(table)
    if len(fields) > len(unknown):
        console.print(f"{number(len(fields) - len(unknown))} other fields were not used: they change nothing")


def _counts(description: dict[str, Any]) -> Table:
    """Parameters, KV bytes per token and FLOPs of a model."""
    kv = description["kv_bytes_per_token"]
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    for name, value in description["parameters"].items():
        grid.add_row(f"parameters, {name.replace('_', ' ')}", number(value))
    grid.add_row("KV bytes per token at 2 B", number(kv["all_layers"]))
    if "multi_token_prediction" in description:
        grid.add_row(
            "parameters of multi-token prediction, apart",
            number(description["multi_token_prediction"]["parameters"]),
        )
    if kv["beyond_window"] != kv["all_layers"]:
        grid.add_row("KV bytes per token beyond the window", number(kv["beyond_window"]))
    flops = dict(description.get("prefill_flops", {}))
    tokens = flops.pop("tokens", 0)
    for name, value in flops.items():
        grid.add_row(f"FLOPs of {number(tokens)} tokens, {name.replace('_', ' ')}", number(value))
    return grid


def _caches(caches: Sequence[dict[str, Any]]) -> Table:
    """Every cache of a model: what it holds per token or request, and how far it looks back."""
    table = new_table(
        "cache of", "layout", "values", "per", "looks back", "shared by", "layers", right=(2, 6)
    )
    for cache in caches:
        per = "token" if "values_per_token" in cache else "request"
        limits = [
            f"{kind} {number(cache[kind])}" for kind in ("sliding", "chunked", "selected") if kind in cache
        ]
        table.add_row(
            cache["module"],
            cache["layout"],
            number(cache[f"values_per_{per}"]),
            per,
            *(limits or [""]),
            cache["shared_by"],
            number(cache["layers"]),
        )
    return table


def print_differences(comparison: dict[str, Any]) -> None:
    """Where two entries differ, field by field; unit and sources beside the figures where they are told."""
    console = open_console()
    if not comparison["differences"]:
        console.print(f"{comparison['a']} and {comparison['b']} are the same")
        return
    first, *_ = comparison["differences"]
    extra = [key for key in first if key not in ("field", "a", "b")]
    heads = {"source_a": f"source of {comparison['a']}", "source_b": f"source of {comparison['b']}"}
    names = ("field", comparison["a"], comparison["b"])
    table = new_table(*names, *(heads.get(key, key) for key in extra), keep=range(3))
    for item in comparison["differences"]:
        table.add_row(
            item["field"],
            *("" if item[letter] is None else number(item[letter], 15) for letter in ("a", "b")),
            *(item[key] or "" for key in extra),
        )
    console.print(table)


_QUOTED = (
    ("_bytes_per_s", "GB/s", 10**9),
    ("_per_token", "B/token", 1),
    ("_bytes", "GiB", 2**30),
    ("_flops", "TFLOP/s", 10**12),
)


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """One line for each entry of a list, figures in the unit people quote; where there is no room, texts
    beside the id and what stands next to it go before figures.
    """
    heads, scales = [], []
    for key in rows[0]:
        suffix, unit, scale = next((quoted for quoted in _QUOTED if key.endswith(quoted[0])), ("", "", 1))
        label = key.removesuffix(suffix).replace("_", " ") if suffix else key.replace("_", " ")
        heads.append(f"{label}, {unit}" if unit else label)
        scales.append(scale)
    figures = {
        index for index, key in enumerate(rows[0]) if any(isinstance(row[key], int | float) for row in rows)
    }
    texts_first = [at for at in reversed(range(2, len(heads))) if at not in figures]
    table = new_table(*heads, right=figures, drop=texts_first)
    lines = [
        [
            number(value / scale if scale != 1 and value is not None else value)
            for value, scale in zip(row.values(), scales, strict=True)
        ]
        for row in rows
    ]
    console = open_console()
    widths = [
        max(len(word) for text in texts for word in text.split()) for texts in zip(heads, *lines, strict=True)
    ]
    if (
        sum(widths) + 3 * len(widths) <= console.width
    ):  # where there is room, lines break between words only: ids are for copying
        for index, column in enumerate(table.columns):
            column.width = None if any(" " in line[index] for line in lines) else widths[index]
    for line in lines:
        table.add_row(*line)
    console.print(table)


def print_entry(entry: dict[str, Any]) -> None:
    """All that is known of one entry: single facts above, figures with their sources as tables."""
    console = open_console()
    grid = Table.grid(padding=(0, 2))
    console.print(Text(str(entry["id"]), style="bold"))
    for key, value in entry.items():
        if key != "id" and not (isinstance(value, dict) or _is_table(value)):
            grid.add_row(f"  {key.replace('_', ' ')}", _cell(value))
    console.print(grid)
    for key, value in entry.items():
        if isinstance(value, dict):
            fields = {
                name: item
                for name, item in value.items()
                if not isinstance(item, dict) and item not in (None, "")
            }
            if fields:
                console.print(
                    Text(key, style="bold"),
                    ", ".join(
                        f"{name} {item if name == 'year' else number(item)}" for name, item in fields.items()
                    ),
                )
            _print_figures(
                console, [{key: name, **item} for name, item in value.items() if isinstance(item, dict)]
            )
        elif _is_table(value):
            _print_figures(console, value)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _cell(value: Any) -> str:
    """A value, a list of names, or what other sources state."""
    if not isinstance(value, list):
        return number(value)
    return (
        "; ".join(
            f"{number(item['value'])} by {item['source']}" if isinstance(item, dict) else str(item)
            for item in value
        )
        or "–"
    )


def _print_figures(console: Console, figures: Sequence[dict[str, Any]]) -> None:
    keys = list(
        dict.fromkeys(key for figure in figures for key in figure if any(item.get(key) for item in figures))
    )
    table = new_table(*keys, right=(index for index, key in enumerate(keys) if key == "value"))
    for figure in figures:
        table.add_row(
            *(
                _cell(figure.get(key)) if key == "value" or figure.get(key) not in (None, []) else ""
                for key in keys
            )
        )
    console.print(table)


def print_datasheet(path: Path, problems: Sequence[str], doubts: Sequence[str], use: str) -> None:
    """What an accelerator's profile lacks, or how to use it."""
    console = open_console()
    for problem in problems:
        console.print(f"  {problem}")
    for doubt in doubts:
        console.print(Text("  look again:", style="yellow"), doubt)
    console.print(f"{path}: {'not yet complete, see above' if problems else f'complete; use it with {use}'}")
