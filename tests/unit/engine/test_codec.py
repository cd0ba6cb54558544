"""The codec: every event comes back as it was; keys follow content alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetape.engine import codec
from codetape.states.events import EVENTS, CodeWritten, Noted
from codetape.states.requests import BuildImage, WriteCode
from codetape.states.values import Answer, ImageSpec, LlmCall, Message

NONE: dict[str, bytes] = {}

TEXTS = st.text(max_size=3000).filter(lambda text: "\x00" not in text)


@given(TEXTS)
def test_short_texts_stay_in_the_row_and_long_ones_leave_it(text: str) -> None:
    packed = codec.pack_event(Noted(text=text))
    size = len(text.encode())
    assert bool(packed.blobs) == (size > codec.LONG)
    for sha, body in packed.blobs.items():
        assert hashlib.sha256(body).hexdigest() == sha
    event = codec.unpack_event("noted", 1, packed.text, packed.blobs.__getitem__)
    assert event == Noted(text=text)


@given(
    st.dictionaries(
        st.sampled_from(["$blob", "$$blob", "$", "a"]),
        st.one_of(st.text(max_size=5), st.just("x" * 2000), st.none(), st.integers()),
    )
)
def test_data_that_looks_like_a_reference_is_not_one(parameters: dict[str, object]) -> None:
    call = LlmCall.model_validate(
        {"kind": "code", "model": "m", "messages": (), "parameters": parameters}
    )
    asked = codec.pack_request(WriteCode(call=call))
    body = codec.unpack_json(asked.body.text, asked.body.blobs.__getitem__)
    assert body["call"]["parameters"] == parameters


def test_a_key_is_the_hash_of_its_body_and_tells_kinds_apart() -> None:
    spec = ImageSpec(base="b")
    one = codec.pack_request(BuildImage(spec=spec, seconds=1))
    assert one.key == hashlib.sha256(one.body.text.encode()).hexdigest()
    assert one.key != codec.pack_request(BuildImage(spec=spec, seconds=2)).key
    assert one.key == codec.pack_request(BuildImage(spec=ImageSpec(base="b"), seconds=1)).key


def test_parts_that_recur_are_stored_once() -> None:
    shared = "the same long text " * 100
    blobs: dict[str, bytes] = {}
    for number in range(10):
        message = Message(role="user", parts=(shared, f"question {number}"))
        call = LlmCall(kind="code", model="m", messages=(message,))
        blobs |= codec.pack_request(WriteCode(call=call)).body.blobs
    assert len(blobs) == 1


def test_an_unknown_event_is_told_and_its_data_stay() -> None:
    with pytest.raises(codec.UnreadableEvent, match="newer version") as caught:
        codec.unpack_event("teleported", 1, "{}", NONE.__getitem__)
    assert caught.value.name == "teleported"


def test_a_newer_version_of_a_known_event_is_told() -> None:
    with pytest.raises(codec.UnreadableEvent):
        codec.unpack_event("noted", 2, '{"text":"x"}', NONE.__getitem__)


def test_a_payload_that_does_not_fit_is_told() -> None:
    with pytest.raises(codec.UnreadableEvent):
        codec.unpack_event("noted", 1, '{"words":"x"}', NONE.__getitem__)


def test_a_blob_that_is_gone_is_a_key_error() -> None:
    packed = codec.pack_event(Noted(text="x" * 5000))
    with pytest.raises(KeyError):
        codec.unpack_event("noted", 1, packed.text, NONE.__getitem__)


def test_an_old_version_goes_through_its_upcasts(monkeypatch: pytest.MonkeyPatch) -> None:
    def upcast_noted_v1_v2(data: dict[str, object]) -> dict[str, object]:
        return {"text": data["words"]}

    monkeypatch.setattr(Noted, "version", 2)
    monkeypatch.setitem(codec.UPCASTS, ("noted", 1), upcast_noted_v1_v2)
    event = codec.unpack_event("noted", 1, '{"words":"x"}', NONE.__getitem__)
    assert event == Noted(text="x")


def test_event_names_are_stable_and_differ() -> None:
    """A name is on every tape that has the event: it may be added, never changed."""
    assert [event.name for event in EVENTS] == (
        "session_opened forked sandbox_ready constraint_parsed planned "
        "code_written fixes_verified tests_written "
        "tests_patched patch_refused patches_verified image_built package_rejected packages_held "
        "package_replaced build_failed tests_passed tests_failed script_failed tests_not_collected "
        "sandbox_broke repair_failed diagnosed reclassified answer_rejected call_failed "
        "attempts_spent budget_spent paused resumed noted cancelled"
    ).split()


def test_nothing_that_utf8_cannot_hold_is_packed() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        codec.pack_event(Noted(text="\ud83c" + "x" * 2000))


KEYS = """
from codetape.engine.codec import pack_request
from codetape.states.requests import BuildImage
from codetape.states.values import ImageSpec
from codetape.states.packages import distributions_of, merged
names = merged({"numpy", "pandas", *distributions_of({"yaml", "PIL", "cv2", "sklearn.svm"})})
print(pack_request(BuildImage(spec=ImageSpec(base="b", requirements=names), seconds=1)).key)
"""


def test_h13_keys_do_not_depend_on_the_hash_seed() -> None:
    keys = {
        subprocess.run(
            [sys.executable, "-c", KEYS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(keys) == 1


def test_code_comes_back_to_the_byte() -> None:
    event = CodeWritten(source="print('ä')\n" * 300, answer=Answer(text="x" * 4000))
    packed = codec.pack_event(event)
    assert codec.unpack_event(event.name, 1, packed.text, packed.blobs.__getitem__) == event


def test_what_does_not_fit_is_told_in_one_line() -> None:
    with pytest.raises(codec.UnreadableEvent) as caught:
        codec.unpack_event("planned", 1, '{"a": 1}', lambda name: b"")
    missing = "answer: Field required; description: Field required; approach: Field required"
    assert str(caught.value) == f"event planned v1: {missing}; 1 more"
