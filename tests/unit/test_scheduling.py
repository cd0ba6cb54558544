"""Files whose tests need a sandbox are run by one worker, all others each by any."""

from __future__ import annotations

import pytest

from tests.support.scheduling import TOGETHER, scope_of


@pytest.mark.parametrize("file", ["contracts/test_podman.py", "contracts/test_sandboxes.py"])
def test_what_needs_a_sandbox_stays_together(file: str) -> None:
    assert scope_of(f"tests/{file}::TestRuns::test_a") == TOGETHER


def test_what_needs_none_goes_by_its_file() -> None:
    file = "tests/unit/states/test_ladder.py"
    assert scope_of(f"{file}::test_a[1]") == scope_of(f"{file}::test_b") == file
