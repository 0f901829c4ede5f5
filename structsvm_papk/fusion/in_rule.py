"""Weights for an engine, learned in what the engine's rule makes of the lists.

Certified weights at least 0 of these numbers as columns, `Rule.learned_from` for rules of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.fusion.engines import Engine, Rule
from structsvm_papk.fusion.held_out import FOLD_TOL, CrossValidation


@dataclass(frozen=True)
class InRule:
    """Learning in an engine's rule, of some runs."""

    folds: CrossValidation
    engine: Engine
    names: Sequence[str]

    @cached_property
    def columns(self) -> Array:
        """What the rule makes of each run's lists."""
        return self._columns_of(self.engine.rule)

    def _columns_of(self, rule: Rule) -> Array:
        joined = self.folds.joined
        scores = joined.scores[list(self.names)].to_numpy()
        return rule.columns(scores, joined.query, joined.place)

    @cached_property
    def _retrieved(self) -> Array:
        """Whether one of the runs has the document of a row."""
        scores = self.folds.joined.scores[list(self.names)]
        retrieved: Array = scores.notna().to_numpy().any(axis=1)
        return retrieved

    @property
    def equal(self) -> Array:
        """The engine's weights where none are given."""
        return np.ones(len(self.names))

    def scores(self, weights: Array) -> Array:
        """Fused score of each row, minus infinity where no run retrieved the document."""
        fused = self.engine.rule.fused(self.columns, weights)
        return np.where(self._retrieved, fused, -np.inf)

    def held_out(self) -> Array:
        """Score of each row, its query ranked by weights of the other folds."""
        query = self.folds.joined.query
        scores = np.full(query.size, -np.inf)
        for fold in range(self.folds.n_folds):
            in_fold = (self.folds.fold == fold)[query]
            weights = self.equal
            if self.folds.is_trainable(self._retrieved & ~in_fold):
                weights = self.weights(self.fitted(~in_fold, tol=FOLD_TOL))
            scores[in_fold] = self.scores(weights)[in_fold]
        return scores

    def fitted(self, rows: Array | None = None, **settings: Any) -> Any:
        """A ranker of the columns, trained on some rows, or on all."""
        import pandas as pd

        columns = self._columns_of(self.engine.rule.learned_from)
        ranker = self.folds.settings.ranker(positive=True, **settings)
        some = self._retrieved if rows is None else self._retrieved & rows
        self.folds.fit_rows(ranker, pd.DataFrame(columns, columns=list(self.names)), some)
        return ranker

    def weights(self, ranker: Any) -> Array:
        """The weights of a ranker, with the mean 1 where their scale matters."""
        weights: Array = ranker.coef_ if ranker.coef_.any() else self.equal  # 0 would rank nothing
        return self.normalised(weights / weights.mean())

    def normalised(self, weights: Array) -> Array:
        """Weights with the sum 1 where their scale does not matter."""
        return weights if self.engine.rule.bend else weights / weights.sum()
