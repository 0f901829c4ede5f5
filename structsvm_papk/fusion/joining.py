"""Runs and judgments of any form, joined into one frame: a row for each query and document.

Inside, ids are codes: a row is the whole number ``query * n_documents + document``, so that joining
is sorting.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import tables, trec, validation
from structsvm_papk.errors import InputError, check_type

if TYPE_CHECKING:
    import pandas as pd

GRADE = "grade"
_USUAL = {  # what columns are called elsewhere: PyTerrier, ir_measures, BEIR, recommenders
    "query": ("query", "qid", "query_id", "q_id"),
    "document": ("document", "docno", "doc_id", "docid", "document_id"),
    "user": tables.USER_COLUMNS,
    "item": tables.ITEM_COLUMNS,
    "score": ("score",),
    GRADE: ("grade", "relevance", "label", "rel"),
}
_SHOWN = 3


def join_lists(
    runs: Mapping[str, Any],
    judgments: Any = None,
    *,
    on: tuple[str, str] = ("query", "document"),
) -> pd.DataFrame:
    """Join the lists of several retrievers or recommenders into one frame.

    Parameters
    ----------
    runs : dict of str to run
        By name. A run is a file (TREC's six fields, or CSV, TSV, Parquet with named columns; .gz
        too), a frame of pandas or polars, or a dictionary {query: {document: score}}. Columns are
        called as `on` says, and ``score``, or as usual (qid, docno, user_id, item_id, ..).
    judgments : file, frame or dictionary, optional
        TREC's four fields, a table or frame with a column ``grade`` (or relevance, label), or
        {query: {document: grade}}.
    on : pair of str
        What the columns of lists and of their members are called: ``("user", "item")`` for
        recommenders.

    Returns
    -------
    pandas.DataFrame
        Columns query and document (categories where they are text), a column of scores for each
        run, NaN where the run did not retrieve the document, and, with judgments, ``grade``: 0
        where a document was not judged. Queries in the order of their first row, their rows next
        to each other. With judgments only the queries that have some; documents that were judged
        and not retrieved are no rows, and count where `cross_validate` says what the best list
        would be.

    Warns
    -----
    UserWarning
        Queries without judgments, judged queries that no run has, a run without queries that
        others have.

    Raises
    ------
    InputError
        What is no run or judgments, with file and line; a document twice in a query; scores that
        are not finite numbers; ids that are text here and numbers there; no query in common.

    Examples
    --------
    >>> from structsvm_papk.fusion import join_lists
    >>> keywords = {"q1": {"a": 2.5, "b": 1.5}, "q2": {"c": 3.0}}
    >>> dense = {"q1": {"b": 0.8, "d": 0.6}, "q2": {"c": 0.9}}
    >>> judged = {"q1": {"b": 1, "e": 1}, "q2": {"c": 2}}
    >>> join_lists({"keywords": keywords, "dense": dense}, judged)
      query document  keywords  dense  grade
    0    q1        a       2.5    NaN      0
    1    q1        b       1.5    0.8      1
    2    q1        d       NaN    0.6      0
    3    q2        c       3.0    0.9      2
    """
    joined = join(runs, judgments, on)
    for remark in joined.remarks:
        warnings.warn(remark, UserWarning, stacklevel=2)
    return joined.frame


@dataclass(frozen=True)
class Joined:
    """The frame of `join_lists`, with what only an evaluation needs.

    Attributes
    ----------
    frame : pandas.DataFrame
    names : tuple of str
        Of the runs.
    query : ndarray of int, shape (n_rows,)
        Each row's query, counted from 0 in the order of the rows.
    document : ndarray of int, shape (n_rows,)
        Each row's document, as its index in `documents`.
    documents : ndarray
        Ids.
    missed_query, missed_grade : ndarray of int
        Query and grade of each document that was judged and not retrieved.
    remarks : tuple of str
        What a reader should know of queries that are not in all inputs.
    """

    frame: pd.DataFrame
    names: tuple[str, ...]
    query: Array
    document: Array
    documents: Array
    missed_query: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    missed_grade: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    remarks: tuple[str, ...] = ()

    @property
    def n_queries(self) -> int:
        """Number of lists."""
        return int(self.query[-1]) + 1

    @cached_property
    def place(self) -> Array:
        """Each row's document in the order of ids, by which trec_eval breaks ties."""
        return trec.places_of(self.documents)[self.document]

    @property
    def scores(self) -> pd.DataFrame:
        """The columns of the runs."""
        return self.frame[list(self.names)]

    @property
    def grades(self) -> Array:
        """Grade of each row."""
        return self.frame[GRADE].to_numpy()


