"""The documents: every command and every Python block in them runs and prints what stands there, every link
leads somewhere, every command and reason code is told of, and tables that follow from the code are up to
date.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import make_documents
import pytest
import yaml

import mantile
from mantile.cli import main
from mantile.equations.build import build_graph
from mantile.equations.reasons import REASONS
from mantile.estimates.estimate import estimate
from mantile.ir.build import build_ir
from mantile.library.documents import parse_yaml
from mantile.library.models import load_model
from mantile.library.profiles import Library
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.library.template import Template
from mantile.measured.runs import parse_run
from tests.test_start_logs import LOGS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "[a-z]*/*.md", "mantile/*/*.md", ".github/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
COLUMNS = 80  # of the terminal that documents show
MOST_LINES = 150  # of README.md

# What documents tell people to run and no test runs, with the reason.
NOT_RUN = {
    "python3 -m venv": "makes an environment",
    "python -m venv": "makes an environment",
    ". .venv": "enters an environment",
    "pip install": "installs",
    "python -m pip install": "installs",
    "pre-commit install": "installs",
    "python -m pytest": "runs the tests",
    "ruff": "is run by .ci/run",
    "mypy": "is run by .ci/run",
    "lint-imports": "is run by .ci/run",
    ".ci/run": "runs the tests",
    "python .ci/": "writes into the repository; its parts have tests of their own",
    "mantile serve": "answers until it is ended; test_server_process.py starts it",
    "curl ": "is run by test_server_process.py, with a server to answer",
    "python workbooks/from_python.py": "is run by test_gallery.py",
    "mantile list profiles add": "needs a file of a runtime; test_contract.py has one",
    "mantile bench http": "needs a server; test_bench.py has one",
    "mantile sweep llama-3.3-70b --isl 2048 --osl 256 --over accelerator=all --over tp=2^0..2^3 --over w": (
        "takes a million points; others are swept"
    ),
    "mantile calibrate --multipliers workbooks/": "learns from all runs; test_correction.py learns from few",
    "mantile build workbooks/": "is estimated and laid out by test_gallery.py",
}
# Commands that write or read workbooks or what came of them, or predict hundreds of runs.
HEAVY = (
    ".xlsx",
    "edited.yaml",
    "run.json",
    "reconcile workbooks/",
    "calibrate",
    "mantile calibrate --multipliers",
    "--gpus-max 16",
    "macs.yaml",
    "shared_prefix=0",
    "newchip.yaml",
    "pareto.png",
    "errors.png",
    "mantile fits",
    "price_basis=cloud",
    "estimate config.json",
    "--speculation eagle",
    "size gpt-oss-120b",
)
WRITES = (" -o ", "records import", "keys new")  # what others that take seconds may need
HEAVY_CALLS = ("verify(", "import_workbook(", "reconcile(", "calibrate(")
EXIT_STATUS_1 = (
    "compare",
    "records drift",
    "list hardware add",
    "reconcile",
    "size",
)  # of commands that may find something, or print an error that is shown

SCENARIO = """\
model: llama-3.1-8b
accelerator: h100-sxm
input_tokens: 1024
output_tokens: 128
concurrency: 8
"""
CONFIG = """\
{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
 "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": true,
 "torch_dtype": "bfloat16", "max_position_embeddings": 131072}
"""
RUNS = """\
runs:
  - {id: a, model: llama-3.1-8b, accelerator: h100-sxm, framework: vllm, input_tokens: 1024,
     output_tokens: 128, concurrency: 8, metrics: {ttft_s: 0.06, tpot_s: 0.0085}, source: made up,
     date: 2026-11-20}
  - {id: b, model: llama-3.1-8b, accelerator: h100-sxm, framework: vllm, input_tokens: 1024,
     output_tokens: 128, concurrency: 16, metrics: {ttft_s: 0.08, tpot_s: 0.01}, source: made up,
     date: 2026-11-20}
  - {id: c, model: llama-3.3-70b, accelerator: h100-sxm, framework: vllm, tp: 8, input_tokens: 1024,
     output_tokens: 128, concurrency: 8, metrics: {ttft_s: 0.09, tpot_s: 0.013}, source: made up,
     date: 2026-11-20}
