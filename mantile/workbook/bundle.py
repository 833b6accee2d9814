"""A bundle: everything an estimate was made from, in one document with a digest of its content.

It travels inside every workbook, and by itself as .json or .yaml: what is built from it needs neither models
nor profiles.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from mantile.estimates.drafts import DRAFT_FIGURES
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.architecture import Model
from mantile.library.dates import today
from mantile.library.documents import parse_json, parse_yaml, read_text, validate
from mantile.library.dump import dump_scenario, dump_yaml
from mantile.library.errors import InputError, quoted
from mantile.library.files import replacing
from mantile.library.models import model_ids
from mantile.library.profiles import Library, is_file
from mantile.library.scenario import Scenario, parse_scenario
from mantile.library.scenario_fields import Spread
from mantile.library.signing import Signature, Verdict, check, read_private_key, sign
from mantile.library.template import Template
from mantile.library.version import __version__

# 1 held no digest; 2 said nothing of whole machines and of evidence with decode apart; 3 had other names of
# five fields; 6 did not say which fields of a config nobody read, who
# asks a price, of which day prices are looked at, and what a workbook is compared with or follows; 7 did not
# say the version, tokenizer and checkpoints of a model; 9 knew no decision, no capacity and no class of
# machine; 10 had no signature; 11 knew no links between any two devices, no correction, no engine date, no
# disks of machines; 12 knew no bandwidth of a handover, and no steps of a correction that hold everywhere;
# 13 knew no prices of single chips, no degrees of one kind of layer, no power of measured GPUs, and no
# limits of decode workers of their own; 14 no ready columns.
FORMAT = 16
GENERATOR = f"mantile {__version__}"
BUNDLE_SHEET = "_bundle"  # of a workbook, very hidden
SUFFIXES = (".json", ".yaml", ".yml")
_SIGNED_AS = "bundle"  # kind of document, in what a signature is of
_PARTS = ("scenario", "model", "library")
_MORE = ("template",)  # may be missing: then it is the standard one


@dataclass(frozen=True)
class Bundle:
    """A scenario with its model and library.

    Args:
        data: format, generator, scenario, model and library as plain objects, without the digest.
        name: stands for the bundle in errors.
        signature: of the digest, as the document holds it; None if nobody signed.
    """

    data: dict[str, Any]
    name: str
    signature: Any = None

    @classmethod
    def of(cls, estimates: Estimate) -> Bundle:
        """What an estimate was made from."""
        scenario = estimates.scenario.model_dump(mode="json", exclude_defaults=True)
        if "sweep" in scenario:
            scenario["sweep"] = [
                list(pair) for pair in scenario["sweep"].items()
            ]  # keys are sorted below, but here their order counts
        return cls(
            {
                "format": FORMAT,
                "generator": GENERATOR,
                "made_on": estimates.made_on or today(),
                "scenario": scenario,
                "model": estimates.model.model_dump(mode="json"),
                "library": estimates.library.model_dump(
                    mode="json", exclude=None if estimates.library.correction else {"correction"}
                ),
                "template": estimates.template.model_dump(mode="json", exclude_defaults=True),
            },
            "bundle",
        )

    @classmethod
    def parse(cls, data: Any, name: str) -> Bundle:
        """Plain objects to a bundle.

        Raises:
            InputError: if parts are missing, the format is newer than ours, or the content is not that of the
                digest.
        """
        if not isinstance(data, dict) or not {"format", *_PARTS} <= set(data):
            raise InputError(f"{name}: the bundle is damaged; expected format, scenario, model and library")
        content = {key: value for key, value in data.items() if key not in ("digest", "signature")}
        generator = str(content.get("generator", "another program"))
        if type(content["format"]) is not int or content["format"] not in range(1, FORMAT + 1):
            raise InputError(
                f"{name}: bundle format {quoted(content['format'])}, made by {generator:.60}; this is "
                f"{GENERATOR}, which reads formats 1 to {FORMAT}: expected the version that made it, or "
                "a later one"
            )
        bundle = cls(content, name, data.get("signature"))
        try:
            date.fromisoformat(str(content.get("made_on", "2026-11-23")))
            _ = bundle.digest
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"{name}: the bundle is damaged: expected plain values, texts as keys and a day as made_on "
                f"({error})"
            ) from error
        if content["format"] > 1 and data.get("digest") != bundle.digest:
            raise InputError(
                f"{name}: the bundle was changed or damaged since it was made: its content has the digest "
                f"{bundle.digest}, but field digest says {data.get('digest')!r:.68}"
            )
        return bundle

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal: of its JSON with sorted keys and without blanks."""
        return hashlib.sha256(_canonical(self.data).encode()).hexdigest()

    @property
    def generator(self) -> str:
        """The program that made it, with its version."""
        return str(self.data.get("generator", "another program"))

    @property
    def made_on(self) -> str | None:
        """The day on which it was made, as 2026-11-23; None of versions that did not say."""
        return str(self.data["made_on"]) if "made_on" in self.data else None

    @property
    def text(self) -> str:
        """The bundle as it stands in a workbook."""
        return _canonical(self.data | self._seal)

    @property
    def _seal(self) -> dict[str, Any]:
        """What stands in the document beside its content: the digest, and the signature if there is one."""
        seal: dict[str, Any] = {"digest": self.digest} if self.data["format"] > 1 else {}
        return seal if self.signature is None else seal | {"signature": self.signature}

    def signed(self, key: Path) -> Bundle:
        """The same, signed.

        Args:
            key: a private key, as `mantile config keys new` writes it.

        Raises:
            InputError: if the file is no such key.
        """
        signature: Signature = sign(_SIGNED_AS, self.digest, read_private_key(key))
        return replace(self, signature=dict(signature))

    def verdict(self, trusted: Mapping[bytes, str] | None = None) -> Verdict:
        """What its signature is worth.

        Args:
            trusted: public keys and their names, of `mantile.library.signing.read_trusted`.
        """
        return check(_SIGNED_AS, self.digest, self.signature, trusted)

    @cached_property
    def scenario(self) -> Scenario:
        """What is asked.

        Raises:
            InputError: if it is no scenario, or names a file: what comes from elsewhere opens none.
        """
        scenario = parse_scenario(self.data["scenario"], self.name)
        _require_no_files(scenario, self.name)
        return scenario

    @cached_property
    def model(self) -> Model:
        """The model, before overrides of its facts."""
        return validate(Model, self.data["model"], self.name)

    @cached_property
    def library(self) -> Library:
        """The profiles it may choose among: one object of bundles that hold the same, whose estimates then
        share their equations."""
        key = hashlib.sha256(_canonical(self.data["library"]).encode()).digest()
        found = _LIBRARIES.get(key)
        if found is None:
            found = _LIBRARIES[key] = validate(Library, self.data["library"], self.name)
        return found

    @cached_property
    def template(self) -> Template:
        """How the workbook is laid out."""
        return validate(Template, self.data.get("template", {}), self.name)

    def estimate(self) -> Estimate:
        """The estimate it was made of.

        Raises:
            InputError: naming the file, if no estimate can be made of what it holds.
        """
        try:
            made = estimate(self.scenario, self.model, self.library, self.name, self.template)
        except InputError as error:
            if self.name in str(error):
                raise
            raise InputError(f"{self.name}: {error}") from error
        return replace(made, made_on=self.made_on)


