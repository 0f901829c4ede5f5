"""CSV and TSV, read by pandas. Ids are text as it stands in the file: `007` and `7` are two.

Blanks behind a separator count for nothing.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.columns.checks import ROUNDED, first_rounded
from structsvm_papk.data.roles import listed
from structsvm_papk.errors import InputError, interrupted, interrupts_noted, warn
from structsvm_papk.files.lines import first_wrong, line_of, open_text

_ROWS_AT_ONCE = 1 << 16  # that are parsed
_LONGEST_ID = 1000  # characters: numpy gives every text the room of the longest
_TRUTH = ("true", "false")
_HOLES = ("", "nan", "NaN", "NA", "N/A", "<NA>", "null", "NULL", "None")
_SEPARATORS = {"csv": ",;\t", "tsv": "\t;,"}  # the usual one first


class OpenTable(NamedTuple):
    """A text file that is open at its first row, and what its first line said."""

    file: Any
    names: list[str]
    separator: str


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


def text_columns(path: Path, format: str, n_rows: int = 1000) -> set[str]:
    """The columns in which no cell of the first rows is a number or a truth value, and some not
    empty.
    """
    import pandas as pd

    with _open_rows(path, format) as rows:
        try:
            frame = pd.read_csv(
                rows.file, names=range(len(rows.names)), header=None, sep=rows.separator,
                dtype=str, nrows=n_rows, keep_default_na=False, skipinitialspace=True,
            )  # fmt: skip
        except (pd.errors.ParserError, pd.errors.EmptyDataError):
            return set()  # the whole file is read next, and says what is wrong where
    texts = set()
    for name, column in zip(rows.names, frame.items(), strict=True):
        cells = column[1][~column[1].isin(_HOLES)].str.strip()
        is_number = pd.to_numeric(cells, errors="coerce").notna() | cells.str.lower().isin(_TRUTH)
        if len(cells) and not is_number.any():
            texts.add(name)
    return texts


def is_number_text(text: Any) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def with_none(texts: Array) -> Array:
    """Texts as objects, None where a cell is empty or says NaN or null."""
    values = texts.astype(object)
    values[np.isin(texts, list(_HOLES))] = None
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
    numeric: Collection[str],
    texts: Collection[str],
    with_holes: Collection[str] = (),
    features: Collection[str] = (),
) -> dict[str, Array]:
    """Some columns by name: numbers and truth values as pandas takes them, and texts.

    In the numeric columns `with_holes` an empty cell, or one that says NaN or null, is NaN. Of text
    in one of the `features` the message says how to leave the column out.
    """
    import pandas as pd

    are_numbers = frozenset(numeric)
    may_be_holes = frozenset(with_holes)
    with _open_rows(path, format) as rows:
        names = rows.names
        holes = {c: _HOLES for c, name in enumerate(names) if name in may_be_holes}
        options: dict[str, Any] = {
            "names": range(len(names)),
            "dtype": {c: str for c, name in enumerate(names) if name not in are_numbers},
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
        # of a first row that is too long, pandas would take the first fields as its index
        _refuse_uneven(path, format, names, n_rows=1)
        pieces = []
        n_rows = 0
        source = _CountedText(path, rows.file, rows.separator)
        with interrupts_noted():  # pandas makes another error of Ctrl-C while it reads
            try:
                for frame in pd.read_csv(source, chunksize=_ROWS_AT_ONCE, **options):
                    if interrupted():
                        raise KeyboardInterrupt
                    frame.columns = names
                    n_rows += len(frame)
                    piece = each_column(
                        numeric, partial(_numbers, path, format, frame, features), features
                    )
                    for name in texts:
                        piece[name] = texts_of(path, frame[name])
                    pieces.append(piece)
            except pd.errors.ParserError as error:
                if interrupted():
                    raise KeyboardInterrupt from None
                _refuse_uneven(path, format, names)
                raise InputError(_open_quote(path, format) or f"{path}: {error}") from None
    if not pieces or frame.empty:
        raise InputError(f"{path}: the file has a header, but no data rows")
    # longer rows are refused by pandas, so that shorter ones, which it fills, show in the sum
    if source.n_separators != n_rows * (len(names) - 1):
        _refuse_uneven(path, format, names)
    if source.n_lines > n_rows:
        _warn_of_long_cells(path, format)
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _numbers(path, format, frame, features, name):
    """Numbers or truth values; refuses the first text that is neither."""
    import pandas as pd

    column = frame[name]
    if column.dtype.kind in "iufb":
        if isinstance(column.dtype, np.dtype):
            return column.to_numpy()
        _refuse_rounded(path, format, column, name)
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = pd.to_numeric(frame[name], errors="coerce").astype(float)  # types that pandas mixed
    bad = values.isna() & frame[name].notna()
    if not bad.any():
        return values.to_numpy()
    row = bad.idxmax()
    text = str(frame[name][row])
    if not text:  # pandas fills rows with too few fields
        _refuse_uneven(path, format, list(frame))
    holds = "is empty"
    if text:
        holds = f"holds {text[:40]!r}, which is not a number"
    raise InputError(
        f"{place_of(path, format, row)}: column {name!r} {holds}"
        f"{_advice(text, name, name in features)}"
    )


def _refuse_rounded(path, format, column, name):
    """Refuse a whole number beside holes that NaN, a float, would round."""
    if column.dtype.kind not in "iu":
        return
    index = first_rounded(column.to_numpy(dtype=object, na_value=0))
    if index is not None:
        place = place_of(path, format, column.index[index])
        raise InputError(f"{place}: column {name!r} holds {column.iloc[index]}: {ROUNDED}")


def _advice(text, name, is_feature):
    """What to do with a text in a column of numbers, for the end of a message."""
    import pandas as pd

    if text.strip() in _HOLES:
        if is_feature:
            return (
                "; leave the row out or fill the value in, or, where a missing value means that a "
                'source did not return the item, train with missing="lowest"'
            )
        return "; leave rows without it out of the file"
    if not pd.isna(pd.to_numeric(text.replace(",", "."), errors="coerce")):
        return "; write decimals with a point"
    if is_feature:
        return f"; {how_to_leave_out(name)}"
    return ""


def texts_of(path: PathLike, column: Any) -> Array:
    """A series of texts as an array; those are refused at which numpy would need too much memory,
    or cut.
    """
    codes, texts = column.factorize()
    for text in texts:
        if len(text) > _LONGEST_ID or "\0" in text:
            raise InputError(
                f"{path}: the user or item {text[:40]!r}.. is longer than {_LONGEST_ID} "
                "characters or holds a null character; name them by short texts or numbers"
            )
    return np.array(list(texts))[codes]


class _CountedText:
    """An open text file; null characters are refused, at which older parsers cut texts.

    `n_lines` are the lines that were read, `n_separators` the separators outside of quotes.
    """

    def __init__(self, path, file, separator):
        self.path = path
        self.file = file
        self.separator = separator
        self.n_lines = 0
        self.n_separators = 0
        self.is_quoted = False
        self.last = "\n"

    def __iter__(self):
        return iter(self.file)

    def read(self, size=-1):
        text = self.file.read(size)
        if "\0" in text:
            raise InputError(f"{self.path} holds a null character: it is not a text file")
        self.n_lines += text.count("\n")
        if not text and not self.last.endswith("\n"):  # the last line may have no end
            self.n_lines += 1
        parts = text.split('"')
        outside = parts[1::2] if self.is_quoted else parts[::2]
        self.n_separators += sum(part.count(self.separator) for part in outside)
        self.is_quoted ^= len(parts) % 2 == 0
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
            names = next(_fields_of(file, separator), None)
            if not names:
                raise InputError(f"{path}: the first line must name the columns, but it is empty")
            yield OpenTable(file, names, separator)
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
    except csv.Error as error:
        raise InputError(f"{path} is not a readable text file: {error}") from None


def _fields_of(file, separator):
    """What splits rows for messages, as pandas does for values."""
    return csv.reader(file, delimiter=separator, skipinitialspace=True)


def _rows(path, format):
    """First and last line, and fields of each row; blank lines are none."""
    with _open_rows(path, format) as rows:
        rows.file.seek(0)  # so that lines are counted from the first one
        reader = _fields_of(rows.file, rows.separator)
        next(reader)
        last = reader.line_num
        for fields in reader:
            first, last = last + 1, reader.line_num
            if len(fields) > 1 or "".join(fields).strip():
                yield first, last, fields


def _lines(path, format):
    """Line and fields of each row."""
    for first, _, fields in _rows(path, format):
        yield first, fields


def _long_rows(path, format):
    """First and last line of rows with quoted cells that go over several lines."""
    with suppress(InputError):  # the csv module limits the length of a field
        return [(first, last) for first, last, _ in _rows(path, format) if last > first]
    return []


def _open_quote(path, format):
    """Where a quote begins that the file does not close, for a message."""
    long = _long_rows(path, format)
    return f"{path}, line {long[-1][0]}: a quote that nothing closes" if long else None


def _warn_of_long_cells(path, format):
    """Warn of quoted cells that go over several lines: as a rule a quote that nothing closes."""
    long = _long_rows(path, format)
    if long:
        first, last = long[0]
        warn(
            f"{path}, line {first}: a quoted cell goes on to line {last}"
            f"{f', and {len(long) - 1} more rows have such cells' if len(long) > 1 else ''}; "
            "lines inside it are no rows: is its quote meant, and closed?"
        )


def _refuse_uneven(path, format, names, n_rows=None):
    """Refuse a row that has not as many fields as there are columns, among the first n or all."""

    def fault(fields):
        if len(fields) == len(names):
            return None
        return f"{len(fields)} fields, but the first line names {len(names)} columns"

    wrong = None
    with suppress(InputError):  # the csv module limits the length of a field, pandas does not
        wrong = first_wrong(path, islice(_lines(path, format), n_rows), fault)
    if wrong is not None:
        raise InputError(wrong)


def place_of(path: Path, format: str, row: int) -> str:
    """Where a row stands, for a message: its line, or its number where lines cannot be counted."""
    with suppress(InputError):  # the csv module limits the length of a field, pandas does not
        if format != "parquet":
            return line_of(path, _lines(path, format), row)
    return f"{path}, row {row} (counted from 0)"
