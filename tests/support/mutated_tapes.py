"""Mutated exports, each made from a seed, and a child process that reads many of them.

A mutation is made in the lines of a file, of the text or of the JSON; the hashes are then made right
again, so that it gets past the chain and is met by whatever reads the values.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codetape.cli import main
from codetape.engine.chain import GENESIS, chained
from codetape.engine.ports import StoredEvent
from codetape.states.values import canonical

MEMORY = 200 << 20
SECONDS = 5.0

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**400, 1e308, "", "x", "\x00", "\x1b[2J", "é" * 300, [], {}),
    *([[]] * 3, {"$blob": "gone"}, {"$blob": 1}, {"$blob": []}, {"$$blob": "x"}, "a" * 5000),
    *("9999-12-31T23:59:59+00:00", "2025-01-01", "../../etc/passwd", "ID; reboot", "\u202e"),
)
NAMES = (
    "at",
    "name",
    "source",
    "dest",
    "version",
    "request_key",
    "event",
    "data",
    "session",
    "more",
)


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"x": value}
    return value


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return each container with each of its keys."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one))
        found += [(one, key) for key in keys]
        waiting += [one[key] for key in keys if isinstance(one[key], dict | list)]
    return found


def mutated(lines: list[Any], chance: random.Random) -> None:
    """Change one thing in the values of a tape's lines."""
    line = chance.choice(lines)
    where, key = chance.choice(places(line))
    match chance.randrange(9):
        case 0:
            where[key] = chance.choice(ODD)
        case 1:
            where[key] = nested(chance.choice((5, 90, 150, 400, 900)))
        case 2 if isinstance(where, dict):
            where[chance.choice(NAMES)] = where.pop(key)
        case 3:
            where.pop(key)
        case 4:
            lines.insert(chance.randrange(len(lines)), json.loads(json.dumps(line)))
        case 5:
            lines.remove(line)
        case 6:
            other, place = chance.choice(places(chance.choice(lines)))
            where[key] = json.loads(json.dumps(other[place]))
        case 7:
            events = [one for one in lines if "event" in one]
            chance.choice(events)[chance.choice(NAMES)] = chance.choice(ODD)
        case _:
            blobs = [one["blob"] for one in lines if "blob" in one] or ["none"]
            where[key] = [{"$blob": chance.choice(blobs)}] * chance.choice((1, 3, 30_000))


def mended(lines: list[Any]) -> None:
    """Make blobs' names, the numbers and hashes of events, and the end line right again."""
    header = next((one for one in lines if isinstance(one, dict) and "codetape" in one), {})
    previous, seq = GENESIS, 0
    for line in lines:
        if not isinstance(line, dict):
            continue
        if "event" in line:
            seq += 1
            line["event"] = seq
            fields = ("name", "version", "source", "dest", "request_key", "at")
            facts: dict[str, Any] = {name: line.get(name) for name in fields}
            session: Any = line.get("session", header.get("session"))
            data = canonical(line.get("data"))
            row = StoredEvent(session=session, seq=seq, data=data, hash="", **facts)
            previous = line["hash"] = chained(previous, row)
        elif "end" in line:
            line |= {"end": seq, "head": previous}
        elif "blob" in line and isinstance(line.get("text"), str):
            line["blob"] = hashlib.sha256(line["text"].encode()).hexdigest()


def mutation(text: str, seed: int) -> bytes:
    """Return a file made of the export `text`: three of four get past the chain."""
    chance = random.Random(seed)
    if seed % 4 == 0:
        body = bytearray(text.encode())
        for _ in range(chance.randrange(1, 8)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        return bytes(body[: chance.choice((len(body), chance.randrange(len(body))))])
    lines = [json.loads(line) for line in text.rstrip("\n").split("\n")]
    for _ in range(chance.randrange(1, 3)):
        mutated(lines, chance)
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        mended(lines)
    words = {"1e+308": "1e999", '"x"': "NaN"} if seed % 10 == 0 else {}
    texts = [
        json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        for line in lines
    ]
    whole = "".join(f"{one}\n" for one in texts)
    for old, new in words.items():
        whole = whole.replace(old, new, 1)
    return whole.encode(errors="replace")


def told(command: list[str]) -> tuple[int, str]:
    """Run a command of ours in this process, and return its exit status and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(command)
    return status, out.getvalue()


def commands(file: Path, store: Path, base: Path) -> Iterator[list[str]]:
    """Yield what is done with a file; a store is there only if the import was not refused."""
    name, where = str(file), ["--store", str(store)]
    yield ["import", name, *where]
    if store.exists():
        yield from ([word, "last", *where] for word in ("verify", "show", "replay"))
        yield ["sessions", *where]
    yield from (["show", name], ["replay", name], ["diff", name, str(base)])


def fault_of(command: list[str]) -> str | None:
    """Return what is wrong with how a command ended: with anything but a clean read or a refusal."""
    started = time.process_time()
    try:
        status, text = told(command)
    except BaseException as error:  # noqa: BLE001 - each is a finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{error!r:.150} at {place.filename}:{place.lineno}"
    if status not in (0, 1, 2, 3) or text.startswith("Traceback"):
        return f"status {status}: {text[-300:]!r}"
    return "too slow" if time.process_time() - started > SECONDS else None


def peak_memory() -> int:
    """Return the most bytes that this program had in memory (ru_maxrss counts its parent's, too)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def read_all(folder: Path, tapes: list[Path], first: int, last: int) -> None:
    """Read mutations `first` to `last`; print a line for each that is no refusal and no clean read."""
    for seed in range(first, last):
        base = tapes[seed % len(tapes)]
        file, store = folder / f"{seed}.jsonl", folder / f"{seed}.db"
        file.write_bytes(mutation(base.read_text(), seed))
        for command in commands(file, store, base):
            if fault := fault_of(command):
                print(f"{seed} {command[0]}: {fault}")
        for path in folder.glob(f"{seed}.*"):
            path.unlink()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _, where, begin, end, *names = sys.argv
    read_all(Path(where), [Path(name) for name in names], int(begin), int(end))
    if (peak := peak_memory()) > MEMORY:
        print(f"memory: {peak >> 20} MB")
