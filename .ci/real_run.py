"""A real server on this machine, measured, calibrated with three points, and predicted at the others.

    python .ci/real_run.py            some five minutes on an idle machine
    python .ci/real_run.py --quick    a try-out in half a minute; its numbers mean nothing

    --keep FOLDER      a new folder for model, records and profiles, which stay there

Makes a small Llama of random weights, serves it in bf16 with `transformers serve` on the processor, and
measures it with `mantile bench`. Calibrates with three of the points, and predicts all others with the
profiles that this wrote. Prints for each of these what was measured, what is predicted, and the range that is
told to hold 80 % of runs.

Fixed before anything is measured:

- the points: each length of prompts with each length of answers, one request in flight, ten measured;
- the three that are calibrated with: the first, the middle and the last in the order of prompt, then answer;
- the fit: `mantile calibrate` as it comes, with the factors and all else that it chooses by itself;
- the accelerator: its peak and bandwidth are those of the best product and the best copy in torch, its memory
  is 4 GiB, and all else is as of a Ryzen 9 9950X;
- the engine that it is taken for: llama.cpp, the nearest that is known;
- what is judged: mean TPOT and mean TTFT of every other point. None is left out.

Exit status 1: fewer than 8 of 10 points lie in the range, of TPOT or of TTFT, or a step failed.

Needs torch, transformers with what its `serving` extra brings, and httpx; 4 GB of memory. Asks nothing of the
network.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROMPTS, ANSWERS = (256, 512, 1000, 2000, 4000), (16, 32, 64)
QUICK_PROMPTS, QUICK_ANSWERS = (64, 128), (8, 16)
REPEATS = 10  # the fewest that `mantile bench` takes
CHIP, LIKE, MEMORY, ENGINE = "this-cpu", "ryzen-9-9950x", 4, "llama.cpp"
MODEL = "tiny"  # a folder beside the records
DEPLOYED = ("--accelerator", CHIP, "--framework", ENGINE, "--weights-dtype", "bf16")
METRICS = ("tpot", "ttft")
SHARE = 0.8  # of the points, which must lie in their range
PATIENCE = 120.0  # s until the server answers


@dataclass(frozen=True)
class Point:
    """A point as it was measured.

    Args:
        name: as the bench calls it.
        record: its id among the runs.
        prompt, answer: mean tokens, as the server counts them.
        requests, failed: how many were sent, and how many of these failed.
        measured: means by metric, s.
    """

    name: str
    record: str
    prompt: int
    answer: int
    requests: int
    failed: int
    measured: dict[str, float]


def make_model(folder: Path) -> None:
    """25 million weights at random, and a tokenizer whose tokens are the printable letters of ASCII.

    No token ends an answer, and a stream can show each at once.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    letters = ["Ġ", *map(chr, range(33, 127))]  # Ġ stands for the blank
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=len(letters),
        max_position_embeddings=8192,
        bos_token_id=None,
        eos_token_id=None,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


def measured_chip() -> tuple[float, float]:
    """TFLOP/s of the best of ten products in bf16, and GB/s of the best of ten copies."""
    import torch

    def best(work: Callable[[], Any]) -> float:
        times = []
        for _ in range(10):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        return min(times)

    side, count = 1024, 64 * 2**20
    one, other = (torch.randn(side, side, dtype=torch.bfloat16) for _ in range(2))
    source, target = torch.zeros(count), torch.empty(count)
    product, copy = best(lambda: one @ other), best(lambda: target.copy_(source))
    return 2 * side**3 / product / 1e12, 2 * source.nbytes / copy / 1e9


def mantile(*words: str, folder: Path) -> str:
    """What a command prints, run in a folder, with no settings but a library there.

    Raises:
        SystemExit: with all that it printed, if it fails.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MANTILE_")}
    environment |= {
        "MANTILE_LIBRARY": str(folder / "library"),
        "MANTILE_CONFIG": str(folder / "config.yaml"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    found = subprocess.run(
        [sys.executable, "-m", "mantile", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise SystemExit(f"mantile {' '.join(words)}\n{found.stdout}\n{found.stderr}")
    return found.stdout


@contextlib.contextmanager
def served(folder: Path, log: Path) -> Iterator[str]:
    """`transformers serve` of the model until the block ends: its address.

    Raises:
        SystemExit: with what it printed, if it does not answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(Path(sys.executable).with_name("transformers")), "serve", str(folder)]
    words += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "bfloat16"]
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    address = f"http://127.0.0.1:{port}"
    with (
        log.open("w") as printed,
        subprocess.Popen(words, env=offline, stdout=printed, stderr=subprocess.STDOUT) as server,
    ):
        try:
            until = time.monotonic() + PATIENCE
            while not answers(address):
                if server.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{' '.join(words)}\n{log.read_text()}")
                time.sleep(0.5)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


