"""One session with nothing fake but the model's answers.

They come over HTTP, packages come from the index, podman builds and runs. The code fails on a module
that nothing imports by name, then on a wrong value, then it passes; it runs on other data, and the
folder that it is saved to works without codetape.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from codetape import AutoCoderAgent, File
from codetape.adapters.sandbox.podman.settings import Settings
from codetape.replay.replayer import replay
from codetape.result import Result
from codetape.states.events import Diagnosed
from tests.support.chat_replies import Reply
from tests.support.chat_server import ChatServer

pytestmark = [pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(900)]

KEY = "sk-canary-0123456789"
PROMPT = """\
Report on a table of orders. `summary` is an Excel workbook with a row for each month: month as \
YYYY-MM, orders (how many, those without an amount included), total. `missing` counts the orders \
without an amount, `mean` is the mean of the other amounts."""
ORDERS = """\
order_id,date,region,amount
1,2025-01-03,north,120.50
2,2025-01-17,south,80.00
3,2025-01-29,east,
4,2025-02-02,west,42.25
5,2025-02-14,north,310.00
6,2025-03-08,south,99.90
"""
NEW_ORDERS = """\
order_id,date,region,amount
7,2025-04-01,west,10.00
8,2025-04-02,east,
9,2025-04-30,east,
10,2025-05-05,north,50.00
"""
NEW_SUMMARY = {"month": ["2025-04", "2025-05"], "orders": [3, 1], "total": [10.0, 50.0]}

CONSTRAINTS = ["Amounts are from 0 to 10000.", "The region is north, south, east or west."]
BETWEEN = {
    "column_name": "amount",
    "check_type": "between",
    "parameters": {"min": 0, "max": 10000},
}
ISIN = {
    "column_name": "region",
    "check_type": "isin",
    "parameters": {"values": ["north", "south", "east", "west"]},
}
PLAN = {"description": "Group the orders by month.", "approach": "pandas, a function each."}

WRONG, RIGHT = '("amount", "count")', '("amount", "size")'
CODE = f"""\
import argparse
from pathlib import Path

import pandas as pd

OUTPUTS = Path("/var/outputs")


def read_orders(path):
    return pd.read_csv(path, parse_dates=["date"])


def by_month(orders):
    months = orders.groupby(orders["date"].dt.strftime("%Y-%m").rename("month"))
    return months.agg(orders={WRONG}, total=("amount", "sum")).reset_index()


def write_workbook(table, path):
    with open(path, "wb") as file:
        table.to_excel(file, engine="openpyxl", index=False)


def count_missing(orders):
    return int(orders["amount"].isna().sum())


def mean_amount(orders):
    return float(orders["amount"].mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=Path, required=True)
    orders = read_orders(parser.parse_args().orders)
    write_workbook(by_month(orders), OUTPUTS / "summary")
    (OUTPUTS / "missing").write_text(str(count_missing(orders)))
    (OUTPUTS / "mean").write_text(str(mean_amount(orders)))


if __name__ == "__main__":
    main()
"""
TESTS = """\
import pandas as pd
import pytest

from solution import by_month, count_missing, mean_amount, read_orders, write_workbook


