"""Runs and judgments of retrieval, as TREC's tools write them.

A run has a line ``query Q0 document rank score tag`` for each document that was retrieved, a file
of judgments ``query 0 document grade``; white space of any kind separates the fields. Ids are text
as it stands in the file, so that `007` and `7` are two. A name ending in ``.gz`` is decompressed.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import tables
from structsvm_papk.errors import InputError, as_path, check_type
from structsvm_papk.files.atomic import write_atomically

if TYPE_CHECKING:
    import pandas as pd

RUN = ("query", "Q0", "document", "rank", "score", "tag")
JUDGMENTS = ("query", "0", "document", "grade")
_LARGEST_GRADE = 2**53
_LINES_AT_ONCE = 1 << 18  # that are written, or read
_SHOWN = 60  # characters of a line, in a message
_TABLES = {".csv", ".tsv", ".parquet"}


def read_run(path: PathLike) -> pd.DataFrame:
    """What a run retrieved: one row a document, in the order of the file.

    Parameters
    ----------
    path : path-like
        Lines ``query Q0 document rank score tag``. The rank is not read: what ranks is the score.

    Returns
    -------
    frame : pandas.DataFrame
        `query` and `document` (categories of text, in the order of their first line) and `score`
        (float64).

    Raises
    ------
    InputError
        A file that cannot be read, no lines, a line that is none of a run, a score that is no
        finite number, a document twice in a query; with file and line.
    """
    return _read(as_path(path), RUN)


def read_judgments(path: PathLike) -> pd.DataFrame:
    """Which documents were judged for which query, and how: one row each, in the file's order.

    Parameters
    ----------
    path : path-like
        Lines ``query 0 document grade``. Grades are whole numbers; those below 1 say that the
        document is not relevant.

    Returns
    -------
    frame : pandas.DataFrame
        `query` and `document` (categories of text, in the order of their first line) and `grade`
        (int64).

    Raises
    ------
    InputError
        As of `read_run`, and for a grade that is no whole number.
    """
    frame = _read(as_path(path), JUDGMENTS)
    frame["grade"] = frame["grade"].astype(np.int64)
    return frame


def is_run(path: PathLike) -> bool:
    """Whether the first line of a file has the six fields of a run, with a number as its score."""
    return _looks_like(as_path(path), RUN)


def is_judgments(path: PathLike) -> bool:
    """Whether the first line of a file has the four fields of judgments, with a whole grade."""
    return _looks_like(as_path(path), JUDGMENTS)


def write_run(path: PathLike, frame: pd.DataFrame, tag: str = "structsvm-papk") -> None:
    """Write a run as trec_eval would sort it, in one step: the old file or the new one is there.

    Parameters
    ----------
    path : path-like
        A name ending in ``.gz`` is compressed.
    frame : pandas.DataFrame
        Columns `query`, `document` and `score`. Queries keep their order; the documents of a query
        are ranked by score and, where scores are equal, by document, both descending.
    tag : str
        Last field of every line, without white space.

    Raises
    ------
    InputError
        Ids or a tag with white space, scores that are not finite, a document twice in a query.
    """
    path = as_path(path)
    check_type("tag", tag, str, "text")
    if len(tag.split()) != 1 or tag != tag.strip():
        raise InputError(f"tag={tag!r} must be one word, without white space")
    if not hasattr(frame, "columns"):
        raise TypeError(
            f"frame must be a frame with query, document and score, not {type(frame).__name__}"
        )
    absent = [name for name in ("query", "document", "score") if name not in frame]
    if absent:
        raise InputError(f"the frame has no column {absent[0]!r}; it has {tables.listed([*frame])}")
    text = "".join(run_lines(frame, tag)).encode()
    if path.suffix == ".gz":
        text = gzip.compress(text, compresslevel=6, mtime=0)
    write_atomically(path, text)


def run_lines(frame: pd.DataFrame, tag: str, at_once: int = _LINES_AT_ONCE) -> Iterator[str]:
    """The lines of a run, `at_once` of them in a text; see `write_run`."""
    query_codes, queries = _ids("query", frame["query"])
    document_codes, documents = _ids("document", frame["document"])
    scores = np.asarray(frame["score"], dtype=np.float64)
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        raise InputError(f"the score in row {row} is {scores[row]}; every score must be finite")
    twice = second_of_a_pair(query_codes, document_codes, documents.size)
    if twice is not None:
        raise InputError(
            f"document {documents[document_codes[twice]]!r} of query "
            f"{queries[query_codes[twice]]!r} occurs twice, again in row {twice}"
        )
    order = np.lexsort((-places_of(documents)[document_codes], -scores, query_codes))
    sizes = np.bincount(query_codes, minlength=queries.size)
    starts = np.cumsum(sizes) - sizes
    ranks = np.arange(order.size) - starts[query_codes[order]] + 1
    for first in range(0, order.size, at_once):
        piece = order[first : first + at_once]
        fields = zip(
            queries[query_codes[piece]],
            documents[document_codes[piece]],
            ranks[first : first + at_once].tolist(),
            scores[piece].tolist(),
            strict=True,
        )
        yield "".join(
            f"{query} Q0 {document} {rank} {score!r} {tag}\n"
            for query, document, rank, score in fields
        )


def _ids(name: str, column: pd.Series) -> tuple[Array, Array]:
    """Code of each row, and the ids as text in the order of their first row."""
    codes, ids = column.factorize()
    if (codes < 0).any():
        raise InputError(f"column {name!r} is missing in row {int(np.argmax(codes < 0))}")
    texts = [str(value) for value in ids]
    wrong = _first_not_a_word(texts)
    if wrong is not None:
        raise InputError(f"the {name} {wrong!r} is empty or has white space: no run can hold it")
    return codes, np.array(texts, dtype=object)


def places_of(ids: Array) -> Array:
    """The place of each id in the order of trec_eval, that of the bytes of UTF-8 (`strcmp`)."""
    places = np.empty(ids.size, dtype=np.int64)
    places[np.argsort(np.asarray(ids, dtype=object), kind="stable")] = np.arange(ids.size)
    return places


def second_of_a_pair(first: Array, second: Array, n_second: int) -> int | None:
    """The first row whose pair of codes an earlier row has; None where every pair occurs once."""
    import pandas as pd

    pairs = first.astype(np.int64) * n_second + second
    in_order = np.sort(pairs)  # a tenth of the time of a hash table
    if (in_order[1:] > in_order[:-1]).all():
        return None
    return int(np.argmax(pd.Series(pairs).duplicated().to_numpy()))


# --- reading ------------------------------------------------------------------------------------


def _read(path: Path, names: tuple[str, ...]) -> pd.DataFrame:
    """The ids and the number of every line; `names` are the fields, of which one is a number."""
    import pandas as pd

    with tables.reading(path):
        columns = _by_arrow(path, names)
        if columns is None:
            columns = by_pandas(path, names)
        if columns is None:
            raise InputError(_first_bad_line(path, names) or f"{path}: not readable as text")
        number = _number_of(names)
        frame = pd.DataFrame({name: columns[name] for name in ("query", "document", number)})
        if not _are_numbers(frame[number].to_numpy(), number):
            raise InputError(_first_bad_line(path, names) or f"{path}: a {number} is no number")
        query = frame["query"].cat.codes.to_numpy()
        document = frame["document"].cat
        row = second_of_a_pair(query, document.codes.to_numpy(), document.categories.size)
        if row is not None:
            raise InputError(_twice(path, names, row))
    return frame


def _number_of(names: tuple[str, ...]) -> str:
    return "score" if names == RUN else "grade"


def _are_numbers(values: Array, name: str) -> bool:
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        return False
    if name == "score":
        return True
    return bool((values == np.floor(values)).all() and (np.abs(values) <= _LARGEST_GRADE).all())


def _by_arrow(path: Path, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The columns by Arrow's parser, which is three times as fast as that of pandas.

    It takes one character between fields. None where it is not installed, or where the file is
    not written so: that is left to the parser that takes any white space.
    """
    try:
        import pyarrow as pa
        import pyarrow.csv as arrow
    except ImportError:
        return None
    import pandas as pd

    number = _number_of(names)
    kinds = {name: pa.dictionary(pa.int32(), pa.string()) for name in names}
    kinds[number] = pa.float64()
    with _open(path) as file:
        first = next((line for line in file if line.strip()), b"")
    separator = "\t" if b"\t" in first else " "
    try:
        with _open(path) as file:
            table = arrow.read_csv(
                file,
                # Arrow's threads can abort a process as it ends
                arrow.ReadOptions(use_threads=False, column_names=list(names), block_size=1 << 22),
                arrow.ParseOptions(delimiter=separator, quote_char=False, double_quote=False),
                arrow.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
            )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    columns: dict[str, Any] = {}
    for name in names:
        column = table.column(name)
        if name == number:
            columns[name] = column.to_numpy()
            continue
        column = column.unify_dictionaries().combine_chunks()
        texts = column.dictionary.to_pylist()
        if _first_not_a_word(texts) is not None:
            return None
        if name in ("query", "document"):
            codes = column.indices.to_numpy()
            columns[name] = pd.Categorical.from_codes(codes, texts)
    return columns


