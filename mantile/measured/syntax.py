"""Texts of benchmarks to flat records, by their syntax: JSON, tables, SQL, `label: value`, Prometheus.

A key of a record is a path: `streaming_metrics.avg_ttft_ms`, `benchmarks.0.type_`. Labels and metric names of
texts and tables become plain names, so that "Mean TTFT (ms)" is mean_ttft_ms.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from mantile.library.clock import Clock
from mantile.library.documents import MAX_ELEMENTS, parse_json
from mantile.library.errors import InputError
from mantile.measured.metric_columns import plain_name
from mantile.measured.rows import Row
from mantile.measured.tables import MAX_CELLS, MAX_COLUMNS

_METRIC = re.compile(r"^((?:\w+_)?(?:vllm|sglang):\w+)(?:\{(.*)\})? (\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ONE_VALUE = ("tp_rank", "pp_rank", "moe_ep_rank")  # ranks that hold one figure together
_COUNTED = ("_total", ".sum", ".count", ".buckets")  # what counters are called
_INSERT = re.compile(r"INSERT INTO \w+ \(([^)]*)\) VALUES \(((?:'[^']*'|[^')])*)\)", re.IGNORECASE)
_TITLE = re.compile(r"^[=-]{2,} *([^=\-].*?) *[=-]{2,}$|^= +(\S.*)$")
_PAIR = re.compile(r"^\W*([A-Za-z][^:|]{1,80}?) *:[ \t]*(\S.*)$")
_RULE = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)
_LONGEST_LINE, _LONGEST_KEY, _MOST_ITEMS, _DEEPEST = 1_000, 300, 100, 60
_WITH_UNIT = re.compile(r"^(.*?) *\(([^()]*)\)$")


def syntax_of(text: str) -> str:
    """What a text is written in: json, prometheus, sql, markdown, csv, or text of `label: value`.

    >>> syntax_of('{"a": 1}'), syntax_of("model,tp\\nx,1\\n"), syntax_of("Mean TTFT (ms): 5")
    ('json', 'csv', 'text')
    """
    head = text.lstrip("\ufeff \t\r\n")
    if head[:1] in ("{", "["):
        return "json"
    if _METRIC.search(text):
        return "prometheus"
    if _INSERT.search(text):
        return "sql"
    if head[:1] == "|" or _RULE.search(text):
        return "markdown"
    first = head.partition("\n")[0]
    return "csv" if "," in first and ":" not in first.partition(",")[0] else "text"


def records_of(text: str, syntax: str, name: str, clock: Clock) -> list[Any]:
    """The records of a text: mappings as JSON has them, else flat rows.

    Args:
        name: stands for the file in errors.
        clock: of the file.

    Raises:
        InputError: naming the file, for what is broken or too large.
    """
    match syntax:
        case "json":
            return _objects(text, name)
        case "prometheus":
            return [_metrics(text)]
        case "sql":
            return [*_inserted(text)]
        case "markdown":
            return [*_markdown(text)]
        case "csv":
            return [*_tables(text, name, clock)]
    return [*_labelled(text)]


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of plain objects by path; a list of plain values is a leaf, and so is one of many objects,
    such as the figures of each request. Keys of absurd length are left out.

    >>> dict(flat({"a": {"b": 1}, "c": [2, 3]}))
    {'a.b': 1, 'c': [2, 3]}
    """
    if len(path) > _LONGEST_KEY:
        return
    shallow = path.count(".") < _DEEPEST
    if isinstance(value, Mapping) and shallow:
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    elif (
        isinstance(value, list)
        and shallow
        and len(value) <= _MOST_ITEMS
        and any(isinstance(item, Mapping) for item in value)
    ):
        for place, inner in enumerate(value):
            yield from flat(inner, f"{path}.{place}")
    else:
        yield path, value


def holds(record: Any, path: str) -> bool:
    """Whether a record has a path: `benchmarks.0.type_`."""
    if isinstance(record, Mapping) and path in record:
        return True
    for part in path.split("."):
        if isinstance(record, list) and part.isdigit() and int(part) < len(record):
            record = record[int(part)]
        elif isinstance(record, Mapping) and part in record:
            record = record[part]
        else:
            return False
    return True


# --- JSON ---------------------------------------------------------------------------------------------------


def _objects(text: str, name: str) -> list[Any]:
    """One object, a list of them, or objects one after another."""
    try:
        data = parse_json(text, name)
    except InputError:
        data = _one_after_another(text)
        if not data:
            raise
    records = data if isinstance(data, list) else [data]
    return [record for record in records if isinstance(record, Mapping)]


def _one_after_another(text: str) -> list[Any]:
    """Objects with white space between them; nothing if anything else stands there."""
    decoder, found, place = json.JSONDecoder(), list[Any](), 0
    if text.count(",") > MAX_ELEMENTS:
        return []
    while True:
        while place < len(text) and text[place].isspace():
            place += 1
        if place == len(text):
            return found if len(found) > 1 else []
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return []
        found.append(value)


# --- tables -------------------------------------------------------------------------------------------------


