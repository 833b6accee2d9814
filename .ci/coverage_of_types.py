"""Which types of the class library that write text are answered; run by hand: ... [TYPE ...]."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from mantile.ir.build import build_ir
from mantile.ir.counts import describe
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.from_code import recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.families import FAMILIES
from mantile.library.huggingface.other_kinds import refuse_other_kinds

READER, CODE, OTHER, REFUSED = "by a reader", "from code", "refused by what it is", "refused otherwise"
VALID: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""Fields to add, by type, where the defaults of a class are none that it runs with."""


def config_of(model_type: str) -> dict[str, Any]:
    """The defaults of a class, as a config.json."""
    import transformers

    config = transformers.CONFIG_MAPPING[model_type](**VALID.get(model_type, {})).to_dict()
    return {**json.loads(json.dumps(config, default=str)), "model_type": model_type}


def answer(model_type: str) -> tuple[str, str, str]:
    """A type, how it is answered, and what was counted or why it is refused."""
    if model_type in FAMILIES:
        return model_type, READER, ""
    signal.alarm(120)
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
        counts = describe(build_ir(Model(id="m", name="m", source="", architecture=architecture)), 61, False)
    except Exception as error:
        return model_type, REFUSED, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    kv = counts["kv_bytes_per_token"]["all_layers"]
    return model_type, CODE, f"{counts['parameters']['total'] / 1e9:.2f}B, {kv} KV bytes per token"


def main() -> None:
    """Print every type, then the counts."""
    from transformers.models.auto import modeling_auto

    found = (
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        | modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    )
    counts: Counter[str] = Counter()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for model_type, how, why in pool.imap(answer, sys.argv[1:] or sorted(found), chunksize=1):
            counts[how] += 1
            print(f"{model_type:28} {how:22} {why}", flush=True)
    decoders = counts.total() - counts[OTHER]
    print(counts, f"{counts[READER] + counts[CODE]} of {decoders} decoders are answered")


if __name__ == "__main__":
    main()
