"""Sample data in words: bounded, true, the same for the same seed, and never a crash."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetape.description import files, samples_of
from codetape.description.files import LARGEST_READ
from codetape.description.samples import SHOWN, Choice
from codetape.description.texts import separator_of
from codetape.states.constraints import schema_code
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


@pytest.mark.parametrize(
    ("ending", "library", "remedy"),
    [
        ("xlsx", "openpyxl", "'codetape[data]'"),
        ("xls", "xlrd", "xlrd"),
        ("parquet", "pyarrow.parquet", "'codetape[data]'"),
    ],
)
def test_a_reader_that_is_missing_is_named_with_what_brings_it(
    ending: str, library: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / f"t.{ending}").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"^samples: t\.") as error:
        describe(tmp_path / f"t.{ending}", tmp_path)
    assert str(error.value).endswith(f"install it with: pip install {remedy}")


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


TABLES = {
    "semicolons": (b"a;b\n1,5;2\n2,5;3\n", "separated by ';'", ["a", "b"]),
    "tabs": (b"a\tb\n1\t2\n", r"separated by '\t'", ["a", "b"]),
    "bars": (b"a|b\n1|2\n", "separated by '|'", ["a", "b"]),
    "commas in texts": (b'a,b\n"x;y",1\n"z;w;v",2\n', "2 rows and 2 columns.\n", ["a", "b"]),
    "Latin": (
        "name,ort\nJ\xfcrgen,K\xf6ln\n".encode("cp1252"),
        "seems to be cp1252",
        ["name", "ort"],
    ),
    "marked": (b"\xef\xbb\xbfa,b\n1,2\n", "its encoding is utf-8-sig", ["a", "b"]),
    "two bytes": ("a,b\n1,2\n".encode("utf-16"), "its encoding is utf-16", ["a", "b"]),
    "names in digits": (b"zip,n\n00123,1\n00456,2\n", "such as '00123'", ["zip", "n"]),
    "long numbers": (b"day,n\n20251231,1\n20251230,2\n", "from 20251230 to 20251231", ["day", "n"]),
}


@pytest.mark.parametrize("plain", [False, True], ids=["with pandas", "without pandas"])
@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_read_as_it_was_written(
    case: str, plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, words, names = TABLES[case]
    file = tmp_path / "t.csv"
    file.write_bytes(content)
    if plain:
        monkeypatch.setitem(sys.modules, "pandas", None)
    sample = describe(file, tmp_path)
    assert f"and {len(names)} columns" in sample.description
    assert all(f"\n- {name}: " in sample.description for name in names)
    if not plain:
        assert words in sample.description
        assert [column.name for column in sample.columns] == names


@given(st.sampled_from(",;\t|"), st.integers(2, 5), st.integers(1, 8), st.randoms())
def test_what_separates_fields_is_found(mark: str, width: int, height: int, chance: Any) -> None:
    """Whatever other separators stand in quoted texts."""
    made = io.StringIO()
    writer = csv.writer(made, delimiter=mark)
    cells = [["".join(chance.choices("ab,;|", k=3)) for _ in range(width)] for _ in range(height)]
    writer.writerows([[f"c{n}" for n in range(width)], *cells])
    assert separator_of(made.getvalue()) == mark


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"a,b\n1,2,3\n4,5,6\n", "a,b\n1,2,3\n4,5,6"),  # fields without a name
        ("t.csv", b"# of 2025\na,b\n1,2\n", "# of 2025\na,b\n1,2"),  # a line before the names
        ("t.json", b'{"a": 1, "b": {"c": 2}}', '{"a": 1, "b": {"c": 2}}'),
        ("t.json", b"[1, 2, 3]", "[1, 2, 3]"),
        ("t.json", b"[" * 99_999, "[[["),
        ("t.jsonl", b'{"a": "' + b"x" * 3000 + b'"}\n', '{"a": "xxx'),
        ("t.xlsx", b"PK\x03\x04\x00 cut", "A binary file of 9 bytes"),
    ],
)
@pytest.mark.parametrize("plain", [False, True], ids=["with pandas", "without pandas"])
def test_what_is_no_table_is_shown_as_it_is(
    name: str,
    content: bytes,
    words: str,
    plain: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "LARGEST_READ", 1000)
    if plain and not name.endswith("xlsx"):
        monkeypatch.setitem(sys.modules, "pandas", None)
    (tmp_path / name).write_bytes(content)
    sample = describe(tmp_path / name, tmp_path)
    if not (plain and name == "t.jsonl"):
        assert words in sample.description
        assert "A table" not in sample.description


def test_a_large_binary_file_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetape.description.samples.LARGEST_READ", 100)
    file = tmp_path / "x.bin"
    file.write_bytes(bytes(range(256)) * 4)
    assert describe(file, tmp_path).description == "A binary file of 1,024 bytes, named *.bin."
    file.write_bytes("\u20ac".encode() * 100)
    assert "\u20ac" * 33 + "$" in describe(file, tmp_path).description + "$"


def test_other_sheets_of_a_workbook_are_named(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    with pd.ExcelWriter(file) as book:
        FRAME[["count"]].to_excel(book, sheet_name="First", index=False)
        FRAME[["count"]].to_excel(book, sheet_name="Second", index=False)
    assert "the first sheet, 'First'; others are 'Second'" in describe(file, tmp_path).description


FRAMES: dict[str, tuple[Any, list[str]]] = {
    "an index of times": (FRAME[["count"]].set_index(FRAME["at"]), ["at", "count"]),
    "an index of two levels": (FRAME[["sensor", "count", "ok"]].set_index(["sensor", "ok"]),
                               ["sensor", "ok", "count"]),
    "rows that were picked": (FRAME[["count"]][FRAME["ok"]], ["count"]),
    "columns of two levels": (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
                              ["a_b"]),
    "names that are no texts": (pd.DataFrame([[1, 2]], columns=[2024, None]), ["2024.0", "nan"]),
    "lists of Arrow": (
        pd.DataFrame({"a": pd.Series([[1], None], dtype=pd.ArrowDtype(pa.list_(pa.int8())))}), ["a"]
    ),
    "half a character": (pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)}), ["a"]),
    "infinite numbers": (pd.DataFrame({"a": [math.inf, 1.0, -math.inf]}), ["a"]),
    "no columns": (pd.DataFrame(index=range(3)), []),
    "a column": (FRAME["count"], ["count"]),
    "an array": (pa.array([1, 2]), ["0"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FRAMES)
def test_nothing_of_a_frame_is_lost(case: str, tmp_path: Path) -> None:
    frame, names = FRAMES[case]
    sample = describe(frame, tmp_path)
    assert [column.name for column in sample.columns] == names
    assert Path(sample.path).read_text().split("\n")[0] == ",".join(names)


@pytest.mark.parametrize("value", [pd.Timestamp(0), FRAME.groupby("ok"), FRAME.index])
def test_what_only_looks_like_a_frame_is_refused_by_name(value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^samples: data: pandas\..* is no table$"):
        describe(value, tmp_path)


def test_a_name_that_would_break_the_list_is_quoted(tmp_path: Path) -> None:
    words = describe(pd.DataFrame({"a\n- b: int": [1]}), tmp_path).description
    assert "\n- 'a\\n- b: int': int" in words
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a\n- b").write_text("")
    assert "\n- b" not in describe(tmp_path / "folder", tmp_path).description


def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for value in (tmp_path / "pipe", ""):
        with pytest.raises(ValueError, match=r"^samples: data: "):
            describe(value, tmp_path)


def test_a_number_that_no_schema_holds_is_no_int(tmp_path: Path) -> None:
    frame = pd.DataFrame({"small": [1, 2], "large": pd.Series([1, 2**64 - 1], dtype="uint64")})
    types = [column.type for column in describe(frame, tmp_path).columns]
    assert types == ["int", "object"]


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_what_json_has_as_text_is_text(ending: str, tmp_path: Path) -> None:
    """pandas would read numbers and dates out of texts, and dates out of numbers, by their names."""
    records = [{"id": "00123", "n": "7", "date": "2025-01-31", "created_at": 1700000000}] * 2
    records[0]["text"] = "one line\u2028"
    content = json.dumps(records, ensure_ascii=False)
    if ending == "jsonl":
        content = content.strip("[]").replace("}, {", "}\n{")
    (tmp_path / f"t.{ending}").write_text(content)
    sample = describe(tmp_path / f"t.{ending}", tmp_path)
    assert [column.type for column in sample.columns] == ["str", "str", "str", "int", "str"]
    assert "00123,7,2025-01-31,1700000000" in sample.description


def test_a_row_is_shown_however_long_its_cells_are(tmp_path: Path) -> None:
    texts = ["x" * 100_000, "a\nb" * 1000, "short"]
    words = describe(pd.DataFrame({"id": [1, 2, 3], "text": texts}), tmp_path).description
    rows = list(csv.reader(io.StringIO(words.partition("drawn):\n")[2])))
    assert [row[0] for row in rows] == ["id", "1", "2", "3"]
    assert rows[1][1] == "x" * 199 + "…"
    assert len(words) < 1500


def test_rows_are_whole_where_they_are_cut_off(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(90), "text": [f"{n}\n" * 50 for n in range(90)]})
    words = describe(frame, tmp_path, rows=90).description
    shown = words.partition("drawn):\n")[2]
    assert shown.count('"') % 2 == 0
    assert 1 < len(list(csv.reader(io.StringIO(shown)))) < 90


def test_rows_of_a_wide_table_are_shown_in_part(tmp_path: Path) -> None:
    frame = pd.DataFrame([range(900)] * 3, columns=[f"column_{n}" for n in range(900)])
    words = describe(frame, tmp_path).description
    assert "The first 80 columns of some rows" in words
    rows = words.partition("drawn):\n")[2].split("\n")
    assert [row.rpartition(",")[2] for row in rows] == ["column_79", "79", "79", "79"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        pd.Series([2**63 - 1, -(2**63)]),
        pd.Series([65504, 1, math.inf], dtype="float16"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([7, None], dtype="Int64"),
        pd.Series(np.array(["0001-01-01", "9999-12-31"], dtype="datetime64[us]")),
        pd.Series([pd.Timestamp("2025-03-30", tz="Europe/Berlin"), None]),
        pd.Series(["x", "y", "x"], dtype="category"),
    ],
    ids=lambda values: f"{values.dtype}",
)
def test_a_schema_holds_for_its_own_sample(values: Any, tmp_path: Path) -> None:
    sample = describe(pd.DataFrame({"a": values}), tmp_path)
    made: dict[str, Any] = {}
    exec(schema_code(sample, ()), made)
    read = pd.read_csv(sample.path, skip_blank_lines=False)
    held = made["schema"].validate(read)["a"]
    assert list(held.isna()) == list(values.isna())


def test_a_moment_beyond_nanoseconds_is_a_moment(tmp_path: Path) -> None:
    frame = pd.DataFrame({"until": np.array(["2025-01-01", "9999-12-31"], dtype="datetime64[us]")})
    words = describe(frame, tmp_path).description
    assert "- until: datetime; none missing; from 2025-01-01 00:00:00 to 9999-12-31" in words
