"""Links between machines, and the ports of machines where nobody states a link: profiles/links.yaml."""

from __future__ import annotations

from datetime import date

from pydantic import Field, model_validator

from mantile.library.documents import Strict
from mantile.library.profile_facts import ProfileFact, Status

INFERRED = "inferred"
"""In place of a kind of link: the fastest that the ports of both machines allow."""
NO_PORT = "none"


class LinkKind(Strict):
    """A kind of link between two machines.

    Args:
        bandwidth: raw, per direction, GB/s; `share` what a transfer reaches of it.
        latency: of a message, us.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    name: str
    bandwidth: ProfileFact
    latency: ProfileFact
    share: ProfileFact

    @model_validator(mode="after")
    def _units(self) -> LinkKind:
        for name, unit in {"bandwidth": "GB/s", "latency": "us", "share": "1"}.items():
            fact = getattr(self, name)
            if fact.unit != unit or not fact.value:
                raise ValueError(f"{self.id}: {name}: expected a figure above 0 in {unit}")
        return self


class Ports(Strict):
    """What machines with these accelerators can be joined by; each a kind of link."""

    machines: tuple[str, ...]
    ethernet: str = NO_PORT
    thunderbolt: str = NO_PORT
    source: str = Field(min_length=3)
    date: date
    status: Status


class Links(Strict):
    """The kinds of links, and the ports of machines."""

    links: tuple[LinkKind, ...] = ()
    ports: tuple[Ports, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Links:
        known = {kind.id for kind in self.links} | {NO_PORT}
        for ports in self.ports:
            for name in (ports.ethernet, ports.thunderbolt):
                if name not in known:
                    raise ValueError(
                        f"ports: no link is a {name!r}; expected one of {', '.join(sorted(known))}"
                    )
        return self

    def port(self, accelerator: str, family: str) -> str:
        """The kind of link that a machine with this accelerator has of a family: ethernet or thunderbolt."""
        return next(
            (str(getattr(ports, family)) for ports in self.ports if accelerator in ports.machines), NO_PORT
        )
