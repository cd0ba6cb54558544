"""What to do where SQLite cannot go on, by the kind of its error."""

from __future__ import annotations

WAIT = 30.0  # seconds for another process to finish writing; a transaction takes milliseconds

_REMEDIES = {
    "FULL": "the disk is full and nothing was written: free some space, then resume",
    "READONLY": "it cannot be written: make the file and its folder writable, or name another file",
    "CANTOPEN": "it cannot be opened: look at the path, and at who may read and write there",
    "NOTADB": "it is no SQLite file, and is left as it is: name another file",
    "CORRUPT": "the file is damaged, and is left as it is: copy it, then restore it from a backup",
    "INTERRUPT": "its rows have no end that fits its size: the file is damaged or forged",
    "BUSY": f"another process kept it locked for {WAIT:.0f} s: end that process, then try again",
    "IOERR": "the disk could not be read or written: look at the disk, then resume",
}


GONE = (
    "the file was deleted, moved or replaced while it was open, so nothing was written: put it back"
    " and resume, or start again to have a new one"
)
"""What is said where the path of a store leads to another file, or to none."""

LEAST = 64 * 1024
"""Bytes that SQLite needs beside a file to open it at all: its log, and what its readers share."""


def remedy(kind: str, message: str, free: int | None = None) -> str:
    """Return what happened and what to do; `kind` is SQLite's name, as "SQLITE_IOERR_WRITE".

    `free` is what is left on the disk, in bytes, if that is known: where SQLite cannot even make its
    log it calls a full disk one that could not be written.
    """
    _, _, rest = kind.partition("_")
    name = rest.partition("_")[0]
    if name in {"IOERR", "CANTOPEN"} and free is not None and free < LEAST:
        name = "FULL"
    what = _REMEDIES.get(name)
    return f"{what} ({message})" if what else message
