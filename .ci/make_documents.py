"""Write those tables of documents that follow from the code.

Commands, reason codes, model types, profiles and scenario fields.

    python .ci/make_documents.py

Each stands between the marks `<!-- NAME: begin -->` and `<!-- NAME: end -->`; a test compares them. The
tables of accuracy are written by public_accuracy.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import scenario_fields
from pydantic import BaseModel
from typer.main import get_command

from mantile.cli import app
from mantile.equations.reasons import GROUPS, REASONS
from mantile.estimates.messages import MESSAGES
from mantile.library.efficiency import Factor
from mantile.library.fields import DEPLOYMENT, MONEY, WORKLOAD
from mantile.library.files import replacing
from mantile.library.huggingface import (
    classic,
    compressed,
    deepseek,
    dense,
    gemma,
    linear_attention,
    llama4,
    mixture,
    state_space,
    windowed,
)
from mantile.library.huggingface.families import FAMILIES, DecoderFamily
from mantile.library.profile_facts import STATUSES, ProfileFact
from mantile.library.profiles import load_library
from mantile.measured.accuracy import with_marked_lines

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "dense": (dense, classic),
    "windows or chunks in some layers, some of them with experts": (gemma, windowed, llama4),
    "mixture of experts": (mixture,),
    "latent and sparse attention": (deepseek, compressed),
    "recurrent and hybrid": (linear_attention, state_space),
    "with a vision tower": (),
}
"""Kinds of model types by the files that read their configs."""


def commands(group: Any = None, above: str = "mantile") -> Iterator[tuple[str, str]]:
    """Every command of the command line, as it is typed, with its help."""
    for name, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{above} {name}")
        else:
            yield f"{above} {name}", " ".join(command.help.split())


def command_table() -> list[str]:
    """A line for each command."""
    return _table(("command", "what it does"), [(f"`{name}`", text) for name, text in commands()])


def reason_table() -> list[str]:
    """A line for each reason code, in the order of the groups of checks."""
    rows = [
        (f"`{reason.code}`{' *' if reason.of_workers else ''}", group, reason.meaning)
        for group in GROUPS
        for reason in REASONS.values()
        if reason.group == group
    ]
    return _table(("code", "group", "what it means"), rows)


def message_table() -> list[str]:
    """What each check says where it does not hold, with the figures of an example."""
    rows = [(f"`{code}`", message.shown) for code, message in MESSAGES.items()]
    return _table(("code", "says, for example"), sorted(rows))


def model_type_table() -> list[str]:
    """The model types that are read, by kind."""
    files = {module.__name__: kind for kind, modules in KINDS.items() for module in modules}
    types: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, family in FAMILIES.items():
        kind = files[family.read.__module__] if isinstance(family, DecoderFamily) else list(KINDS)[-1]
        types[kind].append(name)
    return _table(("kind", "`model_type` in config.json"), [(kind, ", ".join(types[kind])) for kind in KINDS])


def status_table() -> list[str]:
    """How many figures of the profiles have which status, a low confidence, and other sources."""
    library = load_library()
    kinds = {
        "accelerators": library.accelerators,
        "systems": library.systems,
        "prices": library.prices,
        "efficiency": library.efficiency,
    }
    rows = []
    for kind, profiles in kinds.items():
        facts = list(_facts(profiles))
        count = Counter(fact.status for fact in facts)
        assert set(count) <= set(STATUSES)
        stated = [fact for fact in facts if isinstance(fact, ProfileFact)]
        low = sum(fact.confidence == "low" for fact in stated)
        others = sum(bool(fact.others) for fact in stated)
        numbers = (len(profiles), len(facts), *(count[status] for status in STATUSES), low, others)
        rows.append((kind, *(f"{number:,}" if number else "–" for number in numbers)))
    heads = ("", "files", "figures", *STATUSES, "low confidence", "with statements of other sources")
    return _table(heads, rows, numbers=True)


def status_words() -> list[str]:
    """What each status promises."""
    return _table(
        ("status", "what it promises"), [(f"*{word}*", promise) for word, promise in STATUSES.items()]
    )


def evidence_table() -> list[str]:
    """Accelerators and frameworks to whose measured runs factors were fitted."""
    pairs = load_library().evidence.pairs
    return _table(
        ("accelerator", "framework", "measured runs"),
        [
            (pair.accelerator, pair.framework, f"{pair.runs:,}{', of a single user' * pair.single_user}")
            for pair in pairs
        ],
    )


def field_table(group: str) -> list[str]:
    """The fields of a block of the Inputs sheet."""
    return _table(scenario_fields.HEADS, scenario_fields.field_rows(group))


def _facts(thing: Any) -> Iterator[ProfileFact | Factor]:
    """The facts and factors of profiles."""
    if isinstance(thing, ProfileFact | Factor):
        yield thing
    elif isinstance(thing, BaseModel):
        for name in type(thing).model_fields:
            yield from _facts(getattr(thing, name))
    elif isinstance(thing, dict):
        yield from _facts(tuple(thing.values()))
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from _facts(part)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """The lines of a Markdown table; numbers: all columns but the first are aligned to the right."""
    rule = ["---", *["---:" if numbers else "---"] * (len(heads) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]


TABLES = {
    "mantile/cli/README.md": {"commands": command_table, "messages": message_table},
    "mantile/equations/README.md": {"reasons": reason_table},
    "models/README.md": {"types": model_type_table},
    "profiles/README.md": {"statuses": status_table, "words": status_words, "evidence": evidence_table},
    "workbooks/scenario.md": {
        "deployment": lambda: field_table(DEPLOYMENT),
        "workload": lambda: field_table(WORKLOAD),
        "price": lambda: field_table(MONEY),
        "others": lambda: _table(("field", "meaning"), scenario_fields.other_rows()),
    },
}
"""The tables of each document by name of their marks."""


def document(name: str) -> str:
    """A document with its tables made anew."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for mark, lines in TABLES[name].items():
        text = with_marked_lines(text, mark, lines())
    return text


def main() -> None:
    """Write all tables."""
    for name in TABLES:
        text = document(name)
        with replacing(ROOT / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
