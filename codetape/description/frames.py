"""Data frames of any library, as frames of pandas."""

from __future__ import annotations

from importlib import import_module
from typing import Any

EXTRA = "install it with: pip install 'codetape[data]'"
"""The remedy where pandas, pandera or a reader is missing."""

_PROTOCOLS = ("__arrow_c_stream__", "__dataframe__", "to_pandas")


def is_frame(value: Any) -> bool:
    """True for a data frame of any library that speaks one of the interchange protocols."""
    named = type(value).__module__.partition(".")[0] == "pandas"
    return named or any(hasattr(value, protocol) for protocol in _PROTOCOLS)


def frame_of(name: str, value: Any) -> Any:
    """Return a copy of a frame as a pandas DataFrame. Raises ValueError that names the sample."""
    pandas = library("pandas", f"samples: {name} is a data frame, which needs pandas")
    if isinstance(value, pandas.DataFrame):
        return value.copy()
    if isinstance(value, pandas.Series):
        return value.to_frame()
    if hasattr(value, "to_pandas"):
        return value.to_pandas()
    if hasattr(value, "__arrow_c_stream__"):
        arrow = library("pyarrow", f"samples: {name} speaks Arrow, which needs pyarrow")
        return arrow.table(value).to_pandas()
    return pandas.api.interchange.from_dataframe(value)


def library(name: str, needed: str) -> Any:
    """Import an optional library. Raises ValueError that says what needs it and how to get it."""
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"{needed}; {EXTRA}") from None
