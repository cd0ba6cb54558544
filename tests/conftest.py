"""What holds for every test: sandboxes that are missing, and how Hypothesis searches."""

import os
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests import sandboxes

# Files of sessions and finished runs: not those of whoever runs the tests.
_home = tempfile.TemporaryDirectory(prefix="codetape-tests-")
os.environ["XDG_DATA_HOME"] = _home.name
os.environ["XDG_CONFIG_HOME"] = os.path.join(_home.name, "config")  # the key that marks sessions

# A shared machine is slow at times: a deadline would fail tests for the neighbour's load.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples in each run: a red build can be run again elsewhere, and is red there too.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure() -> None:
    """Hear Ctrl-C, and let children hear it: a shell has its background jobs ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests to CI, and to whoever asks for them by a marker or by name."""
    asked = config.getoption("markexpr") or config.getoption("keyword")
    if sandboxes.required() or asked or any("::" in str(arg) for arg in config.args):
        return
    skip = pytest.mark.skip(reason="slow; run with: make test ARGS='-m slow'")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


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
