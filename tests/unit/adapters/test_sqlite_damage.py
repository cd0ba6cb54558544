"""What is not as it was written is found, and named by its number."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from codetape.adapters.store.sqlite import SqliteStore
from codetape.engine.chain import GENESIS
from codetape.engine.ports import DamagedTape, StoredEvent, StoreError
from codetape.testing.stores import make_event, write

COLUMNS = [field.name for field in fields(StoredEvent)]
BODY = b"a body that is long enough to be worth a blob " * 30
BLOB = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.db"


@pytest.fixture
def tape(path: Path) -> list[StoredEvent]:
    """Twelve events, of which the first has a blob; another session lies beside it."""
    with closing(SqliteStore(path)) as store:
        lease = store.create("one", "autocoder", "", "alice")
        store.append(lease, make_event("one", 1, GENESIS, request_key="a" * 64), {BLOB: BODY})
        write(store, store.create("two", "autocoder", "", "alice"), 3)
        return write(store, lease, 11)


def change(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(sql, values).rowcount
        db.commit()


def read(path: Path, after: int = 0) -> tuple[list[StoredEvent], DamagedTape]:
    """Return what can be read of the tape, and the complaint that ends it."""
    events: list[StoredEvent] = []
    with closing(SqliteStore(path)) as store, pytest.raises(DamagedTape) as caught:
        events.extend(store.read("one", after))
    assert caught.value.session == "one"
    return events, caught.value


def flips(value: object) -> Iterator[object]:
    """Yield `value` with one bit flipped, in a few places."""
    if isinstance(value, int):
        yield from (value ^ 1, value ^ (1 << 40))
    elif isinstance(value, str):
        body = value.encode()
        for place in (0, len(body) // 2, len(body) - 1):
            yield (body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]).decode()
    else:
        yield ""


@pytest.mark.parametrize("seq", [1, 7, 12])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_flipped_bit_is_found(path: Path, tape: list[StoredEvent], column: str, seq: int) -> None:
    good = getattr(tape[seq - 1], column)
    for bad in flips(good):
        if column == "seq" and bad in range(1, 13):
            continue  # that number is taken: the table refuses it
        with closing(sqlite3.connect(path)) as db:
            (row,) = db.execute(
                "SELECT rowid FROM events WHERE session = 'one' AND seq = ?", [seq]
            ).fetchone()
        change(path, f"UPDATE events SET {column} = ? WHERE rowid = ?", bad, row)
        events, complaint = read(path)
        assert events == tape[: seq - 1]
        assert complaint.seq == seq
        change(path, f"UPDATE events SET {column} = ? WHERE rowid = ?", good, row)
    with closing(SqliteStore(path)) as store:
        assert list(store.read("one")) == tape


@pytest.mark.parametrize("value", [b"\xff\xfe", b"State7", 5, 2.5])
def test_a_value_of_another_type_is_found(
    path: Path, tape: list[StoredEvent], value: object
) -> None:
    change(path, "UPDATE events SET dest = ? WHERE session = 'one' AND seq = 7", value)
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[:6], 7)


def test_a_value_that_is_gone_is_found(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "UPDATE events SET request_key = NULL WHERE session = 'one' AND seq = 1")
    assert read(path)[1].seq == 1


def test_text_that_is_no_utf8_is_found(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "UPDATE events SET data = CAST(x'61ff' AS TEXT) WHERE session = 'one' AND seq = 7")
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[:6], 7)
    assert "UTF-8" in complaint.reason


@pytest.mark.parametrize("number", ["last", 12.5])
def test_a_number_that_is_none_is_found(
    path: Path, tape: list[StoredEvent], number: object
) -> None:
    change(path, "UPDATE events SET seq = ? WHERE session = 'one' AND seq = 12", number)
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[:11], 12)


@pytest.mark.parametrize("seq", [1, 7, 12])
def test_a_missing_event_is_found(path: Path, tape: list[StoredEvent], seq: int) -> None:
    change(path, "DELETE FROM events WHERE session = 'one' AND seq = ?", seq)
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[: seq - 1], seq)
    assert "missing" in complaint.reason


def test_a_missing_tail_is_found(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "DELETE FROM events WHERE session = 'one' AND seq > 5")
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[:5], 6)
    change(path, "DELETE FROM events WHERE session = 'one'")
    assert read(path)[1].seq == 1


def test_swapped_events_are_found(path: Path, tape: list[StoredEvent]) -> None:
    for old, new in ((7, 70), (8, 7), (70, 8)):
        change(path, "UPDATE events SET seq = ? WHERE session = 'one' AND seq = ?", new, old)
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[:6], 7)


def test_an_event_that_was_rewritten_with_its_hash_is_found(
    path: Path, tape: list[StoredEvent]
) -> None:
    for seq, found in ((12, 12), (7, 8)):
        forged = make_event("one", seq, tape[seq - 2].hash, data="{}")
        sql = "UPDATE events SET data = ?, hash = ? WHERE session = 'one' AND seq = ?"
        change(path, sql, forged.data, forged.hash, seq)
        assert read(path)[1].seq == found


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("seq", 13, 13),
        ("seq", 5, 5),  # the recorded hash is not that of event 5
        ("seq", "many", 1),
        ("head", "a" * 64, 12),
    ],
)
def test_an_end_that_does_not_fit_is_found(
    path: Path, tape: list[StoredEvent], column: str, value: object, found: int
) -> None:
    change(path, f"UPDATE sessions SET {column} = ? WHERE id = 'one'", value)
    assert read(path)[1].seq == found


def test_f12_events_beyond_the_end_are_found(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "UPDATE sessions SET seq = 5, head = ? WHERE id = 'one'", tape[4].hash)
    events, complaint = read(path)
    assert (events, complaint.seq) == (tape[:5], 6)
    with closing(SqliteStore(path)) as store:
        change(path, "UPDATE sessions SET owner = NULL WHERE id = 'one'")
        with pytest.raises(DamagedTape, match="event 6"):
            store.append(store.acquire("one", "bob"), tape[5], {})
    assert read(path)[1].seq == 6


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("parent", None), ("parent", "nobody"), ("parent", "fork"), ("parent", "two"),
        ("parent_seq", None), ("parent_seq", "many"), ("parent_seq", 0), ("parent_seq", -5),
        ("parent_seq", 4), ("parent_seq", 6), ("parent_seq", 2**40), ("seq", 5), ("seq", 2**40),
    ],
)  # fmt: skip
def test_a_lineage_that_was_changed_is_found(
    path: Path, tape: list[StoredEvent], column: str, value: object
) -> None:
    with closing(SqliteStore(path)) as store:
        write(store, store.fork("fork", "one", 5, "bob"), 2)
        assert [event.hash for event in store.read("fork")][:5] == [e.hash for e in tape[:5]]
    change(path, f"UPDATE sessions SET {column} = ? WHERE id = 'fork'", value)
    with closing(SqliteStore(path)) as store:
        with pytest.raises(DamagedTape) as caught:
            list(store.read("fork"))
        assert caught.value.session == "fork"
        assert list(store.read("one")) == tape


@pytest.mark.parametrize("seq", [1, 3, 5])
def test_damage_of_an_inherited_event_is_found_in_parent_and_fork(
    path: Path, tape: list[StoredEvent], seq: int
) -> None:
    with closing(SqliteStore(path)) as store:
        write(store, store.fork("fork", "one", 5, "bob"), 2)
    change(path, "DELETE FROM events WHERE session = 'one' AND seq = ?", seq)
    for session in ("one", "fork"):
        with closing(SqliteStore(path)) as store, pytest.raises(DamagedTape) as caught:
            list(store.read(session))
        assert (caught.value.session, caught.value.seq) == (session, seq)


def test_a_session_without_its_row_is_found(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "DELETE FROM sessions WHERE id = 'one'")
    assert read(path)[1].seq == 1


def test_what_follows_an_event_is_chained_to_it(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "UPDATE events SET hash = ? WHERE session = 'one' AND seq = 5", "a" * 64)
    assert read(path, after=5)[1].seq == 6
    change(path, "DELETE FROM events WHERE session = 'one' AND seq = 5")
    assert read(path, after=5)[1].seq == 5
    with closing(SqliteStore(path)) as store:
        assert list(store.read("one", after=6)) == tape[6:]


@pytest.mark.parametrize("body", [b"", b"nonsense", "text", 5])
def test_a_damaged_blob_is_found(path: Path, tape: list[StoredEvent], body: object) -> None:
    change(path, "UPDATE blobs SET body = ?", body)
    with closing(SqliteStore(path)) as store, pytest.raises(ValueError, match=BLOB):
        store.get_blob(BLOB)


def test_a_blob_that_sqlite_cannot_read_is_found(path: Path, tape: list[StoredEvent]) -> None:
    change(path, "UPDATE blobs SET body = CAST(x'ff' AS TEXT)")
    with closing(SqliteStore(path)) as store, pytest.raises(ValueError, match="cannot be read"):
        store.get_blob(BLOB)


def test_another_body_in_the_place_of_a_blob_is_found(path: Path, tape: list[StoredEvent]) -> None:
    with closing(SqliteStore(path)) as store:
        other = store.put_blob(b"other")
        change(path, "DELETE FROM blobs WHERE hash = ?", BLOB)
        change(path, "UPDATE blobs SET hash = ? WHERE hash = ?", BLOB, other)
        with pytest.raises(ValueError, match="does not fit its hash"):
            store.get_blob(BLOB)


@pytest.mark.parametrize("flips", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_flipped_bit_of_the_file_is_reported_or_harmless(
    path: Path, tape: list[StoredEvent], flips: int
) -> None:
    whole, chance, reported = path.read_bytes(), random.Random(flips), 0
    for _ in range(flips):
        bit = chance.randrange(len(whole) * 8)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            with closing(SqliteStore(path)) as store:
                assert list(store.read("one")) == tape, bit
                assert store.get_blob(BLOB) == BODY, bit
        except (StoreError, KeyError, ValueError):
            reported += 1
    assert reported > flips / 10
