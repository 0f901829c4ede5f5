"""How `PAPKRankerCV` scores weights on held-out lists: by a metric, or by a scorer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError

Scores = Callable[[Array], Array]  # of weights: a value for each that a fold's scores belong to


@dataclass(frozen=True)
class ByMetric:
    """A metric of the package: one value for each user."""

    name: str
    by_user = True

    def on(self, test: RankingData) -> Scores:
        """The function that scores weights on these lists."""

        def scores(w: Array) -> Array:
            table = metrics.evaluate(self.name, test.scores(w), test.labels, indptr=test.indptr)
            values: Array = table[self.name]
            return values

        return scores


@dataclass(frozen=True)
class ByScorer:
    """A scorer as scikit-learn has it, ``scorer(estimator, X, y)``: one value for each fold.

    Where it has a parameter `groups`, or requests them by metadata routing, it gets them.

    Parameters
    ----------
    scorer : callable
    ranker : callable
        Gives the fitted estimator of weights.
    classes : ndarray of shape (2,)
        Label of rows that are not relevant, and of those that are.
    """

    scorer: Any
    ranker: Callable[[Array], Any]
    classes: Array
    by_user = False

    @property
    def name(self) -> str:
        """What the scorer is called."""
        return getattr(self.scorer, "__name__", None) or str(self.scorer)

    def on(self, test: RankingData) -> Scores:
        """The function that scores weights on the rows of these lists, in their own order."""
        order = np.argsort(test.rows)
        X, y = test.X[test.rows[order]], self.classes[test.labels[order].astype(int)]
        users = test.users[test.user_of_position[order]]
        more = {"groups": users} if _takes_groups(self.scorer) else {}

        def scores(w: Array) -> Array:
            value = self.scorer(self.ranker(w), X, y, **more)
            if not isinstance(value, Real):
                raise InputError(f"scoring {self.name} must give a number, got {value!r}")
            return np.array([float(value)])

        return scores


def _takes_groups(scorer: Any) -> bool:
    if hasattr(scorer, "get_metadata_routing"):
        return "groups" in scorer.get_metadata_routing().consumes("score", ["groups"])
    try:
        return "groups" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):
        return False
