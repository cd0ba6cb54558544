"""What this machine needs for builds: base image, network, certificates, indexes and proxies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from codetape.adapters.sandbox.installers import settings

BASE = "docker.io/library/python:3.12-slim"
MADE = "localhost/codetape-base:bookworm"  # by scripts/install-sandboxes.sh
# These name places on the host, which lead nowhere inside.
HOST = re.compile(r"HOME|PATH|XDG_\w+|NETRC|\w+_(?:CERT|FILE|DIR|BUNDLE|LINKS)")
PROXY = re.compile(r"(?:https?|all|no)_proxy|NO_COLOR|LC_ALL", re.IGNORECASE)
BUNDLES = ("CODETAPE_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class Settings:
    """How builds and starts are done. Times are in seconds.

    `base` is the image for specs that name none; None: MADE where it is here, else BASE. `network` is
    podman's name for the network of builds, None for its default. `certificates` is a file of CA
    certificates and `environment` has variables; neither stays in an image. `login` is the username
    and password for the registry of the base image. `patience` bounds single
    answers of the service: a start may have to wait for a repair of the storage.
    """

    base: str | None = None
    build_seconds: float = 600.0
    pull_seconds: float = 600.0
    patience: float = 120.0
    network: str | None = None
    certificates: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    login: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Take the settings from environment variables."""
        return cls(
            base=environment.get("CODETAPE_BASE_IMAGE") or None,
            network=environment.get("CODETAPE_BUILD_NETWORK") or None,
            certificates=_bundle(environment),
            environment=_allowed(environment),
        )

    def needed_by(self, stage: str) -> dict[str, str]:
        """Return the variables for a stage of a build: apt needs proxies only, a command none."""
        if stage == "commands":
            return {}
        variables = self.environment.items()
        return {k: v for k, v in variables if stage != "system" or PROXY.fullmatch(k)}

    def known_as(self, secret: str) -> Settings:
        """Return the same settings with the login of "user:password"."""
        user, _, password = secret.partition(":")
        return replace(self, login={"username": user, "password": password})

    def on(self, base: str) -> Settings:
        """Return the same settings with another base image."""
        return replace(self, base=base)


def _bundle(environment: Mapping[str, str]) -> Path | None:
    named = (Path(environment[name]) for name in BUNDLES if environment.get(name))
    return next((path for path in named if path.is_file()), None)


def _allowed(environment: Mapping[str, str]) -> dict[str, str]:
    """Pick what a build may see of the host's environment: where packages come from, no more."""
    return {
        name: value
        for name, value in settings(environment).items()
        if value and not HOST.fullmatch(name) and "file:" not in value
    }