def by_pandas(
    path: Path, names: tuple[str, ...], at_once: int = _LINES_AT_ONCE
) -> dict[str, Any] | None:
    """The columns by the parser of pandas; None where some line is not of this form."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    number = _number_of(names)
    kinds: dict[str, Any] = {name: str for name in names if name != number}
    how: dict[str, Any] = {"names": list(names), "dtype": kinds, "header": None}
    if pd.__version__ < "3.1":  # from there on, numbers are always rounded correctly
        how["float_precision"] = "round_trip"
    how |= {"sep": r"\s+", "na_filter": False, "low_memory": False, "quoting": csv.QUOTE_NONE}
    pieces: dict[str, list[Any]] = {name: [] for name in ("query", "document", number)}
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig") as file:
            for frame in pd.read_csv(file, chunksize=at_once, **how):
                if not isinstance(frame.index, pd.RangeIndex):  # made of fields too many
                    return None
                coded = {name: frame[name].factorize() for name in kinds}
                for codes, texts in coded.values():
                    if (codes < 0).any() or _first_not_a_word([*map(str, texts)]) is not None:
                        return None
                for name in ("query", "document"):
                    codes, texts = coded[name]
                    pieces[name].append(pd.Categorical.from_codes(codes, [*map(str, texts)]))
                pieces[number].append(frame[number].to_numpy())
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
        return None
    if not pieces[number]:
        return None
    return {
        "query": union_categoricals(pieces["query"]),
        "document": union_categoricals(pieces["document"]),
        number: np.concatenate(pieces[number]),
    }


def _first_not_a_word(texts: Any) -> str | None:
    """The first text that is empty or holds white space or a null character; None without one."""
    joined = "\n".join(texts).encode()
    if len(joined.split()) == len(texts) == joined.count(b"\n") + 1 and b"\0" not in joined:
        return None
    return next((text for text in texts if len(text.encode().split()) != 1 or "\0" in text), "")


# --- what is wrong, and where -------------------------------------------------------------------


def _looks_like(path: Path, names: tuple[str, ...]) -> bool:
    with tables.reading(path):
        _, fields = next(_lines(path), (0, []))
    return _what_is_wrong(fields, names) is None


def _lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Numbered lines with their fields; blank lines are none.

    A carriage return alone ends a line, too, as the parsers have it.
    """
    with _open(path) as file:
        lines = (part for line in file for part in _without_end(line).split(b"\r"))
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            fields = text.split()
            if fields:
                yield number, fields


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _first_bad_line(path: Path, names: tuple[str, ...]) -> str | None:
    empty = True
    for number, fields in _lines(path):
        empty = False
        reason = _what_is_wrong(fields, names)
        if reason is not None:
            is_table = not _TABLES.isdisjoint(path.suffixes)
            hint = "; fusion.join_lists reads tables" if is_table else ""
            return f"{path}, line {number}: {reason}{hint}"
    return f"{path}: the file has no lines; expected '{' '.join(names)}'" if empty else None


