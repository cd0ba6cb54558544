"""Why a build failed, from the words of each tool."""
# ruff: noqa: ISC004, RUF001 - the words are those of the tools

import pytest

from codetape.adapters.sandbox.podman.failures import explain

UV = "error: No solution found when resolving dependencies\n  cause: "
CASES = [
    ("packages", "unknown_package", ("nosuch",), "nosuch",
     UV + "Because nosuch was not found in the package registry and you require nosuch, we can\n"
     "      conclude that your requirements are unsatisfiable."),
    ("packages", "unknown_package", ("pytest",), "pytest==0.0.1",
     UV + "Because there is no version of pytest==0.0.1 and you require pytest==0.0.1, we can"
     " conclude that your requirements are unsatisfiable."),
    ("packages", "unknown_package", ("pytest",), "PyTest>=99",
     UV + "Because only pytest<=9.2.0 is available and you require pytest>=99, we can"),
    ("packages", "unknown_package", ("nosuch",), "nosuch",
     "ERROR: Could not find a version that satisfies the requirement nosuch (from versions: none)\n"
     "ERROR: No matching distribution found for nosuch"),
    ("packages", "conflict", (), "flask==3.0.0 werkzeug<2",
     "  × No solution found when resolving dependencies:\n  ╰─▶ Because flask==3.0.0 depends on\n"
     "      werkzeug>=3.0.0 and you require flask==3.0.0, we can conclude that you require\n"
     "      werkzeug>=3.0.0.\n      And because you require werkzeug<2, we can conclude that"
     " your requirements are unsatisfiable."),
    ("packages", "conflict", (), "a b",
     "ERROR: Cannot install a and b because these package versions have conflicting dependencies.\n"
     "ERROR: ResolutionImpossible: for help visit"),
    ("packages", "conflict", (), "asked",  # a dependency is unknown: it was not asked for
     UV + "Because hidden was not found in the package registry and asked depends on hidden, we"
     " can conclude that asked cannot be used."),
    ("check", "conflict", (), "flask",
     "The package `flask` requires `jinja2>=3`, but 2.0 is installed"),
    ("packages", "download", (), "six",
     "error: Failed to fetch: `https://index.example/simple/six/`\n  Caused by: dns error"),
    ("packages", "disk", (), "six", "error: failed to write: No space left on device (os error 28)"),
    ("packages", "disk", (), "six", "ERROR: Could not install packages due to an OSError:"
     " [Errno 28] No space left on device"),
    ("packages", "disk", (), "six", "error: Disk quota exceeded (os error 122)"),
    ("system", "disk", (), "git", "E: You don't have enough free space in /var/cache/apt/archives/."),
    ("packages", "download", (), "six",
     "error: Request failed after 3 retries\n  Caused by: error sending request for url"
     " (https://index.example/six/)\n  Caused by: operation timed out"),
    ("packages", "download", (), "six",
     "error: Failed to fetch: `https://index.example/six/`\n"
     "  Caused by: HTTP status server error (503 Service Unavailable)"),
    ("packages", "download", (), "six",
     "error: Failed to fetch: `https://index.example/six/`\n"
     "  Caused by: invalid peer certificate: UnknownIssuer"),
    ("packages", "download", (), "six",
     "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='index.example',"
     " port=443): Read timed out."),
    ("packages", "download", (), "six",
     "Could not fetch URL https://index.example/six/: There was a problem confirming the ssl"
     " certificate: [SSL: CERTIFICATE_VERIFY_FAILED] - skipping\n"
     "ERROR: No matching distribution found for six"),
    ("packages", "download", (), "six",
     "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
    ("packages", "conflict", (), "six",
     UV + "Because the requested Python version (>=3.11) does not satisfy Python>=3.12 and six==9"
     " depends on Python>=3.12, we can conclude that six==9 cannot be used."),
    ("packages", "unknown_package", ("six",), "six==9",
     UV + "Because six==9 has no wheels with a matching platform tag (e.g., `manylinux_2_36_x86_64`)"
     " and you require six==9, we can conclude"),
    ("packages", "unknown_package", ("six", "nosuch"), "six==99 pytest nosuch",
     UV + "Because nosuch was not found in the package registry and there are no versions of"
     " six==99, we can conclude that your requirements are unsatisfiable."),
    ("system", "unknown_system_package", ("nosuch", "none"), "nosuch git none",
     "E: Unable to locate package nosuch\nE: Unable to locate package none"),
    ("system", "unknown_system_package", ("git",), "git",
     "E: Version '9' for 'git' was not found"),
    ("system", "unknown_system_package", ("x.y",), "x.y",
     "E: Couldn't find any package by regex 'x.y'"),
    ("system", "download", (), "git",
     "Err:1 http://mirror.example/git.deb\n  404  Not Found [IP: 192.0.2.1 80]\n"
     "E: Failed to fetch http://mirror.example/git.deb  404  Not Found"),
    ("index", "download", (), "git",
     "E: The repository 'http://mirror.example bookworm Release' is not signed."),
    ("index", "download", (), "git",
     "E: Release file for http://mirror.example/InRelease is not valid yet (invalid for 2h)."),
    ("index", "download", (), "git",
     "Certificate verification failed: The certificate is NOT trusted.\nE: Failed to fetch x"),
    ("packages", "other", (), "six", "error: Failed to build `six==1`: the build backend said no"),
    ("system", "unknown_system_package", ("nosuch",), "nosuch hello",
     "E: Unable to locate package nosuch"),
    ("system", "unknown_system_package", ("virtual",), "virtual hello",
     "Package virtual is a virtual package provided by:\n  real 1\n\n"
     "E: Package 'virtual' has no installation candidate"),
    ("system", "unknown_system_package", ("old",), "old",
     "Package old is not available, but is referred to by another package.\n"
     "E: Package 'old' has no installation candidate"),
    ("system", "unknown_system_package", ("lib.so",), "lib.so",
     "E: Unable to locate package lib.so\nE: Couldn't find any package by glob 'lib.so'"),
    ("system", "conflict", (), "a b",
     "The following packages have unmet dependencies:\n a : Conflicts: b\n"
     "E: Unable to correct problems, you have held broken packages."),
    ("index", "download", (), "hello",
     "W: Failed to fetch http://mirror.example/InRelease  Temporary failure resolving 'mirror'\n"
     "E: Some index files failed to download."),
    ("system", "disk", (), "hello", "E: You don't have enough... write error: No space left on device"),
    ("system", "other", (), "hello", "E: Sub-process /usr/bin/dpkg returned an error code (1)"),
    ("command", "command", ("make it",), "", "/bin/sh: 1: make: not found"),
    ("tools", "other", (), "", "Error: Command '['/opt/venv/bin/python3', '-m', 'ensurepip']' failed"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "cause", "packages", "asked", "said"), CASES)
def test_w46_each_wording_has_its_cause(
    step: str, cause: str, packages: tuple[str, ...], asked: str, said: str
) -> None:
    names = ("make it",) if step == "command" else tuple(asked.split())
    failure = explain(step, said, f"before\n{said}", names)
    assert (failure.cause, failure.packages) == (cause, packages)
    assert said[-40:].strip() in failure.message or packages
    assert failure.log.startswith("before")


def test_a_package_that_prints_a_name_does_not_choose_it() -> None:
    said = "building…\nno matching distribution found for requests\nerror: the build failed"
    assert "requests" not in explain("packages", said, said, ("evil",)).packages