def answers(address: str) -> bool:
    """Whether a server is up."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except OSError:
        return False


def add_chip(folder: Path) -> None:
    """This processor as an accelerator of a library in the folder."""
    peak, bandwidth = measured_chip()
    print(f"this processor: {peak:.3f} TFLOP/s in bf16, {bandwidth:.1f} GB/s", flush=True)
    place = folder / "library" / "accelerators"
    place.mkdir(parents=True)
    figures = ("--bf16", f"{peak:.4f}", "--bandwidth", f"{bandwidth:.2f}", "--memory", str(MEMORY))
    mantile("list", "hardware", "add", CHIP, "--like", LIKE, *figures, "-o", str(place), folder=folder)


def benched(folder: Path, prompts: Sequence[int], lengths: Sequence[int]) -> list[Point]:
    """All points, in the order of prompt, then answer. A point that has no answer ends the run."""
    sweep = ("--isl", ",".join(map(str, prompts)), "--osl", ",".join(map(str, lengths)))
    load = ("--concurrency", "1", "--repeats", str(REPEATS))
    model = ("--model", f"{MODEL}/config.json", "--served-as", str(folder / MODEL))
    with served(folder / MODEL, folder / "server.log") as address:
        began = time.monotonic()
        told = json.loads(
            mantile("bench", address, *sweep, *load, *model, *DEPLOYED, "--json", folder=folder)
        )
    print(f"{len(told['points'])} points measured in {time.monotonic() - began:.0f} s", flush=True)
    found = {
        one["point"]: Point(
            name=one["point"],
            record=one["run_id"][:12],
            prompt=one["context_tokens"],
            answer=one["output_tokens"],
            requests=int(one["metrics"]["requests"]),
            failed=int(one["metrics"]["requests_failed"]),
            measured={metric: one["metrics"][f"{metric}_s"] for metric in METRICS},
        )
        for one in told["points"]
    }
    return [found[f"in{prompt}-out{answer}-c1"] for prompt in sorted(prompts) for answer in sorted(lengths)]


def chosen(points: Sequence[Point]) -> list[Point]:
    """The three that are calibrated with: the first, the middle and the last."""
    return [points[place] for place in (0, len(points) // 2, len(points) - 1)]


def calibrated(folder: Path, points: Sequence[Point]) -> list[str]:
    """The profiles that a calibration with these points alone wrote."""
    ids = ",".join(point.record for point in points)
    told = json.loads(mantile("calibrate", "records.db", "--where", f"id={ids}", "--json", folder=folder))
    if told["runs"] != len(points):
        raise SystemExit(f"expected a fit to {len(points)} runs, found {told['runs']}")
    print(f"calibrated with {', '.join(point.name for point in points)}; new ÷ old, 80 % of it:")
    for moved in told["moved"]:
        bound = ", at its bound" if moved["at_bound"] else ""
        print(f"  {moved['factor']} {moved['change']:.3f}, {moved['low']:.3f} to {moved['high']:.3f}{bound}")
    for metric in METRICS:
        before, after = (told[when][f"{metric}_s"]["mape"] for when in ("before", "after"))
        print(f"  error of {metric.upper()} at these, MAPE: {before:.1%} before, {after:.1%} after")
    files: list[str] = told["files"]
    return files


def predicted(folder: Path, point: Point, profiles: Sequence[str]) -> dict[str, dict[str, float]]:
    """p10, p50 and p90 of each metric of a point, s."""
    load = ["--isl", str(point.prompt), "--osl", str(point.answer), "--concurrency", "1"]
    load += ["--prompts-per-slot", str(REPEATS)]
    pins = [word for file in profiles for word in ("--profile", file)]
    told = mantile("estimate", f"{MODEL}/config.json", *DEPLOYED, *load, *pins, "--json", folder=folder)
    ranges: dict[str, dict[str, float]] = json.loads(told)["range_80"]
    return ranges


def judged(folder: Path, points: Sequence[Point], profiles: Sequence[str]) -> bool:
    """Print each point with its ranges, and how many lie in theirs: whether these are enough."""
    ranges = [predicted(folder, point, profiles) for point in points]
    enough = True
    for metric in METRICS:
        print(f"\n{metric.upper()}, ms")
        print(f"{'point':<18}{'measured':>10}{'p50':>10}{'p10':>10}{'p90':>10}{'p90 ÷ p10':>11}  in range")
        inside = 0
        for point, of_point in zip(points, ranges, strict=True):
            p10, p50, p90 = (of_point[metric][name] for name in ("p10", "p50", "p90"))
            seen = point.measured[metric]
            holds = p10 <= seen <= p90
            inside += holds
            figures = "".join(f"{1e3 * value:>10.2f}" for value in (seen, p50, p10, p90))
            print(f"{point.name:<18}{figures}{p90 / p10:>11.2f}  {'yes' if holds else 'no'}")
        print(f"{inside} of {len(points)} lie in the range of 80 %")
        enough &= inside >= SHARE * len(points)
    return enough


def main() -> None:
    """Measure, calibrate, predict, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a try-out; its numbers mean nothing")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for all files, which stay")
    wanted = parser.parse_args()
    prompts, lengths = (QUICK_PROMPTS, QUICK_ANSWERS) if wanted.quick else (PROMPTS, ANSWERS)
    with contextlib.ExitStack() as ends:
        if wanted.keep:
            wanted.keep.mkdir(parents=True)
        folder = (wanted.keep or Path(ends.enter_context(tempfile.TemporaryDirectory()))).resolve()
        (folder / "config.yaml").touch()
        make_model(folder / MODEL)
        add_chip(folder)
        points = benched(folder, prompts, lengths)
        print(mantile("records", "list", "records.db", folder=folder))
        for point in points:
            if point.failed:
                print(f"{point.name}: {point.failed} of {point.requests} requests failed")
        three = chosen(points)
        profiles = calibrated(folder, three)
        enough = judged(folder, [point for point in points if point not in three], profiles)
    raise SystemExit(0 if enough else 1)


if __name__ == "__main__":
    main()