@pytest.fixture
def orders(tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text("date,amount\\n2024-05-01,1.5\\n2024-05-31,\\n2024-06-01,2.5\\n")
    return read_orders(file)


def test_workbook(orders, tmp_path):
    write_workbook(by_month(orders), tmp_path / "summary")
    table = pd.read_excel(tmp_path / "summary")
    assert list(table["month"]) == ["2024-05", "2024-06"]
    assert list(table["orders"]) == [2, 1]
    assert list(table["total"]) == pytest.approx([1.5, 2.5])


def test_missing(orders):
    assert count_missing(orders) == 1


def test_mean(orders):
    assert mean_amount(orders) == pytest.approx(2.0)
"""
NEEDS_OPENPYXL = {
    "failures": [{"test_name": "test_workbook", "error_type": "environment"}],
    "needs_language_packages": ["openpyxl"],
}
WRONG_COUNT = {
    "failures": [
        {
            "test_name": "test_workbook",
            "error_type": "logic",
            "root_cause": "count leaves missing amounts out",
            "suggested_fix": f"Replace `{WRONG}` with `{RIGHT}`",
        }
    ]
}
SCRIPT: dict[str, list[Any]] = {
    "parse_constraint": [BETWEEN, ISIN],
    "plan": [PLAN],
    "code": [{"code": CODE}, {"code": CODE.replace(WRONG, RIGHT)}],  # they list no package
    "tests": [{"test_code": TESTS}],
    "diagnosis": [NEEDS_OPENPYXL, WRONG_COUNT],
}
BEFORE = Counter(
    "session_opened sandbox_ready constraint_parsed constraint_parsed planned code_written "
    "tests_written image_built".split()
)
AFTER = [
    ("tests_failed", "Diagnosing"),
    ("diagnosed", "Reclassify"),
    ("reclassified", "NeedsRebuild"),
    ("image_built", "Testing"),
    ("tests_failed", "Diagnosing"),
    ("diagnosed", "Reclassify"),
    ("reclassified", "NeedsCode"),
    ("code_written", "Testing"),
    ("tests_passed", "Done"),
]


@dataclass
class Session:
    """The session that all tests look at, and what the server was asked."""

    result: Result
    server: ChatServer
    new: Path  # orders that the session has not seen


@pytest.fixture(scope="module")
def session(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("real")
    orders, new = folder / "orders.csv", folder / "new.csv"
    orders.write_text(ORDERS)
    new.write_text(NEW_ORDERS)
    script = {kind: [Reply(answer) for answer in answers] for kind, answers in SCRIPT.items()}
    with pytest.MonkeyPatch.context() as patch, ChatServer(script, key=KEY) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("CODETAPE_BASE_IMAGE", base_image)
        patch.setenv("XDG_DATA_HOME", str(folder))
        agent = AutoCoderAgent(
            model="openai/gpt-4.1",
            api_base=server.base,
            sandbox="podman",
            store=folder / "tapes.db",
        )
        result = agent.generate(
            PROMPT,
            samples={"orders": orders},
            constraints=CONSTRAINTS,
            outputs={"summary": File, "missing": int, "mean": float},
        )
        yield Session(result, server, new)


def asked(session: Session, kind: str) -> list[str]:
    """What the requests of a kind said."""
    bodies = [request.body for request in session.server.requests]
    named = [(body["response_format"]["json_schema"]["name"], body["messages"]) for body in bodies]
    return ["\n".join(m["content"] for m in messages) for name, messages in named if name == kind]


def test_it_passes_after_a_missing_module_and_a_wrong_value(session: Session) -> None:
    result = session.result
    assert result.success, result.error
    path = [(record.event.name, record.dest) for record in result.records]
    first = path.index(AFTER[0])
    assert Counter(name for name, _ in path[:first]) == BEFORE
    assert path[first:] == AFTER
    assert result.attempts == 3
    assert session.server.left_over() == {}
    assert len(session.server.requests) == 8

    missing, wrong = [r.event for r in result.records if isinstance(r.event, Diagnosed)]
    (failure,) = missing.failures
    assert (failure.problem.type, failure.label) == ("ModuleNotFoundError", "environment")
    assert missing.needs.packages == ("openpyxl",)
    (failure,) = wrong.failures
    assert (failure.problem.type, failure.label) == ("AssertionError", "logic")
    assert result.detected_packages == ("openpyxl", "pandas")
    assert result.solution is not None
    assert RIGHT in result.solution.code


def test_the_model_is_told_of_data_constraints_and_failures(session: Session) -> None:
    schema = session.result.generated_schemas["orders"]
    assert (
        "'amount': pa.Column(float, nullable=True, checks=[pa.Check.in_range(0, 10000)])" in schema
    )
    assert "pa.Check.isin(['north', 'south', 'east', 'west'])" in schema
    (plan,) = asked(session, "plan")
    first, repair = asked(session, "code")
    for told in (plan, first, repair):
        assert all(constraint in told for constraint in CONSTRAINTS)
        assert "pa.Check.in_range(0, 10000)" in told
        assert "310.0" in told, "the description of the data"
    missing, wrong = asked(session, "diagnosis")
    assert "No module named 'openpyxl'" in missing
    assert "AssertionError" in wrong
    assert "count leaves missing amounts out" in repair


def test_the_tape_replays_as_identical(session: Session) -> None:
    result = session.result
    assert replay(result.store, result.session).identical
    assert not any(KEY in row.data for row in result.store.read(result.session))
    assert result.cost is not None
    assert result.cost > 0


def test_it_runs_on_other_data(session: Session, tmp_path: Path) -> None:
    outputs = session.result.run(orders=session.new, output_dir=tmp_path)
    assert outputs == (File(tmp_path / "summary"), 2, 30.0)
    assert [type(value) for value in outputs] == [File, int, float]
    assert outputs.mean == 30.0
    check_summary(outputs.summary)


def check_summary(file: os.PathLike[str]) -> None:
    table = pd.read_excel(Path(file), engine="openpyxl", dtype={"total": float})
    pd.testing.assert_frame_equal(table, pd.DataFrame(NEW_SUMMARY))


# --- the saved folder -----------------------------------------------------------------------------


def commands(folder: Path, title: str) -> str:
    """The commands below a title of the folder's README, as they stand there."""
    (text,) = re.findall(
        rf"^## {title}\n\n((?:    .*\n)+)", (folder / "README.md").read_text(), re.MULTILINE
    )
    return str(text)


def shell(script: str, folder: Path, programs: Path) -> str:
    """Run a script in a folder, with other programs first on the path."""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-exc", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def saved(session: Session, tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    session.result.save(folder)
    return folder


def test_the_saved_tests_pass_in_a_fresh_environment(saved: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    said = shell(commands(saved, "Test it"), saved, tmp_path / "venv" / "bin")
    assert "3 passed" in said


PODMAN = """\
#!{python}
import os, sys
command, *rest = ["{tag}" if word == "solution" else word for word in sys.argv[1:]]
options = {options!r} if command == "build" else []
os.execv({podman!r}, [{podman!r}, command, *options, *rest])
"""
"""Says what builds need here, and gives the image a name that nobody else has."""


@pytest.fixture
def programs(base_image: str, tmp_path: Path) -> Iterator[Path]:
    """A folder with a podman that builds as the sandbox does: base image, certificates, index."""
    podman, tag = shutil.which("podman"), f"localhost/codetape-test-{uuid.uuid4().hex[:12]}"
    assert podman is not None
    folder = tmp_path / "programs"
    folder.mkdir()
    options = [f"--from={base_image}", "--layers=false"]
    options += build_options(Settings.read(os.environ), folder / "pip.conf")
    text = PODMAN.format(python=sys.executable, tag=tag, options=options, podman=podman)
    (folder / "podman").write_text(text)
    (folder / "podman").chmod(0o755)
    yield folder
    subprocess.run([podman, "rmi", "--force", tag], check=False, capture_output=True)


def build_options(settings: Settings, file: Path) -> list[str]:
    """Options of podman that lend a build the settings of the host; pip's go into `file`."""
    known = {
        name.removeprefix("PIP_"): value
        for name, value in settings.environment.items()
        if name.startswith("PIP_")
    }
    options = [f"--volume={file}:/etc/pip.conf:ro"]
    if settings.network is not None:
        options.append(f"--network={settings.network}")
    if settings.certificates is not None:
        options.append(f"--volume={settings.certificates.resolve()}:/mnt/ca.pem:ro")
        known["CERT"] = "/mnt/ca.pem"
    lines = [f"{name.lower().replace('_', '-')} = {value}\n" for name, value in known.items()]
    file.write_text("[global]\n" + "".join(lines))
    return options


def test_the_saved_image_does_on_other_data_what_the_session_did(
    session: Session, saved: Path, programs: Path
) -> None:
    (saved / "inputs").mkdir()
    shutil.copy(session.new, saved / "inputs" / "orders.csv")
    shell(commands(saved, "Run it"), saved, programs)
    outputs = saved / "outputs"
    assert (outputs / "missing").read_text() == "2"
    assert (outputs / "mean").read_text() == "30.0"
    check_summary(outputs / "summary")
