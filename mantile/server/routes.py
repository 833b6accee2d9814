"""The endpoints: each parses, calls one function of the library, and answers with what it says."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import anyio
import anyio.to_thread
from fastapi import APIRouter, File, HTTPException, Query, Request, Response, UploadFile
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse

from mantile.library import machines
from mantile.library.errors import InputError
from mantile.library.version import __version__
from mantile.server import catalog, estimates, jobs, layers
from mantile.server.answered import answered
from mantile.server.asked import (
    EstimateAsked,
    EstimatesAsked,
    HostAsked,
    Identifier,
    LayerMetricsAsked,
    OptimizeAsked,
    RunRecord,
    RuntimeAsked,
    ScenarioAsked,
    SweepAsked,
    SystemMetricsAsked,
)
from mantile.server.deferred import DONE, FAILED, Job
from mantile.server.errors import Limited
from mantile.server.pool import Pool
from mantile.server.problems import RESPONSES, Json, of_input
from mantile.server.progress import report
from mantile.server.records import Records
from mantile.server.settings import Settings

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_PIECE = 1 << 18  # bytes of an upload that are written at a time
_NAME = re.compile(r"[^\w. ()-]+")
_RECORDS = 200  # runs that a calibration is fitted to at most: those of the same chip and framework

Answer = TypeVar("Answer")
Workbook = Annotated[UploadFile, File(description="A workbook, .xlsx.")]

router = APIRouter(responses=RESPONSES, default_response_class=Json)


def _settings(request: Request) -> Settings:
    found: Settings = request.app.state.settings
    return found


def _pool(request: Request) -> Pool:
    found: Pool = request.app.state.pool
    return found


def _records(request: Request) -> Records:
    found: Records = request.app.state.records
    return found


async def here(request: Request, work: Callable[..., Answer], *given: Any) -> Answer:
    """A short job in a thread of this process."""
    threads: anyio.CapacityLimiter = request.app.state.threads
    return await anyio.to_thread.run_sync(partial(work, *given), limiter=threads)


@router.get(
    "/healthz",
    tags=["server"],
    summary="Whether the server answers",
    responses=answered(status="string", version="string"),
)
async def healthz() -> Json:
    """Status and version."""
    return Json({"status": "ok", "version": __version__})


@router.get("/metrics", tags=["server"], summary="Counts for Prometheus", response_class=Response)
async def metrics(request: Request) -> Response:
    """Requests by path and status, their times, jobs and memory."""
    pool = _pool(request)
    gauges = {
        "jobs_running": pool.running,
        "jobs_waiting": pool.waiting,
        "workers_ended": pool.killed,
        "memory_bytes": _memory(),
    }
    lines = [
        *request.app.state.counts.lines(),
        *(
            line
            for name, value in gauges.items()
            for line in (f"# TYPE mantile_{name} gauge", f"mantile_{name} {value}")
        ),
    ]
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4; charset=utf-8")


def _memory() -> int:
    """Bytes that this process has in memory; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


# --- what there is ------------------------------------------------------------------------------------------


@router.get(
    "/hardware",
    tags=["catalog"],
    summary="Configurations of hardware",
    responses=answered(configs="array", details="object"),
)
async def hardware(request: Request) -> Json:
    """`configs`: ids of accelerators and of systems; `details`: figures of each, in SI units."""
    return Json(await here(request, catalog.hardware))


@router.get("/models", tags=["catalog"], summary="Models", responses=answered(models="array"))
async def models(request: Request) -> Json:
    """`models`: the id of each with its size, layers and formats."""
    return Json(await here(request, catalog.models))


ModelId = Annotated[Identifier, Query(examples=["llama_3.3_70b"])]


@router.get(
    "/api/layers",
    tags=["layers"],
    summary="Kinds of layers of a model",
    responses=answered(
        model_id="string",
        layers="integer",
        facts="object",
        caches="array",
        attention="object",
        feedforward="object",
        norm="object",
        embedding="object",
    ),
)
async def api_layers(request: Request, model_id: ModelId) -> Json:
    """Attention, feedforward, norm, embedding: how many, what they are made of, which degrees they allow."""
    return Json(await here(request, layers.layers, model_id, _settings(request).hub))


