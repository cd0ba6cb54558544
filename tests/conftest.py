"""What holds for every test: sandboxes that are missing, and how Hypothesis searches."""

import os

import pytest
from hypothesis import settings

from tests import sandboxes

# A shared machine is slow at times: a deadline would fail tests for the neighbour's load.
settings.register_profile("default", deadline=None)
# The same examples in each run: a red build can be run again elsewhere, and is red there too.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked with a sandbox runs, is skipped with the remedy, or fails in CI."""
    for kind in sandboxes.KINDS:
        if item.get_closest_marker(kind) is None:
            continue
        if (reason := sandboxes.missing(kind)) is None:
            continue
        if sandboxes.required():
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def base_image() -> str:
    """The name of a base image that podman has; only for tests marked `podman`."""
    name = sandboxes.base_image()
    assert name is not None, "a test that uses base_image must be marked podman"
    return name
