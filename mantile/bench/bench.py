"""A sweep over a server, point by point, each with its record."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mantile.bench.figures import figures_of, run_metrics
from mantile.bench.host import host_id, platform_words
from mantile.bench.load import Client, closed_loop, open_loop
from mantile.bench.manifest import Manifest, opened, save
from mantile.bench.server import Server, describe
from mantile.bench.stream import REFUSED, Answer, Form, NoAnswer, ask, settle
from mantile.bench.sweep import Point, Sweep
from mantile.bench.telemetry import Telemetry, accelerator_names, driver_versions
from mantile.bench.words import Words, arrivals
from mantile.library.errors import InputError
from mantile.library.profiles import Library, load_library
from mantile.measured.recorded import record_of
from mantile.measured.runs import Run, parse_run
from mantile.measured.spellings import find_accelerator, find_model
from mantile.records.record import Record, place_named
from mantile.records.store import add, read, stored

if TYPE_CHECKING:
    import httpx
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SOURCE = "mantile bench"
TIMEOUT = 600.0
"""Seconds without a byte after which a request has failed."""
_TOLD = ("tp", "pp", "dp", "ep")  # degrees that servers tell


@dataclass(frozen=True)
class Target:
    """What is measured, and where it is kept.

    Args:
        url: of the server, with or without /v1.
        deployment: fields of a scenario: model, accelerator, framework, plan, formats. Model, framework and
            degrees may be left to the server.
        records: the database that gets a record of each point.
        manifest: the file of the sweep.
        key: that signs the records.
        telemetry: whether the machine is sampled meanwhile.
        token: that the server asks for.
        timeout: seconds without a byte after which a request has failed.
        served: what the server calls the model; the first that it lists if None.
        library: with an accelerator of one's own; those we ship if None.
    """

    url: str
    deployment: Mapping[str, Any]
    records: Path
    manifest: Path
    key: Ed25519PrivateKey | None = None
    telemetry: bool = False
    token: str | None = None
    timeout: float = TIMEOUT
    served: str | None = None
    library: Library | None = None


@dataclass(frozen=True)
class Benched:
    """A sweep that was measured, as far as it got.

    Args:
        server: what it told.
        manifest: of the sweep.
        records: of the points that are done, by point.
        measured: how many points were measured now.
    """

    server: Server
    manifest: Manifest
    records: Mapping[str, Record]
    measured: int

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "server": {
                "model": self.server.model,
                "framework": self.server.framework,
                "version": self.server.version,
                "longest_tokens": self.server.longest,
                "settings": dict(self.server.settings),
            },
            "sweep": self.manifest.id,
            "measured": self.measured,
            "points": [
                {
                    "point": name,
                    "state": state.state,
                    "failures": state.failures,
                    **(self.records[name].flat() if name in self.records else {"run_id": None}),
                }
                for name, state in self.manifest.points.items()
            ],
        }


Progress = Callable[[int, str], None]
"""Is told how many points are done, and the name of the next."""


def bench(target: Target, sweep: Sweep, progress: Progress = lambda done, name: None) -> Benched:
    """Measure a server, and keep a record of each point of the sweep. What an interrupted sweep has left is
    gone on with: give the same manifest.

    Args:
        progress: told of each point.

    Raises:
        InputError: naming what is wrong, where nothing answers at the address, the sweep is another than that
            of the manifest, or httpx is absent. Requests that fail are counted and raise nothing.
    """
    try:
        import httpx  # noqa: F401
    except ImportError as error:
        raise InputError("bench needs the package httpx: pip install 'mantile[bench]'") from error
    _require_address(target.url)
    return asyncio.run(_bench(target, sweep, progress))


def _require_address(url: str) -> None:
    """Refuse what is no address of a server.

    Raises:
        InputError: naming it.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise InputError(f"{url}: expected an address such as http://localhost:8000")
    if parts.username is not None:
        raise InputError("expected an address without a name and a password; --token-from takes a token")


async def _bench(target: Target, sweep: Sweep, progress: Progress) -> Benched:
    async with _client(target) as client:
        server = await describe(client, target.served)
        session = _Session(target, sweep, client, server)
        return await session.run(progress)


def _client(target: Target) -> httpx.AsyncClient:
    import httpx

    headers = {"Content-Type": "application/json"}
    if target.token:
        headers["Authorization"] = f"Bearer {target.token}"
    return httpx.AsyncClient(
        base_url=target.url.rstrip("/").removesuffix("/v1"),
        headers=headers,
        timeout=httpx.Timeout(target.timeout, pool=None),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=60),
        trust_env=False,  # a proxy would be measured as well
    )


