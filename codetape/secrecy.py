"""Keeping values that are secret out of a job, all of which is on the tape, and out of errors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from codetape.engine.boundary import SHORTEST_SECRET, is_common

_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_USUAL = re.compile(r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$")

_SECRET = re.compile(
    r"(^|[-_])(key|token|secret|password|passwd|credentials?|authorization|cookie|jwt)$",
    re.IGNORECASE,
)
"""How the name of a parameter or a header ends whose value is secret."""


def variable(argument: str, name: Any) -> str:
    """Return the name of a variable that is set. Its error shows no value that was given instead."""
    if not isinstance(name, str) or not _VARIABLE.match(name):
        raise ValueError(
            f"{argument}: it takes the name of an environment variable, such as OPENAI_API_KEY, "
            "never what that holds"
        )
    if not os.environ.get(name):
        shown = (
            name if _USUAL.match(name) and len(name) <= 40 else "of that name"
        )  # or a key itself
        raise ValueError(f"{argument}: the environment variable {shown} is not set")
    if argument == "secrets" and is_common(os.environ[name]):
        raise ValueError(
            f"{argument}: the value of {name} is a short word, which cannot be told from others and "
            f"would stay on the tape; use one of {SHORTEST_SECRET} characters or more"
        )
    return name


def parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a model as JSON can hold them, none of them secret."""
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"litellm_params: JSON cannot hold them: {error}") from None
    for name in _secret_names(given):
        raise ValueError(
            f"litellm_params: {name} would be on the tape; put its value into an environment variable "
            "and name that as api_key"
        )
    return dict(given)


def address(given: str) -> str:
    """Return the address of a server, without blanks around it and without a secret in it."""
    given = given.strip()
    try:
        parts = urlsplit(given)
    except ValueError:
        raise ValueError("api_base: it is no address of a server") from None
    if parts.username or parts.password:
        raise ValueError("api_base: it holds a password, which would be on the tape; use api_key")
    for name in _secret_names(dict(parse_qsl(parts.query))):
        raise ValueError(f"api_base: its {name} would be on the tape; use api_key")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"api_base: {given!r} is no address such as http://localhost:8000/v1")
    return given


def _secret_names(given: Any) -> Iterator[str]:
    if isinstance(given, Mapping):
        for name, value in given.items():
            if isinstance(value, str) and _SECRET.search(str(name)):
                yield str(name)
            yield from _secret_names(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _secret_names(value)
