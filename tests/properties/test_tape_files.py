"""A file that is not what was written is refused, whatever happened to it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codetape.adapters.store.memory import MemoryStore
from codetape.replay.export import tape_lines
from codetape.replay.imports import BadTapeFile, read_tape_file
from tests.support.forks import forked, resumed
from tests.support.sessions import ID
from tests.unit.replay.sessions import LONG, long_tape, played

WHOLE = [f"{line}\n".encode() for line in tape_lines(long_tape(), ID)]


def _fork() -> bytes:
    """The file of a fork of that session."""
    store = MemoryStore()
    played(LONG, store)
    forked(store, 12)
    resumed(store, "fork00000001", LONG.answers, LONG.runs)
    return b"".join(f"{line}\n".encode() for line in tape_lines(store, "fork00000001"))


FORK = _fork()


def _refused(folder: Path, content: bytes) -> BadTapeFile:
    file = folder / "some.tape.jsonl"
    file.write_bytes(content)
    with pytest.raises(BadTapeFile) as caught:
        read_tape_file(file)
    return caught.value


def _event_of(line: int) -> int:
    """The event that a line (from 0) belongs to, or the one after the last."""
    return sum(b'"event":' in text for text in WHOLE[:line]) + 1


@pytest.mark.parametrize("line", range(len(WHOLE)))
def test_a_file_cut_at_any_line_is_refused(tmp_path: Path, line: int) -> None:
    whole = b"".join(WHOLE[:line])
    assert _refused(tmp_path, whole).seq == _event_of(line)
    assert _refused(tmp_path, whole + WHOLE[line][:-1]).seq == _event_of(line)
    assert _refused(tmp_path, whole + WHOLE[line][:9]).seq == _event_of(line)


@given(st.integers(0, sum(map(len, WHOLE)) - 1), st.integers(1, 255))
@settings(max_examples=300)
def test_a_flipped_byte_is_refused_at_its_event(place: int, flip: int) -> None:
    content = bytearray(b"".join(WHOLE))
    content[place] ^= flip
    with TemporaryDirectory() as folder:
        error = _refused(Path(folder), bytes(content))
    assert error.seq == _event_of(b"".join(WHOLE)[:place].count(b"\n"))


@given(st.integers(0, len(FORK) - 1), st.integers(1, 255))
@settings(max_examples=300)
def test_a_flipped_byte_in_the_file_of_a_fork_is_refused(place: int, flip: int) -> None:
    content = bytearray(FORK)
    content[place] ^= flip
    with TemporaryDirectory() as folder:
        _refused(Path(folder), bytes(content))


@given(st.permutations(range(len(WHOLE))))
@settings(max_examples=30)
def test_lines_in_another_order_are_refused(order: list[int]) -> None:
    assume(order != sorted(order))
    with TemporaryDirectory() as folder:
        _refused(Path(folder), b"".join(WHOLE[line] for line in order))


@pytest.mark.parametrize("line", range(len(WHOLE)))
def test_a_line_that_was_moved_left_out_or_doubled_is_refused(tmp_path: Path, line: int) -> None:
    before, this, after = WHOLE[:line], WHOLE[line], WHOLE[line + 1 :]
    for other in ([*before, *after], [*before, this, this, *after]):
        assert _refused(tmp_path, b"".join(other)).seq <= _event_of(line) + 1
    if after:
        assert _refused(tmp_path, b"".join([*before, after[0], this, *after[1:]]))
