"""Break the rules on purpose, one change at a time, and see that the tests or the tapes notice.

    python scripts/mutations.py            all of them; ends with 1 if one escapes
    python scripts/mutations.py guards     those whose file or text has the word

It works on a copy of the tree in a temporary folder; this tree is not touched. A change that cannot be
made any more, because the text is gone, counts as an error: mend the list in mutations.toml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAPES = "tests/tapes/test_tapes.py::test_a_tape_replays"
LINKED = ("adapters", "engine", "replay", "states")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one file, and the tests that have to notice it."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.file}: {old[:60]} -> {new[:60] or 'nothing'}"


def main(words: list[str]) -> int:
    chosen = [m for m in mutations() if all(word in str(m) for word in words)]
    with tempfile.TemporaryDirectory(prefix="codetape-mutations-") as place:
        tree = Path(place, "tree")
        copy_tree(tree)
        if (code := run(tree, sorted({test for m in chosen for test in m.tests}), show=True)) != 0:
            print("The tests fail before anything is changed.", file=sys.stderr)
            return code
        escaped = [m for m in chosen if not caught(tree, m)]
    print(f"{len(chosen) - len(escaped)}/{len(chosen)} caught")
    return 1 if escaped else 0


def mutations() -> Iterator[Mutation]:
    """Read the list."""
    listed = tomllib.loads((ROOT / "scripts/mutations.toml").read_text())
    for group in listed["group"]:
        tests = tuple(group["tests"])
        for old, new in group["changes"]:
            yield Mutation(group["file"], old, new, (*tests, TAPES))


def copy_tree(tree: Path) -> None:
    """Copy what git knows or would know, and make the folders at the top one package."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, tree / name
        if source.is_file() and not source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    for name in LINKED:
        (tree / "codetape" / name).symlink_to(tree / name)


def caught(tree: Path, mutation: Mutation) -> bool:
    """Make the change, run its tests, take it back; say whether they failed."""
    path = tree / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise SystemExit(
            f"{mutation}: its text is there {text.count(mutation.old)} times, not once"
        )
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    began = time.monotonic()
    try:
        noticed = run(tree, list(mutation.tests)) != 0
    finally:
        path.write_text(text, encoding="utf-8")
    word = "caught " if noticed else "ESCAPED"
    print(f"{word} {time.monotonic() - began:4.1f} s  {mutation}", flush=True)
    return noticed


def run(tree: Path, tests: list[str], *, show: bool = False) -> int:
    """Run some tests of the copy, to the first failure; return pytest's exit status."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 1}:  # no test was run, or not as it should be
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        raise SystemExit("pytest itself failed")
    if show and done.returncode:
        print(done.stdout[-2000:], file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
