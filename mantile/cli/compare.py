"""The command that says what two plans, workbooks or models differ in: compare."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.estimates import estimate_of
from mantile.cli.flags import asked_in, with_flags, with_overrides
from mantile.library.errors import InputError

Compared = "Workbook, scenario .yaml, bundle, model, or a plan: a model or scenario with its flags, quoted."
_EXPECTED = "expected a model or scenario with its flags"
_AND = ("...", "\u2026")  # what a text begins with that says only what differs


@app.command(
    group="Workbooks",
    examples=(
        "mantile compare old.xlsx new.xlsx",
        'mantile compare "llama-3.3-70b --gpu h100 --tp 8 --isl 2k --osl 256 --concurrency 1" "... --tp 4"',
    ),
)
@with_flags
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=Compared)],
    b: Annotated[str, typer.Argument(metavar="B", help='The same; or "..." and only what differs from A.')],
    flags: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Say why one plan is slower than another; compare inputs, formulas and results of two workbooks,
    scenarios, bundles or models. Flags are for models. Exit status 1 if files or models differ.
    """
    from mantile.answers import why
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.why import print_why
    from mantile.cli.output.workbooks import print_comparison
    from mantile.library.models import is_model_file

    words = [_words(text) for text in (a, b)]
    if any(len(each) > 1 for each in words):
        with working("comparing"):
            first = _plan(a, words[0], flags)
            second = _plan(b, words[1], flags, first)
            estimates = []
            for text, (_, what, given) in ((a, first), (b, second)):
                with _named(text):
                    estimates.append(estimate_of(what, given))
            plans = why.compare(*estimates)
        if as_json:
            print_json(plans.to_dict())
        else:
            print_why(plans, None if flags else (first[0], second[0]))
        return
    documents = [
        Path(what).suffix.lower() in (".xlsx", ".yaml", ".yml") and not is_model_file(what) for what in (a, b)
    ]
    if flags and all(documents):
        raise InputError(f"{a}, {b}: flags are for models; what a file says is compared as it is")
    with working("comparing"):
        differences = why.compare(
            *(
                _document(what) if document else _model(what, flags)
                for what, document in zip((a, b), documents, strict=True)
            ),
            side_by_side=all(Path(what).suffix.lower() == ".xlsx" for what in (a, b)),
        )
    names = {letter: what for letter, what, file in zip("ab", (a, b), documents, strict=True) if file}
    if as_json:
        print_json(differences.to_dict() | {"a": differences.a, "b": differences.b} | names)
    else:
        print_comparison(replace(differences, **names))
        if isinstance(differences, why.Why) and differences.differ:
            print_why(differences, ([a], [b]) if all(documents) else None)
    if differences.differ:
        raise typer.Exit(1)


def _words(text: str) -> list[str]:
    """The words of a quoted plan; one word of all else."""
    if Path(text).exists() or not any(blank in text for blank in " \t\n"):
        return [text]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{text}: {str(error).lower()}; {_EXPECTED}") from None


def _plan(
    text: str,
    words: list[str],
    flags: dict[str, Any],
    before: tuple[list[str], str, dict[str, Any]] | None = None,
) -> tuple[list[str], str, dict[str, Any]]:
    """A plan in words: the words in full, its model or scenario, its flags.

    Args:
        flags: of the command, which both plans have.
        before: the plan that words behind ... change.
    """
    whole, what, given = words, None, flags
    if words[:1] and words[0] in _AND:
        if before is None:
            raise InputError(f"{text}: nothing stands before it; {_EXPECTED}")
        (whole, what, given), words = before, words[1:]
    with _named(text):
        named, own = asked_in(app.parsed("estimate", words))
        if (named or what) is None:
            raise InputError(_EXPECTED)
    if what is not None:
        kept = [word for word in (*whole, *words) if word not in (what, named, "--model")]
        whole = [str(named or what), *kept]
    return whole, str(named or what), given | with_overrides(given, own)


@contextmanager
def _named(text: str) -> Iterator[None]:
    """Name a plan in what is wrong with it."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(f"{text}: ") and text:
            raise
        raise InputError(f"{text if text.strip() else repr(text)}: {error}") from error


def _document(what: str) -> Any:
    """A scenario file worked out; a workbook or bundle as it is."""
    from mantile.workbook.bundle import read_document

    if Path(what).suffix.lower() == ".xlsx" or read_document(what)[1] is not None:
        return what
    return estimate_of(what, {})


def _model(what: str, flags: dict[str, Any]) -> Any:
    """A bundle in JSON as it is, or a model with flags."""
    from mantile.workbook.bundle import read_document

    if Path(what).suffix.lower() == ".json" and Path(what).is_file() and read_document(what)[1] is not None:
        return what
    return estimate_of(what, flags)
