"""Classes that would do harm: what they may not do, and that none of others runs unless the user says so."""

from __future__ import annotations

import json
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mantile.cli import app
from mantile.library.errors import InputError
from mantile.library.from_code import process
from mantile.library.models import add_model, load_model

LLAMA = {
    "model_type": "tiny_own",
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 88,
    "vocab_size": 101,
    "max_position_embeddings": 500,
    "tie_word_embeddings": False,
    "auto_map": {"AutoConfig": "modeling_tiny.TinyConfig", "AutoModelForCausalLM": "modeling_tiny.Tiny"},
}
CODE = """
from transformers import LlamaConfig, LlamaForCausalLM
class TinyConfig(LlamaConfig):
    model_type = "tiny_own"
class Tiny(LlamaForCausalLM):
    config_class = TinyConfig
    def __init__(self, config):
        super().__init__(config)
        {harm}
"""
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.transformers,
    pytest.mark.skipif(not process.can_record(), reason="torch and transformers build the classes"),
]


def folder_with(place: Path, harm: str = "pass", **fields: Any) -> Path:
    """A model with code of its own."""
    (place / "config.json").write_text(json.dumps(LLAMA | fields), encoding="utf-8")
    (place / "modeling_tiny.py").write_text(CODE.replace("{harm}", harm), encoding="utf-8")
    return place


def test_code_beside_a_config_runs_only_with_the_flag(tmp_path: Path) -> None:
    """The error names the file and the way; nothing has run."""
    marker = tmp_path / "ran"
    folder = folder_with(tmp_path, f"open({str(marker)!r}, 'w')")
    with pytest.raises(InputError, match=r"tiny_own.*no class of it.*modeling_tiny\.py.*--trust-remote-code"):
        load_model(str(folder))
    assert not marker.exists()


def test_trusted_code_is_read_and_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What was run stands in the entry by its digest; the entry needs neither code nor config.

    What it prints is seen by nobody.
    """
    folder = folder_with(tmp_path, "import sys; print('hello'); sys.stderr.write('hello')")
    written = CliRunner().invoke(
        app, ["models", "add", str(folder), "-o", str(tmp_path), "--trust-remote-code"]
    )
    assert written.exit_code == 0, written.output
    assert "hello" not in "".join(capfd.readouterr())
    digest = sha256((folder / "modeling_tiny.py").read_bytes()).hexdigest()
    (folder / "config.json").unlink()
    (folder / "modeling_tiny.py").unlink()
    model = load_model(str(next(tmp_path.glob("*.yaml"))))
    assert model.code == {"modeling_tiny.py": digest}
    assert model.architecture.value("layers") == 3
    assert {fact.origin for fact in model.architecture.facts.values()} == {"code"}
    with pytest.raises(InputError, match="such a file already"):
        add_model(str(next(tmp_path.glob("*.yaml"))), tmp_path, date(2026, 11, 24))


HARMS = (
    "import socket; socket.create_connection(('127.0.0.1', 9))",
    "open({marker!r}, 'w').write('x')",
    "import pathlib; pathlib.Path({marker!r}).touch()",
    "import os; os.system('touch {marker}')",
    "import subprocess; subprocess.run(['touch', {marker!r}])",
    "import os; os.remove({config!r})",
    "import os; os.rename({config!r}, {marker!r})",
    "import shutil; shutil.rmtree({folder!r})",
    "import shutil; shutil.copyfile({config!r}, {marker!r})",
    "import ctypes; ctypes.CDLL(None).system(b'touch {marker}')",
    "import os; os.fork()",
)


def test_what_trusted_code_may_not_do(tmp_path: Path) -> None:
    """No connection, no process, no file outside what is thrown away: each of these is refused."""
    marker = tmp_path / "marker"
    names = {"marker": str(marker), "config": str(tmp_path / "config.json"), "folder": str(tmp_path)}
    harms = [harm.format(**names) for harm in HARMS]
    folder = folder_with(
        tmp_path,
        f"""done = []
        for harm in {harms!r}:
            try:
                exec(harm)
                done.append(harm)
            except PermissionError:
                pass
        raise RuntimeError(f"of its own: {{done}}")""",
    )
    with pytest.raises(InputError, match=r"RuntimeError: of its own: \[\]"):
        load_model(str(folder), trust_remote_code=True)
    assert not marker.exists()
    assert (tmp_path / "config.json").exists()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("bytearray(40 * 2**30)", "MemoryError"),
        ("import os; os._exit(0)", "did not come to an end"),
        ("while True: pass", "did not come to an end within 8 s"),
    ],
)
def test_code_that_takes_too_much_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, words: str
) -> None:
    """Memory and time are bounded."""
    if "while" in harm:
        monkeypatch.setattr(process, "SECONDS", 8)
    with pytest.raises(InputError, match=words):
        load_model(str(folder_with(tmp_path, harm)), trust_remote_code=True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_hidden_layers": 10**9}, "did not come to an end within 8 s|cannot be built"),
        ({"hidden_size": "wide"}, "cannot be built or run"),
    ],
)
def test_configs_that_no_class_can_be_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], words: str
) -> None:
    """Bounded in time, and told by name."""
    if "num_hidden_layers" in fields:
        monkeypatch.setattr(process, "SECONDS", 8)
    with pytest.raises(InputError, match=words):
        load_model(str(folder_with(tmp_path, model_type="olmoe", **fields)))


def test_more_parameters_than_any_machine_holds_are_counted(tmp_path: Path) -> None:
    """10^15 of them are shapes alone."""
    fields = {"model_type": "olmoe", "hidden_size": 6 * 2**20, "intermediate_size": 2**22, "num_experts": 12}
    folder = folder_with(tmp_path, **fields, num_experts_per_tok=2, auto_map=None)
    from mantile.ir.build import build_ir
    from mantile.ir.counts import parameters

    assert parameters(build_ir(load_model(str(folder))))["total"] > 10**15