@router.post(
    "/config/layer-metrics",
    tags=["layers"],
    summary="A kind of layer in prefill and decode",
    responses=answered(
        model_id="string",
        layer_type="string",
        scenario="object",
        feasibility="string",
        checks="object",
        prefill="object",
        decode="object",
    ),
)
async def layer_metrics(request: Request, asked: LayerMetricsAsked) -> Json:
    """Every row of the graph's modules of that kind: FLOPs, bytes, times, what binds."""
    return Json(await here(request, layers.layer_metrics, asked, _settings(request).hub))


@router.post(
    "/config/system-metrics",
    tags=["layers"],
    summary="A model on a configuration",
    responses=answered(
        model_id="string",
        scenario="object",
        layers="object?",
        others="object?",
        phases="object?",
        estimate="object",
    ),
)
async def system_metrics(request: Request, asked: SystemMetricsAsked) -> Json:
    """Times by kind of layer, and the whole estimate; degrees that no plan has are refused with a code."""
    return Json(await here(request, layers.system_metrics, asked, _settings(request).hub))


# --- /v1, and the same under /api/estimator/v1 --------------------------------------------------------------

v1 = APIRouter(responses=RESPONSES, default_response_class=Json)


@v1.post(
    "/estimate",
    tags=["estimate"],
    summary="What a model reaches on some hardware",
    responses=answered(
        model_id="string",
        runtime_id="string",
        hardware="object",
        scenario="object",
        feasibility="string",
        reasons="array",
        estimates="object",
        bottlenecks="array",
        recommended_configs="array",
        explanations="array",
        estimate="object",
    ),
)
async def estimate(request: Request, asked: EstimateAsked) -> Json:
    """Feasibility, figures with ranges, bottlenecks, recommended plans, and the words of all that.

    `estimate` is the object that `mantile estimate --json` prints.
    """
    settings = _settings(request)
    hub, folders = settings.hub, settings.catalog
    if estimates.needs_search(asked):
        return Json(await _pool(request).run(jobs.estimated, asked.model_dump(mode="json"), hub, *folders))
    return Json(await here(request, estimates.answer, asked, hub, *folders))


@v1.get("/catalog/models", tags=["catalog"], summary="Models", responses=answered(models="array"))
async def catalog_models(request: Request) -> Json:
    """As GET /models."""
    return Json(await here(request, catalog.models))


@v1.get(
    "/catalog/hardware-profiles",
    tags=["catalog"],
    summary="Configurations of hardware",
    responses=answered(hardware_profiles="array"),
)
async def catalog_hardware(request: Request) -> Json:
    """The details of GET /hardware, as a list."""
    rows = (await here(request, catalog.hardware))["details"].values()
    return Json({"hardware_profiles": [{"hardware_id": row["id"], **row} for row in rows]})


@v1.get(
    "/catalog/runtimes", tags=["catalog"], summary="Serving frameworks", responses=answered(runtimes="array")
)
async def catalog_runtimes(request: Request) -> Json:
    """Release, back ends, CUDA, formats, scheduler; null where its documents do not say it.

    Frameworks of the library, and records of engines in a version.
    """
    return Json(await here(request, catalog.runtimes, *_settings(request).catalog))


@v1.get("/catalog/hosts", tags=["catalog"], summary="Hosts", responses=answered(hosts="array"))
async def catalog_hosts(request: Request) -> Json:
    """GPUs and what is around them, as they were shipped or sent."""
    return Json(await here(request, catalog.hosts, *_settings(request).catalog))


@v1.post(
    "/catalog/hosts",
    tags=["catalog"],
    summary="Store a host",
    responses=answered(id="string", stored="boolean"),
)
async def store_host(request: Request, body: HostAsked) -> Json:
    """A host under its hardware_id, where the server was started with --records."""
    return await _store(request, "hosts", body.model_dump(exclude_none=True), body.hardware_id)


