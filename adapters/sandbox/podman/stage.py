"""What runs inside a build: one stage of an image, as root, in a container of its own.

Self-contained (standard library, Python 3.8 and later): the very file is handed over.

    python3 stage.py FOLDER

FOLDER holds stage.json (`stage`: "tools", "system", "packages" or "commands"; `names`: what to
install; `commands`; `settings`: variables for this stage only, none for commands) and perhaps ca.pem.
Names reach the installers as arguments or as a file, never through a shell; only `commands` are shell
by nature. Which step went wrong is written to descriptor 3 as one JSON line {"step", "index",
"status"}. stage.json is removed before the first step, and on success the folder is emptied, so that
neither settings nor certificate are in the image.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

VENV = "/opt/venv"
PYTHON = f"{VENV}/bin/python"
UV = f"{VENV}/bin/uv"
INSTALLER = 65533  # the user that installs packages: what they run at that writes to VENV alone
QUIET = {
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_NO_INPUT": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "UV_LINK_MODE": "copy",
    "UV_NO_CACHE": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}
CERTIFICATES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)


def main() -> None:
    """Run the stage; leave with the status of the step that failed, or 0."""
    folder = sys.argv[1]
    with open(f"{folder}/stage.json") as file:
        job = json.load(file)
    os.unlink(f"{folder}/stage.json")
    certificate = f"{folder}/ca.pem" if os.path.exists(f"{folder}/ca.pem") else None
    os.environ.update(QUIET, **job["settings"])
    if certificate:
        os.environ.update(dict.fromkeys(CERTIFICATES, certificate))
    for step, index, command in steps(job, folder, certificate):
        # Compiling runs nothing, but root would write through links that a package has made.
        run = _run_as_installer if step in ("packages", "compile") else _run
        status = run(command, folder)
        if status != 0:
            fail(step, index, status)
    _empty(folder)


def _run(command: list[str], _: str) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def _run_as_installer(command: list[str], folder: str) -> int:
    """Run a step as a user who owns the virtual environment and nothing else.

    A package that is built, or the start of the environment's Python, runs foreign code: the Python
    of the system, which keeps the report of a run, stays out of its reach.
    """
    home = f"{folder}/home"
    os.makedirs(home, exist_ok=True)
    own = {"HOME": home, "TMPDIR": home}
    for place in (VENV, home):
        _give(place, INSTALLER)
    status = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, **own},
        preexec_fn=_become_installer,
    ).returncode
    _end_installer()
    _give(VENV, 0)
    return status


def _become_installer() -> None:
    os.setgroups([])
    os.setgid(INSTALLER)
    os.setuid(INSTALLER)


def _end_installer() -> None:
    """Kill what the installer left running, so that nothing changes the files any more."""
    child = os.fork()
    if child == 0:
        _become_installer()
        try:
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _give(place: str, user: int) -> None:
    os.lchown(place, user, user)
    for folder, inner, files in os.walk(place):
        for name in inner:
            os.lchown(os.path.join(folder, name), user, user)
        for name in files:
            path = os.path.join(folder, name)
            if os.lstat(path).st_nlink == 1:  # the other name may be that of a file of the system
                os.lchown(path, user, user)


def steps(job: dict[str, Any], folder: str, certificate: str | None) -> Any:
    """Yield (step, index, command) in order; what is yielded later may look at what came before."""
    names = job["names"]
    if job["stage"] == "tools":
        yield "tools", 0, [sys.executable, "-m", "venv", "--system-site-packages", VENV]
        # Without uv (no wheel for this platform, say) pip does the work: nothing fails here.
        yield "tools", 1, ["sh", "-c", f"{PYTHON} -m pip install --quiet uv || true"]
    if job["stage"] == "system":
        yield from _system(names, certificate)
    if job["stage"] == "packages" and names:
        with open(f"{folder}/requirements.txt", "w") as file:
            file.writelines(f"{name}\n" for name in names)
        yield from _packages(f"{folder}/requirements.txt")
    for index, command in enumerate(job["commands"] if job["stage"] == "commands" else ()):
        yield "command", index, ["/bin/sh", "-ec", command]


def _system(names: list[str], certificate: str | None) -> Any:
    if shutil.which("apt-get") is None:
        print("the base image has no apt-get: system packages cannot be installed", file=sys.stderr)
        fail("system", 0, 1)
    options = ["-o", "Acquire::Retries=2"]
    options += ["-o", f"Acquire::https::CaInfo={certificate}"] if certificate else []
    yield "index", 0, ["apt-get", *options, "-q", "update", "-o", "APT::Update::Error-Mode=any"]
    if unknown := sorted({*names} - _names_of_apt()):
        for name in unknown:
            print(f"unable to locate package {name}", file=sys.stderr)
        fail("system", 0, 100)
    install = ["apt-get", *options, "-q", "-y", "install", "--no-install-recommends"]
    # A bare name may be an expression to apt, this pattern is never one; it matches nothing in silence.
    yield "system", 0, [*install, "--", *(f"?exact-name({name})" for name in names)]
    yield "clean", 0, ["sh", "-c", "rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin"]


def _names_of_apt() -> set[str]:
    listed = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=False)
    return set(listed.stdout.split())


def _packages(file: str) -> Any:
    """All requirements in one step, so that one resolver sees them all and what it takes fits."""
    if os.path.exists(UV):
        install = [UV, "pip", "install", "--color=never", "--python", PYTHON]
    else:
        install = [PYTHON, "-m", "pip", "install", "--no-color", "--progress-bar=off"]
        install.append("--no-compile")
    yield "packages", 0, [*install, "-r", file]
    # The interpreter behind the environment reads the modules, and runs none of them.
    compile_all = f"{os.path.realpath(PYTHON)} -I -S -m compileall -q {VENV}/lib || true"
    yield "compile", 0, ["sh", "-c", compile_all]


def fail(step: str, index: int, status: int) -> None:
    """Say which step failed, and leave."""
    os.write(3, json.dumps({"step": step, "index": index, "status": status}).encode() + b"\n")
    sys.exit(status if 0 < status < 128 else 1)


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


if __name__ == "__main__":
    main()
