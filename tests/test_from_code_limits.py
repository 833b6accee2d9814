"""Classes that would do harm: what they may not do, and that none of others runs unless the user says so."""

from __future__ import annotations

import json
import os
import re
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mantile.cli import app
from mantile.library.dump import add_model
from mantile.library.errors import InputError
from mantile.library.from_code import process
from mantile.library.from_code.limits import refuse
from mantile.library.models import load_model

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


def runs_a_class(test: Any) -> Any:
    """A test that starts the process: it takes seconds, and torch and transformers."""
    needed = pytest.mark.skipif(not process.can_record(), reason="torch and transformers build the classes")
    return pytest.mark.exhaustive(pytest.mark.transformers(needed(test)))


# --- what is refused, asked without a process -------------------------------------------------------------

Scratch = dict[str, str]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    """IN lies in the folder that is thrown away, OUT beside it; LINK lies in it and leads out of it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("SCRATCH", str(scratch))
    monkeypatch.chdir(scratch)
    (scratch / "link").symlink_to(tmp_path)
    return {
        "IN": str(scratch / "file"),
        "OUT": str(tmp_path / "scratch-not" / "file"),
        "LINK": str(scratch / "link" / "file"),
        "SCRATCH": str(scratch),
    }


def asked(places: Scratch, event: str, *arguments: Any) -> None:
    """Tell the hook of an event; arguments that name a place stand for its path."""
    refuse(event, tuple(places.get(one, one) if isinstance(one, str) else one for one in arguments))


@pytest.mark.parametrize(
    "event",
    [
        *("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"),
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("os.kill", "os.killpg"),
    ],
)
def test_connections_and_processes_are_refused(event: str, places: Scratch) -> None:
    """Whatever they are asked with, also of what lies in the folder that is thrown away."""
    with pytest.raises(PermissionError, match=re.escape(event)):
        asked(places, event, "IN", "IN")


OF_ONE = (
    *("os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.utime", "os.setxattr"),
    *("os.removexattr", "os.truncate", "sqlite3.connect", "shutil.rmtree", "shutil.chown"),
    *("shutil.make_archive", "shutil.unpack_archive"),
)
OF_TWO = ("os.rename", "os.link", "os.symlink")
COPIES = ("shutil.copyfile", "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.move")


@pytest.mark.parametrize("event", [*OF_ONE, *OF_TWO, *COPIES])
def test_only_what_is_thrown_away_is_changed(event: str, places: Scratch) -> None:
    """Removed, made, renamed, copied to: in it, but not beside it, behind a link, or where nobody knows."""
    if event in COPIES:
        asked(places, event, "OUT", "IN")
        refused = [("IN", "OUT"), ("IN", "LINK"), ("IN", 7), ("IN", "file")]
    else:
        asked(places, event, "IN", *(("IN",) if event in OF_TWO else ()), -1)
        refused = [(place, "IN") for place in ("OUT", "LINK", "SCRATCH", "file", 7)]
    refused += [("IN", place) for place in ("OUT", "LINK", "file")] if event in OF_TWO else []
    for arguments in refused:
        with pytest.raises(PermissionError, match=re.escape(event)):
            asked(places, event, *arguments)


WRITES = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND)


@pytest.mark.parametrize(("mode", "flags"), [*((mode, 0) for mode in ("w", "a", "x", "r+")),
                                             *((None, flag) for flag in WRITES)])  # fmt: skip
def test_files_are_written_only_where_they_are_thrown_away(
    mode: str | None, flags: int, places: Scratch
) -> None:
    """By the mode that Python is asked for, or by the flags that the system is."""
    for place in (places["IN"], os.fsencode(places["IN"]), os.devnull):
        refuse("open", (place, mode, flags))
    for place in (places["OUT"], os.fsencode(places["OUT"]), places["LINK"], "file", places["SCRATCH"]):
        with pytest.raises(PermissionError, match=r"writing .* is not allowed"):
            refuse("open", (place, mode, flags))


C_NAMES = (
    *("system", "syscall", "popen", "fork", "vfork", "clone", "clone3", "execve", "execvp", "posix_spawn"),
    *("posix_spawnp", "kill", "killpg", "socket", "connect", "open", "open64", "openat", "fopen", "creat"),
    *("mkdir", "mkdirat", "mknod", "mkfifo", "mkstemp", "remove", "rmdir", "unlink", "unlinkat", "rename"),
    *("renameat2", "link", "linkat", "symlink", "symlinkat", "truncate", "ftruncate", "chmod", "fchmod"),
    *("chown", "fchownat"),
)


@pytest.mark.parametrize("name", C_NAMES)
def test_functions_of_c_that_do_the_same_are_refused(name: str, places: Scratch) -> None:
    """Looked up in a library, or behind a handle of one."""
    for event in ("ctypes.dlsym", "ctypes.dlsym/handle"):
        with pytest.raises(PermissionError, match=f"{name} of C"):
            refuse(event, (object(), name))


def test_what_a_class_needs_is_allowed(places: Scratch) -> None:
    """Files are read, modules imported, libraries opened, functions that do no such thing looked up."""
    for mode, flags in (("r", os.O_RDONLY), ("rb", os.O_CLOEXEC), (None, os.O_RDONLY)):
        asked(places, "open", "OUT", mode, flags)
        asked(places, "open", "file", mode, flags)
    asked(places, "open", 3, "w", os.O_WRONLY)  # a pipe that is open: what the recorder answers into
    for event, *arguments in (
        ("import", "json", None, None),
        ("exec", None),
        ("os.listdir", "OUT"),
        ("os.scandir", "OUT"),
        ("os.chdir", "OUT"),
        ("ctypes.dlopen", "libm.so.6"),
        ("ctypes.dlsym", None, "cudaGetDeviceCount"),
        ("ctypes.dlsym", None, "reopen"),
        ("tempfile.mkdtemp", "OUT"),
    ):
        asked(places, event, *arguments)


# --- with torch and transformers --------------------------------------------------------------------------


def folder_with(place: Path, harm: str = "pass", **fields: Any) -> Path:
    """A model with code of its own."""
    (place / "config.json").write_text(json.dumps(LLAMA | fields), encoding="utf-8")
    (place / "modeling_tiny.py").write_text(CODE.replace("{harm}", harm), encoding="utf-8")
    return place


@runs_a_class
def test_code_beside_a_config_runs_only_with_the_flag(tmp_path: Path) -> None:
    """The error names the file and the way; nothing has run."""
    marker = tmp_path / "ran"
    folder = folder_with(tmp_path, f"open({str(marker)!r}, 'w')")
    with pytest.raises(InputError, match=r"tiny_own.*no class of it.*modeling_tiny\.py.*--trust-remote-code"):
        load_model(str(folder))
    assert not marker.exists()


@runs_a_class
def test_trusted_code_is_read_and_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What was run stands in the entry by its digest; the entry needs neither code nor config.

    What it prints is seen by nobody.
    """
    folder = folder_with(tmp_path, "import sys; print('hello'); sys.stderr.write('hello')")
    written = CliRunner().invoke(
        app, ["list", "models", "add", str(folder), "-o", str(tmp_path), "--trust-remote-code"]
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
    "import os; open(scratch, 'w').close(); os.rename(scratch, {marker!r})",
    "import os; os.link({config!r}, scratch)",
    "import os; os.symlink(scratch, {marker!r})",
    "import os; os.open('marker', os.O_CREAT, dir_fd=os.open({folder!r}, os.O_RDONLY))",
    "import os; os.remove('config.json', dir_fd=os.open({folder!r}, os.O_RDONLY))",
    "import os; os.utime({config!r})",
    "import os; os.setxattr({config!r}, 'user.seen', b'1')",
    "import sqlite3; sqlite3.connect({marker!r}).execute('create table seen (what)')",
    "import multiprocessing; multiprocessing.get_context('spawn').Process(target=print).start()",
    "import ctypes; ctypes.CDLL(None).remove({config!r}.encode())",
    "import ctypes; ctypes.CDLL(None).fopen({marker!r}.encode(), b'w')",
)


