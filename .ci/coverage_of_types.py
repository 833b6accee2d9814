"""Which types of the class library that write text are answered; run by hand: ... [TYPE ...]."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mantile.equations.reasons import REASONS, STRUCTURE
from mantile.estimates.estimate import Estimate, estimate
from mantile.ir.build import build_ir
from mantile.ir.counts import describe
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.from_code import recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.families import FAMILIES
from mantile.library.huggingface.other_kinds import refuse_other_kinds
from mantile.library.scenario import parse_scenario

READER, CODE, OTHER, REFUSED = "by a reader", "from code", "refused by what it is", "refused otherwise"
CRASHED = "read, not estimated"
SECONDS = 300  # for one type
PLANS: tuple[dict[str, int], ...] = ({"tp": 1}, {"tp": 2}, {"tp": 2, "attention_dp": 2, "ep": 4})
WORK = {"accelerator": "h200-sxm", "input_tokens": 512, "output_tokens": 32, "concurrency": 4}
VALID: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""Fields to add, by type, where the defaults of a class are none that it runs with."""


def config_of(model_type: str) -> dict[str, Any]:
    """The defaults of a class, as a config.json."""
    import transformers

    config = transformers.CONFIG_MAPPING[model_type](**VALID.get(model_type, {})).to_dict()
    return {**json.loads(json.dumps(config, default=str)), "model_type": model_type}


def too_long(*_: object) -> None:
    """What an alarm does: a process that died would leave its pool waiting for ever."""
    raise TimeoutError(f"no answer within {SECONDS} s")


def said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def does_not_add_up(made: Estimate) -> list[str]:
    """The checks of structure that do not hold; [] of a plan that does not divide the model anyway."""
    codes = [check["code"] for check in made.results()["checks"]["errors"]]
    if any(code.endswith("NOT_DIVISIBLE") for code in codes):
        return []
    return [code for code in codes if code in REASONS and REASONS[code].group == STRUCTURE]


def answer(model_type: str) -> tuple[str, str, str]:
    """A type, how it is answered, and what was counted or why it is refused."""
    if model_type in FAMILIES:
        return model_type, READER, ""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        refuse_other_kinds({"model_type": model_type}, model_type)
    except InputError as error:
        return model_type, OTHER, str(error)
    try:
        config = config_of(model_type)
        seen = recorder.record({"config": config, "folder": ""})
        architecture = read_recording(seen, Config(model_type, model_type, config))
        model = Model(id="m", name="m", source="", architecture=architecture)
        counts = describe(build_ir(model), 61, False)
    except Exception as error:
        return model_type, REFUSED, said(error)
    try:
        for plan in PLANS:
            wrong = does_not_add_up(
                estimate(parse_scenario({"model": "m", **WORK, **plan}, "scenario"), model)
            )
            if wrong:
                return model_type, CRASHED, f"{plan}: {wrong}"
    except Exception as error:
        return model_type, CRASHED, said(error)
    kv = counts["kv_bytes_per_token"]["all_layers"]
    return model_type, CODE, f"{counts['parameters']['total'] / 1e9:.2f}B, {kv} KV bytes per token"


def types() -> list[str]:
    """All types that write text, in the order of their names."""
    from transformers.models.auto import modeling_auto

    return sorted(
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        | modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    )


def answers(asked: Sequence[str] = ()) -> Iterator[tuple[str, str, str]]:
    """The answers of some types, or of all that write text, each in a process of its own."""
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        yield from pool.imap(answer, asked or types(), chunksize=1)


def main() -> None:
    """Print every type, then the counts."""
    counts: Counter[str] = Counter()
    for model_type, how, why in answers(sys.argv[1:]):
        counts[how] += 1
        print(f"{model_type:28} {how:22} {why}", flush=True)
    decoders = counts.total() - counts[OTHER]
    print(counts, f"{counts[READER] + counts[CODE]} of {decoders} decoders are answered")


if __name__ == "__main__":
    main()
