"""RecTools: a re-ranker for its two-stage models, and the score factors of its recommenders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.missing import Filling
from structsvm_papk.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

try:
    from rectools import Columns
    from rectools.models.ranking import Reranker
except ImportError:
    Reranker = object
    Columns = None

__all__ = ["PAPKReranker"]

_ROUNDING = 16 * np.finfo(np.float64).eps  # of the largest value: a column varies by more


class PAPKReranker(Reranker):  # type: ignore[misc,valid-type]
    """The second stage of RecTools' `CandidateRankingModel`, trained for pAp@k.

    Users are handed to the ranker as groups. Every column is brought to mean 0 and variance 1
    within each user, since the scores of a recommender are on another scale for each user. Where a
    first-stage model did not put an item forward, it gets the lowest of the model's scores for the
    user's candidates and the highest of its ranks, as ``PAPKRanker(missing="lowest")`` has it, and
    a further column for each one with holes in training, ``NAME is there``, says 0 instead of 1.

    Parameters
    ----------
    model : PAPKRanker or Pipeline
        A pipeline ends in a `PAPKRanker`.
    fit_kwargs : dict, optional
        Further arguments of its `fit`.
    standardize : bool
        Whether columns are standardised within users.

    Attributes
    ----------
    ranker_ : PAPKRanker
        The fitted ranker (of a pipeline: its last step).
    certificate_ : dict
        objective, lower_bound, gap, status, converged and n_iter of its solution.

    Raises
    ------
    InputError
        RecTools is missing, the model is no ranker of this package, no feature column, no user
        with k negatives, or missing values in a column that comes from no first-stage model.

    Notes
    -----
    RecTools' `PerUserNegativeSampler` keeps 3 negatives a user by default. The ranker needs k or
    more to learn from: give ``PerUserNegativeSampler(n_negatives=100)``, or more than there are
    candidates, to keep all. Users with fewer than k are treated as the ranker's `policy` says.

    Examples
    --------
    >>> reranker = PAPKReranker(PAPKRanker(k=10))  # doctest: +SKIP
    >>> model = CandidateRankingModel(generators, splitter, reranker, sampler)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,
        fit_kwargs: dict[str, Any] | None = None,
        standardize: bool = True,
    ) -> None:
        if Columns is None:
            raise InputError("PAPKReranker needs RecTools: pip install 'structsvm-papk[rectools]'")
        last = _last_step(model)
        if not hasattr(type(last), "n_shown"):
            raise InputError(
                f"PAPKReranker takes PAPKRanker or a pipeline that ends in one, not "
                f"{type(last).__name__}; other models go into RecTools' own Reranker"
            )
        super().__init__(model, fit_kwargs)
        self.standardize = standardize

    def prepare_fit_kwargs(self, candidates_with_target: pd.DataFrame) -> dict[str, Any]:
        """Features, targets and the user of each row, for the ranker's `fit`."""
        frame = candidates_with_target
        groups = frame[Columns.User].to_numpy()
        self._refuse_few_negatives(frame)
        columns = frame.drop(columns=[*Columns.UserItem, Columns.Target])
        self._with_holes = list(columns.columns[columns.isna().any()])
        X = self._features(columns, groups)
        pipeline = getattr(self.model, "steps", None)
        step = f"{pipeline[-1][0]}__" if pipeline else ""  # whose argument it is
        return {
            "X": X,
            "y": frame[Columns.Target].to_numpy(),
            f"{step}groups": groups,
            **(self.fit_kwargs or {}),
        }

    def fit(self, candidates_with_target: pd.DataFrame) -> None:
        """Train on the candidates of all users."""
        super().fit(candidates_with_target)
        self.ranker_ = _last_step(self.model)
        self.certificate_ = self.ranker_.to_model().certificate

    def predict_scores(self, candidates: pd.DataFrame) -> Array:
        """Scores of the candidates; larger ranks higher."""
        groups = candidates[Columns.User].to_numpy()
        X = self._features(candidates.drop(columns=Columns.UserItem), groups)
        return np.asarray(self.model.predict(X, groups=groups))

    def _refuse_few_negatives(self, frame: pd.DataFrame) -> None:
        """There is no pAp@k where no user has k negatives; of some users, see `policy`."""
        negatives = frame[frame[Columns.Target] == 0].groupby(Columns.User).size()
        most = int(negatives.max() if len(negatives) else 0)
        k = _last_step(self.model).n_shown
        if most < k:
            raise InputError(
                f"k={k} items are to be shown, but no user has more than {most} negatives among "
                "the candidates: raise n_negatives of the sampler (RecTools keeps 3) or "
                "num_candidates of the generators"
            )

    def _features(self, frame: pd.DataFrame, groups: Array) -> pd.DataFrame:
        """Columns without gaps, comparable between users."""
        if not frame.shape[1]:
            raise InputError(
                "the candidates have no feature: set keep_scores=True (or keep_ranks) in the "
                "CandidateGenerator, or give a CandidateFeatureCollector"
            )
        frame = frame.astype(float)
        _refuse_other_holes(frame, groups)
        # of ranks the highest is the worst
        signs = np.where([name.endswith("_rank") for name in frame.columns], -1.0, 1.0)
        there = frame[self._with_holes].notna().astype(float).add_suffix(" is there")
        scores = frame * signs
        if self.standardize:
            scores = _standardized(scores, groups)
        frame[:] = Filling("lowest").of_rows(scores.to_numpy(), groups).X * signs
        return frame.join(there)


def _standardized(frame: pd.DataFrame, groups: Array) -> pd.DataFrame:
    """Columns with mean 0 and variance 1 within each user, of what is there; constant ones 0."""
    by_user = frame.groupby(groups)
    rounding = frame.abs().groupby(groups).transform("max") * _ROUNDING
    deviation = by_user.transform("std", ddof=0)
    centred = frame - by_user.transform("mean")
    return centred / deviation.where(deviation > rounding, np.inf)


def _refuse_other_holes(frame: pd.DataFrame, groups: Array) -> None:
    """Only a first-stage model leaves items out, of a known meaning."""
    for name in frame.columns[frame.isna().any()]:
        if not name.endswith(("_score", "_rank")):
            user = groups[int(frame[name].isna().to_numpy().argmax())]
            raise InputError(
                f"feature {name!r} is missing for an item of user {user!r}; fill it in your "
                "CandidateFeatureCollector"
            )


def _last_step(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model
