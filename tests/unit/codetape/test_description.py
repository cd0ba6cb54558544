"""Sample data in words: bounded, true, the same for the same seed, and never a crash."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetape.description import files, samples_of
from codetape.description.files import LARGEST_READ
from codetape.description.samples import SHOWN, Choice
from codetape.states.job import Column, Sample

FRAME = pd.DataFrame(
    {
        "sensor": ["a", "a", "b", "c"],
        "value": [1.5, None, -3.0, 40.0],
        "count": [1, 2, 3, 4],
        "at": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03", "2026-02-01"]),
        "mail": ["a@b.de", "c@d.de", "e@f.de", "g@h.de"],
        "ok": [True, False, True, True],
    }
)


def describe(value: Any, folder: Path, rows: int = 20, seed: int = 0) -> Sample:
    (sample,) = samples_of({"data": value}, Choice(rows, seed, folder / "private"))
    return sample


def test_a_frame_is_described_and_becomes_a_private_file(tmp_path: Path) -> None:
    before = FRAME.copy()
    sample = describe(FRAME, tmp_path)
    words = sample.description
    assert "A table of 4 rows and 6 columns." in words
    assert "- sensor: str; none missing; values 'a' (2), 'b' (1), 'c' (1)" in words
    assert "- value: float; 1 missing; from -3 to 40, quartiles -0.75, 1.5, 20.75" in words
    assert "- count: int; none missing; from 1 to 4" in words
    assert "may be a key" in words
    assert "from 2026-01-01 00:00:00 to 2026-02-01 00:00:00" in words
    assert "e-mail addresses" in words
    assert "No row is there twice." in words
    assert Path(sample.path) == tmp_path / "private" / "data.csv"
    assert Path(sample.path).parent.stat().st_mode & 0o077 == 0
    assert sample.columns == (
        Column(name="sensor", type="str", nullable=False),
        Column(name="value", type="float", nullable=True),
        Column(name="count", type="int", nullable=False),
        Column(name="at", type="datetime", nullable=False),
        Column(name="mail", type="str", nullable=False),
        Column(name="ok", type="bool", nullable=False),
    )
    pd.testing.assert_frame_equal(FRAME, before)


def test_an_arrow_table_is_a_frame(tmp_path: Path) -> None:
    assert describe(pa.Table.from_pandas(FRAME), tmp_path).columns[0].name == "sensor"


class Interchanged:
    """A frame that speaks the interchange protocol and nothing else."""

    def __dataframe__(self, **options: Any) -> Any:
        return pd.DataFrame({"count": [1]}).__dataframe__(**options)  # type: ignore[operator]


@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning", "ignore::DeprecationWarning")
def test_a_frame_of_another_library_is_a_frame(tmp_path: Path) -> None:
    assert describe(Interchanged(), tmp_path).columns[0].name == "count"


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet", "xlsx"])
def test_files_of_every_kind_are_tables(tmp_path: Path, ending: str) -> None:
    file, table = tmp_path / f"t.{ending}", FRAME[["sensor", "value", "count"]]
    match ending:
        case "csv":
            table.to_csv(file, index=False)
        case "tsv":
            table.to_csv(file, index=False, sep="\t")
        case "json":
            table.to_json(file, orient="records")
        case "jsonl":
            table.to_json(file, orient="records", lines=True)
        case "parquet":
            table.to_parquet(file)
        case "xlsx":
            table.to_excel(file, index=False)
    sample = describe(file, tmp_path)
    assert "4 rows and 3 columns" in sample.description
    assert [column.type for column in sample.columns] == ["str", "float", "int"]
    assert sample.file == f"data.{ending}"
    assert sample.path == str(file)


def test_without_pandas_a_frame_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Framed:
        def to_pandas(self) -> None: ...

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"samples: data .*pip install 'codetape\[data\]'"):
        describe(Framed(), tmp_path)
    file = tmp_path / "t.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"codetape\[data\]"):
        describe(file, tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,x\n2,\n"),
        ("t.tsv", "a\tb\n1\tx\n2\t\n"),
        ("t.jsonl", '{"a": 1, "b": "x"}\n{"a": 2}\n'),
        ("t.json", '[{"a": 1, "b": "x"}, {"a": 2, "b": null}]'),
    ],
)
def test_without_pandas_plain_tables_are_described_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    file = tmp_path / name
    file.write_text(text)
    words = describe(file, tmp_path).description
    assert "A table of 2 rows and 2 columns." in words
    assert "- b: text, 1 missing, 'x' (1)" in words


def test_text_is_shown_by_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("line\n" * 5000)
    words = describe(file, tmp_path).description
    assert "25,000 bytes" in words
    assert len(words) < SHOWN + 200


def test_binary_is_told_by_size_and_ending(tmp_path: Path) -> None:
    file = tmp_path / "x.bin"
    file.write_bytes(b"\xff\xfe\x00\x01" * 10)
    assert describe(file, tmp_path).description == "A binary file of 40 bytes, named *.bin."


def test_a_large_file_is_read_in_part_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_READ", 1000)
    file = tmp_path / "big.csv"
    file.write_text("a,b\n" + "123456,12\n" * 500)
    words = describe(file, tmp_path).description
    assert "The file has 5,004 bytes; the first 994 were read." in words
    assert LARGEST_READ > 1000


def test_x04_x05_the_seed_alone_decides_which_rows_are_drawn(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": range(1000), "word": ["x"] * 1000}, index=[7] * 1000)
    one, same, other = (describe(frame, tmp_path, seed=s).description for s in (1, 1, 2))
    assert one == same
    assert one != other
    assert "0,x\n" in one
    assert "999,x" in one


def test_columns_of_one_name_are_described_each(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"])
    assert [column.type for column in describe(frame, tmp_path).columns] == ["int", "str"]


def test_no_more_rows_are_shown_than_asked_for(tmp_path: Path) -> None:
    words = describe(FRAME, tmp_path, rows=2).description
    shown = words.partition("Some rows")[2].split("\n")[2:]
    assert len(shown) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=300), st.sampled_from(["csv", "json", "jsonl", "tsv", "txt", "parquet"]))
def test_no_file_is_a_crash(tmp_path: Path, content: bytes, ending: str) -> None:
    file = tmp_path / f"f.{ending}"
    file.write_bytes(content)
    words = describe(file, tmp_path).description
    assert words
    assert len(words) < 40_000


CELLS = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.text(max_size=5), st.floats())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS, st.lists(st.integers(), max_size=2)), max_size=8))
def test_no_frame_is_a_crash(tmp_path: Path, rows: list[Any]) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b", "c"], dtype=object)
    sample = describe(frame, tmp_path)
    assert sample.description
    assert len(sample.columns) == 3


def test_a_folder_is_a_sample(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("1")
    assert "- one.txt" in describe(tmp_path, tmp_path).description
