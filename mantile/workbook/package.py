"""The zip file that a workbook is, looked through as a stream before anything builds objects of it.

A file comes from anywhere. Refused is what unpacks to more than it says or than a workbook has any use for,
what runs code or reaches out to other files and programs, and what two programs would read in two ways.
"""

from __future__ import annotations

import contextlib
import copy
import posixpath
import zipfile
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element

from mantile.library.clock import Clock
from mantile.library.errors import InputError
from mantile.workbook.package_part import Counts, Part

MAX_FILE, MAX_PART, MAX_UNPACKED, MAX_PARTS = 64 * 2**20, 64 * 2**20, 128 * 2**20, 2_000
MAX_SHEETS = 500
_SHEETS = "xl/worksheets/"
_WORKBOOK = "xl/workbook.xml"
_MAIN = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
_REFUSED = {
    "vbaProject": "macros",
    "xlMacrosheet": "macros",
    "xlIntlMacrosheet": "macros",
    "attachedToolbars": "macros",
    "dialogsheet": "a dialog sheet",
    "externalLink": "links to other files",
    "externalLinkPath": "links to other files",
    "oleObject": "an embedded object",
    "package": "an embedded object",
    "control": "a control",
    "activeXControlBinary": "a control",
    "connections": "connections to outside data",
    "queryTable": "connections to outside data",
    "webextension": "a web add-in",
    "webextensiontaskpanes": "a web add-in",
    "aFChunk": "a file of another kind",
}
_SINGLE = ("sst", "styleSheet", "theme")
"""Roots of parts of which a program reads one: which of two, programs may not agree on."""
_OLE = bytes.fromhex("D0CF11E0A1B11AE1")
_OWNED = ("worksheet", "drawing", "vmlDrawing", "comments", "table", "chart", "pivotTable", "threadedComment")
"""Kinds of parts that belong to one other."""


@dataclass
class Package:
    """What a look through the file found.

    `sheets` are names and whether they show, `names` the defined names (name, sheet they are limited to,
    text), `contents` the formulas and constants of the sheets with cells, by sheet and by row and column from
    0, and `stored` the values saved beside formulas, in the same way. `looks` are
    the numbers of the styles of cells in the same way, and `runs` what single words of a cell look like.
    `trees` are the parts of the file without cells and shared texts, by name; tags and attributes without
    namespaces. `relations` are the links of each part (kind, target, whether it lies outside), `sheet_parts`
    the parts of the sheets, `clock` how long reading took.
    """

    sheets: dict[str, str] = field(default_factory=dict)
    names: list[tuple[str, str | None, str]] = field(default_factory=list)
    contents: dict[str, dict[tuple[int, int], Any]] = field(default_factory=dict)
    stored: dict[str, dict[tuple[int, int], Any]] = field(default_factory=dict)
    looks: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)
    runs: dict[str, dict[tuple[int, int], list[Element]]] = field(default_factory=dict)
    trees: dict[str, Element] = field(default_factory=dict)
    relations: dict[str, dict[str, tuple[str, str, bool]]] = field(default_factory=dict)
    sheet_parts: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock("workbook"))

    def target(self, part: str, identifier: str) -> str:
        """The part that a relation of a part leads to; the target as it is where that lies outside."""
        _, target, outside = self.relations.get(part, {}).get(identifier, ("", "", True))
        return target if outside else resolved(part, target)


