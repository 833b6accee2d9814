"""Addresses of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from mantile.library.errors import InputError
from mantile.server.page import compare as of_compare
from mantile.server.page import drill as of_drill
from mantile.server.page import files
from mantile.server.page import run as of_run
from mantile.server.page.answers import Answer, FieldError, answer, field_error
from mantile.server.page.drawn import FOLDER, page
from mantile.server.page.form import form_of
from mantile.server.page.state import AUTO, DEGREES, GPUS, START, State, state_of
from mantile.server.routes import here

router = APIRouter(include_in_schema=False)
router.include_router(files.router)

_STATIC: Mapping[str, str] = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A file of the page; there are no others."""
    if name not in _STATIC:
        return Response("there is no such file", 404, media_type="text/plain")
    headers = {"Cache-Control": "public, max-age=300"}
    return FileResponse(FOLDER / "static" / name, media_type=_STATIC[name], headers=headers)


def asked(request: Request) -> State:
    """What an address asks; a plan by hand begins with what AUTO chose."""
    state = state_of(request.query_params.multi_items())
    if request.query_params.get("plan") == "hand" and state.auto:
        typed = {name: value for name in DEGREES if (value := state.fields.get(name, AUTO)) != AUTO}
        try:
            return state.by_hand({**answer(state).fields, **typed})
        except InputError:
            return state.by_hand({"tp": state.fields.get(GPUS, 1), **typed})
    return state


@router.get("/")
async def run(request: Request) -> HTMLResponse:
    """The view `Run`."""
    return await here(request, _run_view, request)


def _run_view(request: Request) -> HTMLResponse:
    try:
        state = asked(request)
    except InputError as error:
        return _not_estimated(State(dict(START)), field_error(error), ways=False)
    try:
        found = answer(state)
    except FieldError as error:
        return _not_estimated(state, error)
    return page("run.html", state, "/", **_run(found, state))


def _run(found: Answer, state: State) -> dict[str, Any]:
    results = found.results
    checks = found.estimate.equations.checks.checks
    values = found.estimate.values()
    failed = sum(1 for check in checks if check.error and not values[check.result])
    notices = of_run.notices(found)
    return {
        "title": found.estimate.title,
        "form": form_of(state, found),
        "reasons": of_run.plan_reasons(found, state) if found.optimum is not None else None,
        "error": "",
        "short": f"{found.estimate.title}{' (AUTO)' if state.auto else ''} · {results['weights_dtype']}",
        "load": of_run.load_words(found),
        "possible": found.possible,
        "verdict": of_run.verdict(found),
        "lead": of_run.lead(found),
        "held": sum(1 for check in checks if check.error) - failed,
        "failed": failed,
        "classes": of_run.classes(found),
        "actions": _actions(state),
        "ways": [] if found.possible else of_run.ways_out(state),
        "tiles": of_run.tiles(found),
        "passes": [of_run.limited(found, phase) for phase in of_run.phases(found)],
        "standing": of_run.standing(found),
        "memory": of_run.memory(found),
        "money": of_run.power_and_cost(found),
        "nearest": of_run.nearest(found) if found.possible else None,
        "evidence": results["evidence"],
        "notices": notices,
        "notice_title": of_run.notice_title(notices),
    }


def _actions(state: State) -> list[tuple[str, str, bool]]:
    return [
        ("Workbook .xlsx", state.link("/workbook.xlsx"), True),
        ("Permalink", state.link(), False),
        ("Pin to compare", state.pinned().link(), False),
        ("Export audit", state.link("/audit.xlsx"), False),
    ]


def _not_estimated(state: State, error: FieldError, ways: bool = True) -> HTMLResponse:
    form = form_of(state, None, error)
    fields = state.fields
    return page(
        "run.html",
        state,
        "/",
        422,
        title="Not estimated",
        form=form,
        reasons=None,
        error=str(error),
        short=f"{fields.get('model', '')} on {fields.get('accelerator', '')}",
        load="",
        ways=of_run.ways_out(state) if ways and not form.wrong else [],
    )


@router.get("/drill")
async def drill(request: Request) -> HTMLResponse:
    """The view `Drill down`."""
    return await here(request, _drill, request)


def _drill(request: Request) -> HTMLResponse:
    query = request.query_params
    try:
        state = asked(request)
        found = answer(state)
    except InputError as error:
        return _refused(request, error)
    phase = "prefill" if query.get("phase") == "prefill" else "decode"
    shown: dict[str, Any] = {"figure": None, "module": None, "hits": None, "error": "", "timeline": None}
    block, status = query.get("block", ""), 200
    try:
        if query.get("id"):
            shown["figure"] = one = of_drill.figure(found, query["id"], state)
            phase, block = one["phase"] or phase, one["block"]
            title = f"{one['label']}: {one['value']}"
        elif block:
            shown["module"] = of_drill.module(found, phase, block)
            title = shown["module"]["title"]
        elif query.get("find"):
            shown["hits"] = of_drill.search(found, query["find"][:80])
            title = f"{len(shown['hits'])} figures have “{query['find'][:80]}” in their name"
        else:
            title = "Where the time of a decode step goes" if phase == "decode" else "Where a prefill goes"
            shown["timeline"] = of_drill.timeline(found, phase)
    except InputError as error:
        title, status = "There is no such figure", 404
        shown["error"] = str(error)
    return page(
        "drill.html",
        state,
        "/drill",
        status,
        title=title,
        tree=of_drill.layers(found, phase),
        block=block,
        picked=query.get("group", ""),
        find=query.get("find", ""),
        tree_rows=of_drill.tree_rows,
        tree_rows_of=of_drill.rows_of,
        **shown,
    )


def _refused(request: Request, error: InputError) -> HTMLResponse:
    """What a view says where the scenario cannot be estimated: the form, with the error at its field."""
    try:
        state, ways = asked(request), True
    except InputError:
        state, ways = State(dict(START)), False
    return _not_estimated(state, field_error(error) if not isinstance(error, FieldError) else error, ways)


@router.get("/compare")
async def compare(request: Request) -> HTMLResponse:
    """The view `Compare`."""
    return await here(request, _compare, request)


def _compare(request: Request) -> HTMLResponse:
    try:
        state = asked(request)
    except InputError as error:
        return _refused(request, error)
    runs = of_compare.pinned(state)
    found = of_compare.comparison(runs) if runs else None
    return page("compare.html", state, "/compare", runs=runs, found=found)


@router.get("/compare.csv")
async def compare_csv(request: Request) -> Response:
    """The table of `Compare`."""
    runs = await here(request, lambda: of_compare.pinned(asked(request)))
    return files.csv(of_compare.csv_rows(runs), "compared.csv")
