"""What process 1 told, read back."""

import base64
import json

from codetape.adapters.sandbox.podman.telling import read


def log(*lines: tuple[str, bytes], **end: object) -> bytes:
    said = [f"{word} {base64.b64encode(data).decode()}" for word, data in lines]
    said += [f"end {json.dumps(end)}"] if end else []
    return "\n".join(said).encode() + b"\n"


def test_pieces_are_put_together_and_the_cut_is_counted() -> None:
    told = read(
        log(
            ("out", b"he"),
            ("err", b"\xff\xfe"),
            ("out", b"ad"),
            ("out-tail", b"tail"),
            bytes={"out": 100, "err": 2, "report": 0},
            kept={"out": 4, "out-tail": 4, "err": 2},
        )
    )
    assert told.stdout == "head\n[92 bytes cut]\ntail"
    assert told.stderr == "\\xff\\xfe"
    assert told.complete


def test_d8_a_lost_piece_is_noticed() -> None:
    told = read(log(("out", b"he"), bytes={"out": 4, "err": 0}, kept={"out": 4}))
    assert not told.complete


def test_without_an_end_the_head_is_still_there() -> None:
    told = read(log(("out", b"before"), ("report", b"{}")))
    assert told.end is None
    assert not told.complete
    assert (told.stdout, told.report) == ("before", b"{}")


def test_damaged_lines_are_passed_over() -> None:
    told = read(b"out !!!\nend {\nnonsense\n\xff\xfe x\n" + log(("out", b"ok")))
    assert told.stdout == "ok"
    assert told.end is None


def test_limits_that_are_not_in_force_are_told() -> None:
    assert read(b'refused {"memory": "unlimited"}\n').refused == {"memory": "unlimited"}
