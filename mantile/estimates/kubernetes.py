"""The Kubernetes manifest of a server: a Deployment, or a LeaderWorkerSet where it needs several machines,
and a Service."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

from mantile.estimates.launch import MODEL_PATH, Launch, Server
from mantile.estimates.shell import command
from mantile.estimates.yaml_text import Noted, yaml_text
from mantile.library.errors import InputError
from mantile.library.launch_line import program_of
from mantile.library.launch_server import Image, cluster, said

_OPTIONS = "/config"
_GIGA = 10**9
_PROBES = {
    "startupProbe": ({"periodSeconds": 10, "failureThreshold": 360}, "an hour to fetch and load the weights"),
    "readinessProbe": ({"periodSeconds": 5}, ""),
    "livenessProbe": ({"periodSeconds": 10, "failureThreshold": 3}, ""),
}


def manifest(started: Launch, options: str | None) -> str:
    """The manifest, documents one after the other.

    Args:
        options: the configuration file of the engine, if it has one.

    Raises:
        InputError: where no document that was read says how: workers apart, a maker without a device plugin,
            no container for the chip, an engine over several machines.
    """
    if len(started.servers) > 1:
        raise InputError(
            f"--kubernetes: no document of {started.servers[0].table.name} that was read has a manifest for "
            "prefill and decode workers of their own; expected a plan with serving aggregated, or the "
            "commands alone"
        )
    (server,) = started.servers
    name = _name(f"{started.model}-{server.table.id}")
    documents: list[Any] = []
    if options is not None:
        documents.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {"extra-options.yaml": options},
            }
        )
    documents.append(
        _deployment(server, name, options) if server.machines == 1 else _set(server, name, options)
    )
    documents.append(_service(server, name))
    return "---\n".join(yaml_text(document) for document in documents)


def cited(server: Server) -> list[str]:
    """Sources of what the manifest says besides flags."""
    plugin, shared = cluster().resource(server.chip.vendor), server.table.server.shared_memory
    return [
        *([server.across.kubernetes] if server.across is not None and server.across.kubernetes else []),
        said(_image(server)),
        *([said(plugin)] if plugin is not None else []),
        said(server.table.server.listening),
        *([said(shared)] if shared is not None else []),
    ]


def _cite(server: Server, source: str) -> str:
    """Its number at the head of the file."""
    return f"[{server.documents(cited(server))[source]}]"


def _name(text: str) -> str:
    """As Kubernetes takes names: letters, digits and dashes, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].strip("-")
    return plain if plain[:1].isalpha() else f"m-{plain}"


def _deployment(server: Server, name: str, options: str | None) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": Noted(server.copies, "dp, as far as no flag says it"),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": _pod(server, name, options, _started(server)),
            },
        },
    }


def _set(server: Server, name: str, options: str | None) -> dict[str, Any]:
    """Pods of which one leads, one on each machine."""
    across = server.across
    assert across is not None
    if not across.kubernetes:
        raise InputError(
            f"--kubernetes: no document of {server.table.name} that was read has a manifest for a server on "
            f"{server.machines} machines; expected a replica within one machine, or the command alone"
        )
    leader = _pod(server, name, options, _over_machines(server, leads=True))
    worker = _pod(server, name, options, _over_machines(server, leads=False), probed=False)
    return {
        "apiVersion": Noted("leaderworkerset.x-k8s.io/v1", _cite(server, across.kubernetes)),
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": Noted(server.copies, "dp"),
            "leaderWorkerTemplate": {
                "size": Noted(server.machines, "machines of a replica"),
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {"metadata": {"labels": {"role": "leader"}}, "spec": leader},
                "workerTemplate": {"spec": worker},
            },
        },
    }


def _service(server: Server, name: str) -> dict[str, Any]:
    port = server.table.server.listening.port
    of_set = {"leaderworkerset.sigs.k8s.io/name": name, "role": "leader"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "selector": {"app": name} if server.machines == 1 else of_set,
            "ports": [{"name": "http", "port": port, "targetPort": port}],
        },
    }