@v1.post(
    "/catalog/runtimes",
    tags=["catalog"],
    summary="Store a runtime",
    responses=answered(id="string", stored="boolean"),
)
async def store_runtime(request: Request, body: RuntimeAsked) -> Json:
    """An engine in a version under its runtime_id, where the server was started with --records."""
    return await _store(request, "runtimes", body.model_dump(exclude_none=True), body.runtime_id)


async def _store(request: Request, kind: machines.Kind, data: dict[str, Any], identifier: str) -> Json:
    record = machines.parse_record(data, kind, kind)
    folders = _settings(request).catalog
    if not folders:
        raise HTTPException(403, "nothing is stored here: the server was started without --records FILE.db")
    await here(request, partial(machines.add, record, folders[0], most=_settings(request).kept))
    return Json({"id": identifier, "stored": True})


@v1.get(
    "/catalog/quantizations",
    tags=["catalog"],
    summary="Number formats",
    responses=answered(quantizations="array"),
)
async def catalog_quantizations(request: Request) -> Json:
    """Bits, other names, and at which peak a format is multiplied."""
    return Json(await here(request, catalog.quantizations))


@v1.post(
    "/calibrate",
    tags=["measured"],
    summary="Store a measured run, and say what it would change",
    responses=answered(
        id="string", stored="boolean", new="boolean", would_change="object?", reason="string?"
    ),
)
async def calibrate(request: Request, record: RunRecord) -> Json:
    """Factors fitted to the stored runs of its accelerator and framework. No profile changes."""
    hub, records = _settings(request).hub, _records(request)
    async with _pool(request).worker() as run:
        checked = await run(jobs.checked_run, record.model_dump(mode="json"), hub)
        pair = [one for one in await here(request, records.others, checked) if _pair(one) == _pair(checked)]
        found = await run(jobs.calibrated, [checked, *pair[1 - _RECORDS :]], hub)
    identifier, new = await here(request, records.add, checked)
    reason = found.pop("reason", None)
    told = {"would_change": found or None, "reason": reason}
    return Json({"id": identifier, "stored": True, "new": new, **told})


def _pair(record: dict[str, Any]) -> tuple[Any, ...]:
    """What factors are fitted by: accelerator and framework."""
    return tuple(record.get(name) for name in ("accelerator", "framework"))


@v1.get(
    "/calibrate",
    tags=["measured"],
    summary="The runs that were stored",
    responses=answered(runs="array", total="integer"),
)
async def calibrations(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[int, Query(ge=0, description="How many come before.")] = 0,
) -> Json:
    """Runs in the order in which they were sent."""
    runs = await here(request, _records(request).runs)
    return Json({"runs": runs[after : after + limit], "total": len(runs)})


