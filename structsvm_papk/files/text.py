"""CSV and TSV, read by pandas. Ids are text as it stands in the file: `007` and `7` are two.

Blanks behind a separator count for nothing.
"""

import csv
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.columns.checks import ROUNDED, first_rounded, is_plain_number, what_to_do
from structsvm_papk.data.roles import Kind, listed
from structsvm_papk.errors import InputError, warn
from structsvm_papk.files.lines import open_text, place_of

WITHOUT_IT = "leave rows without it out of the file"
_YES_OR_NO = ("yes", "no", "y", "n", "true", "false", "t", "f")
_LONGEST_TEXT = 1000  # characters: numpy gives every text the room of the longest
_HOLES = ("", "nan", "NaN", "NA", "N/A", "<NA>", "null", "NULL", "None")
_SEPARATORS = {"csv": ",;\t", "tsv": "\t;,"}  # the usual one first


class OpenTable(NamedTuple):
    """A text file that is open at its first row, and what its first line said."""

    file: Any
    names: list[str]
    separator: str
    n_header_lines: int


def text_names(path: Path, format: str) -> list[str]:
    """Names of the columns, from the first line."""
    with _open_rows(path, format) as rows:
        return rows.names


def how_to_leave_out(*names: str) -> str:
    """Which settings make columns no features."""
    if len(names) > 1:
        return f"columns that are no features are left out with ignore={list(names)!r}"
    return (
        f"a column that is no feature is left out with ignore={list(names)!r}, that of users or "
        "queries is named with group="
    )


def with_none(texts: Array, levels: Collection[Any] = ()) -> Array:
    """Texts as objects, None where a cell is empty or says NaN or null, which is no level.

    Reading leaves out spaces before a cell, so levels that begin with some are put back.
    """
    values = texts.astype(object)
    values[np.isin(texts, [hole for hole in _HOLES if hole not in levels])] = None
    for level in levels:
        as_read = level.lstrip(" ")
        if as_read and as_read not in levels:
            values[texts == as_read] = level
    return values


def each_column(
    names: Iterable[str], read: Callable[[str], Array], features: Collection[str] = ()
) -> dict[str, Array]:
    """What `read` gives of each column; one message names all that it refuses."""
    values = {}
    faults: dict[str, InputError] = {}
    for name in names:
        try:
            values[name] = read(name)
        except InputError as error:
            faults[name] = error
    if not faults:
        return values
    first, *others = faults
    if not others:
        raise faults[first]
    advice = ""
    if all(name in features for name in faults):
        advice = f"; {how_to_leave_out(*faults)}"
    raise InputError(f"{faults[first]}; nor can these columns be read: {listed(others)}{advice}")


def read_text(
    path: Path,
    format: str,
    kinds: Mapping[str, Kind],
    features: Collection[str] = (),
) -> dict[str, Array]:
    """Some columns by name: numbers and truth values as pandas takes them, ids as text.

    In columns with holes an empty cell, or one that says NaN or null, is NaN, or None among texts.
    One of the `features` is text, as objects, where no cell is a number; of text beside numbers the
    message says how to leave the column out.
    """
    import pandas as pd

    with _open_rows(path, format) as rows:
        names = rows.names
        places = {name: c for c, name in enumerate(names)}
        texts = [name for name, kind in kinds.items() if kind in (Kind.ID, Kind.TEXT_OR_HOLE)]
        numeric = [name for name in kinds if name not in texts]
        holes = {places[name]: _HOLES for name in kinds if kinds[name] is Kind.NUMBER_OR_HOLE}
        options: dict[str, Any] = {
            "names": range(len(names)),
            "index_col": False,
            "dtype": {c: str for name, c in places.items() if name not in numeric},
            "header": None,
            "sep": rows.separator,
            "skipinitialspace": True,
            "low_memory": False,
            "keep_default_na": False,
            "na_values": holes,
            "na_filter": bool(holes),
        }
        if holes:
            options["dtype_backend"] = "numpy_nullable"  # whole numbers beside holes stay exact
        if pd.__version__ < "3.1":  # from there on, numbers are always rounded correctly
            options["float_precision"] = "round_trip"
        source = _CountedText(path, rows)
        # pandas warns of a first row that is too long
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                frame = pd.read_csv(source, **options)
                frame.columns = names
                read = partial(_numbers, path, frame, features=features)
                values = each_column(numeric, read, features)
                values |= {name: texts_of(path, frame[name], name) for name in texts}
            except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
                _refuse_uneven(path, format)
                raise InputError(f"{path}: {error}") from None
            except InputError:
                _refuse_uneven(path, format)  # which says more of a cell that is not there
                raise
    if frame.empty:
        raise InputError(f"{path}: the file has a header, but no data rows")
    # pandas fills rows that are too short and cuts those that are too long
    n_rows = len(frame)
    if source.n_separators != n_rows * (len(names) - 1):
        _refuse_uneven(path, format)
    if source.n_lines > n_rows and source.long_cell:
        warn(
            f"{path}, line {source.long_cell}: a quoted cell goes on to the next line; lines "
            "inside it are no rows: is its quote meant, and closed?"
        )
    return values


