"""The recorded sessions: none ends worse than there, and they take fewer calls."""

from __future__ import annotations

import pytest

from tests.reference.__main__ import main


@pytest.mark.slow
def test_no_recorded_session_ends_worse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out[-2000:]
