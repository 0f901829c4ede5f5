"""The empirical risk of a linear scorer in memory: the oracle that every solver can ask.

And what it offers: the blocks of one list, users as blocks of the dual, convex majorants, bounds
over boxes, and starting points for risks that are not convex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import check_choice, check_type, whole_number
from structsvm_papk.oracles.boxes import Boxes
from structsvm_papk.oracles.list_risk import (
    ListRisk,
    runs_of_users,
    users_needed,
)
from structsvm_papk.oracles.one_list import OneListCuts
from structsvm_papk.oracles.user_blocks import UserBlocks, gram_bytes
from structsvm_papk.solvers.oracle import (
    BlockOracle,
    BoxedOracle,
    DualOracle,
    FiniteSumOracle,
    Oracle,
)
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates.base import ListTerms, MajorantSurrogate
from structsvm_papk.surrogates.losses import Avg

_GRAM_BYTES = 1 << 29  # more of them dual blocks may not take
_ASCENT_FEATURES = 1000  # from which on the ascent was faster with sparse data, see docs/solver.md
_START_ROWS = 1 << 14  # are enough for a starting point, or
_START_ROWS_A_FEATURE = 300  # if that is more
_DEEP = 0.9  # share of the negatives that 'deep_avg' counts
_RIDGE = 1e-4


class EmpiricalRisk(ListRisk, DualOracle, BoxedOracle, FiniteSumOracle):
    """Mean over users of a surrogate of their lists, ``R(w) = sum_u v_u S(X_u w) / sum_u v_u``.

    The weights v are those of the data, by default all the same. With grades it is the mean over
    users and grades of the lists (u, t), which count ``v_u v_t``, see `data.grades`.

    Calling it with w gives the value and a subgradient; `blocks` gives them for each block of
    users, for solvers that take several cuts from one pass over the data.

    Where the surrogate is `majorised` and `boxed`, as Ramp and ClippedRamp are, there are majorants
    and bounds over boxes too; others refuse.

    Where the surrogate is `shift_invariant` and columns have large offsets, rows are read as their
    differences to the user's first row (`data.columns.base`): scores and subgradients differ from
    ``X @ w`` and its like by what does not count.

    Parameters
    ----------
    surrogate : Surrogate
    data : RankingData
    policy : {'exclude', 'raise', 'cap'}
        What to do with users with fewer negatives than the surrogate's depth (k, where it has
        none): leave them out, refuse them, or count the negatives that they have, as rankers and
        commands do ('cap', the default). Users without a positive or a negative are left out, or
        refused. Rankers refuse a k above every list; a risk with 'cap' takes it, since lists may be
        parts of others: there every negative counts.
    n_blocks : int
        Number of blocks of consecutive users with about the same number of rows (one for each
        user, if there are fewer).
    n_threads : int
        Threads that share the work. The result does not depend on it.

    Attributes
    ----------
    data : RankingData
        The lists that are used: with grades those of `RankingData.by_grade`.
    of_users : RankingData
        One list for each user.
    exclusions : Exclusions
        The users that were left out, and why.
    rows_scored : int
        Rows scored so far.

    Raises
    ------
    InputError
        No user can be used, or some cannot and the policy is 'raise'.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        data: RankingData,
        policy: str = "cap",
        n_blocks: int = 1,
        n_threads: int = 1,
    ) -> None:
        check_type("data", data, RankingData, "a RankingData")
        n_blocks = whole_number("n_blocks", n_blocks)
        n_threads = whole_number("n_threads", n_threads)
        need = users_needed(surrogate, policy)
        self.exclusions = data.checked_exclusions(need.negatives, need.policy, need.setting)
        self.of_users = data.without(self.exclusions)
        lists = self.of_users.by_grade(need.negatives)
        super().__init__(
            surrogate,
            lists,
            runs_of_users(lists, n_blocks),
            n_threads,
        )

    @property
    def shares(self) -> Array:  # type: ignore[override]
        """What each user weighs: the terms of the sum."""
        return self._weigh(np.ones(self.n_users)) / self._total

    def term(self, i: int, w: Array) -> tuple[float, Array]:
        """The loss of one user and a subgradient, without a look at the others."""
        data = self.data
        columns, rows = self.list_rows()
        rows = rows[data.indptr[i] : data.indptr[i + 1]]
        bounds = np.array([0, rows.size])
        scores = np.empty(rows.size)
        columns.scores(rows, self.units.of_columns(w), 0, rows.size, scores)
        n_pos = data.n_pos[i : i + 1]
        values, coef = self.surrogate.value_and_subgradient(scores, bounds, n_pos)
        slope = np.zeros((1, data.n_features))
        columns.add_weighted_rows(rows, coef, bounds, slope)
        self.rows_scored += rows.size
        return float(values[0]), self.units.of_columns(slope)[0]

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """The same risk with `n_blocks` cuts an evaluation.

        Blocks are runs of users, or parts of a single user's list where its terms are known.
        """
        terms = self._terms_of_one_list
        if terms is not None and n_blocks > 1:
            return OneListCuts(self, terms, n_blocks)
        return super().with_blocks(n_blocks)

    @property
    def most_blocks(self) -> int | None:  # type: ignore[override]
        """More blocks than that hardly save passes: of one list, where its terms say so."""
        terms = self._terms_of_one_list
        return None if terms is None else terms.most_blocks

    @property
    def _terms_of_one_list(self) -> ListTerms | None:
        if self.n_users != 1:
            return None
        return self.surrogate.list_terms(int(self.data.n_pos[0]), int(self.data.n_neg[0]))

    def dual_blocks(self, alpha: float, start: Any = None) -> UserBlocks | None:
        """Users as blocks of the dual, see `oracles.user_blocks`; None where it is not known."""
        return UserBlocks(self, alpha, start) if self._has_a_weight_each else None

    def suits_dual_ascent(self, alpha: float) -> bool:
        """Whether the ascent is likely to be faster: where users share little of what they need."""
        several = self.n_users > 1 and self.n_features >= _ASCENT_FEATURES
        return several and self.data.is_sparse and self._has_a_weight_each

    @property
    def _has_a_weight_each(self) -> bool:
        """Whether each negative has a weight in the dual, with room for their products."""
        return self.surrogate.weighs_negatives and gram_bytes(self) <= _GRAM_BYTES

    def majorant(self, w: Array) -> MajorantRisk:
        """A convex risk that is nowhere below this one, and tight at w.

        Raises
        ------
        InputError
            A surrogate without majorants.
        """
        data = self.data
        return MajorantRisk(self.surrogate.majorant(self.scores(w), data.indptr, data.n_pos), self)

    def bounds(self, alpha: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Bounds over boxes, see `Boxes.bounds`."""
        return self._boxes.bounds(alpha, low, high, self.map_ranges)

    @cached_property
    def _boxes(self) -> Boxes:
        return Boxes(self)

    def starts(
        self, minimise: Callable[[Oracle], Array], names: Sequence[str] | None = None
    ) -> dict[str, Array]:
        """Starting points by name for solvers of non-convex risks; see `warm_starts`."""
        users = self.of_users
        n = start_step(users.rows.size, self.n_features)
        return warm_starts(self.surrogate, users.some_of(n), minimise, names, self.n_threads)


class MajorantRisk(ListRisk):
    """A convex risk that is nowhere below another one, `majorised`, and tight at one point."""

    surrogate: MajorantSurrogate

    def __init__(self, surrogate: MajorantSurrogate, majorised: EmpiricalRisk) -> None:
        data = majorised.data
        super().__init__(surrogate, data, majorised.user_bounds, majorised.n_threads)
        self.exact = majorised.surrogate.is_convex_on(data.n_pos)


def start_step(n_rows: int, n_features: int) -> int:
    """The n for which one of n users is enough for a starting point."""
    enough = max(_START_ROWS, _START_ROWS_A_FEATURE * n_features)
    return max(1, n_rows // enough)


def warm_starts(
    surrogate: Surrogate,
    data: RankingData,
    minimise: Callable[[Oracle], Array],
    names: Sequence[str] | None = None,
    n_threads: int = 1,
) -> dict[str, Array]:
    """Starting points by name, by default all, from lists that hold enough rows.

    ``zero``; ``avg``: the optimum of the convex Avg surrogate; ``deep_avg``: the same with nine
    tenths of each user's negatives counted, which is seldom zero; ``logistic`` and
    ``centred_logistic``: see `logistic_regression`.
    """

    def optimum_of_avg(depth: float | None) -> Array:
        avg = Avg(surrogate.k, depth=depth)
        return minimise(EmpiricalRisk(avg, data, "cap", n_threads=n_threads))

    makers = {
        "zero": lambda: np.zeros(data.n_features),
        "avg": lambda: optimum_of_avg(surrogate.depth),
        "deep_avg": lambda: optimum_of_avg(_DEEP),
        "logistic": lambda: logistic_regression(data),
        "centred_logistic": lambda: logistic_regression(data, centred=True),
    }
    names = list(makers) if names is None else names
    for name in names:
        check_choice("starts", name, makers)
    return {name: makers[name]() for name in names}


def logistic_regression(data: RankingData, centred: bool = False, max_iter: int = 100) -> Array:
    """Weights of a logistic regression of relevance on the features, users by their weights.

    ``min_{w,b} ridge/2 ||w||^2 + mean_u mean_{r of u} log(1 + exp(-y_r (w.x_r + b)))``, y = +-1.
    With `centred`, each user's scores enter less their mean, so that what all items of a user
    share does not count.
    """
    sign = np.where(data.labels, 1.0, -1.0)
    share = data.weight_of_user
    weight = np.repeat(share / (share.sum() * data.sizes), data.sizes)

    def centre(values: Array) -> Array:
        """Less the user's mean: a symmetric projection, so its own transpose."""
        if not centred:
            return values
        sums = np.add.reduceat(values, data.indptr[:-1])
        return values - np.repeat(sums / data.sizes, data.sizes)

    def loss(point: Array) -> tuple[float, Array]:
        w = point[:-1]
        intercept = point[-1]
        margin = sign * (centre(data.scores(w)) + intercept)
        value = float(weight @ np.logaddexp(0.0, -margin))
        slope = sign * (-weight * expit(-margin))
        gradient = data.rmatvec(centre(slope)) + _RIDGE * w
        return float(value + _RIDGE / 2 * (w @ w)), np.append(gradient, slope.sum())

    start = np.zeros(data.n_features + 1)
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter}).x[:-1]
