"""The testing kit without what only parts of it need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from codetape import testing


@contextmanager
def without_hypothesis() -> Iterator[None]:
    """For a block only: Hypothesis' own plugin of pytest needs it again after the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "hypothesis", None)
        for name in ("strategies", "machines"):
            patch.delitem(sys.modules, f"codetape.testing.{name}", raising=False)
        yield


@pytest.mark.parametrize("name", ["answers", "machine_for"])
def test_what_draws_names_the_extra_that_it_needs(name: str) -> None:
    says = rf"{name} needs .*'codetape\[testing\]'"
    with without_hypothesis(), pytest.raises(ImportError, match=says):
        getattr(testing, name)


@pytest.mark.parametrize("name", ["explore", "ScriptedLlm", "MemoryStore", "played"])
def test_the_rest_needs_no_extra(name: str) -> None:
    with without_hypothesis():
        assert getattr(testing, name)