_LIBRARIES: WeakValueDictionary[bytes, Library] = WeakValueDictionary()  # by digest, while somebody uses them


def _canonical(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def is_bundle(data: Any) -> bool:
    """Whether a document is meant as a bundle, not as a scenario or a config.json."""
    return isinstance(data, dict) and {"scenario", "library"} <= set(data)


def _read(path: Path) -> Any:
    return (parse_json if path.suffix.lower() == ".json" else parse_yaml)(read_text(path), str(path))


def read_bundle(path: str | Path) -> Bundle:
    """Read a bundle from a .json or .yaml file.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    return Bundle.parse(_read(Path(path)), str(path))


def read_document(path: str | Path) -> tuple[Any, Bundle | None]:
    """The fields of a scenario as plain objects, from a scenario file or a bundle; and the bundle, if any.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    data = _read(Path(path))
    if not is_bundle(data):
        return data, None
    bundle = Bundle.parse(data, str(path))
    _ = bundle.scenario  # also where flags change it: what it names is looked at first
    return bundle.data["scenario"], bundle


def _require_no_files(scenario: Scenario, name: str) -> None:
    """Refuse a scenario of a bundle that would make us read a file.

    Its model, library and template stand in the bundle: what the scenario calls them is never opened.
    """
    cases = (("", scenario), *((f"variants.{place}.", case) for place, case in enumerate(scenario.variants)))
    for where, case in cases:
        for field, workers in (("", case), ("decode.", case.decode)):
            if isinstance(workers, Spread) and is_file(workers.accelerator or ""):
                raise InputError(
                    f"{name}: field {where}{field}accelerator: {quoted(workers.accelerator)} names a file; "
                    "expected an id of the bundle's library"
                )
        stated = all(getattr(case, figure) is not None for figure in DRAFT_FIGURES)
        if case.draft_model is not None and not stated and case.draft_model not in model_ids():
            raise InputError(
                f"{name}: field {where}draft_model: {quoted(case.draft_model)} lies outside of the bundle; "
                f"expected an id of our models, or {', '.join(DRAFT_FIGURES)} beside it"
            )


def write_bundle(bundle: Bundle, path: str | Path) -> Path:
    """Write a bundle as .json or .yaml; the scenario comes first, as a scenario file would have it.

    Raises:
        InputError: if the name ends otherwise or the file cannot be written; nothing half-written stays
            behind.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: expected a file name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        )
    head: dict[str, Any] = {
        key: bundle.data[key] for key in ("format", "generator", "made_on") if key in bundle.data
    }
    head |= bundle._seal
    parts = {key: bundle.data[key] for key in (*_PARTS, *_MORE) if key in bundle.data}
    with replacing(path) as temporary:
        if path.suffix.lower() == ".json":
            text = json.dumps(head | parts, ensure_ascii=False, indent=1) + "\n"
        else:
            scenario = re.sub("^(?=.)", "  ", dump_scenario(bundle.data["scenario"]), flags=re.MULTILINE)
            text = (
                f"{dump_yaml(head)}scenario:\n{scenario}"
                f"{dump_yaml({key: part for key, part in parts.items() if key != 'scenario'})}"
            )
        temporary.write_text(text, encoding="utf-8")
    return path