"""
TRACE = "arrival,input_tokens,output_tokens,class\n0,600,200,chat\n1.5,6000,300,documents\n2,800,150,chat\n"

MACS = """\
model: qwen3-235b-a22b
framework: llama.cpp
weights_dtype: q4_k_m
input_tokens: 2048
output_tokens: 256
concurrency: 1
devices:
  - {accelerator: rtx-5090}
  - {accelerator: m3-ultra, link: thunderbolt-5-rdma}
  - {accelerator: m3-ultra}
  - {accelerator: m3-ultra}
"""

CORRECTION = """\
id: correction
version: "2026-11-26"
source: made up
metrics:
  - metric: tpot
    groups:
      - {model: llama-3.1-8b, accelerator: h100-sxm, framework: vllm, runs: 24, step: 0.05}
    low: -0.1
    high: 0.1
"""

FILES = {
    "correction.yaml": CORRECTION,
    "scenario.yaml": SCENARIO,
    "config.json": CONFIG,
    "runs.yaml": RUNS,
    "requests.csv": TRACE,
    "macs.yaml": MACS,
    "server.log": LOGS["vllm length"][0],
}
"""Files that documents speak of as the reader's own."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start()) + 2
        yield Block(document, line, found[1], found[2])


@dataclass(frozen=True)
class Command:
    """A command of a document and what stands below it; `shown` is None where nothing does."""

    place: str
    text: str
    shown: str | None = None

    @property
    def heavy(self) -> bool:
        """Whether it takes seconds."""
        return any(part in self.text for part in HEAVY)


def block_commands(block: Block) -> Iterator[Command]:
    """In a `console` block commands follow a dollar sign and their output follows them.

    In a `bash` block each line is one.
    """
    if block.language == "bash":
        lines = block.text.replace("\\\n", " ").splitlines()
        yield from (Command(str(block), line) for line in lines if line.strip())
        return
    assert block.text.startswith("$ "), f"{block}: a console block begins with a command"
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        while line.endswith("\\"):  # continued; what is printed may have such lines too
            more, _, shown = shown.partition("\n")
            line = f"{line[:-1]} {more}"
        yield Command(str(block), line, shown if shown.strip() else None)


@cache
def command_names() -> frozenset[str]:
    """Every command of the command line, as it is typed."""
    return frozenset(name for name, _ in make_documents.commands())


