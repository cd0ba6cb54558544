"""Changed copies of frozen values, made quickly: a fold makes several at every event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["replace"]

if TYPE_CHECKING:
    from dataclasses import replace  # whose fields and types a checker knows
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """Do as `dataclasses.replace` does, in a tenth of its time for a value of forty fields.

        That one gets and sets each field by its name; this one copies the instance's dictionary, so
        the class must not have slots. Raises TypeError for a field that is not there.
        """
        changed = object.__new__(type(value))
        before, after = value.__dict__, changed.__dict__
        after.update(before)
        after.update(changes)
        if len(after) != len(before):
            unknown = sorted(changes.keys() - before.keys())
            raise TypeError(f"{type(value).__name__} has no field {', '.join(unknown)}")
        return changed
