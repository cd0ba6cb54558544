"""Workflows of one's own, by the names of their modules."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from codetape.replay.rules import register
from codetape.states.workflow import Workflow

VARIABLE = "CODETAPE_WORKFLOWS"
"""Names workflows, MODULE:WORKFLOW, with commas between; the command line knows them then."""


def find(name: str) -> tuple[Workflow, ModuleType]:
    """Import a workflow by MODULE:WORKFLOW, from the folder that we stand in if it is not installed.

    Modules of that folder stand for no installed one: others may have made it. Raises ValueError,
    which says what is wrong and what there is.
    """
    module, _, attribute = name.partition(":")
    if find_spec(module.partition(".")[0]) is None:
        sys.path.append(os.getcwd())
    try:
        home = import_module(module)
    except ImportError as error:
        raise ValueError(f"{name}: {error}; is it installed, or in this folder?") from error
    workflow = getattr(home, attribute, None)
    if not isinstance(workflow, Workflow):
        known = [key for key, value in vars(home).items() if isinstance(value, Workflow)]
        hint = f"its workflows: {', '.join(known)}" if known else "it has no workflow"
        what = f"{name}: {attribute or 'nothing'} is no Workflow of {module}; {hint}"
        raise ValueError(what)  # noqa: TRY004
    return workflow, home


def register_named() -> None:
    """Have tapes of the workflows that the variable names opened by them. Raises ValueError."""
    for name in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        if ":" not in name:
            raise ValueError(f"{VARIABLE}: {name!r} is not of the form MODULE:WORKFLOW")
        register(find(name)[0])