def _started(server: Server) -> dict[str, Any]:
    """Command and arguments of a server on one machine."""
    image = _image(server)
    arguments: list[Any] = []
    for flag in (*server.flags, *server.service):
        if not flag.setting:
            first, *rest = flag.words
            arguments += [Noted(first, flag.field or "the service"), *_placed(server, rest)]
    return ({} if image.entry else {"command": list(program_of(server.table))}) | {"args": arguments}


def _placed(server: Server, words: list[str]) -> list[str]:
    """Words of a line, the configuration file where the pod has it."""
    file = next((flag.value for flag in server.service if flag.flag == server.table.server.options), None)
    return [f"{_OPTIONS}/{word}" if word == file else word for word in words]


def _over_machines(server: Server, leads: bool) -> dict[str, Any]:
    """Command of a machine; LeaderWorkerSet tells each its number and the address of the first."""
    words = server.words(
        "$LWS_LEADER_ADDRESS", "$LWS_WORKER_INDEX", f"$((LWS_WORKER_INDEX * {server.groups}))", leads
    )
    return {"command": ["/bin/sh", "-c"], "args": [f"exec {command(_placed(server, words))}"]}


def _pod(
    server: Server, name: str, options: str | None, starts: dict[str, Any], probed: bool = True
) -> dict[str, Any]:
    image, plugin = _image(server), cluster().resource(server.chip.vendor)
    if plugin is None:
        makers = ", ".join(known.maker for known in cluster().resources)
        raise InputError(
            f"--kubernetes: no device plugin for chips of {server.chip.vendor} is known here; expected an "
            f"accelerator of {makers}, or the command alone"
        )
    listening = server.table.server.listening
    memory = f"{max(1, ceil(server.ram / _GIGA))}G"
    container: dict[str, Any] = {
        "name": "server",
        "image": Noted(image.image, _cite(server, said(image))),
        **starts,
        "ports": [{"containerPort": listening.port}],
        "resources": {
            "limits": {plugin.resource: Noted(str(server.accelerators), _cite(server, said(plugin)))},
            "requests": {
                "memory": Noted(memory, f"host memory of {server.accelerators} ranks by the estimate")
            },
        },
    }
    if server.model != MODEL_PATH:
        token = {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}
        container["env"] = [{"name": "HF_TOKEN", "valueFrom": Noted(token, "of the hub, for gated models")}]
    if probed:
        answers = {"httpGet": {"path": listening.health, "port": listening.port}}
        container |= {
            probe: Noted(answers | limits, note or _cite(server, said(listening)))
            for probe, (limits, note) in _PROBES.items()
        }
    mounts, volumes = [], []
    shared = server.table.server.shared_memory
    if shared is not None:
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
        size = {"sizeLimit": shared.size} if shared.size else {}
        volumes.append(
            {
                "name": "shared-memory",
                "emptyDir": Noted({"medium": "Memory"} | size, _cite(server, said(shared))),
            }
        )
    if options is not None:
        mounts.append({"name": "options", "mountPath": _OPTIONS})
        volumes.append({"name": "options", "configMap": {"name": name}})
    pod: dict[str, Any] = {"containers": [container | ({"volumeMounts": mounts} if mounts else {})]}
    return pod | ({"volumes": volumes} if volumes else {})


def _image(server: Server) -> Image:
    """The container of the engine for the chip.

    Raises:
        InputError: where none is known.
    """
    for image in server.table.server.images:
        if image.maker == server.chip.vendor and server.chip.generation in (
            image.chips or [server.chip.generation]
        ):
            return image
    raise InputError(
        f"--kubernetes: no container of {server.table.name} for {server.chip.name} is known here; expected "
        "the command alone, or an accelerator of "
        + ", ".join(dict.fromkeys(image.maker for image in server.table.server.images))
    )