def open_package(path: Path) -> Package:
    """Look through a file, and refuse it if it is no plain workbook of sane size.

    Raises:
        InputError: naming file and part, and what was expected instead.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise InputError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MAX_FILE:,}")
        with path.open("rb") as file:
            if file.read(8) == _OLE:
                raise InputError(
                    f"{path}: expected an .xlsx workbook, found one that is encrypted with a password, or of "
                    "Excel 97: save it as .xlsx without a password"
                )
        with zipfile.ZipFile(path) as archive:
            return _Reader(path, archive).read()
    except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile, zlib.error, NotImplementedError) as error:
        raise InputError(
            f"{path}: expected an .xlsx workbook, found something else or a truncated file ({error})"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def own_package(stream: IO[bytes]) -> Package:
    """The same of a file that we have just written."""
    with zipfile.ZipFile(stream) as archive:
        return _Reader(Path("book.xlsx"), archive).read()


class _Reader:
    """One look through an archive; the counts are of the whole file."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.archive, self.counts = archive, Counts(path)
        self.refuse = self.counts.refuse
        self.unpacked = 0

    def read(self) -> Package:
        with self.counts.clock:
            # Sheets come last: what they share with one another is read before.
            items = sorted(
                self.archive.infolist(), key=lambda item: item.filename.lower().startswith(_SHEETS)
            )
            self._entries(items)
            parts = {item.filename: self._part(item) for item in items if not item.is_dir()}
            return self._package(parts)

    def _entries(self, items: list[zipfile.ZipInfo]) -> None:
        """The table of contents, before anything is unpacked."""
        if len(items) > MAX_PARTS:
            raise self.refuse(f"{len(items):,} parts; expected at most {MAX_PARTS:,}")
        if sum(item.file_size for item in items) > MAX_UNPACKED:
            raise self.refuse(
                f"unpacks to {sum(item.file_size for item in items):,} bytes; expected at most "
                f"{MAX_UNPACKED:,}"
            )
        names: set[str] = set()
        end, before = 0, ""
        for item in sorted(items, key=lambda item: item.header_offset):
            name = item.filename
            if name.lower() in names:
                raise self.refuse(f"part {name} stands in the file twice")
            names.add(name.lower())
            if item.header_offset < end:
                raise self.refuse(f"parts {before} and {name} overlap in the file")
            end, before = item.header_offset + 30 + len(name) + item.compress_size, name
            if name.startswith("/") or "\\" in name or ".." in name.split("/"):
                raise self.refuse(f"part {name!r:.80} lies outside of the file")
            if item.flag_bits & 1:
                raise self.refuse(f"part {name} is encrypted; expected a workbook without a password")
            if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.refuse(
                    f"part {name} is packed by method {item.compress_type}; expected deflated or stored"
                )
        if _WORKBOOK not in (item.filename for item in items):
            raise self.refuse("expected an .xlsx workbook, found another kind of zip file")

    def _chunks(self, item: zipfile.ZipInfo) -> Generator[bytes, None, None]:
        """A part as it really unpacks.

        Zipfile believes the size in the header, so it is given a size that no part has.
        """
        believed = copy.copy(item)
        believed.file_size = 2 * MAX_PART
        size = 0
        with self.archive.open(believed) as stream:
            while chunk := stream.read(2**16):
                size += len(chunk)
                self.unpacked += len(chunk)
                if size > MAX_PART or self.unpacked > MAX_UNPACKED:
                    raise self.refuse(
                        f"part {item.filename} unpacks to more than {min(MAX_PART, MAX_UNPACKED):,} bytes, "
                        f"or with the others to more than {MAX_UNPACKED:,}"
                    )
                yield chunk
        if size != item.file_size:
            raise self.refuse(
                f"part {item.filename} unpacks to {size:,} bytes and not to the {item.file_size:,} that the "
                "file says"
            )

    def _part(self, item: zipfile.ZipInfo) -> Part:
        part = Part(self.counts, item.filename)
        with contextlib.closing(self._chunks(item)) as chunks:
            head = next(chunks, b"")
            if head.startswith(_OLE):
                raise self.refuse(f"part {item.filename}: an embedded object or macros; expected none")
            # A picture may be anything. But what begins like XML is some reader's XML, whatever it is called.
            plain = item.filename.lower().endswith((".xml", ".rels", ".vml")) or head.lstrip(
                b"\x00\t\r\n \xef\xbb\xbf\xfe\xff"
            )[:1] in (b"<", b"")
            if plain:
                part.feed(head)
            for chunk in chunks:
                if plain:
                    part.feed(chunk)
            if plain and head:
                part.feed(b"", last=True)
        return part

    def _package(self, parts: dict[str, Part]) -> Package:
        """What the parts say of each other."""
        single: dict[str, str] = {}
        for name, part in parts.items():
            # A part that no other refers to is as much part of the file: some program may look for its name.
            root = "" if part.root is None else part.root.tag
            file = posixpath.basename(name).partition(".")[0].rstrip("0123456789")
            if root in _REFUSED or file in _REFUSED:
                what = _REFUSED.get(root) or _REFUSED[file]
                raise self.refuse(f"part {name}: {what}; expected a workbook without")
            if root in _SINGLE and single.setdefault(root, name) != name:
                raise self.refuse(f"parts {single[root]} and {name} are both {root}; expected one")
            for kind, target, external in part.relations.values():
                word = kind.rpartition("/")[2]
                if word in _REFUSED or (external and word != "hyperlink"):
                    raise self.refuse(
                        f"part {name}: {_REFUSED.get(word, 'a link to another file')} ({target!r:.80}); "
                        "expected a workbook without"
                    )
        books = (
            [
                posixpath.normpath(target.lstrip("/"))
                for kind, target, _ in parts["_rels/.rels"].relations.values()
                if kind.endswith("/officeDocument")
            ]
            if "_rels/.rels" in parts
            else []
        )
        types = parts["[Content_Types].xml"].types if "[Content_Types].xml" in parts else []
        if any("macroenabled" in kind.lower() or "vbaproject" in kind.lower() for _, kind in types):
            raise self.refuse("macros (xl/vbaProject.bin, as in an .xlsm file); expected a workbook without")
        if books != [_WORKBOOK] or any(kind == _MAIN and name != f"/{_WORKBOOK}" for name, kind in types):
            raise self.refuse(
                f"the workbook is said to be {', '.join(books) or 'nowhere'}; expected {_WORKBOOK} and no "
                "other"
            )
        book = parts[_WORKBOOK]
        relations = (
            parts["xl/_rels/workbook.xml.rels"].relations if "xl/_rels/workbook.xml.rels" in parts else {}
        )
        self._owned_once(parts)
        package = Package(clock=self.counts.clock)
        if len(book.sheets) > MAX_SHEETS:
            raise self.refuse(f"{len(book.sheets):,} sheets; expected at most {MAX_SHEETS:,}")
        for title, state, identifier in book.sheets:
            if title.lower() in (sheet.lower() for sheet in package.sheets):
                raise self.refuse(f"sheet {title!r:.60} stands in the workbook twice")
            kind, target, _ = relations.get(identifier, ("", "", False))
            place = resolved(_WORKBOOK, target)
            if place in package.sheet_parts.values():
                raise self.refuse(f"sheet {title!r:.60} is the same part as another: {place}")
            if place not in parts:
                raise self.refuse(f"sheet {title!r:.60} is missing: there is no part {target or identifier}")
            package.sheets[title] = state
            package.sheet_parts[title] = place
            self._cells_of(package, title, parts[place])
            if kind.endswith("/worksheet"):
                package.contents[title] = parts[place].contents
        for name, part in parts.items():
            package.relations[_owner(name)] = package.relations.get(_owner(name), {}) | part.relations
            if part.root is not None:
                package.trees[name] = part.root
        titles = list(package.sheets)
        for name, scope, text in book.names:
            where = (
                titles[int(scope)]
                if scope is not None and scope.isdigit() and int(scope) < len(titles)
                else scope
            )
            package.names.append((name, where, text))
        return package

    def _owned_once(self, parts: dict[str, Part]) -> None:
        """Refuse a part that belongs to two others, or to one of them twice: it would be read as often."""
        owners: dict[str, str] = {}
        for name, part in parts.items():
            owner = _owner(name)
            for kind, target, external in part.relations.values():
                if external or kind.rpartition("/")[2] not in _OWNED:
                    continue
                place = resolved(owner, target)
                if place in owners:
                    raise self.refuse(
                        f"part {place!r:.80} belongs to {owners[place]!r:.60} and to {owner!r:.60}; expected "
                        "it to belong to one part, once"
                    )
                owners[place] = owner

    def _cells_of(self, package: Package, title: str, part: Part) -> None:
        """What the cells of a sheet look like and hold."""
        package.stored[title], package.looks[title] = part.stored, part.looks
        package.runs[title] = part.cell_runs


def resolved(part: str, target: str) -> str:
    """The name of the part that a target of another part leads to."""
    if target.startswith("/"):
        return posixpath.normpath(target.lstrip("/"))
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))


def _owner(name: str) -> str:
    """The part whose relations a part holds; itself where it holds none."""
    folder, _, file = name.rpartition("/")
    is_relations = folder.endswith("_rels") and file.endswith(".rels")
    return posixpath.join(folder.removesuffix("_rels"), file.removesuffix(".rels")) if is_relations else name
