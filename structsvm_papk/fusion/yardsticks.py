"""What joins lists without judgments: sums of reciprocal ranks and of scores between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.fusion.entries import places
from structsvm_papk.fusion.joining import RUNS

if TYPE_CHECKING:
    import pandas as pd


def rrf(joined: pd.DataFrame, k: float = 60, *, runs: Sequence[str] | None = None) -> Array:
    """Reciprocal rank fusion: ``sum over runs of 1 / (k + rank)``, 0 where not retrieved.

    Ranks count from 1 in each query's list of a run; of equal scores the larger document id is
    first, as trec_eval sorts. Cormack, Clarke and Buettcher, SIGIR 2009.

    Parameters
    ----------
    joined : pandas.DataFrame
        As `join_lists` makes it.
    k : float
        At least 0; the larger, the less the first places count.
    runs : sequence of str, optional
        Columns that are joined; by default the runs that were given to `join_lists`.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    check_number("k", k, least=0.0)
    names = run_names(joined, runs)
    query = _query(joined)
    document = _codes_in_order(joined.iloc[:, 1])
    total = np.zeros(len(joined))
    for name in names:
        score = joined[name].to_numpy()
        rows = np.flatnonzero(~np.isnan(score))
        total[rows] += 1.0 / (k + 1.0 + places(query[rows], score[rows], document[rows]))
    return total


def combsum(joined: pd.DataFrame, *, runs: Sequence[str] | None = None) -> Array:
    """CombSUM: the sum of the runs' `minmax` scores; equal weights. Shape (n_rows,).

    `runs` as for `rrf`. Fox and Shaw, TREC-2, 1994.
    """
    scaled: Array = minmax(joined, run_names(joined, runs)).sum(axis=1)
    return scaled


def combmnz(joined: pd.DataFrame, *, runs: Sequence[str] | None = None) -> Array:
    """CombMNZ: `combsum` times the number of runs that retrieved the document. Shape (n_rows,).

    `runs` as for `rrf`.
    """
    names = run_names(joined, runs)
    times: Array = joined[names].notna().to_numpy().sum(axis=1)
    return combsum(joined, runs=names) * times


def minmax(joined: pd.DataFrame, names: Sequence[str]) -> Array:
    """Each run's scores between 0 (the lowest of the query's list) and 1, shape (n_rows, n_runs).

    0 where the run did not retrieve the document, and where all of its scores are equal.
    """
    query = _query(joined)
    scaled = np.zeros((len(joined), len(names)))
    for column, name in enumerate(names):
        score = joined[name]
        of_query = score.groupby(query)
        lowest = of_query.transform("min").to_numpy()
        width = of_query.transform("max").to_numpy() - lowest
        there = width > 0  # NaN where the run has nothing for the query
        np.divide(score.to_numpy() - lowest, width, out=scaled[:, column], where=there)
    return np.nan_to_num(scaled, copy=False, nan=0.0)


def from_lowest(scores: Array, query: Array) -> Array:
    """Scores less the lowest of their list: what reads them in single precision keeps the order."""
    import pandas as pd

    shifted: Array = scores - pd.Series(scores).groupby(query).transform("min").to_numpy()
    return shifted


def run_names(joined: pd.DataFrame, runs: Sequence[str] | None = None) -> list[str]:
    """The columns of runs: those that are named, or those that `join_lists` made."""
    if not hasattr(joined, "iloc"):
        raise TypeError(f"a frame is needed, as join_lists makes it, not {type(joined).__name__}")
    names = joined.attrs.get(RUNS, []) if runs is None else runs
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"runs must be a list of names of columns, got {names!r}")
    if not names:
        raise InputError("which columns are runs? Name them: runs=['bm25', ..]")
    absent = [name for name in names if name not in joined]
    if absent:
        raise InputError(f"the frame has no column {absent[0]!r} of a run")
    return list(names)


def _query(joined: pd.DataFrame) -> Array:
    return joined.iloc[:, 0].factorize()[0]


def _codes_in_order(column: pd.Series) -> Array:
    """The place of each row's id among the ids in their order."""
    from structsvm_papk.data.validation import places_of

    codes, ids = column.factorize()
    return places_of(ids)[codes]
