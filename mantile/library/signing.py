"""Ed25519 signatures: who vouches for a document, and whether it still is what they signed.

What is signed is a digest of the document's content and the kind of document it is, so that a signature of
one kind never stands for another. A signature names its key; whether that key is to be trusted is for the
reader to say, by a file or folder of public keys.

The package `cryptography` (extra `sign`) is imported when something is signed or checked, not before.

Example:
    signature = sign("bundle", digest, read_private_key(Path("me.key")))
    check("bundle", digest, signature, read_trusted(Path("keys")))      # Verdict(status="holds", ...)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from mantile.library.errors import InputError, quoted
from mantile.library.files import replacing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM = "ed25519"
MOST_BYTES = 100_000  # of a file of keys
MOST_FILES = 1_000  # of a folder of keys
_RAW = 32  # bytes of a public key
_SIGNATURE = 64  # bytes

Status = Literal["unsigned", "holds", "unknown key", "does not hold", "not checked"]
"""What a signature may be: "unknown key" is one that holds, by a key that is not among the trusted ones."""

Signature = Mapping[str, str]
"""As documents hold it: `algorithm`, `key` (the public one) and `signature`, the last two in base64."""


@dataclass(frozen=True)
class Verdict:
    """What a signature is worth.

    Args:
        status: of the signature.
        key: the id of the key that signed; None if nobody did.
        signer: what the trusted keys call it; None where it is not among them.
        trusted: whether trusted keys were named.
        why: what is wrong with a signature that does not hold or was not checked.
    """

    status: Status
    key: str | None = None
    signer: str | None = None
    trusted: bool = False
    why: str = ""

    @property
    def ok(self) -> bool:
        """With trusted keys, that one of them signed; without, that no signature is wrong."""
        return self.status == "holds" if self.trusted else self.status != "does not hold"

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "status": self.status,
            "key": self.key,
            "signer": self.signer,
            "ok": self.ok,
            "why": self.why or None,
        }

    @property
    def words(self) -> str:
        """In words.

        >>> Verdict("unsigned", trusted=True).words
        'unsigned: anybody may have changed it and made the digest anew'
        """
        match self.status:
            case "unsigned":
                return "unsigned: anybody may have changed it and made the digest anew"
            case "holds":
                return f"signed by {self.signer or 'key'} ({self.key}), holds"
            case "unknown key":
                other = (
                    ", which is none of the trusted ones" if self.trusted else "; --trusted says whose it is"
                )
                return f"signed by key {self.key}{other}"
            case "not checked":
                return f"signed by key {self.key}, not checked: {self.why}"
        return f"signature of key {self.key or 'unknown'} does not hold: {self.why}"


def sign(kind: str, digest: str, key: Ed25519PrivateKey) -> Signature:
    """Sign a digest of the content of a document.

    Args:
        kind: of document, such as "bundle" or "run record".
        digest: SHA-256 of its content, in hexadecimal.
        key: of `read_private_key`.
    """
    public = key.public_key().public_bytes_raw()
    return {
        "algorithm": ALGORITHM,
        "key": base64.b64encode(public).decode(),
        "signature": base64.b64encode(key.sign(_message(kind, digest))).decode(),
    }


def check(kind: str, digest: str, signature: object, trusted: Mapping[bytes, str] | None = None) -> Verdict:
    """What a signature is worth.

    Args:
        kind, digest: as for `sign`, of the document as it stands now.
        signature: as the document holds it, whatever that is; None if it holds none.
        trusted: names of public keys, of `read_trusted`; None if nobody said which are trusted.

    Raises:
        InputError: if keys are named and the package `cryptography` is not installed.
    """
    told = trusted is not None
    if signature is None:
        return Verdict("unsigned", trusted=told)
    try:
        public, signed = _parts(signature)
    except ValueError as error:
        return Verdict("does not hold", trusted=told, why=str(error))
    key = key_id(public)
    try:
        holds = _verifies(public, signed, _message(kind, digest))
    except InputError as error:
        if told:
            raise
        return Verdict("not checked", key, why=str(error))
    if not holds:
        return Verdict("does not hold", key, trusted=told, why="the content was changed since it was signed")
    if trusted is not None and public in trusted:
        return Verdict("holds", key, trusted[public], told)
    return Verdict("unknown key", key, trusted=told)


def key_id(public: bytes) -> str:
    """What a public key is called where it has no name: the first 16 digits of its SHA-256, in fours.

    >>> key_id(bytes(32))
    '6668 7aad f862 bd77'
    """
    digits = hashlib.sha256(public).hexdigest()[:16]
    return " ".join(digits[place : place + 4] for place in range(0, 16, 4))


def new_key(path: Path) -> tuple[Path, str]:
    """Write a new private key to a file that nobody else may read, and its public key beside it.

    Args:
        path: of the private key, such as me.key; the public one is me.pub.

    Returns:
        The file of the public key, and the id of the key.

    Raises:
        InputError: if either file is there already, or cannot be written.
    """
    crypto = _cryptography()
    public_path = path.with_suffix(".pub")
    if public_path == path:
        raise InputError(f"{path}: expected another ending than .pub, which the public key has")
    for file in (path, public_path):
        if file.exists():
            raise InputError(f"{file}: there is such a file already; a key is never overwritten")
    key = crypto.ed25519.Ed25519PrivateKey.generate()
    forms = crypto.serialization
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    _write(path, private, 0o600)
    try:
        _write(public_path, public, 0o644)
    except InputError:
        with suppress(OSError):
            path.unlink()
        raise
    return public_path, key_id(key.public_key().public_bytes_raw())


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key to sign with: a file in PEM without password, as `new_key` and `openssl genpkey` write it.

    Raises:
        InputError: naming the file, if it is none; its content is never told.
    """
    crypto = _cryptography()
    data = _read(path)
    try:
        key = crypto.serialization.load_pem_private_key(data, password=None)
    except TypeError as error:
        raise InputError(f"{path}: the key has a password; expected one without") from error
    except (ValueError, crypto.Unsupported) as error:
        raise InputError(
            f"{path}: expected a private key of Ed25519 in PEM, as `mantile config keys new FILE.key` writes "
            "it"
        ) from error
    if not isinstance(key, crypto.ed25519.Ed25519PrivateKey):
        raise InputError(f"{path}: a key of another kind; expected one of Ed25519")
    return cast("Ed25519PrivateKey", key)


