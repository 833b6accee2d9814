"""What was changed on purpose since older versions.

Ids of rows, and formulas by the id of their row and the version.

A workbook of an older version is read with the formulas of today. Where one of its formulas is another, this
list says whether the version that made the file printed that formula, and why it was changed. A formula that
is other and not listed was edited by hand. Inputs that were renamed are found under their former ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mantile.library.scenario import FORMER_IDS

_COLUMN = re.compile(r"\]\$?[A-Z]+")  # behind an id
_FORMER = re.compile(rf"(?<![^.])(?:{'|'.join(map(re.escape, FORMER_IDS))})(?![^.])")
_VERSION = re.compile(r"mantile (\d+)\.(\d+)")


@dataclass(frozen=True)
class Change:
    """A change of formulas.

    Args:
        since: the first version that has the new formulas, as major and minor number.
        ids: a regular expression that the id of a changed figure matches, without what copies of it and the
            decode workers' have in front.
        formula: a regular expression of the formula before, with ids in place of cells.
        why: what was changed, and why.
    """

    since: tuple[int, int]
    ids: str
    formula: str
    why: str

    def explains(self, identifier: str, formula: str) -> bool:
        """Whether a figure had this formula before the change."""
        row = re.fullmatch(rf"(?P<copy>.+\.)?(?:{self.ids})", identifier)
        if row is None:
            return False
        ids = _COLUMN.sub("]", formula).replace(f"[{row['copy']}", "[")
        return re.fullmatch(self.formula, ids) is not None


_LOAD = (
    "at a request rate the batch follows by Little's law in a formula, from step times that are lines over "
    "the batch, beside which the reading of experts follows what the batch touches; 0.6.0 took one line "
    "through a batch that it had searched for"
)
_WIDEST = (
    "the widest projection is the largest of its candidates, a formula; 0.6.0 chose it when it made the file"
)
_LINE = r"=\[load\.fixed\]\+\[load\.slope\]\*\(\[load\.{}\]/\[constant\.one_request\]\)"

_STAGES = (
    "a stage holds the layers that stand there in the order of the model; 0.6.0 spread each kind evenly over "
    "the stages"
)
_PP = r"\[inputs\.(?:decode_)?pp\]"
_TURN = rf"(?:\[plan\.stage\.\d\]|MOD\(\[plan\.stage\.\d\]-\[plan\.layers[\w.]*\.after\],{_PP}\))"

CHANGES: tuple[Change, ...] = (
    Change(
        since=(0, 7),
        ids=r"plan\.layers(?:\.\w+)*\.\d",
        formula=rf"=IF\(\[plan\.stage\.\d\]<{_PP},INT\(\(\[model\.[\w.]+\]\+{_PP}-1-{_TURN}\)/{_PP}\),0\)",
        why=_STAGES,
    ),
    Change(since=(0, 7), ids=r"load\.full_step", formula=_LINE.format("most"), why=_LOAD),
    Change(since=(0, 7), ids=r"load\.step", formula=_LINE.format("decoding"), why=_LOAD),
    Change(
        since=(0, 7),
        ids=r"load\.slope",
        formula=r"=MAX\(0,\[serving\.decode_step\]-\[single\.(?:decode\.)+time\]\)/"
        r"MAX\(1,\[(?:decode\.)?memory\.batch\]/\[constant\.one_request\]-1\)",
        why=_LOAD,
    ),
    Change(
        since=(0, 7),
        ids=r"load\.fixed",
        formula=r"=\[single\.(?:decode\.)+time\]-\[load\.slope\]",
        why=_LOAD,
    ),
    Change(
        since=(0, 7),
        ids=r"load\.tpot",
        formula=r"=MIN\(\[load\.fixed\]/\[load\.left\],\[load\.worst\]\)",
        why=_LOAD,
    ),
    Change(
        since=(0, 7),
        ids=r"memory\.(?:mixer|ffn)_width",
        formula=r"=\[(?:plan|model)\.\w+\](?:[+*]\[(?:plan|model)\.\w+\])*",
        why=_WIDEST,
    ),
    Change(
        since=(0, 7),
        ids=r"memory\.activation_width",
        formula=r"=\[model\.hidden_size\]\+\[memory\.mixer_width\]\+\[memory\.ffn_width\]",
        why=_WIDEST,
    ),
    Change(since=(0, 7), ids=r"evidence\.name\.\d+", formula="[^=].*", why="a text, in the field's words"),
)


def present_id(identifier: str) -> str:
    """The id that a row has today; copies of inputs, such as those of a case, are renamed with them."""
    return _FORMER.sub(lambda former: FORMER_IDS[former[0]], identifier)


def present_name(name: str) -> str:
    """The defined name that a cell has today, in lower case."""
    former = name.lower().replace("in_", "inputs.", 1)
    return FORMER_IDS[former].replace("inputs.", "in_", 1) if former in FORMER_IDS else name.lower()


def why_changed(identifier: str, formula: str, generator: str) -> str | None:
    """Why a figure is worked out otherwise now than by the version that made a file.

    None if that version did not do so.

    Args:
        formula: of the file, with ids in place of cells.
        generator: the program that made the file, with its version, as its bundle says.
    """
    match = _VERSION.match(generator)
    made_by = (int(match[1]), int(match[2])) if match else (0, 0)
    return next(
        (change.why for change in CHANGES if made_by < change.since and change.explains(identifier, formula)),
        None,
    )
