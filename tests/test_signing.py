"""Signatures: who vouches for a workbook or a bundle, and what is told where nobody does."""

from __future__ import annotations

import base64
import copy
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from live import exit_status, few

from mantile.estimates.estimate import Estimate, estimate
from mantile.library import signing
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.library.signing import check, key_id, new_key, read_private_key, read_trusted, sign
from mantile.workbook.bundle import Bundle, read_bundle, write_bundle
from mantile.workbook.write import build_workbook

FIELDS = {
    "model": "llama-3.2-1b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}


@pytest.fixture(scope="module")
def small() -> Estimate:
    """An estimate on a small library."""
    return estimate(parse_scenario(FIELDS, "scenario"), library=few(("h100-sxm",)))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys, of which `trusted` has one."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "trusted").mkdir()
    new_key(folder / "me.key")
    new_key(folder / "other.key")
    (folder / "me.pub").rename(folder / "trusted" / "me.pub")
    return folder


def _public(key: Path) -> bytes:
    return read_private_key(key).public_key().public_bytes_raw()


def test_a_signature_is_of_its_content_and_its_kind(keys: Path) -> None:
    """The same digest of another kind of document is not signed by it."""
    signature = sign("bundle", "ab12", read_private_key(keys / "me.key"))
    trusted = read_trusted(keys / "trusted")
    verdict = check("bundle", "ab12", signature, trusted)
    assert verdict.ok and (verdict.status, verdict.signer) == ("holds", "me")
    assert verdict.key == key_id(_public(keys / "me.key"))
    for kind, digest in (("bundle", "ab13"), ("run record", "ab12")):
        assert check(kind, digest, signature, trusted).status == "does not hold"
    other = sign("bundle", "ab12", read_private_key(keys / "other.key"))
    assert not check("bundle", "ab12", other, trusted).ok
    assert check("bundle", "ab12", other).status == "unknown key" and check("bundle", "ab12", other).ok
    assert check("bundle", "ab12", None).ok and not check("bundle", "ab12", None, trusted).ok


@pytest.mark.parametrize(
    "damage",
    [
        {"algorithm": "rsa"},
        {"key": "AAAA"},
        {"key": 7},
        {"signature": "é"},
        {"signature": base64.b64encode(bytes(64)).decode()},
        {"key": base64.b64encode(b"\xff" * 32).decode()},
        {"more": "x"},
    ],
)
def test_a_damaged_signature_does_not_hold(keys: Path, damage: dict[str, Any]) -> None:
    """Nor is one that is no mapping an error of ours; also where nobody says which keys are trusted."""
    signature = dict(sign("bundle", "ab12", read_private_key(keys / "me.key"))) | damage
    for given in (signature, [1], "x", 7):
        verdict = check("bundle", "ab12", given)
        assert verdict.status == "does not hold" and not verdict.ok and verdict.why


def test_keys_are_files_of_their_own(keys: Path, tmp_path: Path) -> None:
    """A private one is for its owner alone, is never overwritten and never told."""
    private = keys / "me.key"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="never overwritten"):
        new_key(private)
    public = _public(private)
    lines = tmp_path / "keys.txt"
    lines.write_text(f"# ours\n{public.hex()} Ann of sizing\n{base64.b64encode(bytes(32)).decode()}\n")
    assert read_trusted(lines) == {public: "Ann of sizing", bytes(32): "keys"}
    raw = tmp_path / "raw.pub"
    raw.write_bytes(public)
    assert read_trusted(raw) == {public: "raw"}
    for content, message in (
        (private.read_bytes(), "a private key; expected public ones"),
        (b"hunter2", r"line 1: 'hunter2'; expected a public key"),
        (b"\xff" * 40, "expected public keys in PEM"),
        (b"", "no public key in it"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "expected a public key of Ed25519"),
    ):
        lines.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            read_trusted(lines)
        assert "PRIVATE" not in str(caught.value)
    lines.write_text("password: hunter2")
    with pytest.raises(InputError, match=r"keys\.txt: expected a private key") as caught:
        read_private_key(lines)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InputError, match="No such file"):
        read_trusted(tmp_path / "nowhere")


def test_a_bundle_that_was_changed_and_digested_anew(
    small: Estimate, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stripped of its signature it is unsigned, with it that does not hold, by another key it is unknown."""
    signed = Bundle.of(small).signed(keys / "me.key")
    path = write_bundle(signed, tmp_path / "run.json")
    assert read_bundle(path).text == signed.text
    trusted = ("--trusted", str(keys / "trusted"))
    assert exit_status("verify", str(path), *trusted) == 0
    assert "signed by me" in capsys.readouterr().out
    data = copy.deepcopy(signed.data)
    data["library"]["accelerators"][0]["memory_bandwidth"]["value"] *= 2
    changed = Bundle(data, "bundle")
    for bundle, said, alone in (
        (changed, "unsigned: anybody may have changed it", 0),
        (Bundle(data, "bundle", signed.signature), "does not hold: the content was changed", 1),
        (changed.signed(keys / "other.key"), "none of the trusted ones", 0),
    ):
        write_bundle(bundle, path)
        assert exit_status("verify", str(path), *trusted) == 1
        told = " ".join(capsys.readouterr().out.split())
        assert said in told and "verification FAILED" in told
        assert exit_status("verify", str(path)) == alone
        capsys.readouterr()
        assert exit_status("verify", str(path), "--json", *trusted) == 1
        found = json.loads(capsys.readouterr().out)
        assert not found["ok"] and not found["signature"]["ok"] and found["protected"]


def test_signatures_without_the_package(small: Estimate, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are not checked, which is told; where keys are named the package is asked for."""
    signed = Bundle.of(small).signed(keys / "me.key")
    trusted = read_trusted(keys / "trusted")

    def absent() -> Any:
        raise InputError("signatures need the package cryptography: pip install 'mantile[sign]'")

    monkeypatch.setattr(signing, "_cryptography", absent)
    verdict = signed.verdict()
    assert verdict.status == "not checked" and verdict.ok and "mantile[sign]" in verdict.words
    with pytest.raises(InputError, match=r"mantile\[sign\]"):
        signed.verdict(trusted)


@pytest.mark.exhaustive
def test_a_workbook_tells_who_signed(
    small: Estimate, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It verifies with their key, and neither without a signature nor with one of somebody else."""
    path = build_workbook(small, tmp_path / "run.xlsx", sign=keys / "me.key")
    asked = ("verify", str(path), "--engine", "formualizer")
    assert exit_status(*asked, "--trusted", str(keys / "trusted")) == 0
    assert "signed by me" in capsys.readouterr().out
    assert exit_status(*asked, "--trusted", str(keys / "other.pub")) == 1
    assert "none of the trusted ones" in " ".join(capsys.readouterr().out.split())
    assert (
        exit_status("import", str(path), "--bundle", "--sign", str(keys / "me.key"), "-o", f"{path}.json")
        == 0
    )
    assert read_bundle(f"{path}.json").verdict(read_trusted(keys / "trusted")).signer == "me"
    build_workbook(small, path)
    assert exit_status(*asked, "--trusted", str(keys / "trusted")) == 1
    assert "unsigned" in capsys.readouterr().out
