"""What joins lists without judgments: sums of reciprocal ranks and of scores between 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.fusion.entries import GRADE

if TYPE_CHECKING:
    import pandas as pd


def rrf(joined: pd.DataFrame, k: float = 60) -> Array:
    """Reciprocal rank fusion: ``sum over runs of 1 / (k + rank)``, 0 where not retrieved.

    Ranks count from 1 in each query's list of a run; of equal scores the larger document id is
    first, as trec_eval sorts. Cormack, Clarke and Buettcher, SIGIR 2009.

    Parameters
    ----------
    joined : pandas.DataFrame
        As `join_lists` makes it.
    k : float
        At least 0; the larger, the less the first places count.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    check_number("k", k, least=0.0)
    names = run_names(joined)
    query = _query(joined)
    document = _codes_in_order(joined.iloc[:, 1])
    total = np.zeros(len(joined))
    for name in names:
        score = joined[name].to_numpy()
        rows = np.flatnonzero(~np.isnan(score))
        total[rows] += 1.0 / (k + 1.0 + places(query[rows], score[rows], document[rows]))
    return total


def combsum(joined: pd.DataFrame) -> Array:
    """CombSUM: the sum of the runs' `minmax` scores; equal weights. Shape (n_rows,).

    Fox and Shaw, TREC-2, 1994.
    """
    scaled: Array = minmax(joined).sum(axis=1)
    return scaled


def combmnz(joined: pd.DataFrame) -> Array:
    """CombMNZ: `combsum` times the number of runs that retrieved the document. Shape (n_rows,)."""
    retrieved = joined[run_names(joined)].notna().to_numpy()
    times: Array = retrieved.sum(axis=1)
    return combsum(joined) * times


def minmax(joined: pd.DataFrame) -> Array:
    """Each run's scores between 0 (the lowest of the query's list) and 1, shape (n_rows, n_runs).

    0 where the run did not retrieve the document, and where all of its scores are equal.
    """
    names = run_names(joined)
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


def places(query: Array, score: Array, document: Array) -> Array:
    """Place of each row in its query's list, from 0: by score, then by document, descending."""
    order = np.lexsort((-document, -score, query))
    sizes = np.bincount(query)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size) - starts[query[order]]
    return place


def from_lowest(scores: Array, query: Array) -> Array:
    """Scores less the lowest of their list: what reads them in single precision keeps the order."""
    import pandas as pd

    shifted: Array = scores - pd.Series(scores).groupby(query).transform("min").to_numpy()
    return shifted


def run_names(joined: pd.DataFrame) -> list[str]:
    """The columns of runs in a frame of `join_lists`."""
    if not hasattr(joined, "iloc"):
        raise TypeError(f"a frame is needed, as join_lists makes it, not {type(joined).__name__}")
    names = [name for name in joined.columns[2:] if name != GRADE]
    if not names:
        raise InputError("the frame has no column of a run: give one that join_lists made")
    return names


def _query(joined: pd.DataFrame) -> Array:
    return joined.iloc[:, 0].factorize()[0]


def _codes_in_order(column: pd.Series) -> Array:
    """The place of each row's id among the ids in their order."""
    from structsvm_papk.data.trec import places_of

    codes, ids = column.factorize()
    return places_of(np.asarray(ids, dtype=object))[codes]