def _tables(text: str, name: str, clock: Clock) -> Iterator[Row]:
    """The rows of a table; of tables of metrics, a row for each metric, one record of all of them."""
    blocks, cells = [list[list[str]]()], 0
    try:
        for line in csv.reader(StringIO(text), strict=True):
            clock.check()
            cells += len(line)
            if len(line) > MAX_COLUMNS or cells > MAX_CELLS:
                limits = f"at most {MAX_COLUMNS:,} columns and {MAX_CELLS:,} cells"
                raise InputError(f"{name}: too large a table; expected {limits}: split the file")
            if any(cell.strip() for cell in line):
                blocks[-1].append(line)
            elif blocks[-1]:
                blocks.append([])
    except csv.Error as error:
        raise InputError(f"{name}: not a table: {error}") from error
    of_metrics = [block for block in blocks if block and "Metric" in block[0]]
    if of_metrics:
        yield _of_metrics(of_metrics)
        return
    for header, *lines in filter(None, blocks):
        yield from (Row(dict(zip(header, line, strict=False))) for line in lines)


def _of_metrics(blocks: list[list[list[str]]]) -> Row:
    """Tables with a metric in each row, as one record: `time_to_first_token.avg` with `.unit`. Columns before
    the metric say what it is of: each of those is one of `devices`."""
    cells: dict[str, Any] = {}
    columns: dict[str, str] = {}
    devices: dict[tuple[str, ...], int] = {}
    for header, *lines in blocks:
        place = header.index("Metric")
        for line in lines:
            named = _WITH_UNIT.match(line[place].strip()[:_LONGEST_KEY]) if place < len(line) else None
            if named is None and place >= len(line):
                continue
            label, unit = named.groups() if named else (line[place].strip(), "")
            start = plain_name(label)
            if place:
                number = devices.setdefault(tuple(line[:place]), len(devices))
                start = f"devices.{number}.{start}"
                columns.update(
                    {f"devices.{number}.{plain_name(column)}": column for column in header[:place]}
                )
                for column, cell in zip(header[:place], line[:place], strict=False):
                    cells[f"devices.{number}.{plain_name(column)}"] = cell
            cells[f"{start}.unit"] = unit
            for column, cell in zip(header[place + 1 :], line[place + 1 :], strict=False):
                key = f"{start}.{'avg' if column == 'Value' else column}"
                cells[key] = cell
                columns[key] = f"{line[place].strip()}: {column}"
    return Row(cells | ({"devices.#": len(devices)} if devices else {}), columns)


def _markdown(text: str) -> Iterator[Row]:
    """The rows of tables in pipes; a line `build: x` below is a cell of all of them."""
    header: list[str] = []
    rows: list[dict[str, Any]] = []
    for line in text.splitlines():
        if not line.lstrip().startswith("|"):
            header = []
            if found := _PAIR.match(line.strip()[:_LONGEST_LINE]):
                for row in rows:
                    row.setdefault(found[1], found[2])
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif not _RULE.match(line.strip()):
            rows.append(dict(zip(header, cells, strict=False)))
    yield from map(Row, rows)


def _inserted(text: str) -> Iterator[Row]:
    """The rows that statements insert into a table."""
    for columns, values in _INSERT.findall(text):
        cells = next(csv.reader([values.replace("\n", " ")], quotechar="'", skipinitialspace=True), [])
        yield Row(dict(zip((name.strip() for name in columns.split(",")), cells, strict=False)))


# --- text ---------------------------------------------------------------------------------------------------


def _labelled(text: str) -> Iterator[Row]:
    """Lines `label: value`, anywhere in a log, and titles between = or - as keys without a value. A label or
    title with = that comes again begins another record."""
    cells: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for line in text.splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        title, pair = _TITLE.match(line.strip()), _PAIR.match(line)
        label = (title[1] or title[2]) if title else pair[1] if pair else ""
        name = plain_name(label)
        if not name:
            continue
        if title and name in cells and "=" in line:
            yield Row(cells, columns)
            cells, columns = {}, {}
        cells.setdefault(name, "" if title or pair is None else pair[2].strip())
        columns.setdefault(name, label.strip())
    if cells:
        yield Row(cells, columns)


def _metrics(text: str) -> Row:
    """A page of Prometheus: counters are sums over engines, other figures means of them.

    Of histograms also `.mean` and `.count`, of figures that labels hold `name.label`. The prefix before the
    name is left out: vllm:x is x.
    """
    found: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    cells: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for metric, labels, value in _METRIC.findall(text):
        name = metric.partition(":")[2]
        held = dict(_LABEL.findall(labels))
        if "model_name" in held:
            cells.setdefault("model_name", held["model_name"])
        if name.endswith("_info"):
            cells.update({f"{name}.{key}": held[key] for key in held if f"{name}.{key}" not in cells})
            continue
        try:
            figure = float(value)
        except ValueError:
            continue
        series = tuple(f"{key}={held[key]}" for key in sorted(held) if key not in _ONE_VALUE)
        if name.endswith("_bucket"):
            name = f"{name.removesuffix('_bucket')}.buckets"
        elif name.endswith(("_sum", "_count")):
            name = f"{name.rpartition('_')[0]}.{name.rpartition('_')[2]}"
        columns[name] = metric
        found[name][series] = max(figure, found[name].get(series, figure))
    for name, of_series in found.items():
        counted = name.endswith(_COUNTED)
        cells[name] = sum(of_series.values()) / (1 if counted else len(of_series))
    for name in [name for name in found if name.endswith(".sum")]:
        start = name.removesuffix(".sum")
        if cells.get(f"{start}.count"):
            cells[f"{start}.mean"] = cells[name] / cells[f"{start}.count"]
            columns[f"{start}.mean"] = columns[name]
    return Row(cells, columns)