class _Session:
    """One bench of one server."""

    def __init__(self, target: Target, sweep: Sweep, client: httpx.AsyncClient, server: Server) -> None:
        self.target, self.sweep, self.client, self.server = target, sweep, client, server
        self.deployment = deployment_of(target.deployment, server, target.library)
        self.words = Words(sweep.seed)
        self.form = Form(f"/v1/{'chat/' if sweep.chat else ''}completions", server.model, sweep.chat)
        self.lengths: dict[int, int] = {}
        self.telemetry = Telemetry() if target.telemetry else None

    async def run(self, progress: Progress) -> Benched:
        """Measure the points that are left, one after the other."""
        points = {point.id: point for point in self.sweep.points()}
        first = _run(self.deployment, next(iter(points.values())), {"tpot_s": 1.0}, self.server)
        _require_predicted(first, self.target.library)
        manifest = opened(self.target.manifest, self.sweep, self.deployment)
        records = _of_sweep(self.target.records, manifest.id)
        for name, written in records.items():  # and interrupted before the manifest was
            if manifest.points[name].state != "done":
                manifest = manifest.with_point(name, state="done", record=written.id)
        left = manifest.open
        if left:
            self.form = await _understood(self.client, self.form, self.words)
        for done, name in enumerate(left):
            progress(len(points) - len(left) + done, name)
            state, record = await self._asked(points[name], manifest.id)
            if record is not None:
                add(self.target.records, [stored(record, key=self.target.key)])
                records[name] = record
            manifest = manifest.with_point(name, **state)
            save(manifest, self.target.manifest)
        save(manifest, self.target.manifest)
        progress(len(points), "")
        return Benched(self.server, manifest, records, len(left))

    async def _asked(self, point: Point, sweep: str) -> tuple[dict[str, Any], Record | None]:
        """Where a point stands after it was measured, as the manifest has it, and its record."""
        if self.server.longest is not None and point.prompt + point.output > self.server.longest:
            return {"state": "too long"}, None
        try:
            if point.prompt not in self.lengths:
                self.lengths[point.prompt] = await settle(self.client, self.form, self.words, point.prompt)
        except NoAnswer as error:
            return _failed({str(error): 1}), None
        answers, record = await self._measured(point, sweep)
        failures = dict(Counter(answer.failure for answer in answers if answer.failure is not None))
        if record is None:
            return _failed(failures), None
        return {"state": "done", "record": record.id, "failures": failures}, record

    async def _measured(self, point: Point, sweep: str) -> tuple[list[Answer], Record | None]:
        """The answers of a point, and its record; None where no request was answered."""
        slots = point.concurrency or 1
        await closed_loop(self._send, self._bodies(point, "warm-up", self.sweep.warmup * slots), slots)
        bodies = self._bodies(point, "measured", point.requests)
        watched: AbstractContextManager[Any] = self.telemetry or nullcontext()
        with watched:
            async with Client() as client:
                if point.rate is None:
                    answers = await closed_loop(self._send, bodies, slots)
                else:
                    moments = arrivals(self.sweep.seed, point.id, point.rate, len(bodies))
                    answers = await open_loop(self._send, bodies, moments)
        if all(answer.failure for answer in answers):
            return answers, None
        figures = figures_of(answers, point.output, client)
        return answers, self._record(point, figures, sweep)

    def _bodies(self, point: Point, what: str, number: int) -> list[bytes]:
        """Requests that are ready to be sent, each with a text of its own."""
        words = self.lengths[point.prompt]
        return [
            self.form.body(self.words.text(f"{point.id} {what} {place}", words), point.output)
            for place in range(number)
        ]

    async def _send(self, body: bytes, due: float | None) -> Answer:
        return await ask(self.client, self.form.path, body, due)

    def _record(self, point: Point, figures: dict[str, float], sweep: str) -> Record:
        telemetry = self.telemetry.summary() if self.telemetry else {}
        peaks = [of["memory_used_bytes_max"] for name, of in telemetry.items() if name.startswith("gpu")]
        memory = {"peak_memory_bytes": max(peaks)} if peaks else {}
        run = _run(self.deployment, point, run_metrics(figures) | memory, self.server, figures)
        return record_of(
            run,
            datetime.now(timezone.utc),
            metrics=figures | ({"memory_peak_bytes": max(peaks)} if peaks else {}),
            telemetry=telemetry,
            env={"host": host_id(), **platform_words(), "flags": dict(self.server.settings)}
            | ({**driver_versions(), "accelerators": accelerator_names()} if self.telemetry else {}),
            sweep={"id": sweep, "point": point.id},
        )