@dataclass(frozen=True)
class Entries:
    """A run or judgments: the number that a pair of a query and a document has.

    `what` is its name in messages; ids are codes into `queries` and `documents`.
    """

    what: str
    query: Array
    queries: Array
    document: Array
    documents: Array
    value: Array

    def only(self, mask: Array) -> Entries:
        """The entries of a mask."""
        parts = {name: getattr(self, name)[mask] for name in ("query", "document", "value")}
        return Entries(self.what, queries=self.queries, documents=self.documents, **parts)


def join(
    runs: Mapping[str, Any], judgments: Any = None, on: tuple[str, str] = ("query", "document")
) -> Joined:
    """`join_lists` with what an evaluation needs, and remarks in place of warnings."""
    import pandas as pd

    on = _checked_on(on)
    names = _checked_names(runs, on)
    parts = [_entries(runs[name], f"run {name!r}", on, "score") for name in names]
    judged = None if judgments is None else _entries(judgments, "judgments", on, GRADE)
    everything = parts if judged is None else [*parts, judged]
    _same_kinds(everything, on)
    remarks: list[str] = []
    if judged is not None:
        parts = _with_judgments(parts, judged, on[0], remarks)
    queries = _union([_used(part.query, part.queries) for part in parts])
    documents = _union([_used(part.document, part.documents) for part in parts])
    pairs = [_pairs(part, queries, documents) for part in parts]
    _remark_absent(parts, pairs, queries, documents.size, on[0], remarks)
    rows, columns = _side_by_side(pairs, [part.value for part in parts])
    query = rows // documents.size
    document = rows % documents.size
    frame = {on[0]: _column(query, queries), on[1]: _column(document, documents)}
    frame |= dict(zip(names, columns, strict=True))
    missed_query = np.empty(0, dtype=np.int64)
    missed_grade = np.empty(0)
    if judged is not None:
        judged_pairs = _pairs(judged, queries, documents)
        at = np.minimum(np.searchsorted(rows, judged_pairs), rows.size - 1)
        is_row = rows[at] == judged_pairs
        grade = np.zeros(rows.size)
        grade[at[is_row]] = judged.value[is_row]
        frame[GRADE] = _whole(grade)
        of_query = queries.get_indexer(judged.queries)[judged.query]
        missed = ~is_row & (of_query >= 0)
        missed_query = of_query[missed]
        missed_grade = _whole(judged.value[missed])
    return Joined(
        frame=pd.DataFrame(frame, copy=False),
        names=names,
        query=query,
        document=document,
        documents=documents.to_numpy(dtype=object),
        missed_query=missed_query,
        missed_grade=missed_grade,
        remarks=tuple(remarks),
    )


def _side_by_side(pairs: Sequence[Array], values: Sequence[Array]) -> tuple[Array, list[Array]]:
    """All pairs in order, and a column of values for each list of pairs, NaN where it has none."""
    rows = np.unique(np.concatenate(pairs))
    columns = []
    for own, value in zip(pairs, values, strict=True):
        column = np.full(rows.size, np.nan)
        column[np.searchsorted(rows, own)] = value
        columns.append(column)
    return rows, columns


def _pairs(part: Entries, queries: Any, documents: Any) -> Array:
    """The number of each entry's row; -1 where its query or its document is not among these."""
    query = queries.get_indexer(part.queries)[part.query]
    document = documents.get_indexer(part.documents)[part.document]
    known = (query >= 0) & (document >= 0)
    return np.where(known, query.astype(np.int64) * documents.size + document, -1)


