"""Facts of an exception: type, message, the module that was missing, and the frames that matter."""

from __future__ import annotations

import os
from collections.abc import Callable

TEXT = 8_000  # characters kept of a message or of one test's output: half head, half tail
UNREADABLE = "(the exception has no readable message)"
FRAMES = 40  # frames kept of a traceback: the outermost and the innermost half
SILENT = ("pytest", "_pytest", "pluggy")  # packages whose frames are machinery, not evidence
TRACEBACK = vars(BaseException)["__traceback__"]
"""The attribute itself: a class of the solution's may have another one of this name."""
OURS = __file__.rpartition("problems")[0]  # where the runner lies


class Places:
    """Tells whose code a file is: "solution", "tests", "installed" or "other"."""

    def __init__(self, inputs: str) -> None:
        import sysconfig

        self.inputs = inputs
        self.solution = os.path.join(inputs, "solution.py")
        self.tests = os.path.join(inputs, "test_solution.py")
        paths = sysconfig.get_paths()
        self._installed = {os.path.join(paths[name], "") for name in ("purelib", "platlib")}
        self._stdlib = {os.path.join(paths[name], "") for name in ("stdlib", "platstdlib")}

    def of(self, file: str) -> tuple[str, str]:
        """Return the place of `file` and its shortest clear name."""
        if file in (self.solution, self.tests):
            return ("solution" if file == self.solution else "tests"), os.path.basename(file)
        for place, folders in (("installed", self._installed), ("other", self._stdlib)):
            for folder in folders:
                if file.startswith(folder):
                    return place, file[len(folder) :]
        return "other", file


def describe(error: BaseException, places: Places) -> dict[str, object]:
    """Return the facts of an exception: type, message, frames and the module that was missing.

    Its class is the solution's, and may answer anything, or raise.
    """
    kind = type(error)
    return {
        "type": bounded(_safely(lambda: _name(kind)) or "Exception", 200),
        "message": bounded(_safely(lambda: str(error), UNREADABLE)),
        "frames": _safe_frames(error, places),
        "module": bounded(_missing(error), 200) or None,
    }


def _name(kind: type[BaseException]) -> str:
    """Return the name of an exception, with the module where that says something."""
    module = str(kind.__module__)
    hidden = module in ("builtins", "None") or module.partition(".")[0] in SILENT
    return kind.__qualname__ if hidden else f"{module}.{kind.__qualname__}"


def _missing(error: BaseException) -> str:
    return _safely(lambda: getattr(error, "name", "")) if ImportError in type(error).__mro__ else ""


def _safely(answer: Callable[[], str], otherwise: str = "") -> str:
    """Return a plain text that foreign code is asked for, or `otherwise`."""
    try:
        return str.__str__(answer())
    except BaseException:  # noqa: BLE001 - it may raise anything
        return otherwise


def _safe_frames(error: BaseException, places: Places) -> list[dict[str, object]]:
    try:
        return _frames(error, places)
    except BaseException:  # noqa: BLE001 - its attributes may raise, too
        return []


def _frames(error: BaseException, places: Places) -> list[dict[str, object]]:
    """Return the frames from the first one in tests or solution on, without pytest's own."""
    frames = []
    step = TRACEBACK.__get__(error)
    while step is not None:
        code = step.tb_frame.f_code
        frames.append(_frame(code.co_filename, step.tb_lineno, code.co_name, places))
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append(_frame(str(error.filename), error.lineno, "<module>", places))
    ours = [index for index, frame in enumerate(frames) if frame["place"] in ("tests", "solution")]
    kept = [frame for frame in frames[ours[0] if ours else 0 :] if not _silent(str(frame["file"]))]
    return kept if len(kept) <= FRAMES else kept[: FRAMES // 2] + kept[-FRAMES // 2 :]


def _frame(file: str, line: object, function: str, places: Places) -> dict[str, object]:
    place, name = places.of(file)
    return {
        "place": place,
        "file": bounded(name, 300),
        "line": line if isinstance(line, int) and 0 < line < 1 << 31 else 0,
        "function": bounded(function, 200),
    }


def _silent(file: str) -> bool:
    first = file.replace("\\", "/").split("/")[0]
    return first in SILENT or file.startswith(("<frozen", OURS))


def bounded(text: str, size: int = TEXT) -> str:
    """Return `text` without lone surrogates: whole, or its head and tail and how much was cut."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= size:
        return text
    half = size // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters cut]\n{text[-half:]}"
