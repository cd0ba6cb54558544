"""A test of ours that must fail: who makes all tests pass makes this one pass too."""

from __future__ import annotations

from types import ModuleType
from typing import Any

WITNESS = "the witness"
# Taken before anything foreign is imported: replacing it later changes nothing here.
Failed = AssertionError


def collect(pytest: Any, session: Any) -> Any:
    """Return the witness: an ordinary function, which pytest itself collects from a module of ours."""
    module = ModuleType("test_witness")

    def test_witness() -> None:
        raise Failed(WITNESS)

    class Witness(pytest.Module):  # type: ignore[misc]
        def _getobj(self) -> ModuleType:
            return module

    vars(module)["test_witness"] = test_witness
    [item] = Witness.from_parent(session, path=session.path / "test_witness.py").collect()
    return item
