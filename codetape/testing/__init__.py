"""Contract suites that every adapter passes, and the parts that tests are built from."""

import pytest

# Without this, a contract that is broken says AssertionError and no more.
pytest.register_assert_rewrite(
    "codetape.testing.llms",
    "codetape.testing.sandbox_files",
    "codetape.testing.sandbox_isolation",
    "codetape.testing.sandbox_limits",
    "codetape.testing.sandbox_reports",
    "codetape.testing.sandbox_runs",
    "codetape.testing.sandboxes",
    "codetape.testing.store_cases",
    "codetape.testing.store_forks",
    "codetape.testing.store_leases",
    "codetape.testing.store_tapes",
    "codetape.testing.stores",
)
