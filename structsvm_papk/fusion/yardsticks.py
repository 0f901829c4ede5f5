"""What joins lists without judgments: sums of reciprocal ranks and of scores between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from structsvm_papk._types import Array
from structsvm_papk.data.validation import places_of
from structsvm_papk.errors import InputError, as_names, check_number
from structsvm_papk.fusion.engines import MinMax, ReciprocalRank, Rule
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
    return _summed(ReciprocalRank(k), joined, runs)


def combsum(joined: pd.DataFrame, *, runs: Sequence[str] | None = None) -> Array:
    """CombSUM: the sum of scores between 0 and 1; equal weights. Shape (n_rows,).

    0 is the lowest of a run's list, what the run did not retrieve, and where all of its scores are
    equal. `runs` as for `rrf`. Fox and Shaw, TREC-2, 1994.
    """
    return _summed(MinMax(), joined, runs)


def _summed(rule: Rule, joined: pd.DataFrame, runs: Sequence[str] | None) -> Array:
    """The sum of what a rule makes of the lists."""
    scores = joined[run_names(joined, runs)].to_numpy()
    query = joined.iloc[:, 0].factorize()[0]
    codes, ids = joined.iloc[:, 1].factorize()
    summed: Array = rule.columns(scores, query, places_of(ids)[codes]).sum(axis=1)
    return summed


def from_lowest(scores: Array, query: Array) -> Array:
    """Scores less the lowest of their list: what reads them in single precision keeps the order."""
    import pandas as pd

    shifted: Array = scores - pd.Series(scores).groupby(query).transform("min").to_numpy()
    return shifted


def run_names(joined: pd.DataFrame, runs: Sequence[str] | None = None) -> list[str]:
    """The columns of runs: those that are named, or those that `join_lists` made."""
    if not hasattr(joined, "iloc"):
        raise TypeError(f"a frame is needed, as join_lists makes it, not {type(joined).__name__}")
    names = as_names("runs", joined.attrs.get(RUNS, []) if runs is None else runs, str)
    if not names:
        raise InputError("which columns are runs? Name them: runs=['bm25', ..]")
    absent = [name for name in names if name not in joined]
    if absent:
        raise InputError(f"the frame has no column {absent[0]!r} of a run")
    return list(names)