def _failed(failures: Mapping[str, int]) -> dict[str, Any]:
    """Where a point stands of which no request was answered. A short prompt was: where the server refuses all
    of them, their length is what it refuses."""
    return {"state": "too long" if {*failures} <= {*REFUSED} else "failed", "failures": failures}


def deployment_of(
    stated: Mapping[str, Any], server: Server, library: Library | None = None
) -> dict[str, Any]:
    """What is measured: what was stated, and what the server tells of the rest.

    Args:
        library: with an accelerator of one's own.

    Raises:
        InputError: if nobody says what the accelerator or the engine is, there is no such accelerator, or a
            model is named by a folder of this machine.
    """
    fields = dict(stated)
    wrong = place_named(fields)
    if wrong is not None:
        raise InputError(wrong)
    if not fields.get("model"):
        try:
            found = find_model(server.model)
        except InputError as error:
            raise InputError(
                f"the server serves {server.model!r}: {error}; --model says which it is"
            ) from error
        fields = {"weights_dtype": found.weights_dtype, **fields, "model": found.id}
    if not fields.get("accelerator"):
        raise InputError("a server does not tell its accelerator; expected --accelerator")
    fields.setdefault("framework", server.framework or "")
    if not fields["framework"]:
        raise InputError("the server does not tell what engine it is; expected --framework")
    own = () if library is None else {chip.id for chip in library.accelerators}
    if fields["accelerator"] not in own:
        fields["accelerator"] = find_accelerator(str(fields["accelerator"])).id
    fields["framework"] = (library or load_library()).framework(str(fields["framework"])).id
    told = {
        name: value for name in _TOLD if isinstance(value := server.settings.get(name), int) and value > 1
    }
    return {**told, **fields}


def _run(
    deployment: Mapping[str, Any],
    point: Point,
    metrics: Mapping[str, float],
    server: Server,
    figures: Mapping[str, float] | None = None,
) -> Run:
    """The run of a point; its lengths are those that the server counted."""
    told = figures or {}
    load = {"concurrency": point.concurrency} if point.rate is None else {"request_rate": point.rate}
    slots = {"prompts_per_slot": point.repeats} if point.rate is None else {}
    flags = " ".join(f"{name}={value}" for name, value in sorted(server.settings.items()))
    return parse_run(
        {
            **deployment,
            **load,
            **slots,
            "input_tokens": round(told.get("input_tokens_mean", point.prompt)),
            "output_tokens": max(1, round(told.get("output_tokens_mean", point.output))),
            "metrics": dict(metrics),
            "environment": {
                name: value
                for name, value in (("framework_version", server.version), ("flags", flags[:300]))
                if value
            },
            "source": SOURCE,
        },
        point.id,
    )


def _require_predicted(run: Run, library: Library | None) -> None:
    """Refuse, before anything is measured, a deployment that `reconcile` would refuse afterwards.

    Raises:
        InputError: saying why no run of it can be predicted.
    """
    from mantile.measured.match import match_runs

    rejected = match_runs([run], library).rejected
    if rejected:
        raise InputError(f"what serves: {rejected[0].reason}")


def _of_sweep(path: Path, sweep: str) -> dict[str, Record]:
    """The records of a sweep, by point."""
    if not path.exists():
        return {}
    return {
        one.record.sweep.point: one.record
        for one in read(path)
        if one.record.sweep is not None and one.record.sweep.id == sweep
    }


async def _understood(client: httpx.AsyncClient, form: Form, words: Words) -> Form:
    """The form in which a server takes requests: without what it refuses.

    Raises:
        InputError: with its answer, if it takes none.
    """
    forms: Sequence[Form] = (
        form,
        replace(form, keeps_on=False),
        replace(form, counts=False),
        replace(form, keeps_on=False, counts=False),
    )
    failure: str | None = None
    for tried in forms:
        answer = await ask(client, tried.path, tried.body(words.text("form", 8), 2))
        if answer.failure is None:
            return tried
        failure = failure or answer.failure
        if answer.failure not in ("http_400", "http_422"):
            break
    raise InputError(
        f"{client.base_url}: {form.path}: {failure}; expected a server that answers a short prompt; --chat "
        "asks /v1/chat/completions"
    )
