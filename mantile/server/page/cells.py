"""Cells of the workbook by the ids of figures: a worker process lays it out once for each structure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from fastapi import Request

from mantile.graph.evaluate import Program
from mantile.library.errors import InputError
from mantile.server.page import work
from mantile.server.page.answers import HUB, Answer
from mantile.server.page.files import scenario_fields
from mantile.server.problems import Limited

Cells = Mapping[str, tuple[str, str]]
_KNOWN: WeakKeyDictionary[Program, Cells] = WeakKeyDictionary()
_BEGUN: WeakKeyDictionary[Program, asyncio.Task[Cells]] = WeakKeyDictionary()


async def cells(request: Request, found: Answer, needed: bool) -> Cells:
    """Cell and formula by id, such as ("Calculation!H214", "=H211+MAX(H212,H213)").

    Rows follow from the structure alone: model, options of the engine, how many devices. None is known where
    no worker is free.

    Args:
        needed: whether to wait for them; else they are there the next time.
    """
    program = found.estimate.program
    if program not in _KNOWN:
        if program not in _BEGUN:
            _BEGUN[program] = asyncio.create_task(_laid_out(request, found))
        if needed:
            return await asyncio.shield(_BEGUN[program])
    return _KNOWN.get(program, {})


async def _laid_out(request: Request, found: Answer) -> Cells:
    program = found.estimate.program
    try:
        listed = await request.app.state.pool.run(work.cells, scenario_fields(found), HUB.get())
    except (InputError, Limited):
        return {}
    finally:
        _BEGUN.pop(program, None)
    _KNOWN[program] = {name: (cell, formula) for name, (cell, formula) in listed.items()}
    return _KNOWN[program]
