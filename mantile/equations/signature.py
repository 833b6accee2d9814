"""Whether what somebody signed still is what the workbook says, by the digest typed and by edits since."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.display import sum_across
from mantile.graph.quantity import (
    InCase,
    Input,
    Node,
    Quantity,
    Section,
    defined,
    equal,
    index,
    span,
    where,
)

SIGNATURE = "signature."
"""Before the ids of what is typed by those who sign. It is no input of the estimate."""
VARIED = ("alternative.", "sensitivity.", "sweep.")
"""Before the ids of what readers try out beside the estimate: it changes no result of it."""
NOT_SIGNED, CHANGED_SINCE, HOLDS = "not signed", "! changed since it was signed", "✓ holds"
ROLES = {"prepared": "Prepared by", "reviewed": "Reviewed by", "approved": "Approved by"}


@dataclass(frozen=True)
class Signature:
    """A line on which somebody signs.

    Args:
        role: what the line is for.
        name, typed: cells for a name and for the digest of what is signed.
        status: in words, whether it holds.
    """

    role: str
    name: Input
    typed: Input
    status: Quantity


@dataclass(frozen=True)
class SignOff:
    """All lines on which somebody signs.

    Args:
        digest: of what the workbook was made from.
        edited: inputs and headline results of all scenarios that changed since.
        section: the words for what holds.
    """

    digest: Input
    edited: Quantity
    lines: tuple[Signature, ...]
    section: Section


def sign_off(changed: Quantity, digest: str, scenarios: int) -> SignOff:
    """A signature holds while the digest typed is that of the file, and nothing was edited.

    Args:
        changed: inputs and headline results of a scenario that did.
        digest: eight hexadecimal digits, as footers show them.
        scenarios: columns of the workbook.
    """
    words = tuple(
        defined(f"signature.word.{number}", f"Signature {number}", "1", word, "what a signature may be")
        for number, word in enumerate((NOT_SIGNED, CHANGED_SINCE, HOLDS), 1)
    )
    here = Input("signature.digest", "Digest of this file", "1", digest, shared=True, fixed=True)
    edited = Quantity(
        "signature.edited",
        "Changed since it was made",
        "flag",
        sum_across(changed, scenarios, "edits of all scenarios"),
    )
    return SignOff(
        digest=here,
        edited=edited,
        lines=tuple(_line(name, role, words, here, edited) for name, role in ROLES.items()),
        section=Section("Signatures", words, "words of the sign-off on Audit"),
    )


def _line(name: str, role: str, words: tuple[Input, ...], digest: Input, edited: Quantity) -> Signature:
    signer = _typed(f"{name}.name", f"{role}, name")
    typed = _typed(f"{name}.digest", f"{role}, digest")
    signed = _filled(signer) * _filled(typed)
    same = where(equal(_as_typed(typed), digest), 1, 0) * where(edited <= 0, 1, 0)
    status = index(span(words), 1 + signed * (1 + same))
    return Signature(
        role=role,
        name=signer,
        typed=typed,
        status=Quantity(f"signature.{name}.status", f"{role}, whether it holds", "1", status),
    )


def _typed(name: str, label: str) -> Input:
    return Input(f"{SIGNATURE}{name}", label, "1", "", "empty until somebody signs", shared=True)


def _as_typed(figure: Input) -> Node:
    return InCase(figure, 0, "as typed")


def _filled(figure: Input) -> Node:
    return where(equal(_as_typed(figure), ""), 0, 1)
