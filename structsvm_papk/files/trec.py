"""Runs and judgments of retrieval, as TREC's tools write them, or in tables (`read_pairs`).

A run has a line ``query Q0 document rank score tag`` for each document that was retrieved, a file
of judgments ``query 0 document grade``; spaces and tabs separate the fields. Ids are text as it
stands in the file, so that `007` and `7` are two. A name ending in ``.gz`` is decompressed.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.roles import Kind, listed, pair_columns
from structsvm_papk.data.validation import places_in_lists, places_of, second_of_a_pair, single
from structsvm_papk.errors import InputError, as_path, check_number, check_type
from structsvm_papk.files import tables
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.lines import open_bytes, open_text, place_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LineFormat:
    """What a line holds.

    Attributes
    ----------
    fields : tuple of str
        Their names, in their order.
    number, wanted : str
        The field that is a number, and which numbers it may hold, for messages.
    kind, verb : str
        What a file of such lines is, and what it says was done to a document, for messages.
    """

    fields: tuple[str, ...]
    number: str
    wanted: str
    kind: str
    verb: str

    def __str__(self) -> str:
        return " ".join(self.fields)


RUN = LineFormat(
    fields=("query", "Q0", "document", "rank", "score", "tag"),
    number="score",
    wanted="a finite number of at most 3.4e38 (trec_eval compares scores in single precision)",
    kind="a run",
    verb="retrieved",
)
JUDGMENTS = LineFormat(
    fields=("query", "0", "document", "grade"),
    number="grade",
    wanted="a whole number below 2^53",
    kind="judgments",
    verb="judged",
)
RANKED = LineFormat(  # as MS MARCO has them, often in files called .tsv
    fields=("query", "document", "rank"),
    number="rank",
    wanted="a whole number below 2^53",
    kind="a run of ranks",
    verb="retrieved",
)
LARGEST_SCORE = float(np.finfo(np.float32).max)
_LARGEST_GRADE = 2**53  # from there on, a float does not hold every whole number
_SHOWN = 60  # characters of a line, in a message


def read_lines(path: PathLike, form: LineFormat, repeated: bool = False) -> pd.DataFrame:
    """What a file of such lines holds: one row each, in the order of the file.

    Parameters
    ----------
    path : path-like
    form : LineFormat
        `RUN`, `JUDGMENTS` or `RANKED`. The rank of a run is not read: what ranks is the score.
        Grades are whole numbers; those below 1 say that the document is not relevant.
    repeated : bool
        Whether a query may hold a document more than once.

    Returns
    -------
    frame : pandas.DataFrame
        `query` and `document` (categories of text, in the order of their first line), and `score`,
        `grade` or `rank` (float64, grades int64).

    Raises
    ------
    InputError
        A file that cannot be read, no lines, a line of another form, a number that it may not hold,
        a document twice in a query; with file and line.
    """
    import pandas as pd

    path = as_path(path)
    with tables.reading(path):
        columns = _columns(path, form)
        if columns is None or not _are_allowed(columns[form.number], form).all():
            raise InputError(first_bad_line(path, form) or f"{path}: not readable as text")
        query = columns["query"]
        document = columns["document"]
        row = second_of_a_pair(query.codes, document.codes, document.categories.size)
        if row is not None and not repeated:
            raise InputError(
                f"{place_of(path, row)}: document {document[row]!r} of query {query[row]!r} is "
                f"{form.verb} a second time; every query may hold it once"
            )
    if form is JUDGMENTS:
        columns["grade"] = columns["grade"].astype(np.int64)
    return pd.DataFrame(columns)


def form_of(path: PathLike) -> LineFormat | None:
    """What the first line of a text file is by its fields: of a run, of judgments, of ranks; None.

    The first line of a table has names, and no number in the place of theirs.
    """
    path = as_path(path)
    if tables.format_of(path) == "parquet":
        return None
    with tables.reading(path):
        _, fields = next(_lines(path), (0, []))
    for form in (RUN, JUDGMENTS, RANKED):
        if len(fields) == len(form.fields) and _what_is_wrong(fields, form) is None:
            return form
    return None


def is_run(path: PathLike) -> bool:
    """Whether the first line of a file is that of a run, with a score or a rank."""
    return form_of(path) in (RUN, RANKED)


def write_run(path: PathLike, frame: pd.DataFrame, tag: str = "structsvm-papk") -> None:
    """Write a run as trec_eval would sort it, in one step: the old file or the new one is there.

    Scores are written in full and compared in single precision, as trec_eval reads them.

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
        Ids or a tag with white space, scores that `read_lines` refuses, a document twice in a
        query.
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
        raise InputError(f"the frame has no column {absent[0]!r}; it has {listed(list(frame))}")
    text = "".join(run_lines(frame, tag)).encode()
    if path.suffix == ".gz":
        text = gzip.compress(text, compresslevel=6, mtime=0)
    write_atomically(path, text)


