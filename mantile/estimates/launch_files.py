"""The files that start a deployment: commands, configuration of engines, a Kubernetes manifest."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mantile.estimates.estimate import estimate
from mantile.estimates.kubernetes import cited, manifest
from mantile.estimates.launch import Launch, Router, Server, launch
from mantile.estimates.shell import command
from mantile.estimates.yaml_text import Noted, yaml_text
from mantile.library.launch import Remark
from mantile.library.launch_line import Said
from mantile.library.scenario import Scenario
from mantile.library.version import __version__

_WIDTH = 78  # of a comment
_BY_MACHINE = {
    "HEAD_ADDRESS": "address of the first machine, for all others",
    "NODE_RANK": "number of this machine, from 0",
}


def launch_files(scenario: Scenario, kubernetes: bool = False, anyway: bool = False) -> dict[str, str]:
    """The files that start the base column of a scenario, by name.

    Commands for vLLM, SGLang, TensorRT-LLM or llama.cpp, and the configuration file where the engine has
    one. Comments say of every flag from which field it comes and which document describes it, and list what
    the scenario states and no flag says.

    Args:
        kubernetes: whether a manifest is written too.
        anyway: whether a plan is launched that does not work by the estimate.

    Raises:
        InputError: if the framework cannot run what is asked, no flag says what the plan is, or no document
            says how it is started; DoesNotFit, one of them, if the plan does not work.

    Example:
        files = mantile.launch_files(mantile.load_scenario("workbooks/llama-3.3-70b-h100.yaml"))
        print(files["launch.sh"])
    """
    return files_of(launch(estimate(scenario), anyway), kubernetes)


def files_of(started: Launch, kubernetes: bool = False) -> dict[str, str]:
    """The files of a deployment, by name.

    Raises:
        InputError: if there is to be a manifest, and no document says how.
    """
    files: dict[str, str] = {}
    for server in started.servers:
        files |= _files(started, server)
    if started.router is not None:
        files |= _router_files(started, started.router)
    if kubernetes:
        files["kubernetes.yaml"] = _kubernetes(started)
    return files


def _kubernetes(started: Launch) -> str:
    server = started.servers[0]
    options = _options(server, _documents(server))
    text = manifest(started, options)
    return _commented(_comments(started, server, kubernetes=True)) + text


def _documents(server: Server, kubernetes: bool = False) -> list[str]:
    """Sources that its comments cite."""
    return [*server.documents(cited(server) if kubernetes else ())]


def _files(started: Launch, server: Server) -> dict[str, str]:
    """The files of a kind of worker."""
    name = server.role or "launch"
    files: dict[str, str] = {}
    options = _options(server, _documents(server))
    if options is not None:
        file = f"{server.role}-options.yaml" if server.role else "extra-options.yaml"
        files[file] = _commented([f"Options of {name}.sh, and the field that each comes from."]) + options
    apart = server.across is not None and bool(server.across.joining)
    for leads in (True, False) if apart else (True,):
        words = server.words("$HEAD_ADDRESS", "$NODE_RANK", f"$((NODE_RANK * {server.groups}))", leads)
        line = command(words)
        needed = {key: what for key, what in _BY_MACHINE.items() if key in line}
        if server.role and server.table.server.apart is not None:
            needed |= server.table.server.apart.variables
        setup = ['cd "$(dirname "$0")"'] if options is not None else []
        setup += [f': "${{{key}:?{what}}}"' for key, what in needed.items()]
        setup += [f"export {key}" for key in needed if key not in _BY_MACHINE]
        text = "\n".join(["set -eu", *setup, f"exec {line}"])
        head = _commented(_comments(started, server, leads=leads))
        files[f"{name}.sh" if leads else f"{name}-others.sh"] = f"#!/bin/sh\n{head}{text}\n"
    return files


def _options(server: Server, documents: list[str]) -> str | None:
    """The configuration file of the engine; None where there is nothing to say in it."""
    if not server.settings:
        return None
    nested: dict[str, Any] = {}
    for setting in server.settings:
        *outer, last = setting.flag.split(".")
        place = nested
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = Noted(
            _typed(str(setting.value)), f"{_origin(setting)} {_number(setting.source, documents)}"
        )
    used = {setting.source for setting in server.settings}
    listed = [source for source in documents if source in used]
    lines = [line for source in listed for line in _wrapped(f"{_number(source, documents)} {source}", "    ")]
    return yaml_text(nested) + _commented(lines)


def _number(source: str, documents: list[str]) -> str:
    return f"[{documents.index(source) + 1}]"


def _typed(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"\d{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else text


# --- comments -----------------------------------------------------------------------------------------------


def _commented(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _origin(flag: Said) -> str:
    """The field that a flag comes from, and why."""
    field = "the service" if flag.field is None else flag.field
    return f"{field}; {flag.why}" if flag.why else field


def _comments(started: Launch, server: Server, leads: bool = True, kubernetes: bool = False) -> Iterator[str]:
    """What stands at the head of a file."""
    role = f", {server.role} workers" if server.role else ""
    yield from _wrapped(f"{started.title}: {server.table.name}{role}")
    yield f"Written by mantile {__version__}: each flag, the field it comes from, the document."
    yield from _failing(started)
    if kubernetes:
        yield from _wrapped(
            "Each pod fetches the weights anew, unless a volume is mounted where the hub keeps them."
        )
    else:
        yield from _wrapped(_how_often(server, leads))
    documents = _documents(server, kubernetes)
    rows = [
        (
            " ".join(filter(None, (flag.flag, flag.value))),
            f"{_origin(flag)} {_number(flag.source, documents)}",
        )
        for flag in server.flags_of(leads, others=kubernetes or not leads)
    ]
    yield ""
    width = min(44, max(len(left) for left, _ in rows))
    for left, right in rows:
        yield from _row(left, right, width)
    for source in documents:
        yield from _wrapped(f"{_number(source, documents)} {source}", "    ")
    yield from _remarks("not expressed:", server.not_expressed)
    yield from _remarks("left to the engine:", server.left)
    yield from _remarks("fill in:", server.blanks)


def _row(left: str, right: str, width: int) -> Iterator[str]:
    if len(left) > width:
        yield left
        left = ""
    first = f"{left:<{width}}  "
    yield from textwrap.wrap(
        right, _WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
    )


def _failing(started: Launch) -> Iterator[str]:
    if started.failing:
        yield "! by the estimate this plan does not work:"
        for error in started.failing:
            yield from _wrapped(f"! {error['code']}: {error['message']}", "    ")


def _how_often(server: Server, leads: bool) -> str:
    """How many are started, and on what."""
    chips = f"{server.accelerators} × {server.chip.name}"
    if server.machines == 1:
        where = f"on {chips}"
    elif server.across is not None and server.across.program:
        where = f"once, for {server.machines} machines of {chips}"
    elif server.across is not None and server.across.joining:
        which = "the first" if leads else "the others"
        where = f"on {which} of {server.machines} machines of {chips}"
    else:
        where = f"on each of {server.machines} machines of {chips}"
    if server.copies == 1:
        return f"Start it {where}."
    if server.role:
        return f"Start it {where}, {server.copies} times (dp): one for each worker."
    return f"Start it {where}, {server.copies} times (dp), behind a load balancer."


def _remarks(title: str, remarks: tuple[Remark, ...]) -> Iterator[str]:
    if remarks:
        yield ""
        yield title
    for remark in remarks:
        yield from (f"  {line}" for line in _wrapped(f"{remark.flag}: {remark.meaning}", "  ", _WIDTH - 2))


def _wrapped(text: str, indent: str = "  ", width: int = _WIDTH) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


# --- the router ---------------------------------------------------------------------------------------------


def _router_files(started: Launch, router: Router) -> Mapping[str, str]:
    """What hands requests to prefill and decode workers."""
    comments = [
        f"{started.title}: hands requests to the workers",
        *_wrapped("In place of PREFILL_1, DECODE_1 and so on: the addresses of the workers (dp, decode.dp)."),
        *_wrapped(f"As in {router.source}"),
    ]
    files = {}
    setup = ['cd "$(dirname "$0")"'] if router.file is not None else []
    text = "\n".join(["set -eu", *setup, f"exec {command(router.words)}"])
    files["router.sh"] = f"#!/bin/sh\n{_commented(comments)}{text}\n"
    if router.file is not None:
        files["router.yaml"] = _commented(comments[1:]) + yaml_text(router.file)
    return files
