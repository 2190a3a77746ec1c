import gzip
import os

import numpy as np
import pandas as pd
import pytest

from dagpost.data import read_table
from dagpost.errors import DataWarning, InputError

TABLE = "a,b b,c\n1,2,3\n4,5,6.5\n"


def write(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "name, content",
    [
        ("t.csv", TABLE.encode()),
        ("t.tsv", TABLE.replace(",", "\t").encode()),
        ("t.csv.gz", gzip.compress(TABLE.encode(), mtime=0)),
        ("bom.csv", b"\xef\xbb\xbf" + TABLE.encode()),
        ("quoted.csv", b'"a","b b","c"\n"1",2,3\n4,5,"6.5"\n'),
        ("crlf.csv", TABLE.replace("\n", "\r\n").encode()),
        ("blank.csv", (TABLE + "\n\n").encode()),
    ],
)
def test_tables_are_read(tmp_path, name, content):
    data = read_table(write(tmp_path, content, name))
    assert data.names == ("a", "b b", "c")
    np.testing.assert_array_equal(data.values, [[1, 2, 3], [4, 5, 6.5]])


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(str(tmp_path / "t.parquet")).frame().equals(frame.astype(float))


def test_values_survive_to_the_last_bit(tmp_path):
    values = np.random.default_rng(0).normal(size=(100, 3)) * 1e-7
    pd.DataFrame(values, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").values, values)


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "a header but no rows"),
        ("a,b\n1,2\n3\n", "line 3 has 1 values instead of 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3"),
        ('a,b\n1,"2\n', "quotation mark is never closed"),
        ("a;b\n1;2\n3\n", "line 3 has 1 values instead of 2"),
        ("1,2\n3,4\n", "first row holds numbers.*--header.*--no-header"),
        ('a,b\n"1,5",2\n2.5,3\n', "column 'a', row 1 holds '1,5', a decimal comma"),
        ('a,b\n"1,234",2\n"2,345",3\n', "column 'a', row 1 holds '1,234', a decimal comma"),
        ("a;b\n1.234,5;2\n2.345,6;3\n", "column 'a', row 1 holds '1.234,5', not a number"),
        ("a,b\n1,x\n2,3\n", "column 'b', row 1 holds 'x'"),
        ("a,b\n1,\n", "column 'b' has 1 missing value"),
        ("a,a\n1,2\n", "'a' stands for two columns"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "line 2 is not UTF-16"),
        ("ä,b\n1,2\n\x02,3\n".encode("latin-1"), r"control character U\+0002 in line 3"),
        (b"a,b\n1,2\n\x00,3\n", "NUL byte in line 3"),
    ],
)
def test_faults_are_named(tmp_path, content, message):
    with pytest.raises(InputError, match=message) as error:
        read_table(write(tmp_path, content))
    assert "table.csv" in str(error.value) and "\n" not in str(error.value)


def test_missing_directory_fifo_and_unknown_kind(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: no such file"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path / "d.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="not a plain file"):
        read_table(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"unknown kind of table '.xls'"):
        read_table(write(tmp_path, b"x", "t.xls"))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(write(tmp_path, b"x", "t.parquet"))


def test_compressed_bomb_is_refused(tmp_path):
    bomb = write(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * 100_000, mtime=0), "t.csv.gz")
    assert bomb.stat().st_size < 2_000
    with pytest.raises(InputError, match="too large"):
        read_table(bomb, largest_bytes=10_000)
    with pytest.raises(InputError, match="cannot be read"):
        read_table(write(tmp_path, gzip.compress(TABLE.encode(), mtime=0)[:-9], "cut.csv.gz"))


def test_index_column_is_left_out_with_a_warning(tmp_path):
    with pytest.warns(DataWarning, match="only counts the rows"):
        data = read_table(write(tmp_path, ",a,b\n0,1,2\n1,3,5\n"))
    assert data.names == ("a", "b")


def test_other_ways_a_file_can_be_wrong(tmp_path):
    damaged = bytearray(gzip.compress(TABLE.encode() * 50, mtime=0))
    damaged[40] ^= 0xFF
    for name, content, message in [
        ("t.csv.gz", bytes(damaged), "cannot be read"),
        ("t.csv", b"a,b\n1," + b"9" * 200_000 + b"\n", "not a text table"),
        ("t.csv", b"a,b\n1,5,2,5\n", "4 values for 2 names"),
    ]:
        with pytest.raises(InputError, match=message):
            read_table(write(tmp_path, content, name))
    for path in ("", "a\0b.csv", 3):
        with pytest.raises(InputError, match="not the path of a table"):
            read_table(path)


def test_old_line_endings_and_leading_blank_lines(tmp_path):
    for content in (TABLE.replace("\n", "\r"), "\n\n" + TABLE):
        assert read_table(write(tmp_path, content)).values.shape == (2, 3)


def test_parquet_bomb_is_refused(tmp_path):
    pd.DataFrame({"a": np.zeros(100_000), "b": np.zeros(100_000)}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="too large"):
        read_table(tmp_path / "t.parquet", largest_bytes=1_000_000)


def test_counting_column_with_a_name(tmp_path):
    with pytest.warns(DataWarning, match="only counts the rows"):
        assert read_table(write(tmp_path, "index,a,b\n1,1,2\n2,3,5\n")).names == ("a", "b")