@runs_a_class
def test_what_trusted_code_may_not_do(tmp_path: Path) -> None:
    """No connection, no process, no file outside what is thrown away: each of these is refused."""
    marker = tmp_path / "marker"
    names = {"marker": str(marker), "config": str(tmp_path / "config.json"), "folder": str(tmp_path)}
    harms = [harm.format(**names) for harm in HARMS]
    folder = folder_with(
        tmp_path,
        f"""done = []
        import os
        for harm in {harms!r}:
            try:
                exec(harm, {{"scratch": os.path.join(os.environ["SCRATCH"], "file")}})
                done.append(harm)
            except PermissionError:
                pass
        raise RuntimeError(f"of its own: {{done}}")""",
    )
    with pytest.raises(InputError, match=r"RuntimeError: of its own: \[\]"):
        load_model(str(folder), trust_remote_code=True)
    assert not marker.exists()
    assert (tmp_path / "config.json").exists()


@runs_a_class
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


@runs_a_class
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


@runs_a_class
def test_more_parameters_than_any_machine_holds_are_counted(tmp_path: Path) -> None:
    """10^15 of them are shapes alone."""
    fields = {"model_type": "olmoe", "hidden_size": 6 * 2**20, "intermediate_size": 2**22, "num_experts": 12}
    folder = folder_with(tmp_path, **fields, num_experts_per_tok=2, auto_map=None)
    from mantile.ir.build import build_ir
    from mantile.ir.counts import parameters

    assert parameters(build_ir(load_model(str(folder))))["total"] > 10**15
