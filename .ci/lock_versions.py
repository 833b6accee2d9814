"""Keeps profiles/versions.txt and models/versions.txt: a line with the digest of each version of an entry
that there has been.

    python .ci/lock_versions.py            after an entry or a version was added
    python .ci/lock_versions.py --force    where a version nobody has used yet may still change

A version that people have used must not change: their workbooks and pins name it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mantile.library.documents import parse_yaml, read_text
from mantile.library.files import replacing
from mantile.library.profiles import FOLDERS
from mantile.library.versions import digest

Digests = dict[tuple[str, str], str]  # of (folder/id, or id where there are no folders; version)
COMMAND = "python .ci/lock_versions.py"
ROOT = Path(__file__).resolve().parents[1]  # of this checkout, whichever mantile is installed
PROFILES, MODELS = ROOT / "profiles", ROOT / "models"


def _places(library: Path) -> dict[str, Path]:
    """The folders with entries, by what stands before an id."""
    inner = {f"{folder}/": library / folder for folder in FOLDERS if (library / folder).is_dir()}
    return inner or {"": library}


def found(library: Path) -> Digests:
    """The digests of all entries as they lie there, current and older. Comments do not count.

    Args:
        library: the folder of profiles or that of models.

    Raises:
        ValueError: if two files hold the same version, or one is not called as what it holds.
    """
    digests: Digests = {}
    for before, folder in _places(library).items():
        for path in (*folder.glob("*.yaml"), *(folder / "versions").glob("*.yaml")):
            data = parse_yaml(read_text(path), str(path))
            key = (f"{before}{data['id']}", str(data["version"]))
            if path.stem != (
                f"{data['id']}@{data['version']}" if path.parent.name == "versions" else data["id"]
            ):
                raise ValueError(f"{path}: holds {data['id']} in version {data['version']}; call it so")
            if key in digests:
                raise ValueError(
                    f"{path}: another file holds {key[0]} in version {key[1]} as well; raise the version of "
                    "the newer one"
                )
            digests[key] = digest(data)
    return digests


def listed(file: Path) -> Digests:
    """The digests in versions.txt."""
    lines = (
        line.split() for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    )
    return {(name, version): digest for name, version, digest in lines}


def problems(library: Path) -> list[str]:
    """Where files and list differ, and what to do about it."""
    now, then = found(library), listed(library / "versions.txt")
    told = []
    for name, version in sorted(now.keys() | then.keys()):
        folder, slash, identifier = name.rpartition("/")
        older = f"{library.name}/{folder}{slash}versions/{identifier}@{version}.yaml"
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
                f"show HEAD:{library.name}/{name}.yaml), raise the version, run {COMMAND}"
            )
    return told


def main(arguments: list[str], libraries: tuple[Path, ...]) -> int:
    """Write the lists anew; refuse, with exit status 1, where that changes the digest of a version in one."""
    return max(_lock(library, "--force" in arguments) for library in libraries)


def _lock(library: Path, force: bool) -> int:
    file = library / "versions.txt"
    now, then = found(library), listed(file) if file.exists() else {}
    if not force and any(now.get(key, digest) != digest for key, digest in then.items()):
        print("\n".join(line for line in problems(library) if "is still version" in line), file=sys.stderr)
        return 1
    lines = [f"{name} {version} {digest}" for (name, version), digest in sorted(now.items())]
    entry = "folder/id" if len(_places(library)) > 1 else "id"
    head = f"# {entry}, version and digest of every entry; written by {COMMAND}"
    with replacing(file) as temporary:
        temporary.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    for word, keys in (("added", now.keys() - then.keys()), ("removed", then.keys() - now.keys())):
        for name, version in sorted(keys):
            print(f"{word} {name} version {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], (PROFILES, MODELS)))