def read_trusted(path: Path) -> dict[bytes, str]:
    """Public keys that are trusted, and what they are called.

    Args:
        path: a file of keys, or a folder of such files. A file holds one key in PEM, or in each line a key in
            base64 or hexadecimal and the name of whose it is. A key without a name is called like its file.

    Raises:
        InputError: naming the file, and the line, that holds no public key of Ed25519.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not 0 < len(files) <= MOST_FILES:
            raise InputError(f"{path}: {len(files):,} files; expected 1 to {MOST_FILES:,} of public keys")
    else:
        files = [path]
    keys: dict[bytes, str] = {}
    for file in files:
        for public, name in _public_keys(file):
            keys.setdefault(public, name)
    if not keys:
        raise InputError(f"{path}: no public key in it")
    return keys


def _public_keys(file: Path) -> Iterator[tuple[bytes, str]]:
    data = _read(file)
    if b"PRIVATE KEY" in data:
        raise InputError(f"{file}: a private key; expected public ones, which may be shown to others")
    if b"-----BEGIN" in data:
        crypto = _cryptography()
        try:
            key = crypto.serialization.load_pem_public_key(data)
        except (ValueError, crypto.Unsupported) as error:
            raise InputError(f"{file}: expected a public key of Ed25519 in PEM") from error
        if not isinstance(key, crypto.ed25519.Ed25519PublicKey):
            raise InputError(f"{file}: a key of another kind; expected one of Ed25519")
        yield key.public_bytes_raw(), file.stem
        return
    if len(data) == _RAW:
        yield data, file.stem
        return
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: expected public keys in PEM, base64 or hexadecimal") from error
    for number, line in enumerate(lines, 1):
        text, _, name = line.split("#")[0].strip().partition(" ")
        if not text:
            continue
        public = _decoded(text)
        if public is None:
            raise InputError(
                f"{file}, line {number}: {quoted(text)}; expected a public key of Ed25519 in base64 or "
                "hexadecimal, then its name"
            )
        yield public, name.strip() or file.stem


def _decoded(text: str) -> bytes | None:
    """A public key as it is written; None for what is none."""
    for read in (bytes.fromhex, lambda given: base64.b64decode(given, validate=True)):
        with suppress(ValueError, binascii.Error):
            if len(found := read(text)) == _RAW:
                return found
    return None


def _parts(signature: object) -> tuple[bytes, bytes]:
    """Public key and signature of what a document holds."""
    if not isinstance(signature, Mapping) or set(signature) != {"algorithm", "key", "signature"}:
        raise ValueError("it is damaged; expected algorithm, key and signature")
    if signature["algorithm"] != ALGORITHM:
        raise ValueError(f"it is of algorithm {quoted(signature['algorithm'])}; expected {ALGORITHM}")
    try:
        found = [base64.b64decode(signature[part], validate=True) for part in ("key", "signature")]
    except (ValueError, TypeError) as error:
        raise ValueError("it is damaged; expected base64") from error
    if [len(part) for part in found] != [_RAW, _SIGNATURE]:
        raise ValueError(f"it is damaged; expected {_RAW} bytes of key and {_SIGNATURE} of signature")
    return found[0], found[1]


def _message(kind: str, digest: str) -> bytes:
    return f"mantile {kind}\n{digest}\n".encode()


def _verifies(public: bytes, signed: bytes, message: bytes) -> bool:
    crypto = _cryptography()
    try:
        crypto.ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signed, message)
    except (crypto.InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class _Cryptography:
    """What we need of the package."""

    ed25519: Any
    serialization: Any
    InvalidSignature: type[Exception]
    Unsupported: type[Exception]


def _cryptography() -> _Cryptography:
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise InputError("signatures need the package cryptography: pip install 'mantile[sign]'") from error
    return _Cryptography(ed25519, serialization, InvalidSignature, UnsupportedAlgorithm)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(
                f"{path}: {path.stat().st_size:,} bytes; expected at most {MOST_BYTES:,} of a key"
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _write(path: Path, data: bytes, mode: int) -> None:
    """A file that was not there, whole or not at all."""
    with replacing(path, overwrite=False, mode=mode) as temporary:
        temporary.write_bytes(data)
