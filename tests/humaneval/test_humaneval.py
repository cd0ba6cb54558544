"""What is right passes, and what is wrong fails, for each of HumanEval's problems."""

import pytest

from tests.humaneval.problems import problems
from tests.humaneval.running import scores


@pytest.mark.bubblewrap
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_right_solutions_pass_and_wrong_ones_fail() -> None:
    right, wrong = scores(problems())
    assert (right.of, right.misjudged) == (164, {})
    assert (wrong.of, wrong.misjudged) == (164, {})
