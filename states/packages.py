"""From imports and wishes to the requirements of an image.

Names pass one grammar here, whoever they come from: no options, no addresses, no spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from codetape.states.distributions import (
    DECOYS,
    DISTRIBUTIONS,
    GENERIC,
    NAMESPACES,
    NO_NAMES,
    PROVIDERS,
)
from codetape.states.stdlib import STDLIB

LOCAL = frozenset({"solution", "test_solution", "conftest", "__main__"})
"""Names that a session provides itself; no index is asked for them."""

_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_VERSIONS = re.compile(r"[A-Za-z0-9.*+!<>=~,-]*\Z")  # `===` would take any character
# apt reads more into a name: a minus or plus at its end, a point as any character, a file.
_SYSTEM = re.compile(r"(?!.*\.(?:deb|dsc|changes)\Z)[a-z0-9][a-z0-9+.-]{0,126}(?:[a-z0-9]|\+\+)")

Kind = Literal["package", "system_package", "command"]
"""What an image is asked to hold, in the order in which it is decided on."""

KINDS = get_args(Kind)


def distribution_of(dotted: str) -> str | None:
    """Return the distribution that provides the import `dotted`, or None for library and local names.

    The longest dotted prefix in the table wins. A name that is not in the table stands for itself,
    unless it says nothing: many distributions share it, or every project has a file of that name.
    """
    root = dotted.partition(".")[0]
    if root in STDLIB or root in LOCAL | GENERIC or not _DISTRIBUTION.match(root):
        return None
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        if known := DISTRIBUTIONS.get(".".join(parts[:end])):
            return known
    return None if root in NAMESPACES else canonicalize_name(root)


def asks_for(imported: str, module: str) -> bool:
    """Whether an import may ask for a module: below a namespace, one that it holds, or that comes
    with it."""
    root = imported.partition(".")[0]
    if root not in NAMESPACES:
        return root == module.partition(".")[0]
    if root == imported:
        return False
    return module.startswith(f"{imported}.") or (
        distribution_of(imported) is not None
        and distribution_of(imported) == distribution_of(module)
    )


def distributions_of(imports: Iterable[str]) -> tuple[str, ...]:
    """Return the distributions of many imports, sorted, each once."""
    found = {name for dotted in imports if (name := distribution_of(dotted))}
    return tuple(sorted(found))


def not_provided(imports: Iterable[str], listed: Iterable[str]) -> tuple[str, ...]:
    """Return the distributions of imports that no listed one provides already, sorted.

    An import may have several: PyJWT is listed for `jwt`, and a distribution called jwt is another.
    """
    names = {name_of(required) for required in listed}
    left = (dotted for dotted in imports if not names.intersection(_providers(dotted)))
    return distributions_of(left)


def _providers(dotted: str) -> tuple[str, ...]:
    root = dotted.partition(".")[0]
    plain = canonicalize_name(root) if _DISTRIBUTION.match(root) else root
    forms = ("{}", "python-{}", "{}-binary", "{}-cpu", "{}-gpu")
    usual = () if root in NAMESPACES else tuple(form.format(plain) for form in forms)
    if known := PROVIDERS.get(root):
        return known
    return (distribution_of(dotted) or plain, *usual)


def not_in_library(names: Iterable[str]) -> list[str]:
    """Leave out what a model lists by mistake: modules of the standard library, and words for none.

    A few have namesakes among the distributions; one that is listed with a version is kept.
    """
    plain = {name: name.strip().strip(".()").lower() for name in names}
    return [
        name
        for name, word in plain.items()
        if word not in NO_NAMES and word.partition(".")[0] not in STDLIB
    ]


def requirement(text: str) -> str:
    """Return a requirement in its one form: normalised name, extras, version specifier.

    Raises ValueError, which quotes the text, for anything else: options, addresses, markers, shell.
    """
    try:
        parsed = Requirement(text.strip())
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is no package name") from error
    odd = parsed.url or parsed.marker or not _VERSIONS.match(str(parsed.specifier))
    if odd or not _DISTRIBUTION.match(parsed.name):
        raise ValueError(f"{text!r} is no package name")
    name = DECOYS.get(canonicalize_name(parsed.name), canonicalize_name(parsed.name))
    extras = f"[{','.join(sorted(parsed.extras))}]" if parsed.extras else ""
    return f"{name}{extras}{parsed.specifier}"


def is_system_package(name: str) -> bool:
    """Say whether a text is the name of a Debian package, and nothing else to apt."""
    return _SYSTEM.fullmatch(name) is not None


def system_package(text: str) -> str:
    """Return the name of a Debian package. Raises ValueError, which quotes the text, for others."""
    name = text.strip()
    if not is_system_package(name):
        raise ValueError(f"{text!r} is no system package name")
    return name


def permission(kind: Kind, text: str) -> str:
    """Return how a permission for a package, system package or command is written.

    A requirement has no space, so that permissions of two kinds are never equal.
    """
    return text if kind == "package" else f"{kind} {text}"


def name_of(required: str) -> str:
    """Return the bare normalised name of a requirement that `requirement` made."""
    return re.split(r"[\[<>=!~ ]", required, maxsplit=1)[0]


def merged(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return each distribution once, sorted, with all extras and all versions that are asked for.

    What cannot be had together reaches the resolver as it is, which then names both sides.
    """
    asked: dict[str, list[str]] = {}
    for required in requirements:
        asked.setdefault(name_of(required), []).append(required)
    return tuple(_together(name, asked[name]) for name in sorted(asked))


def _together(name: str, asked: list[str]) -> str:
    if len(set(asked)) == 1:
        return asked[0]
    try:
        parsed = [Requirement(required) for required in asked]
        versions = SpecifierSet(",".join(str(one.specifier) for one in parsed if one.specifier))
    except (InvalidRequirement, InvalidSpecifier):  # a tape may hold any text
        return asked[0]
    extras = sorted({extra for one in parsed for extra in one.extras})
    return f"{name}[{','.join(extras)}]{versions}" if extras else f"{name}{versions}"
