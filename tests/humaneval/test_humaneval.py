"""What is right passes, what is wrong fails, and tests that assert nothing are no pass: HumanEval."""

import pytest

from tests.humaneval.problems import problems
from tests.humaneval.running import scores


@pytest.mark.bubblewrap
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_right_solutions_pass_wrong_ones_fail_and_returned_comparisons_are_no_pass() -> None:
    told = {kind: (score.of, score.misjudged) for kind, score in scores(problems()).items()}
    assert told == dict.fromkeys(("right", "wrong", "returning"), (164, {}))
