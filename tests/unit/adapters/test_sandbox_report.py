"""A report is read from hostile bytes: garbage can spoil it, and cannot complete it."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.adapters.sandbox.report import LINE, Exit, read_report
from codetape.adapters.sandbox.runner.reporting import mark
from codetape.states.values import TestReport

NONCE = "parent-and-child"
TOKEN = NONCE[:8]


def known(fact: dict[str, Any]) -> str:
    """The nonce of who writes such a line."""
    return NONCE if fact["kind"] in ("begin", "exit") else TOKEN


def lines(*facts: dict[str, Any], start: int = 1) -> bytes:
    """Return facts as the runner writes them."""
    numbered = ({"nonce": known(fact), "seq": n, **fact} for n, fact in enumerate(facts, start))
    return b"".join(json.dumps(fact).encode() + b"\n" for fact in numbered)


BEGIN = {"kind": "begin", "python": "3.11"}
FOUND = {"kind": "collected", "ids": ["test_a", "test_b"]}
START_A = {"kind": "start", "id": "test_a"}
PASS_A = {"kind": "result", "id": "test_a", "outcome": "passed", "phase": "call", "captured": ""}
WITNESS = {**PASS_A, "kind": "witness", "id": "the witness", "outcome": "failed"}
END = {"kind": "end"}
WHOLE = lines(BEGIN, FOUND, START_A, PASS_A, WITNESS, END)


def report(data: bytes) -> TestReport:
    found = read_report(data, NONCE).report
    assert found is not None
    return found


def test_a_whole_report_is_finished() -> None:
    found = report(WHOLE)
    assert (found.finished, found.collected, found.python) == (True, ("test_a", "test_b"), "3.11")
    assert [(result.id, result.outcome) for result in found.results] == [("test_a", "passed")]


def test_nothing_is_no_report() -> None:
    assert read_report(b"", NONCE).report is None
    assert read_report(WHOLE, "another nonce").report is None


def test_a_report_that_was_cut_is_not_finished_and_knows_what_ran() -> None:
    found = report(lines(BEGIN, FOUND, START_A))
    assert (found.finished, found.running) == (False, "test_a")


def test_a_lost_line_leaves_the_report_unfinished() -> None:
    whole = WHOLE.splitlines(keepends=True)
    for lost in range(1, len(whole) - 1):
        assert not report(b"".join(whole[:lost] + whole[lost + 1 :])).finished


def test_garbage_between_the_lines_is_passed_over() -> None:
    garbage = b"\n".join(
        [
            b"{",
            b"[]",
            b"\xff\xfe",
            b"null",
            b"[" * 100_000,
            b"x" * (LINE + 1),
            b'{"nonce": "x"}',
            b"",
        ]
    )
    mixed = b"".join(line + garbage + b"\n" for line in WHOLE.splitlines(keepends=True))
    assert report(mixed) == report(WHOLE)


def test_nothing_counts_after_the_end_marker() -> None:
    late = lines({"kind": "start", "id": "test_b"}, {**PASS_A, "id": "test_b"}, start=7)
    assert report(WHOLE + late) == report(WHOLE)


def test_the_first_result_of_a_test_stays() -> None:
    again = lines(BEGIN, FOUND, START_A, {**PASS_A, "outcome": "failed"}, START_A, PASS_A, END)
    found = report(again)
    assert [result.outcome for result in found.results] == ["failed"]
    assert not found.finished


def test_a_result_without_a_start_or_an_id_that_was_not_found_does_not_count() -> None:
    unknown = {"kind": "start", "id": "test_c"}
    assert report(lines(BEGIN, FOUND, PASS_A, END)).results == ()
    assert not report(lines(BEGIN, FOUND, unknown, END)).finished


def test_a_line_of_the_wrong_shape_ends_the_reading() -> None:
    for wrong in (
        {**PASS_A, "outcome": "excellent"},
        {**PASS_A, "more": 1},
        {"kind": "collected", "ids": "test_a"},
        {"kind": "error", "problem": {"type": 1}},
        {"kind": "other"},
        BEGIN,
    ):
        assert not report(lines(BEGIN, FOUND, START_A, wrong, END)).finished


def test_how_it_ended_is_told_apart_from_what_it_found() -> None:
    left = json.dumps(
        {"nonce": NONCE, "kind": "exit", "status": None, "signal": 9, "peak_memory": 5}
    )
    assert read_report(WHOLE + left.encode(), NONCE).exit == Exit(None, 9, 5)
    wrong = left.replace("9", '"9"').encode()
    assert read_report(wrong, NONCE).exit is None


@pytest.mark.parametrize("fact", [BEGIN, {"kind": "exit", "status": 0, "signal": None}])
def test_what_the_parent_says_needs_the_whole_nonce(fact: dict[str, Any]) -> None:
    forged = json.dumps({"nonce": TOKEN, "seq": 1, "peak_memory": 1, **fact}).encode()
    heard = read_report(forged, NONCE)
    assert (heard.report, heard.exit) == (None, None)


@pytest.mark.parametrize("outcome", ["passed", "skipped", "xfailed", None])
def test_results_are_not_trusted_unless_the_test_that_must_fail_did(outcome: str | None) -> None:
    witness = [{**WITNESS, "outcome": outcome}] if outcome else []
    found = report(lines(BEGIN, FOUND, START_A, PASS_A, *witness, END))
    assert found.finished
    assert [problem.type for problem in found.errors] == ["ResultsNotTrusted"]


def test_without_results_there_is_nothing_to_witness() -> None:
    assert report(lines(BEGIN, FOUND, END)).errors == ()


@given(st.binary(), st.lists(st.integers(0, len(WHOLE) - 1), max_size=4))
def test_no_bytes_raise(tail: bytes, spoiled: list[int]) -> None:
    data = bytearray(WHOLE + tail)
    for place in spoiled:
        data[place] ^= 0x5A
    read_report(bytes(data), NONCE)


def forged(fact: str) -> bytes:
    """A line that tested code wrote, with the nonce that its process knows."""
    return f'{{"nonce": "{TOKEN}", {fact}}}\n'.encode()


@pytest.mark.parametrize(
    "rubbish",
    [
        b"ab\n" * 1_000_000,
        b"\n" * 3_000_000,
        forged('"seq": 0') * 60_000,
        forged('"x": [[]]') * 60_000,
    ],
)
def test_rubbish_costs_little_memory(rubbish: bytes) -> None:
    tracemalloc.start()
    try:
        read_report(rubbish, NONCE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "fact",
    [
        '"seq": 0',
        '"x": [[',
        '"seq": 1, "kind": "none"',
        '"seq": 1e400',
        '"kind": "exit"',
        "\0\udcff",
    ],
)
def test_a_few_bad_lines_with_the_nonce_end_the_reading(fact: str) -> None:
    line = f'{{"nonce": "{TOKEN}", {fact}}}\n'.encode("utf-8", "surrogateescape")
    assert report(line * 50 + WHOLE).finished
    assert read_report(line * 200 + WHOLE, NONCE).report is None


@pytest.mark.parametrize("number", ["1" + "0" * 30, "-" + "9" * 4000, "1.5", "1e9999", "NaN"])
def test_a_number_that_the_runner_never_writes_spoils_its_line(number: str) -> None:
    left = f'{{"nonce": "{NONCE}", "kind": "exit", "status": {number}}}\n'.encode()
    assert read_report(WHOLE + left, NONCE) == read_report(WHOLE, NONCE)


def test_errors_without_end_leave_the_report_unfinished() -> None:
    error = {"kind": "error", "problem": {"type": "E", "message": "m"}}
    found = report(lines(BEGIN, *[error] * 1000, END))
    assert (found.finished, len(found.errors) < 200) == (False, True)


def test_the_mark_before_the_script_tells_nothing_of_the_nonce() -> None:
    """The script may read it: it stands in the pipe of what is printed."""
    nonce = "0123456789abcdef0123456789abcdef"
    assert mark(nonce) != mark(nonce[::-1])
    assert not [at for at in range(len(nonce) - 7) if nonce[at : at + 8] in mark(nonce)]
