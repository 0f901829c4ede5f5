"""What a ranker of one list takes: folds of its rows choose surrogate and alpha.

How many columns and positives there are says what several lists need (`settings`). For one list how
clean its labels are decides, which nothing but trying shows: of Avg and TS every alpha of a path is
fitted on two folds, the best ten on three more, and what has the largest mean average precision on
the rows left out is taken (`docs/howto/one-list.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.missing import filled_lists
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.metrics.by_grade import evaluate_by_grade
from structsvm_papk.rankers import choosing
from structsvm_papk.rankers.folds import digests_of_rows, folds_by_content
from structsvm_papk.rankers.settings import SURROGATES_OF_ONE_LIST, Evidence, Setting, is_auto

MULTIPLES = 10.0 ** np.arange(3.0, -3.5, -1.0)  # times the mean variance of the columns
TOL = 1e-2
MAX_ITER = 250
MOST_VALUES = 5_000_000  # with more alpha hardly matters, and the fits take a while
_FOLDS = 5
_BLOCKS = 32  # with more columns than half of them the usual number takes up to twice the time
_FEWEST = 5  # positives or negatives, one for each fold


def can_be_cut(data: RankingData) -> bool:
    """Whether there is one list, with rows enough for folds and not too many to try."""
    if data.n_users != 1 or min(int(data.n_pos[0]), int(data.n_neg[0])) < _FEWEST:
        return False
    n_values = data.X.nnz if data.is_sparse else data.rows.size * data.n_features
    return bool(n_values <= MOST_VALUES) and bool(folds_by_content(_FOLDS, data))


def options(given: Setting, surrogate: bool) -> list[Setting]:
    """What folds choose among, beside alpha: Avg and TS, where the surrogate is left to them."""
    if not surrogate:
        return [given]
    return [replace(given, surrogate=name) for name in SURROGATES_OF_ONE_LIST]


def best_on_folds(
    data: RankingData,
    settings: Sequence[Setting],
    k: int,
    *,
    positive: bool = False,
    missing: str | None = None,
    n_threads: int = 1,
    deadline: float | None = None,
) -> Setting | None:
    """The setting with the largest mean average precision on the rows that folds leave out.

    Parameters
    ----------
    data : RankingData
        One list, its columns as they came.
    settings : sequence of Setting
        With alpha 'auto' every alpha of a path is tried; of other surrogates than the first the
        smallest is not: its fits take as long as all others together. In place of a surrogate that
        is not convex Avg is. Of equal ones the first is taken, with the largest alpha.
    k : int
    positive, missing, n_threads
        As for `PAPKRanker`.
    deadline : float, optional
        By `time.perf_counter`, until when to try.

    Returns
    -------
    Setting or None
        None where the time was not enough.
    """
    data = filled_lists(_in_order_of_content(data), missing)
    units = {setting.standardize: data.standardized(setting.standardize) for setting in settings}
    given: dict[Setting, Setting] = {}  # by what is tried in its place
    for setting in settings:
        alphas = [setting.alpha]
        if is_auto(setting.alpha):
            lists = units[setting.standardize]
            unit = Evidence.of(lists, lists).mean_variance
            is_first = setting.surrogate == settings[0].surrogate
            multiples = MULTIPLES if is_first else MULTIPLES[:-1]
            alphas = [float(alpha) for alpha in unit * multiples]
        for alpha in alphas:
            own = replace(setting, alpha=alpha)
            tried = own if own.kind.convex else replace(own, surrogate="avg")
            given.setdefault(tried, own)
    n_blocks = None if data.is_sparse else _BLOCKS
    training = choosing.Training(k, "cap", positive, TOL, MAX_ITER, n_blocks, n_threads)
    candidates = [choosing.Candidate(tried, units[tried.standardize]) for tried in given]
    folds = folds_by_content(_FOLDS, data)
    choice = choosing.best_on_folds(candidates, folds, _average_precision, training, deadline)
    if choice.ended_by == "Ctrl-C":
        raise KeyboardInterrupt
    if choice.ended_by or choice.best is None:
        return None
    return given[choice.best.setting]


def _average_precision(scores: Array, lists: RankingData) -> float:
    return evaluate_by_grade("ap", scores, lists).mean("ap")


def _in_order_of_content(data: RankingData) -> RankingData:
    """The list by itself, its rows in an order that does not depend on how they came or are stored.

    So the same rows give the same fits to the last bit.
    """
    classes = ~data.labels if data.grades is None else -data.gains  # as they have to stand
    order = np.lexsort((digests_of_rows(data), classes))
    X = data.X[data.rows[order]]
    same = RankingData.from_parts(
        X=X if data.is_sparse else np.ascontiguousarray(X),
        rows=np.arange(order.size),
        indptr=data.indptr,
        n_pos=data.n_pos,
        users=data.users,
        feature_names=data.feature_names,
        one_list=data.one_list,
        grades=None if data.grades is None else data.grades[order],
        label_gain=data.label_gain,
    )
    same.with_holes = data.with_holes
    return same
