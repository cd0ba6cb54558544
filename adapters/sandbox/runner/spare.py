"""Runs the tests against null solutions, in processes that are ready at once.

The process of the tests leaves a spare behind when pytest is about to collect them, with nothing of the
solution there yet: a fork of it goes on at once, where another pytest would cost more than most tests.
The spare waits for orders of the parent, a byte for each null solution, and ends when no more can come.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
from collections.abc import Callable

from codetape.adapters.sandbox.runner import redirect

PR_SET_DUMPABLE = 4
DONE, NONE_PASSED, UNKNOWN = b"d", b"n", b"u"
FOR_FAILURES = ("difflib", "pprint", "subprocess", "_pytest.assertion.util")
NO_TEST_PASSED = 42  # exit status of a run against a null solution; pytest has none like it
GRACE = 1.0  # seconds that an answer may come later than the run has to end
# Taken before anything foreign is imported: replacing it later changes nothing here.
_exit = os._exit


class Spare:
    """Two pipes to the spare: one for orders, one for its answers."""

    def __init__(self, kinds: list[str]) -> None:
        self._kinds = kinds
        self._heard, self._orders = os.pipe()
        self._answers, self._told = os.pipe()
        self.number: int | None = None  # of its process, once it has told

    def to_parent(self) -> None:
        """Close what children have."""
        os.close(self._heard)
        os.close(self._told)

    def to_child(self) -> None:
        """Close what the parent has, so that the spare ends with it."""
        os.close(self._orders)
        os.close(self._answers)

    # --- in the parent ----------------------------------------------------------------------------

    def ready(self) -> bool:
        """Say whether there is a spare: it tells its number before any test is collected."""
        said = self._answer(0)
        self.number = int(said) if said.isdigit() else None
        return self.number is not None

    def run(self, kind: str, seconds: float) -> bytes:
        """Have the tests run against a null solution; UNKNOWN if nothing is known of them."""
        try:
            os.write(self._orders, bytes([self._kinds.index(kind)]))
        except OSError:
            return UNKNOWN
        return self._answer(seconds + GRACE) or UNKNOWN

    def _answer(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self._answers], [], [], seconds)
        return os.read(self._answers, 32) if ready else b""

    # --- in the process of the tests, and in the spare --------------------------------------------

    def load(self) -> None:
        """Import the rule that makes null solutions, as long as it can be found."""
        from codetape.states.null_solutions import nulled

        self._nulled: Callable[..., str | None] = nulled

    def leave(self, solution: str) -> bool:
        """Fork the spare off and go on; True in the forks of that, for which the solution is null.

        It is no child of this process: a test that waits for all of its own would wait for it.
        """
        between = os.fork()
        if between == 0:
            if os.fork() == 0:
                return self._serve(solution)
            _exit(0)
        os.waitpid(between, 0)
        self.to_parent()
        return False

    def _serve(self, solution: str) -> bool:
        """Wait for orders; returns in forks only."""
        os.setsid()
        _close_up()
        os.write(self._told, str(os.getpid()).encode())
        texts = self._prepared(solution)
        while order := os.read(self._heard, 1):
            null, answer = _written(solution, texts.get(self._kinds[order[0]])), UNKNOWN
            child = os.fork() if null else None
            if null and child == 0:  # without a `with` around it: that would end here, too
                self.to_parent()
                return _become(solution, null)
            if null and child:
                answer = _ended(child, null)
                _remove(null)
            os.write(self._told, answer)
        _exit(0)
        return True

    def _prepared(self, solution: str) -> dict[str, str | None]:
        """Return the null solutions, and import what failures need: the tests still run meanwhile."""
        with contextlib.suppress(Exception):
            for name in FOR_FAILURES:
                __import__(name)
            gc.freeze()  # so that forks copy less
            with open(solution, encoding="utf-8") as file:
                text = file.read()
            return {kind: self._nulled(text, kind) for kind in self._kinds}
        return {}


def _ended(child: int, null: str) -> bytes:
    """Wait until the tests have ended, and say what is known of them."""
    _, status = os.waitpid(child, 0)
    if os.path.exists(redirect.escape(null)):
        return UNKNOWN
    return NONE_PASSED if os.waitstatus_to_exitcode(status) == NO_TEST_PASSED else DONE


def _remove(null: str) -> None:
    for path in (redirect.escape(null), null):
        with contextlib.suppress(OSError):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(null))


def _close_up() -> None:
    """Close this process to others of the same user, as the parent is."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _written(solution: str, text: str | None) -> str | None:
    """Write a null solution into a folder of its own; return its path, None where there is none."""
    import tempfile  # here, for the parent has no use for it, and pytest has it anyway

    with contextlib.suppress(OSError):
        if text:
            null = os.path.join(tempfile.mkdtemp(), os.path.basename(solution))
            with open(null, "w", encoding="utf-8") as written:
                written.write(text)
            return null
    return None


def _become(solution: str, null: str) -> bool:
    """Go on, unheard, with the null solution in the place of the solution."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nothing, stream)
        redirect.redirect(solution, null)
    except BaseException:  # noqa: BLE001 - nothing that fails here may run the tests as they were
        _exit(1)
    return True
