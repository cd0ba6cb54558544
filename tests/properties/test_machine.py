"""The state machine of the kit, over the auto-coder."""

from __future__ import annotations

from hypothesis import settings

from codetape.states.workflow import AUTOCODER
from codetape.testing import machine_for

TestAutocoder = machine_for(AUTOCODER).TestCase
TestAutocoder.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
