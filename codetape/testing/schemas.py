"""Values that a JSON schema allows: answers to kinds of call that nobody has described otherwise."""

from __future__ import annotations

import json
from typing import Any

from codetape.testing.chance import Chance

DEEPEST = 6
"""Schemas that contain themselves are left after so many levels."""


def by_schema(chance: Chance, schema: str | None) -> Any:
    """Choose a value of a schema that is given as text; without one, a sentence."""
    if schema is None:
        return "A sentence."
    whole = json.loads(schema)
    return _value(chance, whole, whole, DEEPEST)


def _value(chance: Chance, part: dict[str, Any], whole: dict[str, Any], levels: int) -> Any:
    if "$ref" in part:
        part = whole.get("$defs", {})[part["$ref"].rpartition("/")[2]]
    if "const" in part:
        return part["const"]
    if "enum" in part:
        return chance.one(part["enum"])
    if options := part.get("anyOf") or part.get("oneOf"):
        return _value(chance, chance.one(options), whole, levels)
    if levels == 0:
        return None
    return _of_type(chance, part, whole, levels - 1)


def _of_type(chance: Chance, part: dict[str, Any], whole: dict[str, Any], levels: int) -> Any:
    match part.get("type"):
        case "object":
            fields = part.get("properties", {})
            return {name: _value(chance, of, whole, levels) for name, of in fields.items()}
        case "array":
            items = part.get("items", {})
            return [_value(chance, items, whole, levels) for _ in range(chance.one([1, 0, 2]))]
        case "boolean":
            return chance.one([True, False])
        case "integer" | "number":
            return chance.one([1, 0, -1])
        case "null":
            return None
    return chance.one(["words", ""])
