"""Runs and judgments of any form, joined into one frame: a row for each query and document.

Inside, ids are codes: a row is the whole number ``query * n_documents + document``, so that joining
is sorting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import roles, validation
from structsvm_papk.errors import InputError, as_names, check_number, check_type, warn
from structsvm_papk.files.trec import GRADE
from structsvm_papk.fusion.entries import Entries, InputRules, entries_of, run_of

if TYPE_CHECKING:
    import pandas as pd

RUNS = "runs"  # the attribute of a frame that names its columns of runs
_SHOWN = 3
_FEWEST_QUERIES = 10  # and the share of them, from which on a run is said to be
_MOST = 0.9  # the wrong way round


def join_lists(
    runs: Mapping[str, Any],
    judgments: Any = None,
    *,
    on: tuple[str, str] = ("query", "document"),
    lower_is_better: Sequence[str] = (),
    duplicates: str = "refuse",
    label_gain: Mapping[Any, float] | None = None,
    ignore_identical: bool = False,
) -> pd.DataFrame:
    """Join the lists of several retrievers or recommenders into one frame.

    Parameters
    ----------
    runs : dict of str to run
        By name. A run is a file (TREC's six fields, or CSV, TSV, Parquet with named columns; .gz
        too), a frame of pandas or polars, or a dictionary {query: {document: score}}. Columns are
        called as `on` says, and ``score``, or as usual (qid, docno, user_id, item_id, ..). Without
        scores ``rank`` is taken (or MS MARCO's lines ``query document rank``).
    judgments : file, frame or dictionary, optional
        TREC's four fields, a table or frame with a column ``grade`` (or relevance, label), or
        {query: {document: grade}}.
    on : pair of str
        What the columns of lists and of their members are called: ``("user", "item")`` for
        recommenders.
    lower_is_better : sequence of str
        Names of runs whose scores are distances; they become minus the distance.
    duplicates : {"refuse", "best"}
        A document that a run has twice for a query, as chunks of it: the best score counts.
    label_gain : dict, optional
        Grade of each label of the judgments, as ``{"E": 3, "S": 2, "C": 1, "I": 0}``.
    ignore_identical : bool
        Leave out documents that have the id of their query, as BEIR does.

    Returns
    -------
    pandas.DataFrame
        Columns query and document, a column of scores for each run, NaN where the run did not
        retrieve the document, and, with judgments, ``grade``: 0 where a document was not judged.
        Queries in the order of their first row, their rows next to each other. With judgments only
        the queries that have some; documents that were judged and not retrieved are no rows, and
        count where `cross_validate` says what the best list would be. ``attrs["runs"]`` names the
        columns of the runs.

    Warns
    -----
    UserWarning
        Queries without judgments, judged queries that no run has, a run without queries that
        others have, runs of whose documents none is known elsewhere, a run whose scores are all
        equal or the wrong way round, or a copy of another run.

    Raises
    ------
    InputError
        What is no run or judgments, with file and line; a document twice in a query; scores that
        are no finite numbers of single precision; ids that are text here and numbers there; no
        query, or no document, in common with the judgments.

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
    joined = join(
        runs,
        judgments,
        on,
        lower_is_better=lower_is_better,
        duplicates=duplicates,
        label_gain=label_gain,
        ignore_identical=ignore_identical,
    )
    for remark in joined.remarks:
        warn(remark)
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
    used : tuple of str
        Of each input, which columns were taken for what.
    judged : ndarray of bool, shape (n_rows,)
        Whether the row's document was judged; empty without judgments.
    """

    frame: pd.DataFrame
    names: tuple[str, ...]
    query: Array
    document: Array
    documents: pd.Index
    missed_query: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    missed_grade: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    remarks: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    judged: Array = field(default_factory=lambda: np.empty(0, dtype=bool))
    ranked_only: tuple[str, ...] = ()

    @property
    def nouns(self) -> tuple[str, str]:
        """What lists and their members are called, as ``("queries", "documents")``."""
        list_name, member_name = self.frame.columns[:2]
        return _plural(list_name), _plural(member_name)

    @property
    def have_scores(self) -> bool:
        """Whether all runs have scores, and not only ranks."""
        return not self.ranked_only

    @property
    def n_queries(self) -> int:
        """Number of lists."""
        return int(self.query[-1]) + 1

    @cached_property
    def place(self) -> Array:
        """Each row's document in the order of ids, by which trec_eval breaks ties."""
        return validation.places_of(self.documents)[self.document]

    @cached_property
    def place_of_query(self) -> Array:
        """Each query in the order of ids."""
        first = np.flatnonzero(np.diff(self.query, prepend=-1))
        return validation.places_of(self.frame.iloc[first, 0])

    @property
    def query_place(self) -> Array:
        """Each row's query in the order of ids."""
        return self.place_of_query[self.query]

    @property
    def window(self) -> int:
        """Documents of the longest list."""
        return int(self.scores.notna().groupby(self.query).sum().to_numpy().max())

    @property
    def scores(self) -> pd.DataFrame:
        """The columns of the runs."""
        return self.frame[list(self.names)]

    @property
    def grades(self) -> Array:
        """Grade of each row."""
        return self.frame[GRADE].to_numpy()


def join(
    runs: Mapping[str, Any],
    judgments: Any = None,
    on: tuple[str, str] = ("query", "document"),
    depth: int | None = None,
    **taking: Any,
) -> Joined:
    """`join_lists` with what an evaluation needs, and remarks in place of warnings.

    With `depth` only so many documents of each list.
    """
    import pandas as pd

    on = _checked_on(on)
    names = _checked_names(runs, on)
    rules = InputRules(names, **taking)
    parts = [run_of(runs[name], name, on, rules) for name in names]
    ranked_only = tuple(name for name, part in zip(names, parts, strict=True) if part.is_rank)
    if depth is not None:
        check_number("depth", depth, least=1)
        parts = [part.first(depth) for part in parts]
    inputs = list(parts)
    if judgments is not None:
        inputs.append(entries_of(judgments, "judgments", on, GRADE, rules))
    _same_kinds(inputs, on)
    # 1. codes of all queries and documents, in which a row is a whole number
    remarks = _remarks_of_input(parts, on, rules)
    queries, query_of = _union([entries.queries for entries in inputs])
    if judgments is not None:
        parts = _with_judgments(parts, query_of, queries, on[0], remarks)
        inputs = [*parts, inputs[-1]]
    # documents of judgments alone come last: they are no rows
    documents, document_of = _union([entries.documents for entries in inputs])
    pairs = [
        query[entries.query] * documents.size + document[entries.document]
        for entries, query, document in zip(inputs, query_of, document_of, strict=True)
    ]
    # 2. the rows, with a column of scores for each run
    rows, columns = _side_by_side(pairs[: len(parts)], [part.value for part in parts])
    query_code = rows // documents.size
    document = rows % documents.size
    first = np.flatnonzero(np.diff(query_code, prepend=-1))
    codes_left = query_code[first]  # of the queries that have rows
    query = np.repeat(np.arange(first.size), np.diff(first, append=rows.size))
    last = max(int(codes.max(initial=-1)) for codes in document_of[: len(parts)])
    retrieved = documents[: last + 1]
    frame = {on[0]: queries[codes_left].take(query), on[1]: retrieved.take(document)}
    frame |= dict(zip(names, columns, strict=True))
    # 3. their grades, and those of documents that were not retrieved
    remarks += _remarks_of_runs(parts, columns, query, queries[codes_left], on)
    known: dict[str, Array] = {}
    if judgments is None:
        remarks += _remarks_of_strangers(parts, columns, on)
    else:
        number = np.full(queries.size, -1)  # of a query that is left, by its code
        number[codes_left] = np.arange(codes_left.size)
        of_query = number[query_of[-1][inputs[-1].query]]
        frame[GRADE], known = _graded(rows, pairs[-1], inputs[-1].value, of_query)
        remarks += _remarks_of_unjudged(parts, columns, known["judged"], inputs[-1], on)
        remarks += _remarks_of_reversed(parts, columns, query, frame[GRADE], known["judged"], on)
    table = pd.DataFrame(frame, copy=False)
    table.attrs[RUNS] = list(names)
    return Joined(
        frame=table,
        names=names,
        query=query,
        document=document,
        documents=retrieved,
        remarks=tuple(remarks),
        used=tuple(entries.used for entries in inputs),
        ranked_only=ranked_only,
        **known,
    )


def _graded(
    rows: Array, pairs: Array, value: Array, of_query: Array
) -> tuple[Array, dict[str, Array]]:
    """The grade of each row; which were judged, and what else was, as `Joined` has it.

    `pairs` and `value` are those of the judgments, and `of_query` their queries, -1 for one that is
    left out.
    """
    place = np.minimum(np.searchsorted(rows, pairs), rows.size - 1)
    is_row = rows[place] == pairs
    grade = np.zeros(rows.size)
    grade[place[is_row]] = value[is_row]
    judged = np.zeros(rows.size, dtype=bool)
    judged[place[is_row]] = True
    missed = ~is_row & (of_query >= 0)
    return _whole(grade), {
        "judged": judged,
        "missed_query": of_query[missed],
        "missed_grade": _whole(value[missed]),
    }


def _remarks_of_input(
    parts: Sequence[Entries], on: tuple[str, str], rules: InputRules
) -> list[str]:
    """Say of which runs only ranks are known, and which documents are the query itself."""
    remarks = [
        f"{part.what} has ranks and no scores: minus the rank stands for its score"
        for part in parts
        if part.is_rank
    ]
    n_identical = sum(part.n_identical for part in parts)
    if n_identical and not rules.ignore_identical:
        remarks.append(
            f"{n_identical} {_plural(on[1])} have the id of their {on[0]}: if they are the "
            f"{on[0]} itself, leave them out (ignore_identical=True, --ignore-identical)"
        )
    return remarks


def _side_by_side(pairs: Sequence[Array], values: Sequence[Array]) -> tuple[Array, list[Array]]:
    """All pairs in order, and a column of values for each list of pairs, NaN where it has none."""
    together = np.concatenate(pairs)
    order = np.argsort(together)
    ordered = together[order]
    is_first = np.diff(ordered, prepend=-1) != 0
    place = np.empty(together.size, dtype=np.int64)
    place[order] = np.cumsum(is_first) - 1  # equal pairs are one row
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


def _remarks_of_runs(
    parts: Sequence[Entries], columns: Sequence[Array], query: Array, queries: Any,
    on: tuple[str, str],
) -> list[str]:  # fmt: skip
    """Say which run has nothing for queries that others have, ranks nothing, or is a copy."""
    remarks = []
    for i, (part, column) in enumerate(zip(parts, columns, strict=True)):
        own = np.flatnonzero(~np.isnan(column))
        n_documents = np.bincount(query[own], minlength=queries.size)
        absent = queries[n_documents == 0]
        if absent.size:
            remarks.append(
                f"{part.what} retrieved nothing for {absent.size} of {queries.size} "
                f"{_plural(on[0])}: {_listed(absent)}"
            )
        lowest = np.full(queries.size, np.inf)
        np.minimum.at(lowest, query[own], column[own])
        if n_documents.max(initial=0) > 1 and (column[own] == lowest[query[own]]).all():
            remarks.append(
                f"{part.what}: all scores of a {on[0]} are equal, so it ranks nothing; is the "
                "score in another column, or lost in rounding?"
            )
        for other, earlier in zip(parts[:i], columns, strict=False):
            if own.size and np.array_equal(column, earlier, equal_nan=True):
                remarks.append(
                    f"{part.what} has the same {_plural(on[1])} and scores as {other.what}, and "
                    "both count: was one given twice?"
                )
    return remarks


def _remarks_of_reversed(
    parts: Sequence[Entries], columns: Sequence[Array], query: Array, grade: Array, judged: Array,
    on: tuple[str, str],
) -> list[str]:  # fmt: skip
    """Say which run ranks what is relevant below what was judged not to be, in most queries."""
    import pandas as pd

    remarks = []
    for part, column in zip(parts, columns, strict=True):
        rows = np.flatnonzero(judged & ~np.isnan(column))
        own = query[rows]
        rank = pd.Series(column[rows]).groupby(own).rank().to_numpy()  # 1 is the lowest score
        relevant = grade[rows] > 0
        sums = [np.bincount(own[mask], rank[mask], query[-1] + 1) for mask in (relevant, ~relevant)]
        sizes = [np.bincount(own[mask], minlength=query[-1] + 1) for mask in (relevant, ~relevant)]
        both = (sizes[0] > 0) & (sizes[1] > 0)
        below = sums[0][both] / sizes[0][both] < sums[1][both] / sizes[1][both]
        if below.size >= _FEWEST_QUERIES and below.mean() >= _MOST:
            remarks.append(
                f"{part.what}: in {np.count_nonzero(below)} of {below.size} {_plural(on[0])} "
                f"relevant {_plural(on[1])} have lower scores than others that were judged; are "
                "its scores the wrong way round? (--lower-is-better, lower_is_better=, for runs "
                "whose low scores are good)"
            )
    return remarks


def _remarks_of_unjudged(
    parts: Sequence[Entries], columns: Sequence[Array], is_judged: Array, judged: Entries,
    on: tuple[str, str],
) -> list[str]:  # fmt: skip
    """Say of which runs no document is judged."""
    strangers = [
        part
        for part, column in zip(parts, columns, strict=True)
        if part.query.size and np.isnan(column[is_judged]).all()
    ]
    if len(strangers) == len(parts):
        raise InputError(
            f"no {on[1]} of the runs is judged: {parts[0].what} has {_listed(parts[0].documents)}, "
            f"the judgments have {_listed(judged.documents)}; are their ids spelled alike?"
        )
    return [
        f"{run.what}: none of its {_plural(on[1])} are judged: {_listed(run.documents)}; are the "
        "ids spelled alike?"
        for run in strangers
    ]


def _remarks_of_strangers(
    parts: Sequence[Entries], columns: Sequence[Array], on: tuple[str, str]
) -> list[str]:
    """Say which runs have no row in common with another one."""
    there = np.array([~np.isnan(column) for column in columns])
    n_runs = there.sum(axis=0)
    rows_of = zip(parts, there, strict=True)
    alone = [part for part, own in rows_of if own.any() and (n_runs[own] == 1).all()]
    if len(alone) == len(parts):  # of two runs, say, the second
        alone = alone[1:]
    return [
        f"{run.what}: none of its {_plural(on[1])} are in another run: {_listed(run.documents)}; "
        "are the ids spelled alike?"
        for run in alone
    ]


# --- ids ------------------------------------------------------------------------------------------


def _union(parts: Sequence[Any]) -> tuple[Any, list[Array]]:
    """All ids in the order in which they are first met, and the codes of each part's ids."""
    together = parts[0].append(list(parts[1:]))
    codes, ids = together.factorize()
    ends = np.cumsum([part.size for part in parts])
    return ids, np.split(codes, ends[:-1])


def _present(n: int, parts: Sequence[Array]) -> Array:
    """Which of n codes occur in some part."""
    present = np.zeros(n, dtype=bool)
    for codes in parts:
        present[codes] = True
    return present


def _same_kinds(parts: Sequence[Entries], on: tuple[str, str]) -> None:
    """Refuse ids that are text in one input and numbers in another: they would never match."""
    for role, name in zip(("queries", "documents"), on, strict=True):
        kinds = [validation.kind_of(getattr(part, role)) for part in parts]
        for part, kind in zip(parts, kinds, strict=True):
            if kind != kinds[0]:
                raise InputError(
                    f"{name} is {kinds[0]} in {parts[0].what} and {kind} in {part.what}: give both "
                    "as text, or both as numbers"
                )


def _whole(values: Array) -> Array:
    """Grades as whole numbers where all of them are."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


def _listed(ids: Any) -> str:
    shown = ", ".join(map(str, list(ids[:_SHOWN])))
    if len(ids) > _SHOWN:
        shown += ", .."
    return shown


def _plural(name: str) -> str:
    return "queries" if name == "query" else f"{name}s"


# --- checks of the arguments ----------------------------------------------------------------------


def _checked_on(on: Any) -> tuple[str, str]:
    on = as_names("on", on, str)
    if len(on) != 2 or not all(on) or on[0] == on[1]:
        raise InputError(f"on={on!r} must be two different column names, as ('user', 'item')")
    return on[0], on[1]


def _checked_names(runs: Any, on: tuple[str, str]) -> tuple[str, ...]:
    check_type("runs", runs, Mapping, "a dict {name: run}")
    if not runs:
        raise InputError("there are no runs: give at least one, as {'bm25': 'bm25.run'}")
    for name in runs:
        check_type("each name of a run", name, str, "text")
        if not name.strip() or roles.is_named_as_id(name) or name in (*on, GRADE):
            raise InputError(
                f"a run cannot be called {name!r}, as columns of ids and grades are: give it "
                "another name"
            )
    return tuple(runs)