def _what_is_wrong(fields: list[bytes], names: tuple[str, ...]) -> str | None:
    """Why these fields are no line of a run, or of judgments; None where they are one."""
    try:
        texts = [field.decode() for field in fields]
    except UnicodeDecodeError as error:
        return f"is not UTF-8 text (byte {error.object[error.start]:#04x}): save it as UTF-8"
    line = " ".join(texts)
    shown = repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "..")
    if "\0" in line:
        return "holds a null character: it is not a text file"
    if len(fields) != len(names):
        other = JUDGMENTS if names == RUN else RUN
        is_other = len(fields) == len(other) and _what_is_wrong(fields, other) is None
        kind = "judgments" if other == JUDGMENTS else "a run"
        hint = f"; this is a line of {kind}" if is_other else ""
        return f"expected '{' '.join(names)}', {len(names)} fields, got {shown}{hint}"
    number = _number_of(names)
    text = texts[names.index(number)]
    value = _as_number(text)
    if number == "score":
        return None if math.isfinite(value) else f"the score {text!r} is not a finite number"
    if math.isfinite(value) and value == math.floor(value) and abs(value) <= _LARGEST_GRADE:
        return None
    return f"the grade {text!r} is not a whole number"


def _as_number(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _twice(path: Path, names: tuple[str, ...], row: int) -> str:
    """Say which document is there twice, on which lines; `row` is its second."""
    _, again = next(islice(_lines(path), row, None))
    query = again[0]
    document = again[2]
    places = [n for n, fields in _lines(path) if fields[0] == query and fields[2] == document]
    verb = "retrieved" if names == RUN else "judged"
    return (
        f"{path}, line {places[1]}: document {document.decode()!r} of query {query.decode()!r} is "
        f"{verb} already on line {places[0]}; every query may hold it once"
    )


def _open(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
