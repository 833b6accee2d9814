"""Keeps profiles/versions.txt: a line for each version of a profile there has been, with its digest.

    python .ci/lock_profiles.py            after a profile or a version was added
    python .ci/lock_profiles.py --force    where a version nobody has used yet may still change

A version that people have used must not change: their workbooks and pins name it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from mantile.library.documents import parse_yaml, read_text
from mantile.library.files import replacing
from mantile.library.profiles import FOLDERS

Digests = dict[tuple[str, str], str]  # of (folder/id, version)
COMMAND = "python .ci/lock_profiles.py"
PROFILES = (
    Path(__file__).resolve().parents[1] / "profiles"
)  # of this checkout, whichever mantile is installed


def found(profiles: Path) -> Digests:
    """The digests of all profiles as they lie there, current and older. Comments do not count.

    Raises:
        ValueError: if two files hold the same version, or one is not called as what it holds.
    """
    digests: Digests = {}
    for folder in FOLDERS:
        for path in (*(profiles / folder).glob("*.yaml"), *(profiles / folder / "versions").glob("*.yaml")):
            data = parse_yaml(read_text(path), str(path))
            key = (f"{folder}/{data['id']}", str(data["version"]))
            if path.stem != (
                f"{data['id']}@{data['version']}" if path.parent.name == "versions" else data["id"]
            ):
                raise ValueError(f"{path}: holds {data['id']} in version {data['version']}; call it so")
            if key in digests:
                raise ValueError(
                    f"{path}: another file holds {key[0]} in version {key[1]} as well; raise the version of "
                    "the newer one"
                )
            digests[key] = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]
    return digests


def listed(file: Path) -> Digests:
    """The digests in versions.txt."""
    lines = (
        line.split() for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    )
    return {(name, version): digest for name, version, digest in lines}


def problems(profiles: Path) -> list[str]:
    """Where files and list differ, and what to do about it."""
    now, then = found(profiles), listed(profiles / "versions.txt")
    told = []
    for name, version in sorted(now.keys() | then.keys()):
        folder, _, identifier = name.partition("/")
        older = f"profiles/{folder}/versions/{identifier}@{version}.yaml"
        if (name, version) not in then:
            told.append(f"{name} version {version} is not listed: run {COMMAND}")
        elif (name, version) not in now:
            told.append(
                f"{name} version {version} is listed but its file is gone: put it back as {older}, from `git "
                "show`"
            )
        elif now[name, version] != then[name, version]:
            told.append(
                f"{name} changed but is still version {version}: copy the file as it was to {older} (git "
                f"show HEAD:profiles/{name}.yaml), raise the version, run {COMMAND}"
            )
    return told


def main(arguments: list[str], profiles: Path) -> int:
    """Write the list anew; refuse, with exit status 1, where that changes the digest of a version in it."""
    file = profiles / "versions.txt"
    now, then = found(profiles), listed(file) if file.exists() else {}
    if "--force" not in arguments and any(now.get(key, digest) != digest for key, digest in then.items()):
        print("\n".join(line for line in problems(profiles) if "is still version" in line), file=sys.stderr)
        return 1
    lines = [f"{name} {version} {digest}" for (name, version), digest in sorted(now.items())]
    head = f"# folder/id, version and digest of every profile; written by {COMMAND}"
    with replacing(file) as temporary:
        temporary.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    for word, keys in (("added", now.keys() - then.keys()), ("removed", then.keys() - now.keys())):
        for name, version in sorted(keys):
            print(f"{word} {name} version {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], PROFILES))