def _numbers(path: Path, frame: Any, name: str, features: Collection[str]) -> Array:
    """Numbers or truth values, or objects of texts; refuses the first text among numbers."""
    import pandas as pd

    column = frame[name]
    if column.dtype.kind in "iufb":
        if is_plain_number(column):
            return column.to_numpy()
        _refuse_rounded(path, column, name)
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = pd.to_numeric(column, errors="coerce").astype(float)  # types that pandas mixed
    is_text = values.isna() & column.notna()
    if not is_text.any():
        return values.to_numpy()
    cells = with_none(column.fillna("").to_numpy(dtype=object))
    if name in features and values.isna().all() and any(cell is not None for cell in cells):
        return cells
    row = is_text.idxmax()
    number = None
    if values.notna().any():
        of_number = values.notna().idxmax()
        number = f"{str(column[of_number])!r} in row {of_number}"
    raise _not_a_number(path, row, name, str(column[row]), name in features, number)


def _not_a_number(
    path: Path, row: int, name: str, text: str, is_feature: bool, number: str | None = None
) -> InputError:
    """The error of a text in a column of numbers, such as `number`."""
    holds = f"holds {text[:40]!r}, which is not a number" if text else "is empty"
    advice = _advice(text, name, is_feature, number)
    return InputError(f"{place_of(path, row)}: column {name!r} {holds}{advice}")


def _refuse_rounded(path, column, name):
    """Refuse a whole number beside holes that NaN, a float, would round."""
    if column.dtype.kind not in "iu":
        return
    index = first_rounded(column.to_numpy(dtype=object, na_value=0))
    if index is not None:
        place = place_of(path, column.index[index])
        raise InputError(f"{place}: column {name!r} holds {column.iloc[index]}: {ROUNDED}")


def _advice(text, name, is_feature, number):
    """What to do with a text in a column of numbers, for the end of a message."""
    import pandas as pd

    if text.strip() in _HOLES:
        if is_feature:
            return f"; {what_to_do(np.nan)}"
        return f"; {WITHOUT_IT}"
    if not pd.isna(pd.to_numeric(text.replace(",", "."), errors="coerce")):
        return "; write decimals with a point, and thousands without commas"
    if is_feature:
        beside = ""
        if number is not None:
            beside = f"; where {number} is text as well, make text of all, such as 'c10' of 10"
        return (
            f"; {how_to_leave_out(name)}; where it means a missing value, leave the cell empty"
            f"{beside}"
        )
    if text.strip().lower() in _YES_OR_NO:
        return "; write 1 for yes and 0 for no"
    return ""


def texts_of(path: PathLike, column: Any, name: str) -> Array:
    """A series of texts as an array; those are refused at which numpy would need too much memory,
    or cut.
    """
    codes, texts = column.factorize()
    for text in texts:
        if len(text) > _LONGEST_TEXT or "\0" in text:
            raise InputError(
                f"{path}: column {name!r} holds {text[:40]!r}.., which is longer than "
                f"{_LONGEST_TEXT} characters or holds a null character; write shorter texts, or "
                "numbers"
            )
    return np.array(list(texts))[codes]


class _CountedText:
    """An open text file; null characters are refused, at which older parsers cut texts.

    `n_lines` are the lines that were read, `n_separators` the separators outside of quotes, and
    `long_cell` is the line of the first quoted cell that goes over several; 0: there is none.
    """

    def __init__(self, path, rows):
        self.path = path
        self.rows = rows
        self.n_lines = 0
        self.n_separators = 0
        self.long_cell = 0
        self.is_quoted = False
        self.last = "\n"

    def __iter__(self):
        return iter(self.rows.file)

    def read(self, size=-1):
        text = self.rows.file.read(size)
        if "\0" in text:
            raise InputError(f"{self.path} holds a null character: it is not a text file")
        if not text and not self.last.endswith("\n"):  # the last line may have no end
            self.n_lines += 1
        for number, part in enumerate(text.split('"')):
            if number:
                self.is_quoted = not self.is_quoted
            n_breaks = part.count("\n")
            if not self.is_quoted:
                self.n_separators += part.count(self.rows.separator)
            elif n_breaks and not self.long_cell:
                self.long_cell = self.rows.n_header_lines + self.n_lines + 1
            self.n_lines += n_breaks
        self.last = text
        return text


@contextmanager
def _open_rows(path: Path, format: str) -> Iterator[OpenTable]:
    """The rows of a file; columns are separated by the usual character of the format where the
    first line has it.
    """
    try:
        with open_text(path, newline="") as file:
            unquoted = re.sub(r'"[^"]*"', "", file.readline())
            usual = _SEPARATORS[format]
            separator = next((character for character in usual if character in unquoted), usual[0])
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
            names = next(reader, None)
            if not names:
                raise InputError(f"{path}: the first line must name the columns, but it is empty")
            yield OpenTable(file, names, separator, reader.line_num)
    except UnicodeDecodeError as error:
        fault = "is not UTF-8 text"
        encoding = "latin1"
        if error.object[:2] in (b"\xff\xfe", b"\xfe\xff"):  # byte order marks
            fault = "is UTF-16 text"
            encoding = "utf-16"
        raise InputError(
            f"{path} {fault} (byte {error.object[error.start]:#04x}): save it as UTF-8, for "
            f"example with iconv -f {encoding} -t utf-8"
        ) from None


def _refuse_uneven(path: Path, format: str) -> None:
    """Refuse a file with a row that has not as many fields as there are columns."""
    # the csv module limits the length of a field, pandas does not
    with suppress(csv.Error), _open_rows(path, format) as rows:
        reader = csv.reader(rows.file, delimiter=rows.separator, skipinitialspace=True)
        for fields in reader:
            if len(fields) != len(rows.names) and "".join(fields).strip():
                line = rows.n_header_lines + reader.line_num
                raise InputError(
                    f"{path}, line {line}: {len(fields)} fields, but the first line names "
                    f"{len(rows.names)} columns"
                )