def run_lines(frame: pd.DataFrame, tag: str) -> Iterator[str]:
    """The lines of a run, see `write_run`."""
    query_codes, queries = _ids("query", frame["query"])
    document_codes, documents = _ids("document", frame["document"])
    scores = np.asarray(frame["score"], dtype=np.float64)
    allowed = _are_allowed(scores, RUN)
    if not allowed.all():
        row = int(np.argmin(allowed))
        raise InputError(f"the score in row {row} is {scores[row]}; it must be {RUN.wanted}")
    repeated = second_of_a_pair(query_codes, document_codes, documents.size)
    if repeated is not None:
        raise InputError(
            f"document {documents[document_codes[repeated]]!r} of query "
            f"{queries[query_codes[repeated]]!r} occurs twice, again in row {repeated}"
        )
    # by score, then by document, both descending
    by_id = places_of(documents)[document_codes]
    place = places_in_lists(query_codes, -single(scores), -by_id)
    order = np.lexsort((place, query_codes))
    fields = zip(
        queries[query_codes[order]],
        documents[document_codes[order]],
        (place[order] + 1).tolist(),
        scores[order].tolist(),
        strict=True,
    )
    for query, document, rank, score in fields:
        yield f"{query} Q0 {document} {rank} {score!r} {tag}\n"


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


# --- reading ------------------------------------------------------------------------------------


def _columns(path: Path, form: LineFormat) -> dict[str, Any] | None:
    """Query, document and number of every line; None where some line is not of this form."""
    import pandas as pd

    words = [name for name in form.fields if name != form.number]
    options: dict[str, Any] = {
        "names": list(form.fields),
        "dtype": dict.fromkeys(words, str) | {form.number: np.float64},
        "header": None,
        "sep": r"\s+",
        "na_filter": False,
        "low_memory": False,
        "quoting": csv.QUOTE_NONE,
    }
    if pd.__version__ < "3.1":  # from there on, numbers are always rounded correctly
        options["float_precision"] = "round_trip"
    _, fields = next(_lines(path), (0, []))
    if len(fields) != len(form.fields):  # pandas would take the first ones as its index
        return None
    try:
        with open_text(path) as file:
            frame = pd.read_csv(file, **options)
    except ValueError:  # text that is no number, lines of other lengths, no lines, no UTF-8
        return None
    columns: dict[str, Any] = {}
    for name in words:
        codes, ids = frame[name].factorize()
        texts = ids.tolist()
        if _first_not_a_word(texts) is not None:
            return None
        columns[name] = pd.Categorical.from_codes(codes, texts)
    return {
        "query": columns["query"],
        "document": columns["document"],
        form.number: frame[form.number].to_numpy(),
    }


def _are_allowed(values: Array, form: LineFormat) -> Array:
    """Mask of the numbers that a line of this form may hold."""
    size = np.abs(values)
    if form is RUN:
        return size <= LARGEST_SCORE
    return (values == np.floor(values)) & (size < _LARGEST_GRADE)


def _first_not_a_word(texts: Any) -> str | None:
    """The first text that is empty or holds white space or a null character; None without one."""
    # all at once, which is much faster: as many words as texts, and as many lines
    joined = "\n".join(texts).encode()
    if len(joined.split()) == len(texts) == joined.count(b"\n") + 1 and b"\0" not in joined:
        return None
    for text in texts:
        if len(text.encode().split()) != 1 or "\0" in text:
            return text
    return ""


# --- what is wrong, and where -------------------------------------------------------------------


