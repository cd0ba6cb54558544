"""Data frames of any library, as frames of pandas."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from codetape.states.texts import well_formed

EXTRA = "install it with: pip install 'codetape[data]'"
"""The remedy where pandas, pandera or a reader is missing."""

_PROTOCOLS = ("__arrow_c_stream__", "__dataframe__", "to_pandas")


def is_frame(value: Any) -> bool:
    """True for a data frame of any library that speaks one of the interchange protocols."""
    named = type(value).__module__.partition(".")[0] == "pandas"
    return named or any(hasattr(value, protocol) for protocol in _PROTOCOLS)


def frame_of(name: str, value: Any) -> Any:
    """Return a copy of a frame as a pandas DataFrame whose index holds nothing.

    Raises ValueError that names the sample.
    """
    pandas = library("pandas", f"samples: {name} is a data frame, which needs pandas")
    try:
        frame = _framed(pandas, name, value)
    except MissingLibrary:
        raise
    except Exception as error:  # what speaks a protocol may still be no table
        raise _no_frame(name, value) from error
    if isinstance(frame, pandas.Series):
        frame = frame.to_frame()
    if not isinstance(frame, pandas.DataFrame):
        raise _no_frame(name, value)
    return named(indexed(frame))


def _framed(pandas: Any, name: str, value: Any) -> Any:
    if isinstance(value, pandas.DataFrame | pandas.Series):
        return value.copy()
    if hasattr(value, "to_pandas"):
        return value.to_pandas()
    if hasattr(value, "__arrow_c_stream__"):
        arrow = library("pyarrow", f"samples: {name} speaks Arrow, which needs pyarrow")
        return arrow.table(value).to_pandas()
    return pandas.api.interchange.from_dataframe(value)


def _no_frame(name: str, value: Any) -> ValueError:
    kind = type(value)
    return ValueError(f"samples: {name}: {kind.__module__}.{kind.__name__} is no table")


def indexed(frame: Any) -> Any:
    """Return a frame with its index as columns, unless it only numbers or picks the rows."""
    index = frame.index
    if (
        index.nlevels == 1
        and index.name is None
        and (index.dtype.kind in "iu" or index.isna().all())
    ):
        return frame.reset_index(drop=True)
    return frame.reset_index(allow_duplicates=True)


def named(frame: Any) -> Any:
    """Return a frame whose columns have texts for names, and cells that can be told in words."""
    made = frame.set_axis([_name(name) for name in frame.columns], axis=1)
    for place in range(made.shape[1]):
        column = made.iloc[:, place]
        nested = type(column.dtype).__name__ == "ArrowDtype" and column.dtype.kind == "O"
        if nested or column.dtype == object:
            made.isetitem(place, column.astype(object).map(_cell))
    return made


def _cell(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


def _name(name: Any) -> str:
    """Join the levels of a name."""
    levels = name if isinstance(name, tuple) else (name,)
    return well_formed("_".join(str(level) for level in levels if level != ""))


class MissingLibrary(ValueError):
    """A library is not installed that a sample needs."""


def library(name: str, needed: str, remedy: str = EXTRA) -> Any:
    """Import an optional library. Raises MissingLibrary: what needs it and how to get it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingLibrary(f"{needed}; {remedy}") from None


def write(frame: Any, path: Path) -> None:
    """Write a frame of `frame_of` as CSV, into a private folder that is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    frame.to_csv(path, index=False)
