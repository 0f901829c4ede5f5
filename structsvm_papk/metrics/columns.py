"""Columns of a CSV, TSV or Parquet table by name, numbers as numbers and text as text."""

import csv
import gzip
import zlib
from pathlib import Path

import numpy as np

from structsvm_papk.errors import InputError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")


def is_table(path):
    """Whether the name says CSV, TSV or Parquet."""
    return _suffix(path) in (*_DELIMITERS, *PARQUET)


def _suffix(path):
    path = Path(path)
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def read_columns(path, wanted=None):
    """Dict of arrays, in the order of the file.

    Parameters
    ----------
    path : path
        `.csv`, `.tsv` (with a header line; `.gz` too), `.parquet` or `.pq`.
    wanted : sequence of str, optional
        Only these columns; a missing one raises.

    Raises
    ------
    InputError
        With the file and the line.
    """
    try:
        if _suffix(path) in PARQUET:
            return _read_parquet(path, wanted)
        with _open(path) as file:
            return _read_text(path, file, _DELIMITERS.get(_suffix(path), ","), wanted)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None


def _open(path):
    if Path(path).suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
    return open(path, newline="", encoding="utf-8-sig")


def _read_text(path, file, delimiter, wanted):
    reader = csv.reader(file, delimiter=delimiter)
    header = next(reader, None)
    if not header:
        raise InputError(f"{path}: empty; the first line must name the columns")
    twice = {name for name in header if header.count(name) > 1}
    if twice:
        raise InputError(f"{path}, line 1: column {sorted(twice)[0]!r} occurs twice")
    rows = []
    for row in reader:
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(
                f"{path}, line {reader.line_num}: {len(row)} fields, but the header names "
                f"{len(header)} columns"
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: no rows below the header")
    places = _places(path, header, wanted)
    return {name: typed([row[place] for row in rows]) for name, place in places.items()}


def _places(path, header, wanted):
    if wanted is None:
        return {name: place for place, name in enumerate(header)}
    for name in wanted:
        if name not in header:
            raise InputError(f"{path}: no column {name!r}; it has {', '.join(header)}")
    return {name: header.index(name) for name in wanted}


def typed(texts):
    """Whole numbers, else numbers, else text."""
    for dtype in (np.int64, np.float64):
        try:
            return np.array(texts, dtype=dtype)
        except (ValueError, OverflowError):
            continue
    return np.array(texts)


def _read_parquet(path, wanted):
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            f"cannot read {path}: Parquet needs pyarrow; pip install 'structsvm-papk[frames]'"
        ) from None
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: no readable Parquet file ({error})") from None
    if not table.num_rows:
        raise InputError(f"{path}: no rows")
    names = _places(path, table.column_names, wanted)
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in names}
