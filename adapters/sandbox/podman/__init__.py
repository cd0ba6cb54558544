"""Podman containers as a sandbox; only service.py knows podman's library, and only when it is used."""

from codetape.adapters.sandbox.podman.sandbox import PodmanSandbox
from codetape.adapters.sandbox.podman.settings import Settings

__all__ = ["PodmanSandbox", "Settings"]