def _lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Numbered lines with their fields; blank lines are none.

    A carriage return alone ends a line, too, as the parsers have it.
    """
    with open_bytes(path) as file:
        ended = (line.removesuffix(b"\n").removesuffix(b"\r") for line in file)
        lines = (part for line in ended for part in line.split(b"\r"))
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            fields = [field for field in text.replace(b"\t", b" ").split(b" ") if field]
            if fields:
                yield number, fields


def first_bad_line(path: Path, form: LineFormat) -> str | None:
    """Which line is not of this form, and why; None where all are."""
    number = 0
    for number, fields in _lines(path):
        reason = _what_is_wrong(fields, form)
        if reason is not None:
            return f"{path}, line {number}: {reason}"
    return None if number else f"{path}: the file has no lines; expected '{form}'"


def _what_is_wrong(fields: list[bytes], form: LineFormat) -> str | None:
    """Why these fields are no line of a run, or of judgments; None where they are one."""
    try:
        texts = [field.decode() for field in fields]
    except UnicodeDecodeError as error:
        return f"is not UTF-8 text (byte {error.object[error.start]:#04x}): save it as UTF-8"
    line = " ".join(texts)
    if _first_not_a_word(texts) is not None:
        return "holds a null character, a form feed or a vertical tab: is it a text file?"
    if len(fields) != len(form.fields):
        shown = repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "..")
        other = JUDGMENTS if form is RUN else RUN
        is_other = len(fields) == len(other.fields) and _what_is_wrong(fields, other) is None
        hint = f"; this is a line of {other.kind}" if is_other else ""
        return f"expected '{form}', {len(form.fields)} fields, got {shown}{hint}"
    text = texts[form.fields.index(form.number)]
    if _are_allowed(np.array(_as_number(text)), form):
        return None
    return f"the {form.number} {text!r} is not {form.wanted}"


def _as_number(text: str) -> float:
    """A number in ASCII, without the underscores that Python allows; NaN for what is none."""
    if "_" in text or not text.isascii():
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


# --- runs and judgments of any form ---------------------------------------------------------------


SCORE = "score"
GRADE = "grade"


@dataclass(frozen=True)
class ReadPairs:
    """A run or judgments: columns called as the roles, and a line that says what was read.

    `is_rank`: the file has ranks and no scores, and the score is minus the rank.
    """

    frame: pd.DataFrame
    used: str
    is_rank: bool = False


def read_pairs(
    path: PathLike,
    number: str,
    on: tuple[str, str] = ("query", "document"),
    given: tuple[str | None, str | None, str | None] = (None, None, None),
    *,
    label_gain: Mapping[str, float] | None = None,
    repeated: bool = False,
) -> ReadPairs:
    """Lists and their members in columns called `on`, and the `number` of each pair.

    Parameters
    ----------
    path : path-like
        Lines of TREC or of MS MARCO, or else a table by its name.
    number : {'score', 'grade'}
        Whether the file is a run or judgments. Pairs of judgments without grades have grade 1.
    on, given
        As for `data.roles.pair_columns`.
    label_gain : dict of str to float, optional
        Grade of each label of judgments.
    repeated : bool
        Whether a run may hold a pair more than once.
    """
    import pandas as pd

    path = as_path(path)
    format = tables.format_of(path)
    if format is None or form_of(path) is not None:
        return _lines_as_pairs(path, number, on, label_gain, repeated)
    columns = pair_columns(tables.column_names(path, format), path, on, number, given)
    kinds = dict.fromkeys((columns.lists, columns.members), Kind.ID)
    if columns.number is not None:
        kinds[columns.number] = Kind.NUMBER if label_gain is None else Kind.ID
    values = tables.read_columns(path, format, kinds)
    numbers = np.ones(values[columns.lists].size)
    if columns.number is not None:
        numbers = values[columns.number]
        if label_gain is not None:
            numbers = gains_of_labels(numbers, label_gain, str(path))
    bad = ~np.isfinite(numbers.astype(float))
    if number == GRADE and bad.any():
        place = place_of(path, int(np.argmax(bad)))
        raise InputError(f"{place}: the grade is not finite")
    if columns.is_rank:
        numbers = -numbers.astype(float)
    frame = {on[0]: values[columns.lists], on[1]: values[columns.members], number: numbers}
    return ReadPairs(pd.DataFrame(frame), columns.used, columns.is_rank)


def _lines_as_pairs(
    path: Path,
    number: str,
    on: tuple[str, str],
    label_gain: Mapping[str, float] | None,
    repeated: bool,
) -> ReadPairs:
    """The lines of a run, of ranks, or of judgments."""
    form = JUDGMENTS
    if number == SCORE:
        form = RANKED if form_of(path) is RANKED else RUN
    frame = read_lines(path, form, repeated=repeated and form is RUN)
    if form is RANKED:
        frame["rank"] = -frame["rank"]
    if form is JUDGMENTS and label_gain is not None:
        frame["grade"] = gains_of_labels(frame["grade"], label_gain, str(path))
    n_lists = frame["query"].cat.categories.size
    used = f"{path}: {form.kind} of {len(frame)} documents for {n_lists} queries"
    return ReadPairs(frame.set_axis([*on, number], axis=1), used, form is RANKED)


def gains_of_labels(labels: Any, label_gain: Mapping[str, float], source: str) -> Array:
    """The grade of each label, a text or a number; refuses one that is not named."""
    import pandas as pd

    codes, known = pd.factorize(np.asarray(labels))
    names = [str(int(label)) if _is_whole(label) else str(label) for label in known]
    unknown = [name for name in names if name not in label_gain]
    if unknown or (codes < 0).any():
        raise InputError(
            f"{source}: no grade is given for the label {unknown[0] if unknown else 'NaN'!r}; "
            f"there are {', '.join(label_gain)} (label_gain=, --label-gain)"
        )
    grades: Array = np.array([float(label_gain[name]) for name in names])[codes]
    return grades


def _is_whole(label: Any) -> bool:
    return isinstance(label, float | np.floating) and float(label).is_integer()


def checked_label_gain(label_gain: Any) -> dict[str, float] | None:
    """Grades of labels: a dict of numbers, by the text of each label."""
    if label_gain is None:
        return None
    check_type("label_gain", label_gain, Mapping, "a dict {label: grade}")
    for label, grade in label_gain.items():
        check_number(f"the grade of label {label!r}", grade)
    return {str(label): float(grade) for label, grade in label_gain.items()}
