"""Ids as people spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mantile.library.errors import InputError, quoted, unknown

_WORD = re.compile(r"[^\W\d_]+|\d+")


def find_id(kind: str, given: str, ids: Iterable[str]) -> str:
    """The id that a spelling stands for.

    Neither case matters nor what joins words and numbers: `_ . - :`, a blank or nothing. The beginning of an
    id is enough where only one id begins so; it must not end inside a version number: olmo-3 does not stand
    for olmo-3.1-32b.

    >>> find_id("model", "Llama3.3_70B", ["llama-3.1-70b", "llama-3.3-70b"])
    'llama-3.3-70b'

    Args:
        kind: what it is an id of, for errors.

    Raises:
        InputError: if there is no such id, or several could be meant, with those.
    """
    candidates = list(ids)
    if given in candidates:
        return given
    spelling = words(given)
    alike = [name for name in candidates if words(name) == spelling]
    meant = alike or [name for name in candidates if begins(name, spelling)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise not_clear(kind, given, meant)
    raise unknown(kind, given, candidates)


_MAKERS = {"nvidia", "amd", "apple", "intel", "google", "aws", "geforce", "instinct", "tesla", "radeon"}
"""Words before the name of a chip that say who makes it, or for whom."""
_CONFIGURATIONS = {
    "nvidia_h100_80gb": ("h100-sxm",),
    "nvidia_gb200_single": ("gb200-nvl72",),
    "nvidia_nvl72_rack": ("nvl72-gb200", "gb200-nvl72"),
}
"""Names of configurations that are no part of ours: the system they mean, or its accelerator."""
_USUAL_FORM = "-sxm"  # of a family in several forms, the one that is meant where nobody says which


def find_named(kind: str, given: str, names: Mapping[str, str]) -> str:
    """The id that a spelling of it, of its name, or of a part of either stands for.

    Neither case matters nor what joins words and numbers. A part is whole words: 5090 stands for rtx-5090,
    but l40 not for l40s. Of a family that comes in several forms the SXM module is meant where one is;
    else the error lists them.

    >>> find_named("accelerator", "GeForce 5090", {"rtx-5090": "GeForce RTX 5090", "l40s": "L40S"})
    'rtx-5090'

    Args:
        kind: what it is an id of, for errors.
        names: what each id is called.

    Raises:
        InputError: if there is no such id, or several could be meant, with those.
    """
    if given in names:
        return given
    spelling = _joined(given)
    other = next((key for key in configured(given) if key in names), None)
    if other is not None:
        return other
    alike = [key for key, name in names.items() if spelling and spelling in (_joined(key), _joined(name))]
    meant = alike or [key for key, name in names.items() if _holds(key, spelling) or _holds(name, spelling)]
    if len(meant) == 1:
        return meant[0]
    usual = [key for key in meant if key.endswith(_USUAL_FORM)]
    if len(usual) == 1:
        return usual[0]
    if meant:
        raise not_clear(kind, given, meant)
    raise unknown(kind, given, names)


_BESIDE = (
    "nvidia|amd|instinct|apple|geforce|radeon|hbm3|blackwell|oam|ac|generation|(server|workstation)-edition"
    "|(server|workstation) edition"
)
"""Words of drivers and tables beside the name of a chip: who makes it, its memory, its form."""


def of_driver(name: str) -> tuple[str, ...]:
    """What an id may be of a chip that drivers, clusters and tables call so.

    >>> "a100-80gb-sxm" in of_driver("NVIDIA-A100-SXM4-80GB")
    True
    """
    lower = name.lower()
    spelling = lower.replace("\u2011", "-").replace("_", "-")
    spelling = re.sub(r"\b\d+(-core gpu|c\b|gb\b)", "", spelling)
    spelling = re.sub(r"\bsxm\d\b", "sxm", spelling)
    spelling = re.sub(rf"\b({_BESIDE})\b", "", spelling)
    bare = "-".join(filter(None, re.split(r"[\s-]+", re.sub(r"\([^)]*\)", "", spelling))))
    memory = re.search(r"(\d+) ?gb", lower)
    if memory and bare.startswith("a100"):
        return (f"a100-{memory[1]}gb-{bare.removeprefix('a100').strip('-') or 'sxm'}",)
    return (bare, f"{bare}-sxm", f"{bare}-nvl72", f"rtx-{bare}", f"{bare}-bw")


def configured(name: str) -> tuple[str, ...]:
    """The ids that the name of a configuration means where it is no part of ours: a system, an accelerator.

    >>> configured("nvidia_nvl72_rack")
    ('nvl72-gb200', 'gb200-nvl72')
    """
    spelling = _joined(name)
    return next((ids for other, ids in _CONFIGURATIONS.items() if _joined(other) == spelling), ())


def configurations() -> Mapping[str, tuple[str, ...]]:
    """All names that `configured` knows, with what they mean."""
    return _CONFIGURATIONS


def _joined(name: str) -> str:
    """The words and numbers of a name in one, without its maker."""
    return "".join(word for word in words(name) if word not in _MAKERS)


def _holds(name: str, part: str) -> bool:
    """Whether consecutive words of a name make that part."""
    whole = [_joined(word) for word in re.split(r"[-_ ()]+", name)]
    return bool(part) and any(
        "".join(whole[first:last]) == part
        for first in range(len(whole))
        for last in range(first + 1, len(whole) + 1)
    )


def not_clear(kind: str, given: str, candidates: Iterable[str]) -> InputError:
    """The error about a name that several could be meant by."""
    return InputError(f"{kind} {quoted(given)} is not clear: expected one of {', '.join(sorted(candidates))}")


def words(name: str) -> tuple[str, ...]:
    """The words and numbers of a name, without regard to case and to what joins them.

    >>> words("Llama3.1-8B")
    ('llama', '3', '1', '8', 'b')
    """
    return tuple(_WORD.findall(name.lower()))


def begins(name: str, start: tuple[str, ...]) -> bool:
    """Whether a name begins with these words, and goes on with a part of its own."""
    found = list(_WORD.finditer(name.lower()))
    if not start or len(found) <= len(start):
        return False
    after = name[found[len(start) - 1].end()]
    return tuple(match.group() for match in found[: len(start)]) == start and after in "-_ "