def _with_judgments(
    parts: Sequence[Entries], judged: Entries, name: str, remarks: list[str]
) -> list[Entries]:
    """The entries of queries that have judgments."""
    retrieved = _union([_used(part.query, part.queries) for part in parts])
    with_grades = _union([_used(judged.query, judged.queries)])
    without = retrieved.difference(with_grades, sort=False)
    if without.size == retrieved.size:
        raise InputError(
            f"no {name} of the runs is in the judgments: the runs have {_listed(retrieved)}, the "
            f"judgments {_listed(with_grades)}; are they of the same collection?"
        )
    if without.size:
        remarks.append(
            f"{without.size} of {retrieved.size} {_plural(name)} have no judgments and are left "
            f"out: {_listed(without)}"
        )
    unseen = with_grades.difference(retrieved, sort=False)
    if unseen.size:
        remarks.append(
            f"{unseen.size} of {with_grades.size} judged {_plural(name)} are in no run and do not "
            f"count: {_listed(unseen)}"
        )
    if not without.size:
        return list(parts)
    return [part.only((with_grades.get_indexer(part.queries) >= 0)[part.query]) for part in parts]


def _remark_absent(
    parts: Sequence[Entries], pairs: Sequence[Array], queries: Any, n_documents: int, name: str,
    remarks: list[str],
) -> None:  # fmt: skip
    """Say which run has nothing for queries that others have."""
    for part, own in zip(parts, pairs, strict=True):
        there = np.zeros(queries.size, dtype=bool)
        there[own // n_documents] = True
        if not there.all():
            remarks.append(
                f"{part.what} retrieved nothing for {np.count_nonzero(~there)} of {queries.size} "
                f"{_plural(name)}: {_listed(queries[~there])}"
            )


# --- one run, or judgments, of any form -----------------------------------------------------------


def _entries(given: Any, what: str, on: tuple[str, str], kind: str) -> Entries:
    """What a file, a frame or a dictionary says, checked; `kind` is the column of numbers."""
    if isinstance(given, str | Path):
        path = Path(given)
        what = f"{what} ({path})"
        frame = _read(path, on, kind)
    elif isinstance(given, Mapping):
        frame = _of_dictionary(given, what, on, kind)
    elif hasattr(given, "columns"):
        frame = given
    else:
        raise TypeError(
            f"{what} must be a file, a frame or a dictionary {{{on[0]}: {{{on[1]}: {kind}}}}}, got "
            f"{type(given).__name__}"
        )
    present = list(frame.columns)
    columns = [_named(name, present, what) for name in (*on, kind)]
    value = _numbers(frame[columns[2]], what, kind)
    if not value.size:
        raise InputError(f"{what} is empty")
    query, queries = _codes(frame[columns[0]], f"{what}: {on[0]}")
    document, documents = _codes(frame[columns[1]], f"{what}: {on[1]}")
    twice = trec.second_of_a_pair(query, document, documents.size)
    if twice is not None:
        raise InputError(
            f"{what}: {on[1]} {documents[document[twice]]!r} of {on[0]} "
            f"{queries[query[twice]]!r} occurs twice, again in row {twice} (counted from 0); every "
            f"{on[0]} may hold it once"
        )
    return Entries(what, query, queries, document, documents, value)


def _read(path: Path, on: tuple[str, str], kind: str) -> pd.DataFrame:
    """A file as a frame with these columns: TREC's form, or a table by its name."""
    import pandas as pd

    format = tables.format_of(path)
    if format is None:
        frame = trec.read_run(path) if kind == "score" else trec.read_judgments(path)
        return frame.set_axis([*on, kind], axis=1)
    present = tables.column_names(path, format)
    names = [_named(name, present, str(path)) for name in (*on, kind)]
    kinds = dict(zip(names, (tables.Kind.ID, tables.Kind.ID, tables.Kind.NUMBER), strict=True))
    return pd.DataFrame(tables.read_columns(path, format, kinds))


def _of_dictionary(given: Mapping[Any, Any], what: str, on: tuple[str, str], kind: str) -> Any:
    import pandas as pd

    for key, members in given.items():
        if not isinstance(members, Mapping):
            raise InputError(
                f"{what}: of {on[0]} {key!r} a dictionary {{{on[1]}: {kind}}} is needed, not "
                f"{type(members).__name__}"
            )
    sizes = [len(members) for members in given.values()]
    keys = pd.Series(list(given), dtype=None if given else object)
    return pd.DataFrame(
        {
            on[0]: keys.repeat(sizes).to_numpy(),
            on[1]: pd.Series([m for members in given.values() for m in members], dtype=object),
            kind: [value for members in given.values() for value in members.values()],
        }
    )


def _named(name: str, present: Sequence[Any], what: str) -> str:
    """The column of this name, or of one that it usually has."""
    usual = tuple(dict.fromkeys((name, *_USUAL.get(name, ()))))
    column = tables.usual_column(usual, [one for one in present if isinstance(one, str)])
    if column is None:
        raise InputError(
            f"{what}: no column {name!r} (or {', '.join(usual[1:]) or 'another'}); it has "
            f"{tables.listed(list(map(str, present)))}"
        )
    return column


def _numbers(column: Any, what: str, kind: str) -> Array:
    values = validation.as_array(column, f"{what}: column {kind!r}")
    values = validation.as_numbers(values, f"{what}: column {kind!r}").astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{what}: the {kind} in row {row} is {values[row]} ({np.count_nonzero(bad)} such "
            f"rows); every {kind} must be a finite number: leave out what was not retrieved"
        )
    return values


def _codes(column: Any, what: str) -> tuple[Array, Array]:
    """Code of each row, and the ids in the order of their first row."""
    import pandas as pd

    if not isinstance(column, pd.Series):
        column = pd.Series(validation.as_array(column, what))
    codes, ids = column.factorize()
    if (codes < 0).any():
        raise InputError(f"{what} is missing in row {int(np.argmax(codes < 0))}")
    known = validation.check_ids(np.asarray(ids), len(ids), what)
    return codes, known if known.dtype.kind in "biuf" else known.astype(object)


# --- ids ------------------------------------------------------------------------------------------


def _used(codes: Array, ids: Array) -> Array:
    """The ids that occur, in the order of their codes."""
    present = np.zeros(ids.size, dtype=bool)
    present[codes] = True
    return ids[present]


def _union(parts: Sequence[Array]) -> Any:
    """All ids, in the order in which they are first met."""
    import pandas as pd

    return pd.Index(np.concatenate(parts)).unique()


def _column(codes: Array, ids: Any) -> Any:
    """A column of ids: categories where they are text."""
    import pandas as pd

    if ids.dtype.kind in "biuf":
        return ids.to_numpy()[codes]
    return pd.Categorical.from_codes(codes, ids)


def _same_kinds(parts: Sequence[Entries], on: tuple[str, str]) -> None:
    """Refuse ids that are text in one input and numbers in another: they would never match."""
    for role, name in zip(("queries", "documents"), on, strict=True):
        first = parts[0]
        for part in parts[1:]:
            if not validation.same_kind(getattr(first, role), getattr(part, role)):
                kinds = [_kind(getattr(each, role)) for each in (first, part)]
                raise InputError(
                    f"{name} is {kinds[0]} in {first.what} and {kinds[1]} in {part.what}: give "
                    "both as text, or both as numbers"
                )


def _kind(ids: Array) -> str:
    return "numbers" if ids.dtype.kind in "biuf" else type(ids[0]).__name__.replace("str", "text")


def _whole(values: Array) -> Array:
    """Grades as whole numbers where all of them are."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


def _listed(ids: Any) -> str:
    shown = ", ".join(map(str, list(ids[:_SHOWN])))
    return f"{shown}{', ..' if len(ids) > _SHOWN else ''}"


def _plural(name: str) -> str:
    return "queries" if name == "query" else f"{name}s"


# --- checks of the arguments ----------------------------------------------------------------------


def _checked_on(on: Any) -> tuple[str, str]:
    check_type("on", on, tuple | list, "a pair of column names such as ('user', 'item')")
    if len(on) != 2 or not all(isinstance(name, str) and name for name in on) or on[0] == on[1]:
        raise InputError(f"on={on!r} must be two different column names, as ('user', 'item')")
    return on[0], on[1]


def _checked_names(runs: Any, on: tuple[str, str]) -> tuple[str, ...]:
    check_type("runs", runs, Mapping, "a dict {name: run}")
    if not runs:
        raise InputError("there are no runs: give at least one, as {'bm25': 'bm25.run'}")
    for name in runs:
        check_type("each name of a run", name, str, "text")
        if name in (*on, GRADE) or not name.strip():
            raise InputError(f"a run cannot be called {name!r}: another column has this name")
    return tuple(runs)
