"""JSON from outside that is nested too deeply is read as none."""

from __future__ import annotations

from codetape.adapters.llm.failures import _json_in
from codetape.adapters.sandbox.podman.images import _step
from codetape.adapters.sandbox.podman.telling import read

DEEP = "[" * 100_000 + "]" * 100_000


def test_deep_json_of_a_provider_is_none() -> None:
    assert _json_in(f'{{"a": {DEEP}}}') is None


def test_deep_json_of_a_build_names_no_step() -> None:
    """A package that is built could write this line."""
    assert _step(DEEP.encode()) == ("unknown", 0)


def test_deep_json_of_a_container_is_passed_over() -> None:
    assert read(f"end {DEEP}\nrefused {DEEP}".encode()).end == read(b"").end