def commands(document: str) -> Iterator[Command]:
    """All commands of a document that are mantile's: of blocks, and of the text where they have arguments."""
    names = command_names()
    for block in blocks(document):
        if block.language in ("console", "bash"):
            for command in block_commands(block):
                for part in command.text.split("&&"):
                    line = part.strip().removeprefix(".venv/bin/")
                    if line.startswith("mantile ") and not line.startswith(tuple(NOT_RUN)):
                        yield Command(command.place, line, command.shown)
                    else:
                        assert any(
                            line.removeprefix(".venv-test/bin/").startswith(start) for start in NOT_RUN
                        ), f"{command.place}: nothing runs: {line}"
    prose = re.sub(
        r"^```.*?^```$", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    groups = {"mantile", *(name.rpartition(" ")[0] for name in names)}
    for line in re.findall(r"`(mantile [^`]+)`", prose):
        if line.startswith(tuple(NOT_RUN)):
            continue
        if not any(re.fullmatch(rf"{name}( --[a-z-]+)*", line) for name in names | groups):
            yield Command(document, line)


@cache
def told_first(text: str) -> str:
    """The first document that has a command."""
    return next(name for name in DOCUMENTS if any(command.text == text for command in commands(name)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a reader, with workbooks/ in it; what is written there stays there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    shutil.copytree(
        ROOT / "workbooks",
        tmp_path / "workbooks",
        ignore=shutil.ignore_patterns("*.png", "*.xlsx"),
        dirs_exist_ok=True,
    )
    for path in (ROOT / "workbooks").glob("*.xlsx"):
        (tmp_path / "workbooks" / path.name).symlink_to(path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A workbook of the scenario above, built when it is first asked for."""
    path = tmp_path_factory.mktemp("documents") / "run.xlsx"

    def built() -> Path:
        if not path.exists():
            mantile.build_workbook(estimate(parse_scenario(yaml.safe_load(SCENARIO), "scenario")), path)
        return path

    return built


def run(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in this process; what it prints is what the document shows."""
    words = shlex.split(command.text, comments=True)
    monkeypatch.setattr(sys, "argv", words)
    status: Any = 0
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    may_find = command.text.startswith(tuple(f"mantile {name} " for name in EXIT_STATUS_1))
    may_find |= any(said in (command.shown or "") for said in ("\n  error ", " does not fit "))
    assert status == 0 or (status == 1 and may_find), f"{command.place}: {command.text}: {err.getvalue()}"
    if command.shown is not None:
        assert_printed(out.getvalue(), command.shown, command.place)


def assert_printed(printed: str, shown: str, place: str) -> None:
    """The document shows what was printed, but for the widths of columns; `...` stands for anything."""
    lines = shown.strip("\n").splitlines()
    assert max(map(len, lines)) <= COLUMNS, f"{place}: wider than a terminal"
    pattern = ".*?".join(map(re.escape, without_widths(shown).split("...")))
    assert re.fullmatch(pattern, without_widths(printed), re.DOTALL), f"{place}: prints\n{printed}"


def without_widths(text: str) -> str:
    """Each run of blanks, and each rule below headings, as one character."""
    lines = (re.sub(r"([ ─])\1+", r"\1", line).rstrip() for line in text.splitlines())
    return "\n".join(lines).strip("\n")


def run_all(document: str, heavy: bool, built: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a document in its order; those that take seconds only if asked for.

    Of commands that read files and show nothing, those that another document has too run once.
    """
    ran: set[str] = set()
    for command in commands(document):
        if command.heavy and not heavy:
            continue
        if command.shown is None and command.text in ran:
            continue
        ran.add(command.text)
        reads = (" workbooks/", " verify ", "build scenario.yaml -o run.xlsx")
        again = command.shown is None and told_first(command.text) != document
        if again and any(part in command.text for part in reads):
            continue
        if heavy and not (command.heavy or any(part in command.text for part in WRITES)):
            continue  # run by the test of those that take less
        if "run.xlsx" in command.text and "-o run.xlsx" not in command.text and not Path("run.xlsx").exists():
            shutil.copy(built(), "run.xlsx")
        for name in re.findall(r"workbooks/([\w.-]+)\.xlsx", command.text):
            build_anew(Path("workbooks", f"{name}.xlsx"))
        run(command, monkeypatch)


def build_anew(path: Path) -> None:
    """A workbook of the gallery as the program builds it now: the committed ones are those of a release."""
    if path.is_symlink():
        path.unlink()
        mantile.build_workbook(estimate(load_scenario(str(path.with_suffix(".yaml")))), path)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_run(
    document: str, folder: Path, workbook: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that take less than seconds each."""
    run_all(document, False, workbook, monkeypatch)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "document", [name for name in DOCUMENTS if any(command.heavy for command in commands(name))]
)
def test_all_commands_run(
    document: str, folder: Path, workbook: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others, in the order of the document, as a later one may need what an earlier one wrote."""
    run_all(document, True, workbook, monkeypatch)


PYTHON = [block for name in DOCUMENTS for block in blocks(name) if block.language == "python"]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block,
            id=str(block),
            marks=[pytest.mark.exhaustive] if any(call in block.text for call in HEAVY_CALLS) else [],
        )
        for block in PYTHON
    ],
)
def test_python_blocks_run(block: Block, folder: Path) -> None:
    """A comment behind a line that prints is what it prints.

    What is a script of the gallery too, which test_gallery.py runs, calls the same here.
    """
    called = r"\.(\w+)\("
    if "mt.audit(" in block.text:
        script = (ROOT / "workbooks/from_python.py").read_text(encoding="utf-8")
        assert {*re.findall(called, block.text)} <= {*re.findall(called, script)}
        return
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.parse(block.text), str(block), "exec"), {"__name__": "__main__"})
    printed = out.getvalue()
    for comment in re.findall(r"^print\(.*\)  # (.+)$", block.text, re.MULTILINE):
        assert comment in printed, f"{block}: {comment}: prints\n{printed}"
        printed = printed.partition(comment)[2]


YAML = [block for name in DOCUMENTS for block in blocks(name) if block.language == "yaml"]


@pytest.mark.parametrize("block", YAML, ids=str)
def test_yaml_blocks_are_scenarios_templates_and_runs(block: Block) -> None:
    """All fields are known, and a scenario can be estimated."""
    data = parse_yaml(block.text, str(block))
    if "runs" in data:
        assert all(parse_run(run, str(block)) for run in data["runs"])
    elif "model" in data:
        assert estimate(parse_scenario(data, str(block))).results()
    else:
        assert Template.model_validate(data)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_blocks_have_a_language_and_commands_a_block(document: str) -> None:
    """Nothing that looks like a command stands where no test finds it."""
    text = (ROOT / document).read_text(encoding="utf-8")
    assert {block.language for block in blocks(document)} <= {"console", "bash", "python", "yaml", "text"}
    assert text.count("```") == 2 * len(list(blocks(document)))
    for block in blocks(document):
        assert block.language != "text" or "mantile " not in block.text, str(block)
    assert not re.search(r"^(    |\t)(\$ )?(\.venv/bin/)?(mantile|python|pip) ", text, re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """What a link may name behind `#`: headings as GitHub spells them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md"])
def test_links_lead_somewhere(document: str) -> None:
    """Files that are there, and headings that they have."""
    path = ROOT / document
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{document}: {link}"
        assert target == ROOT or ROOT in target.parents, f"{document}: {link} leads out of the repository"
        if anchor:
            assert anchor in anchors(target), f"{document}: {link}"


# --- what documents must tell of ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", make_documents.TABLES)
def test_tables_that_follow_from_the_code_are_up_to_date(name: str) -> None:
    """Otherwise: python .ci/make_documents.py."""
    assert make_documents.document(name) == (ROOT / name).read_text(encoding="utf-8")


def test_every_command_and_every_reason_code_is_told_of() -> None:
    """A sentence for each command, with an example somewhere, and one for each reason code."""
    told = [line for name in DOCUMENTS for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    examples = " ".join(command.text for name in DOCUMENTS for command in commands(name))
    examples += " ".join(
        block.text for name in DOCUMENTS for block in blocks(name) if block.language in ("bash", "console")
    )  # those too that no test runs
    for command in command_names():
        assert any(re.match(rf"\| `{command}` \| [A-Z].+\. \|$", line) for line in told), command
        told_elsewhere = command in NOT_RUN
        assert told_elsewhere or f"{command} " in f"{examples} ", f"{command}: no document has an example"
    for code in REASONS:
        assert any(re.match(rf"\| `{code}`.* \| .+\. \|$", line) for line in told), code


def test_every_public_name_is_told_of() -> None:
    """In mantile/README.md, with a sentence each."""
    text = (ROOT / "mantile/README.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`\w.*) \| [A-Z].+\. \|$", text.partition("## From Python")[2], re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    assert names == set(mantile.__all__) - {"__version__"}


def test_readme_is_short() -> None:
    """Whoever wants more follows a link."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES


def test_the_ways_from_ids_to_functions_are_there(library: Library) -> None:
    """The table of mantile/README.md names ids, files and functions that there are."""
    graph = build_graph(build_ir(load_model("llama-3.1-8b")), library, open_loop=True)
    text = (ROOT / "mantile/README.md").read_text(encoding="utf-8")
    ways = re.findall(
        r"^\| [^|]+ \| `([\w.]+)` \| \[equations/(\w+\.\w+)\]\(\S+\) \| `([\w{}]+)` \|$", text, re.MULTILINE
    )
    assert len(ways) >= 5
    for identifier, file, function in ways:
        assert identifier in graph.figures, identifier
        path = ROOT / "mantile/equations" / file
        if path.suffix == ".eq":
            assert re.search(rf"^{re.escape(function)} ", path.read_text(encoding="utf-8"), re.MULTILINE), (
                file
            )
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, identifier
