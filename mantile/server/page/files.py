"""Files of a page: the workbook and the audit down, an edited workbook up, scenarios as text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from csv import writer as csv_writer
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from mantile.estimates.tables import RISKY
from mantile.library.documents import json_data, parse_yaml
from mantile.library.dump import dump_scenario
from mantile.library.errors import InputError
from mantile.server import jobs
from mantile.server import routes as api
from mantile.server.page import work
from mantile.server.page.answers import HUB, Answer, answer, field_error
from mantile.server.page.drawn import page
from mantile.server.page.state import MOST_LINK, State, state_of
from mantile.server.problems import Limited

router = APIRouter(include_in_schema=False)

_LISTED = 60  # edits of a kind that are shown


def scenario_fields(found: Answer) -> dict[str, Any]:
    """The scenario of an answer as a file holds it: its plan chosen, nothing that holds by itself."""
    fields: dict[str, Any] = found.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return fields


async def _answered(request: Request) -> tuple[State, Answer]:
    state = state_of(request.query_params.multi_items())
    return state, await api.here(request, answer, state)


def _sent(content: bytes, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    return Response(content, media_type=kind, headers=headers)


def _file_name(title: str, ending: str) -> str:
    plain = "".join(letter if letter.isalnum() or letter in " .-_" else " " for letter in title)
    return f"{' '.join(plain.split())[:80] or 'run'}{ending}"


@router.get("/workbook.xlsx")
async def workbook(request: Request) -> Response:
    """The workbook of a run."""
    _, found = await _answered(request)
    return await built(request, scenario_fields(found))


async def built(request: Request, fields: dict[str, Any]) -> Response:
    """The workbook of a scenario."""
    async with api.request_folder(request) as folder:
        path = folder / "built.xlsx"
        title = await request.app.state.pool.run(jobs.built, fields, HUB.get(), str(path))
        return _sent(path.read_bytes(), api.XLSX, _file_name(title, ".xlsx"))


@router.get("/audit.{ending}")
async def audit(request: Request, ending: str) -> Response:
    """The audit of a run, .xlsx or .json."""
    if ending not in ("xlsx", "json"):
        return Response("there is no such page", 404, media_type="text/plain")
    _, found = await _answered(request)
    async with api.request_folder(request) as folder:
        fields = scenario_fields(found)
        title = await request.app.state.pool.run(work.audited, fields, HUB.get(), str(folder), f".{ending}")
        content = (folder / f"audit.{ending}").read_bytes()
        kind = api.XLSX if ending == "xlsx" else "application/json"
        return _sent(content, kind, _file_name(f"Audit of {title}", f".{ending}"))


@router.get("/text")
async def text(request: Request) -> HTMLResponse:
    """A run as YAML and JSON, to copy, and a place to paste another."""
    state = state_of(request.query_params.multi_items())
    return await _text(request, state, "", "")


async def _text(request: Request, state: State, pasted: str, error: str) -> HTMLResponse:
    shown = {"yaml": "", "json": ""}
    try:
        fields = scenario_fields(await api.here(request, answer, state))
    except InputError:
        fields = dict(state.fields)
    shown["yaml"] = dump_scenario(fields)
    shown["json"] = json.dumps(json_data(fields), indent=2, ensure_ascii=False)
    return page("text.html", state, "/text", 422 if error else 200, shown=shown, pasted=pasted, error=error)


@router.post("/text", response_model=None)
async def paste(
    request: Request, text: Annotated[str, Form()] = "", s: Annotated[str, Form()] = ""
) -> Response:
    """Read a scenario that was pasted."""
    before = state_of([("s", s)] if s else [])
    try:
        fields = parse_yaml(text, "pasted text")
        if not isinstance(fields, dict):
            raise InputError("pasted text: expected the fields of a scenario, such as model: llama-3.3-70b")
        state = State(json_data(fields), before.pins)
        if len(state.packed) > MOST_LINK:
            raise InputError("pasted text: too long for an address; expected fewer variants or overrides")
        await api.here(request, answer, state)
    except InputError as error:
        found = field_error(error)
        said = f"{found.field}: {found}" if found.field else str(found)
        return await _text(request, before, text, said)
    return RedirectResponse(state.link(), 303)


@router.get("/upload")
async def upload(request: Request) -> HTMLResponse:
    """A place to hand an edited workbook in."""
    state = state_of(request.query_params.multi_items())
    return page("upload.html", state, "/upload", error="", report=None)


@router.post("/upload", response_model=None)
async def uploaded(
    request: Request, file: Annotated[UploadFile, File()], s: Annotated[str, Form()] = ""
) -> HTMLResponse:
    """What an uploaded workbook says: recalculated, every edit named, and opened as a run."""
    state = state_of([("s", s)] if s else [])
    name = api.file_name(file)
    try:
        async with api.request_folder(request) as folder, request.app.state.pool.worker() as run:
            path = await api.received(request, file, folder / "uploaded.xlsx")
            report = await run(jobs.verified, str(path), name)
            try:
                taken = await run(jobs.imported, str(path), name)
            except InputError as error:
                taken = {"refused": str(error)}
    except (InputError, Limited) as error:
        status = error.status if isinstance(error, Limited) else 422
        return page("upload.html", state, "/upload", status, error=str(error), report=None)
    return page("upload.html", state, "/upload", error="", report=told_of(report, taken, name, state))


def told_of(report: dict[str, Any], taken: dict[str, Any], name: str, state: State) -> dict[str, Any]:
    """What was found, in the order of how grave it is."""
    edited = report["edited"]
    kinds = (
        ("formula", "Formulas that were changed", edited["formulas"], True),
        ("overwritten", "Values typed over formulas", edited["overwritten"], True),
        ("mismatch", "Numbers that differ when recalculated", report["mismatches"], True),
        ("name", "Names that lead elsewhere", [one for one in edited["names"] if one["generated"]], True),
        ("shown", "Shown otherwise than it is", edited["shown"], False),
        ("sheet", "Sheets added or hidden", edited["sheets"], False),
        ("input", "Inputs that were edited, as they may be", edited["inputs"], False),
    )
    groups = [
        {
            "title": title,
            "grave": grave,
            "count": len(items),
            "more": max(0, len(items) - _LISTED),
            "rows": [_edit(item) for item in items[:_LISTED]],
        }
        for _, title, items, grave in kinds
        if items
    ]
    tampered = sum(len(items) for _, _, items, grave in kinds if grave)
    inputs = len(edited["inputs"])
    said = f"{inputs} input{'s' if inputs != 1 else ''} edited" if inputs else "as it was generated"
    title = (
        f"{name}: {report['other_version']}"
        if report["other_version"]
        else f"{name} does not say what the engine says: {tampered or 'some'} of its cells were tampered with"
        if not report["ok"]
        else f"{name} holds: every formula recomputed, {said}"
    )
    opened = None
    if "scenario" in taken:
        run = State(taken["scenario"], state.pins)
        opened = run.link() if len(run.packed) <= MOST_LINK else None
    return {
        "ok": report["ok"],
        "title": title,
        "groups": groups,
        "facts": [
            ("made from", report["model"]),
            ("cells", f"{report['cells']:,}"),
            ("formulas recomputed", f"{report['compared']:,} of {report['formulas']:,}"),
            ("largest relative difference", f"{report['max_relative_error']:.1g}"),
            ("signature", str(report["signature"].get("status", report["signature"]))),
            ("digest", str(report["digest"])[:16]),
        ],
        "open": opened,
        "refused": taken.get("refused", ""),
    }


def _edit(item: dict[str, Any]) -> dict[str, str]:
    place = item.get("cell") or item.get("name") or item.get("sheet") or ""
    if item.get("sheet") and item.get("cell") and "!" not in str(item["cell"]):
        place = f"{item['sheet']}!{item['cell']}"
    before = item.get("generated", item.get("expected", item.get("ours")))
    after = item.get("found", item.get("actual", item.get("theirs", item.get("value"))))
    return {
        "place": str(place),
        "id": str(item.get("id") or item.get("kind") or ""),
        "before": "" if before is None else str(before)[:300],
        "after": "" if after is None else str(after)[:300],
    }


def csv(rows: Iterable[Sequence[str]], name: str) -> Response:
    """Rows as a file; no cell is taken for a formula."""
    text = io.StringIO()
    writer = csv_writer(text)
    for row in rows:
        writer.writerow(
            [f"'{cell}" if cell.startswith(RISKY) and not _is_number(cell) else cell for cell in row]
        )
    return _sent(text.getvalue().encode(), "text/csv; charset=utf-8", name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
