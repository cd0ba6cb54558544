"""Constraints in words, as checks of the columns of samples, and both as a schema that runs.

No constraint is lost: one that names no column, or that cannot be read, stays in the prompt in words,
and so does every other one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pydantic import JsonValue

from codetape.states.answers import ConstraintShape, Unusable
from codetape.states.job import Column, Job, Sample
from codetape.states.values import Value

MOST_GROUPS = 50
"""Groups of a regular expression: each may be a level of the ones around it."""


class Check(Value):
    """A check of one column: `kind` as the model names it, `arguments` in a fixed order."""

    constraint: str
    column: str
    kind: str
    arguments: tuple[JsonValue, ...] = ()


def check_of(constraint: str, shape: ConstraintShape, job_columns: Iterable[str]) -> Check | None:
    """Return the check that an answer describes, or None for a constraint that is none.

    Raises Unusable for a column that no sample has and for arguments that do not fit.
    """
    if shape.check_type == "none":
        return None
    column = _column(shape.column_name, tuple(job_columns))
    arguments = _ARGUMENTS[shape.check_type](tuple(_flat(shape.parameters)))
    return Check(constraint=constraint, column=column, kind=shape.check_type, arguments=arguments)


def _column(name: str, columns: tuple[str, ...]) -> str:
    if name in columns:
        return name
    same = [column for column in columns if column.strip().lower() == name.strip().lower()]
    if len(set(same)) != 1:
        raise Unusable("invalid", f"column_name: no sample has a column {name!r}")
    return same[0]


def _flat(parameters: dict[str, JsonValue]) -> list[JsonValue]:
    """Return the values of parameters by their names' order: min before max, a list as it is."""
    named = sorted(parameters.items(), key=lambda pair: (_rank(pair[0]), pair[0]))
    return [value for _, value in named if value is not None]


def _rank(name: str) -> int:
    low = ("min", "low", "lower", "from", "start", "greater")
    return 0 if any(word in name.lower() for word in low) else 1


def _numbers(count: int) -> Callable[[tuple[JsonValue, ...]], tuple[JsonValue, ...]]:
    def numbers(values: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
        flat = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        found = [v for v in flat if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(found) != count:
            raise Unusable("invalid", f"parameters: {count} numbers are needed")
        return tuple(sorted(found))

    return numbers


def _pattern(values: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    texts = [value for value in values if isinstance(value, str)]
    try:
        (text,) = texts
        _compile(text)
    except (ValueError, re.error, OverflowError) as error:
        raise Unusable("invalid", f"parameters: no regular expression: {error}") from error
    return (text,)


def _compile(pattern: str) -> None:
    if pattern.count("(") > MOST_GROUPS:
        raise ValueError(f"it has more than {MOST_GROUPS} groups")
    re.compile(pattern)


def _members(values: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    flat = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
    plain = [v for v in flat if isinstance(v, str | int | float | bool)]
    if not plain or len(plain) != len(flat):
        raise Unusable("invalid", "parameters: a list of values is needed")
    return tuple(plain)


def _nothing(_: tuple[JsonValue, ...]) -> tuple[JsonValue, ...]:
    return ()


_ARGUMENTS = {
    "greater_than": _numbers(1),
    "less_than": _numbers(1),
    "between": _numbers(2),
    "regex": _pattern,
    "isin": _members,
    "not_null": _nothing,
}


# --- the schema -----------------------------------------------------------------------------------

_DTYPES = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "datetime": '"datetime64[ns]"',
    "str": "str",
}

_MISSING = {"int": '"Int64"', "bool": '"boolean"'}
"""What of pandas may be missing; its bool would take what is missing for True."""


_TYPES = {
    "regex": ("str",),
    **dict.fromkeys(("greater_than", "less_than", "between"), ("int", "float")),
}
"""Types of columns that a check is for; any if it is not here."""


def schema_code(sample: Sample, checks: Iterable[Check]) -> str:
    """Return a Pandera schema of a sample's columns as code that runs; it names `schema`."""
    checks = tuple(checks)
    lines = [_column_line(column, checks) for column in sample.columns]
    body = "\n".join(f"        {line}" for line in lines)
    return (
        "import pandera.pandas as pa\n\n"
        f"schema = pa.DataFrameSchema(\n    {{\n{body}\n    }},\n    coerce=True,\n)\n"
    )


def _column_line(column: Column, checks: tuple[Check, ...]) -> str:
    mine = [check for check in checks if check.column == column.name]
    required = any(check.kind == "not_null" for check in mine)
    nullable = column.nullable and not required
    dtype = _DTYPES.get(column.type, "None")
    if nullable:
        dtype = _MISSING.get(dtype, dtype)
    terms = [term for check in mine if _suits(check, column) and (term := _term(check))]
    given = f", checks=[{', '.join(terms)}]" if terms else ""
    return f"{column.name!r}: pa.Column({dtype}, nullable={nullable}{given}),"


def _suits(check: Check, column: Column) -> bool:
    """False if the check is none for values of that type: it would refuse them all."""
    return column.type in _TYPES.get(check.kind, (column.type,))


def _term(check: Check) -> str | None:
    match check.kind, check.arguments:
        case "greater_than", (least,):
            return f"pa.Check.greater_than({least!r})"
        case "less_than", (most,):
            return f"pa.Check.less_than({most!r})"
        case "between", (least, most):
            return f"pa.Check.in_range({least!r}, {most!r})"
        case "regex", (pattern,):
            return f"pa.Check.str_matches({pattern!r})"
        case "isin", members:
            return f"pa.Check.isin({list(members)!r})"
    return None


def schemas_of(job: Job, checks: Iterable[Check]) -> dict[str, str]:
    """Return the schema of each sample that is a table, by the name of the sample."""
    checks = tuple(checks)
    return {s.name: schema_code(s, checks) for s in job.samples if s.columns}


def columns_of(job: Job) -> tuple[str, ...]:
    """Return the columns of all samples, each once."""
    return tuple(dict.fromkeys(c.name for sample in job.samples for c in sample.columns))
