"""What shells complete: commands, flags, and the ids that a value may be."""

from __future__ import annotations

import sys

import pytest

from mantile.cli import main
from mantile.cli.completion import ids
from mantile.library.models import model_ids
from mantile.library.profiles import Library


def _asked(
    line: str, shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """What a shell is told of a line that somebody stopped in, as its script asks for it."""
    monkeypatch.setattr(sys, "argv", ["mantile"])
    monkeypatch.setenv("_MANTILE_COMPLETE", f"complete_{shell}")
    if shell == "bash":
        words = [*line.split(), *([""] if line.endswith(" ") else [])]
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    else:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    out, err = capsys.readouterr()
    assert not err
    return out.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mantile est", {"estimate"}),
        ("mantile list hardware s", {"show"}),
        ("mantile list sy", {"systems"}),
        ("mantile list mod", {"models"}),
        ("mantile estimate deepseek-v3", {"deepseek-v3", "deepseek-v3.1"}),
        ("mantile estimate x --gpu h100", {"h100-sxm", "h100-pcie", "h100-nvl"}),
        ("mantile optimize x --gpu h100-sxm,b2", {"h100-sxm,b200-sxm"}),
        ("mantile sweep x --system hgx-h", {"hgx-h100", "hgx-h200"}),
        ("mantile estimate x --framework ", {"vllm", "sglang", "llama.cpp"}),
        ("mantile estimate x --kv-dtype=fp8", {"fp8"}),
        ("mantile estimate x --as l", {"llama.cpp", "lmstudio"}),
        ("mantile fits rtx-50", {"rtx-5090"}),
        ("mantile list models show llama-3.3", {"llama-3.3-70b"}),
        ("mantile estimate x --decode-t", {"--decode-tp"}),
    ],
)
def test_bash_is_told_what_goes_on(
    line: str, words: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids of models, accelerators, systems, frameworks and formats, choices, flags of fields, commands."""
    said = _asked(line, "bash", monkeypatch, capsys)
    assert words <= set(said)
    typed = line.rpartition(" ")[2].rpartition("=")[2]
    assert all(word.startswith(typed) for word in said)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_the_same(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In their own form."""
    said = " ".join(_asked("mantile estimate x --gpu h100", shell, monkeypatch, capsys))
    assert all(chip in said for chip in ("h100-sxm", "h100-pcie", "h100-nvl"))


def test_words_are_those_of_the_library(library: Library) -> None:
    """Read from names of files and by a pattern, as the library says them."""
    assert set(ids("<chip>")) == {chip.id for chip in library.accelerators}
    assert set(ids("<system>")) == {system.id for system in library.systems}
    assert set(ids("<framework>")) == {framework.id for framework in library.frameworks}
    assert set(ids("<format>")) == {form.id for form in library.datatypes}
    assert set(ids("MODEL")) == set(model_ids())
