"""Credentials of indexes and proxies, kept out of the logs of builds."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import quote, unquote

SHORTEST = 4  # characters of a password that is looked for: shorter ones are in every text


def without_passwords(text: str, environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return `text` without credentials: logs are kept.

    The user part of every address goes, and what follows "Authorization" or the name of a scheme; so
    do the credentials of `environment` wherever they stand, in plain, percent-encoded or base64.
    """
    for secret in sorted(_credentials(environment), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _AUTHORIZATION.sub(r"\1***", text)
    return _USER.sub("***@", text)


_USER = re.compile(r"(?<=://)[^/\s]+@")
_AUTHORIZATION = re.compile(
    r"(\bauthorization\W{1,4}(?:\w+ +)?|\b(?:basic|bearer) +)(?=\S{8})[^\s'\"]+", re.IGNORECASE
)
_ADDRESS_USER = re.compile(r"(?:://|^)([^/\s]+)@")


def _credentials(environment: Mapping[str, str]) -> set[str]:
    """Collect the credentials in addresses, in each form in which a tool may print them."""
    found: set[str] = set()
    for value in environment.values():
        for user in _ADDRESS_USER.findall(value):
            name, _, password = user.partition(":")
            plain = unquote(user)
            parts = {user, plain, password or name, unquote(password or name)}
            parts |= {quote(part, safe="") for part in parts}
            parts |= {base64.b64encode(t.encode()).decode() for t in (plain, f"{plain}:", user)}
            found |= {part for part in parts if len(part) >= SHORTEST}
    return found