@v1.post(
    "/workbooks",
    tags=["workbooks"],
    summary="The workbook of a scenario",
    response_class=Response,
    responses={200: {"content": {XLSX: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def workbooks(request: Request, asked: ScenarioAsked) -> Response:
    """An .xlsx file in which every number is a live formula."""
    async with request_folder(request) as folder:
        path = folder / "built.xlsx"
        title = await _pool(request).run(jobs.built, asked.scenario, _settings(request).hub, str(path))
        content = await here(request, path.read_bytes)
    name = quote(f"{_NAME.sub(' ', title)[:80].strip() or 'workbook'}.xlsx")
    return Response(
        content, media_type=XLSX, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    )


@v1.post(
    "/workbooks/verify",
    tags=["workbooks"],
    summary="Recalculate a workbook, and list what was edited",
    responses=answered(
        ok="boolean",
        formulas="integer",
        compared="integer",
        max_relative_error="number",
        mismatches="array",
        edited="object",
        signature="object",
        digest="string",
        made_by="string?",
        other_version="string?",
    ),
)
async def verify(request: Request, file: Workbook) -> Json:
    """What `mantile verify --json` says."""
    async with request_folder(request) as folder:
        path = await received(request, file, folder / "uploaded.xlsx")
        return Json(await _pool(request).run(jobs.verified, str(path), file_name(file)))


@v1.post(
    "/workbooks/import",
    tags=["workbooks"],
    summary="Read an edited workbook back",
    responses=answered(workbook="string", changes="array", scenario="object", estimate="object"),
)
async def import_(request: Request, file: Workbook) -> Json:
    """What `mantile import --json` says, the scenario with its edits, and its estimate."""
    async with request_folder(request) as folder:
        path = await received(request, file, folder / "uploaded.xlsx")
        return Json(await _pool(request).run(jobs.imported, str(path), file_name(file)))


@v1.post(
    "/workbooks/compare",
    tags=["workbooks"],
    summary="Compare two workbooks",
    responses=answered(
        a="string",
        b="string",
        differ="boolean",
        inputs="array",
        formulas="array",
        headlines="array",
        results="array",
        other_versions="object",
    ),
)
async def compare(request: Request, a: Workbook, b: Workbook) -> Json:
    """What `mantile compare --json` says."""
    async with request_folder(request) as folder:
        paths = [
            str(await received(request, file, folder / name)) for file, name in ((a, "a.xlsx"), (b, "b.xlsx"))
        ]
        names = [file_name(a), file_name(b)]
        return Json(await _pool(request).run(jobs.compared, paths, names))


@v1.post(
    "/optimize",
    tags=["choose"],
    summary="The best plan, and why",
    responses=answered(
        winner="object?",
        candidates="array",
        tried="integer",
        feasible="integer",
        infeasible="object",
        objective="string",
        limits="object",
    ),
)
async def optimize(request: Request, asked: OptimizeAsked) -> Json:
    """What `mantile optimize --json` says."""
    return Json(
        await _pool(request).run(jobs.optimized, asked.model_dump(mode="json"), _settings(request).hub)
    )


@v1.post(
    "/sweep",
    tags=["choose"],
    summary="Every combination of values",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
            }
        }
    },
)
async def sweep(request: Request, asked: SweepAsked) -> StreamingResponse:
    """A line for each point, as they are worked out: JSON objects, or CSV. `X-Points` is their number.

    Where a later part fails, the last line is a problem, in CSV behind a #.
    """
    settings = _settings(request)
    text = json.dumps(asked.model_dump(mode="json"))
    rows = _parts(_pool(request), text, settings, asked.format == "csv")
    points = int(await anext(rows))
    return StreamingResponse(
        rows,
        media_type="text/csv; charset=utf-8" if asked.format == "csv" else "application/x-ndjson",
        headers={"X-Points": str(points)},
    )


async def _parts(pool: Pool, text: str, settings: Settings, as_csv: bool) -> AsyncIterator[bytes]:
    """How many points there are, then the rows of all parts; one worker does them one after the other."""
    async with pool.worker() as run:
        points, parts, rows = await run(jobs.swept, text, settings.hub, settings.points, 0)
        yield str(points).encode()
        yield rows
        for part in range(1, parts):
            report(part, parts, "parts")
            try:
                _, _, rows = await run(jobs.swept, text, settings.hub, settings.points, part)
            except (InputError, Limited) as error:
                told = of_input(error).body if isinstance(error, InputError) else str(error).encode()
                yield (b"# " if as_csv else b"") + bytes(told) + b"\n"
                return
            yield rows


@v1.get(
    "/jobs/{id}",
    tags=["jobs"],
    summary="How far long work is",
    responses=answered(id="string", status="string", progress="object?")
    | {404: {"description": "There is none."}},
)
async def job(request: Request, id: Annotated[str, PathParameter(max_length=32)]) -> Json:
    """`status`: running, done, failed or cancelled; `progress` where it is known. Kept for an hour.

    A request that takes long, or has the header `Prefer: respond-async`, is answered 202 with this address.
    """
    return Json(_job(request, id).state())


@v1.get(
    "/jobs/{id}/result",
    tags=["jobs"],
    summary="What long work came to",
    response_class=Response,
    responses={404: {"description": "There is none, or none yet."}},
)
async def job_result(request: Request, id: Annotated[str, PathParameter(max_length=32)]) -> Response:
    """The answer, as the request would have had it: its status, type and body."""
    found = _job(request, id)
    if found.state()["status"] not in (DONE, FAILED):
        raise HTTPException(404, f"job {id} has no result: it is {found.state()['status']}")
    status, headers, body = found.answer()
    answer = Response(body, status)
    answer.raw_headers[:] = headers
    return answer


@v1.delete(
    "/jobs/{id}",
    tags=["jobs"],
    summary="Cancel long work",
    responses=answered(id="string", status="string", progress="object?")
    | {404: {"description": "There is none."}},
)
async def job_cancel(request: Request, id: Annotated[str, PathParameter(max_length=32)]) -> Json:
    """Its worker process ends; what is done stays done."""
    found = _job(request, id)
    found.cancel()
    return Json(found.state())


def _job(request: Request, identifier: str) -> Job:
    found = Job(request.app.state.jobs, identifier)
    if not found.known:
        raise HTTPException(404, f"no job {identifier}: answers are kept for an hour")
    return found


@v1.post(
    "/estimates",
    tags=["estimate"],
    summary="Several estimates in one request",
    responses=answered(answers="array"),
)
async def several(request: Request, asked: EstimatesAsked) -> Json:
    """`answers`: what POST /v1/estimate answers to each request, in their order, or the problem of it."""
    bodies = [one.model_dump(mode="json") for one in asked.requests]
    settings = _settings(request)
    answers = await _pool(request).run(jobs.all_estimated, bodies, settings.hub, *settings.catalog)
    return Json({"answers": answers})


@v1.post(
    "/ir",
    tags=["catalog"],
    summary="A config.json as modules and tensors",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object", "additionalProperties": True},
                    "example": {
                        "model_type": "llama",
                        "architectures": ["LlamaForCausalLM"],
                        "hidden_size": 4096,
                        "intermediate_size": 14336,
                        "num_attention_heads": 32,
                        "num_hidden_layers": 32,
                        "num_key_value_heads": 8,
                        "vocab_size": 128256,
                        "max_position_embeddings": 131072,
                        "torch_dtype": "bfloat16",
                    },
                }
            },
        }
    },
    responses=answered(
        id="string",
        model_type="string",
        parameters="object",
        layers="integer",
        kv_bytes_per_token="object",
        modules="array",
    ),
)
async def ir(
    request: Request,
    tensors: Annotated[bool, Query(description="List every tensor.")] = False,
    tokens: Annotated[
        int | None, Query(ge=1, le=10_000_000, description="Count the FLOPs of a prompt of this length.")
    ] = None,
) -> Json:
    """What `mantile list models ir --json` says of the config.json that is the body."""
    try:
        text = (await request.body()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"config.json: not UTF-8 text (byte {error.start})") from error
    return Json(await _pool(request).run(jobs.described, text, "config.json", tokens, tensors))


# --- files --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def request_folder(request: Request) -> AsyncIterator[Path]:
    """A folder for the files of one request, inside the server's own, which goes with it."""
    with tempfile.TemporaryDirectory(dir=request.app.state.folder, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


async def received(request: Request, file: UploadFile, path: Path) -> Path:
    """The file of a request, written where we say.

    Raises:
        Limited: if it is too large.
    """
    most, size = _settings(request).most_upload, 0
    with path.open("wb") as target:
        while piece := await file.read(_PIECE):
            size += len(piece)
            if size > most:
                raise Limited(413, f"{file_name(file)}: more than {most:,} bytes")
            target.write(piece)
    return path


def file_name(file: UploadFile) -> str:
    """What who sent a file calls it, without a path."""
    name = (file.filename or "").replace("\\", "/").rpartition("/")[2]
    return _NAME.sub("_", name)[:80] or "workbook.xlsx"


router.include_router(v1, prefix="/v1")
router.include_router(v1, prefix="/api/estimator/v1", include_in_schema=False)
