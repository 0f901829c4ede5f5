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
        Columns query and document, a column of scores for each run, NaN where the run did not
        retrieve the document, and, with judgments, ``grade``: 0 where a document was not judged.
        Queries in the order of their first row, their rows next to each other. With judgments only
        the queries that have some; documents that were judged and not retrieved are no rows, and
        count where `cross_validate` says what the best list would be.

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
    documents : pandas.Index
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
    documents: pd.Index
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
        return trec.places_of(np.asarray(self.documents, dtype=object))[self.document]

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

    `what` is its name in messages; `query` and `document` are codes into `queries` and
    `documents`.
    """

    what: str
    query: Array
    queries: pd.Index
    document: Array
    documents: pd.Index
    value: Array

    def only(self, mask: Array) -> Entries:
        """The entries of a mask, with the documents that they have."""
        document = self.document[mask]
        present = np.zeros(self.documents.size, dtype=bool)
        present[document] = True
        renumbered = np.cumsum(present) - 1
        return Entries(
            what=self.what,
            query=self.query[mask],
            queries=self.queries,
            document=renumbered[document],
            documents=self.documents[present],
            value=self.value[mask],
        )


def join(
    runs: Mapping[str, Any], judgments: Any = None, on: tuple[str, str] = ("query", "document")
) -> Joined:
    """`join_lists` with what an evaluation needs, and remarks in place of warnings."""
    import pandas as pd

    on = _checked_on(on)
    names = _checked_names(runs, on)
    parts = [_entries(runs[name], f"run {name!r}", on, "score") for name in names]
    judged = [] if judgments is None else [_entries(judgments, "judgments", on, GRADE)]
    _same_kinds([*parts, *judged], on)
    remarks: list[str] = []
    queries, query_of = _union([part.queries for part in (*parts, *judged)])
    if judged:
        parts = _with_judgments(parts, query_of, queries, on[0], remarks)
    # documents of judgments alone come last: they are no rows
    documents, document_of = _union([part.documents for part in (*parts, *judged)])
    pairs = [
        query[part.query] * documents.size + document[part.document]
        for part, query, document in zip((*parts, *judged), query_of, document_of, strict=True)
    ]
    rows, columns = _side_by_side(pairs[: len(parts)], [part.value for part in parts])
    first = np.flatnonzero(np.diff(rows // documents.size, prepend=-1))
    query = np.repeat(np.arange(first.size), np.diff(first, append=rows.size))
    kept = rows[first] // documents.size  # codes of the queries that are left
    document = rows % documents.size
    _remark_absent(parts, query_of, queries, kept, on[0], remarks)
    last = max(int(codes.max(initial=-1)) for codes in document_of[: len(parts)])
    shown = documents[: last + 1]
    frame = {on[0]: queries[kept].take(query), on[1]: shown.take(document)}
    frame |= dict(zip(names, columns, strict=True))
    missed_query = np.empty(0, dtype=np.int64)
    missed_grade = np.empty(0, dtype=np.int64)
    for one in judged:
        at = np.minimum(np.searchsorted(rows, pairs[-1]), rows.size - 1)
        is_row = rows[at] == pairs[-1]
        grade = np.zeros(rows.size)
        grade[at[is_row]] = one.value[is_row]
        frame[GRADE] = _whole(grade)
        number = np.full(queries.size, -1)
        number[kept] = np.arange(kept.size)
        of_query = number[query_of[-1][one.query]]
        missed = ~is_row & (of_query >= 0)
        missed_query = of_query[missed]
        missed_grade = _whole(one.value[missed])
    return Joined(
        frame=pd.DataFrame(frame, copy=False),
        names=names,
        query=query,
        document=document,
        documents=shown,
        missed_query=missed_query,
        missed_grade=missed_grade,
        remarks=tuple(remarks),
    )


def _side_by_side(pairs: Sequence[Array], values: Sequence[Array]) -> tuple[Array, list[Array]]:
    """All pairs in order, and a column of values for each list of pairs, NaN where it has none."""
    every = np.concatenate(pairs)
    order = np.argsort(every)
    ordered = every[order]
    is_first = np.diff(ordered, prepend=-1) != 0
    place = np.empty(every.size, dtype=np.int64)
    place[order] = np.cumsum(is_first) - 1
    rows = ordered[is_first]
    columns = []
    start = 0
    for value in values:
        column = np.full(rows.size, np.nan)
        column[place[start : start + value.size]] = value
        columns.append(column)
        start += value.size
    return rows, columns


def _with_judgments(
    parts: Sequence[Entries], query_of: Sequence[Array], queries: Any, name: str,
    remarks: list[str],
) -> list[Entries]:  # fmt: skip
    """The entries of queries that have judgments, whose codes are the last in `query_of`."""
    retrieved = _present(queries.size, query_of[:-1])
    judged = _present(queries.size, query_of[-1:])
    without = queries[retrieved & ~judged]
    unseen = queries[judged & ~retrieved]
    n_retrieved = np.count_nonzero(retrieved)
    n_judged = np.count_nonzero(judged)
    if without.size == n_retrieved:
        raise InputError(
            f"no {name} of the runs is in the judgments: the runs have "
            f"{_listed(queries[retrieved])}, the judgments {_listed(queries[judged])}; are they of "
            "the same collection?"
        )
    if without.size:
        remarks.append(
            f"{without.size} of {n_retrieved} {_plural(name)} have no judgments and are left "
            f"out: {_listed(without)}"
        )
    if unseen.size:
        remarks.append(
            f"{unseen.size} of {n_judged} judged {_plural(name)} are in no run and do not "
            f"count: {_listed(unseen)}"
        )
    if not without.size:
        return list(parts)
    return [
        part.only(judged[codes][part.query]) for part, codes in zip(parts, query_of, strict=False)
    ]


def _remark_absent(
    parts: Sequence[Entries], query_of: Sequence[Array], queries: Any, kept: Array, name: str,
    remarks: list[str],
) -> None:  # fmt: skip
    """Say which run has nothing for queries that others have."""
    for part, codes in zip(parts, query_of, strict=False):
        absent = queries[kept[~_present(queries.size, [codes[part.query]])[kept]]]
        if absent.size:
            remarks.append(
                f"{part.what} retrieved nothing for {absent.size} of {kept.size} "
                f"{_plural(name)}: {_listed(absent)}"
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


def _codes(column: Any, what: str) -> tuple[Array, Any]:
    """Code of each row, and the ids in the order of their first row."""
    import pandas as pd

    if not isinstance(column, pd.Series):
        column = pd.Series(validation.as_array(column, what))
    try:
        codes, ids = column.factorize()
    except TypeError as error:  # of lists and dictionaries
        raise InputError(f"{what} must be texts or whole numbers: {error}") from None
    if (codes < 0).any():
        raise InputError(f"{what} is missing in row {int(np.argmax(codes < 0))}")
    if isinstance(ids, pd.CategoricalIndex):
        ids = ids.categories[ids.codes]
    if ids.dtype == object:
        validation.check_ids(ids.to_numpy(), ids.size, what)
    elif ids.dtype.kind == "f":
        ids = pd.Index(validation.check_ids(ids.to_numpy(), ids.size, what))
    return codes, ids


# --- ids ------------------------------------------------------------------------------------------


def _union(parts: Sequence[Any]) -> tuple[Any, list[Array]]:
    """All ids in the order in which they are first met, and the codes of each part's ids."""
    together = parts[0].append(list(parts[1:]))
    codes, ids = together.factorize()
    ends = np.cumsum([part.size for part in parts])
    return ids, np.split(codes, ends[:-1])


def _present(n: int, codes: Sequence[Array]) -> Array:
    """Which of n codes occur."""
    present = np.zeros(n, dtype=bool)
    for each in codes:
        present[each] = True
    return present


def _same_kinds(parts: Sequence[Entries], on: tuple[str, str]) -> None:
    """Refuse ids that are text in one input and numbers in another: they would never match."""
    for role, name in zip(("queries", "documents"), on, strict=True):
        kinds = [_kind(getattr(part, role)) for part in parts]
        for part, kind in zip(parts, kinds, strict=True):
            if kind != kinds[0]:
                raise InputError(
                    f"{name} is {kinds[0]} in {parts[0].what} and {kind} in {part.what}: give both "
                    "as text, or both as numbers"
                )


def _kind(ids: Any) -> str:
    """Numbers, text, or the name of another type."""
    if ids.dtype.kind in "biuf":
        return "numbers"
    first = ids[0]
    if isinstance(first, str):
        return "text"
    return "numbers" if validation.is_number(type(first)) else type(first).__name__


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
