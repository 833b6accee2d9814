"""Addresses of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from mantile.library.errors import InputError
from mantile.library.scenario_fields import SCENARIO_FIELDS
from mantile.search.space import CHOSEN, OFFLOADED
from mantile.server import routes as api
from mantile.server.page import assumptions as of_assumptions
from mantile.server.page import calibration as of_calibration
from mantile.server.page import compare as of_compare
from mantile.server.page import decide as of_decide
from mantile.server.page import drill as of_drill
from mantile.server.page import files, otherwise, topology, work
from mantile.server.page import run as of_run
from mantile.server.page import standing as of_standing
from mantile.server.page import sweeping as of_sweep
from mantile.server.page.answers import HUB, Answer, FieldError, answer, field_error
from mantile.server.page.cells import Cells, cells
from mantile.server.page.drawn import FOLDER, page
from mantile.server.page.form import FormField, field_of, form_of
from mantile.server.page.passes import timeline
from mantile.server.page.state import (
    AUTO,
    DEGREES,
    GPUS,
    START,
    State,
    elsewhere,
    is_link,
    state_of,
)
from mantile.server.problems import Limited
from mantile.server.routes import here


async def _as_told(request: Request) -> None:
    """What the server was told at its start, for all that this request asks of the page."""
    HUB.set(request.app.state.settings.hub)


router = APIRouter(include_in_schema=False, dependencies=[Depends(_as_told)])
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
        "digest": found.digest,
        "form": form_of(state, found),
        "reasons": of_run.plan_reasons(found, state) if found.optimum is not None else None,
        "error": "",
        "short": f"{found.estimate.title}{' (AUTO)' if state.auto else ''} · {results['weights_dtype']}",
        "load": of_run.load_words(found),
        "possible": found.possible,
        "verdict": found.said.verdict.rstrip("."),
        "lead": of_run.lead(found),
        "held": sum(1 for check in checks if check.error) - failed,
        "failed": failed,
        "classes": of_run.classes(found),
        "actions": _actions(state),
        "ways": of_run.ways(found, state),
        "cost_head": "" if found.possible else "USD to buy" if found.said.buys else "USD/h",
        "no_help": found.said.no_help,
        "unstated": found.said.unstated,
        "command": of_run.command(found.scenario) if found.possible else "",
        "tiles": of_run.tiles(found),
        "passes": [of_run.limited(found, phase) for phase in of_run.phases(found)],
        "standing": of_standing.standing(found),
        "memory": of_run.memory(found),
        "money": of_run.power_and_cost(found),
        "feel": otherwise.feel(found),
        "what_if": (changes := otherwise.what_if(found, state)),
        "what_if_title": otherwise.finding(changes),
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
        ways=_ways(state, error) if ways else [],
    )


def _ways(state: State, error: FieldError) -> list[dict[str, str]]:
    """What would be estimated in place of what cannot be."""
    typed = field_of(error, state.fields)
    if not is_link(typed):
        return []
    link = state.without_link(typed).link("/placement")
    return [{"words": f"With {typed} as the library has it", "link": link}]


@router.get("/drill")
async def drill(request: Request) -> HTMLResponse:
    """The view `Drill down`."""
    try:
        state = await here(request, asked, request)
        found = await here(request, answer, state)
    except InputError as error:
        return await here(request, _refused, request, error)
    known = await cells(request, found, bool(request.query_params.get("id")))
    return await here(request, _drill, request, state, found, known)


def _drill(request: Request, state: State, found: Answer, known: Cells) -> HTMLResponse:
    query = request.query_params
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
            shown["timeline"] = timeline(found, phase, state, query.get("layer", ""))
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
        cells=known,
        digest=found.digest,
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


def _compare(request: Request, error: str = "") -> HTMLResponse:
    try:
        state = asked(request)
    except InputError as wrong:
        return _refused(request, wrong)
    runs = of_compare.pinned(state)
    found = of_compare.comparison(runs) if runs else None
    return page("compare.html", state, "/compare", 422 if error else 200, runs=runs, found=found, error=error)


@router.get("/compare.csv")
async def compare_csv(request: Request) -> Response:
    """The table of `Compare`."""
    runs = await here(request, lambda: of_compare.pinned(asked(request)))
    return files.csv(of_compare.csv_rows(runs), "compared.csv")


@router.get("/compare.xlsx", response_model=None)
async def compare_xlsx(request: Request) -> Response:
    """The pinned runs as the columns of one workbook; a page that says why where they cannot be."""
    try:
        runs = await here(request, lambda: of_compare.pinned(asked(request)))
        return await files.built(request, of_compare.as_scenario(runs))
    except InputError as error:
        return await here(request, _compare, request, str(error))


@router.get("/decide")
async def decide(request: Request) -> HTMLResponse:
    """The view `Decide`: it looks for builds once it is asked to."""
    try:
        state = asked(request)
    except InputError as error:
        return _refused(request, error)
    target = of_decide.target_of(request.query_params)
    limits, over, users, most = target.limits, target.over, target.users, target.most
    found: dict[str, Any] | None = None
    wrong = None
    if request.query_params.get("go") and not target.errors:
        given = {key: value for key, value in elsewhere(state.fields).items() if key not in _OF_PLAN}
        try:
            sized = await request.app.state.pool.run(work.sized, given, HUB.get(), users, limits, most, over)
            found = await here(request, of_decide.decision, sized, state, target)
        except Limited as error:
            wrong = FieldError(str(error))
        except InputError as error:
            wrong = field_error(error)
    return await here(request, _decided, state, target, found, wrong)


_OF_PLAN = (
    *DEGREES,
    *CHOSEN,
    *OFFLOADED,
    GPUS,
    "concurrency",
    "request_rate",
    "sessions",
    "decode",
    "serving",
)
"""Fields that are looked for, or that the target states."""


def _decided(
    state: State, target: of_decide.Target, found: dict[str, Any] | None, wrong: FieldError | None
) -> HTMLResponse:
    form = form_of(state, None, wrong)
    placed, name = None, ""
    tiers = found["tiers"] if found else []
    good = next((tier for tier in tiers if "good" in tier["names"]), next(iter(tiers), None))
    if good is not None:
        try:
            placed, name = topology.placement(answer(good["run"])), good["names"][0]
        except InputError:
            placed = None
    said = str(wrong) if wrong is not None else next(iter(target.errors.values()), "")
    return page(
        "decide.html",
        state,
        "/decide",
        422 if said else 200,
        form=form,
        target=of_decide.fields(target),
        asked_words=f"{state.fields.get('model', '')}, {target.typed['users']} users",
        error=said,
        found=found,
        placed=placed,
        placed_name=name.capitalize(),
    )


@router.get("/assumptions")
async def assumptions(request: Request) -> HTMLResponse:
    """The view `Assumptions`."""
    return await here(request, _assumptions, request)


def _assumptions(request: Request) -> HTMLResponse:
    try:
        state = asked(request)
        found = answer(state)
    except InputError as error:
        return _refused(request, error)
    panel = of_assumptions.panel(found, state)
    count = of_assumptions.count(state)
    said = f"{count} field{'s' if count != 1 else ''} or figures" if count else "Nothing"
    title = f"{said} of {found.estimate.title} differ{'s' if count < 2 else ''} from the default"
    return page("assumptions.html", state, "/assumptions", title=title, panel=panel, digest=found.digest)


@router.get("/sweep")
async def sweep(request: Request) -> HTMLResponse:
    """The view `Sweep`."""
    return await here(request, _sweep, request)


def _sweep(request: Request) -> HTMLResponse:
    try:
        state = state_of(_of_scenario(request))
        found = answer(state)
    except InputError as error:
        return _refused(request, error)
    wanted = of_sweep.asked_of(request.query_params)
    shown, wrong = None, None
    try:
        shown = of_sweep.shown(of_sweep.table_of(found, wanted), wanted, found, state)
    except InputError as error:
        wrong = error if isinstance(error, FieldError) else field_error(error)
    return page(
        "sweep.html",
        state,
        "/sweep",
        422 if wrong else 200,
        fields=_sweep_fields(wanted, wrong),
        asked_words=f"{found.estimate.title}, {of_run.load_words(found)}",
        error=str(wrong) if wrong else "",
        found=shown,
        csv=state.link("/sweep.csv", **vars(wanted)),
    )


def _of_scenario(request: Request) -> list[tuple[str, str]]:
    """What of an address says of the scenario: fields of other forms have names of their own."""
    return [pair for pair in request.query_params.multi_items() if pair[0] in ("s", "pin")]


def _sweep_fields(wanted: of_sweep.Asked, wrong: FieldError | None) -> dict[str, FormField]:
    names = tuple((name, SCENARIO_FIELDS[name].label) for name in of_sweep.FIELDS)
    figures = tuple((one.column, one.label) for one in of_sweep.figures())
    errors = {wrong.field: str(wrong)} if wrong else {}
    listed = (
        ("x", "Field", wanted.x, names, ""),
        ("over", "Values", wanted.over, (), "with commas; 1..8 is every whole number"),
        ("by", "Field", wanted.by, names, ""),
        ("values", "Values", wanted.values, (), "a line of the chart each"),
        ("y", "Figure", wanted.y, figures, ""),
    )
    return {
        name: FormField(
            name,
            label,
            value,
            "none" if name == "by" and not value else "",
            hint,
            "",
            options,
            error=errors.get(name, ""),
        )
        for name, label, value, options, hint in listed
    }


@router.get("/sweep.csv")
async def sweep_csv(request: Request) -> Response:
    """The points of `Sweep`."""

    def rows() -> list[list[str]]:
        found = answer(state_of(_of_scenario(request)))
        return of_sweep.csv_rows(of_sweep.table_of(found, of_sweep.asked_of(request.query_params)))

    return files.csv(await here(request, rows), "sweep.csv")


@router.get("/placement")
async def placement(request: Request) -> HTMLResponse:
    """The view `Placement`: machines, links, and what is sent."""
    return await here(request, _placement, request)


def _placement(request: Request) -> HTMLResponse:
    try:
        state = asked(request)
        found = answer(state)
    except InputError as error:
        return _refused(request, error)
    return page(
        "placement.html",
        state,
        "/placement",
        placed=topology.placement(found),
        digest=found.digest,
        fields=topology.fields_of_links(found, state),
        asked_words=f"{found.estimate.title}, {found.results['name']}, {of_run.load_words(found)}",
    )


@router.get("/calibrate")
async def calibrate(request: Request) -> HTMLResponse:
    """The view `Calibrate`, with figures of the run on the page."""
    try:
        state = state_of(_of_scenario(request))
    except InputError as error:
        return _refused(request, error)
    return await _calibrated(request, state, request.query_params, "")


@router.post("/calibrate")
async def calibrate_pasted(
    request: Request, text: Annotated[str, Form()] = "", s: Annotated[str, Form()] = ""
) -> HTMLResponse:
    """The same with runs that were pasted."""
    try:
        state = state_of([("s", s)] if s else [])
    except InputError as error:
        return _refused(request, error)
    return await _calibrated(request, state, {}, text)


async def _calibrated(request: Request, state: State, typed: Mapping[str, str], text: str) -> HTMLResponse:
    try:
        run = await here(request, answer, state)
    except InputError as error:
        return _not_estimated(state, field_error(error))
    metrics, errors = of_calibration.metrics_of(typed)
    found, wrong = None, next(iter(errors.values()), "")
    if (metrics or text.strip()) and not wrong:
        records = [of_calibration.record_of(run, metrics)] if metrics else []
        try:
            async with api.request_folder(request) as folder:
                told = await request.app.state.pool.run(
                    work.calibrated, records, text, HUB.get(), str(folder)
                )
                found = of_calibration.moved(told)
        except (InputError, Limited) as error:
            wrong = str(error).replace(str(folder), "").replace("/pasted.", "pasted text, as .")
    results = run.results
    return page(
        "calibrate.html",
        state,
        "/calibrate",
        422 if wrong else 200,
        fields=of_calibration.fields_of(typed, run, errors),
        asked_words=f"{run.estimate.title}, {results['name']}, {of_run.load_words(run)}",
        error=wrong,
        found=found,
        pasted=text,
        sample=of_calibration.SAMPLE,
    )
