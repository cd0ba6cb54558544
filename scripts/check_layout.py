"""Check what the layout promises: links, packages, and who imports whom.

The folders stand at the top of the repository and are one import package. Three
tools have to be shown that: setuptools (the list of packages in pyproject.toml),
type checkers and editors (the links in stubs/), and import-linter, which walks
one folder and so is given the whole package as a folder of links.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "codetape"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders: dict[str, str] = project["package-dir"]
    complaints = [*check_links(folders), *check_packages(folders, project)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    # The contracts are checked all the same: one run names all that is wrong.
    return check_imports(folders) or bool(complaints)


def check_links(folders: dict[str, str]) -> Iterator[str]:
    """The front door's `__init__.py` makes the links a package; its other files need none."""
    links = ROOT / "stubs" / PACKAGE
    wanted = {name.removeprefix(f"{PACKAGE}."): folder for name, folder in folders.items()}
    wanted["__init__.py"] = f"{wanted.pop(PACKAGE)}/__init__.py"
    for name, where in wanted.items():
        link = links / name
        if not link.is_symlink() or os.readlink(link) != f"../../{where}":
            yield f"missing link: ln -sfn ../../{where} {link.relative_to(ROOT)}"
    for extra in sorted({entry.name for entry in links.iterdir()} - wanted.keys()):
        yield f"stubs/{PACKAGE}/{extra} is no package of pyproject.toml's package-dir"


def check_packages(folders: dict[str, str], project: dict[str, Any]) -> Iterator[str]:
    """What pyproject.toml does not list works from a checkout and is missing in a wheel."""
    listed, data = set(project["packages"]), project["package-data"]["*"]
    found = set()
    for name, folder in folders.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_dir() or path.name == "README.md" or path.parent.name == "__pycache__":
                continue
            found.add(".".join([name, *path.parent.relative_to(ROOT / folder).parts]))
            if not (path.parent / "__init__.py").exists():
                yield f"{path.parent.relative_to(ROOT)} has no __init__.py"
            if path.suffix != ".py" and not any(path.match(pattern) for pattern in data):
                yield f"{path.relative_to(ROOT)} is no package-data of pyproject.toml"
    for name in sorted(found - listed):
        yield f"add {name} to packages in pyproject.toml"
    for name in sorted(listed - found):
        yield f"remove {name} from packages in pyproject.toml: it has no file"


def check_imports(folders: dict[str, str]) -> int:
    """Run import-linter where the whole package is one folder."""
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place, PACKAGE)
        whole.mkdir()
        for entry in (ROOT / folders[PACKAGE]).iterdir():
            (whole / entry.name).symlink_to(entry)
        for name, folder in folders.items():
            if name != PACKAGE:
                (whole / name.removeprefix(f"{PACKAGE}.")).symlink_to(ROOT / folder)
        contracts = ROOT / ".importlinter"
        command = ["lint-imports", "--no-logo", "--no-cache", str(contracts)]
        # From that folder: import-linter looks where it stands before it looks elsewhere.
        return subprocess.run(
            [Path(sys.executable).with_name(command[0]), *command[1:]], cwd=place, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
