"""The state machine of the kit, over the workflows that ship."""

from __future__ import annotations

from hypothesis import settings

from codetape.states.workflow import AUTOCODER, TOOLMAKER
from codetape.testing import machine_for

TestAutocoder = machine_for(AUTOCODER).TestCase
TestAutocoder.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)

TestToolmaker = machine_for(TOOLMAKER).TestCase
TestToolmaker.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
