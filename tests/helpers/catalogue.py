"""What every matrix of tests goes over: surrogates, solvers, storages of columns.

A row is tested everywhere. CONTRIBUTING.md says what a new one needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from helpers import exact_risk, programs, reference
from helpers.columns import knots_at_quantiles
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    GlobalRamp,
    RankingData,
    SubgradientDescent,
)
from structsvm_papk.data.columns.units import Units
from structsvm_papk.solvers.averaged_subgradient import AveragedSubgradient, StochasticSubgradient
from structsvm_papk.surrogates import losses, make_surrogate


@dataclass(frozen=True)
class SurrogateRow:
    """What is true of a surrogate, by code that shares nothing with the package.

    Attributes
    ----------
    definition : callable
        Of the scores of positives and negatives of one list, k and the depth: `helpers.reference`.
    program : callable, optional
        The same for cvxpy: `helpers.programs`. Without one, optima are those of the bundle.
    formula : callable, optional
        The same of sorted scores, piecewise linear: `helpers.exact_risk`. With one, optima are
        found in fractions, too.
    largest : float
        Scores up to this size have values that do not overflow.
    """

    definition: Callable
    program: Callable | None = None
    formula: Callable | None = None
    largest: float = np.inf


SURROGATES = {
    "avg": SurrogateRow(reference.avg, programs.avg, exact_risk.avg),
    "max": SurrogateRow(reference.maximum, programs.maximum, exact_risk.maximum),
    "ts": SurrogateRow(reference.ts, programs.ts, exact_risk.ts),
    "ts_alg2": SurrogateRow(reference.ts_alg2),
    "pauc": SurrogateRow(reference.pauc, programs.pauc, exact_risk.pauc),
    "ramp": SurrogateRow(reference.ramp, formula=exact_risk.ramp),
    "clipped_ramp": SurrogateRow(reference.clipped_ramp, formula=exact_risk.clipped_ramp),
}
_MADE = {name: make_surrogate(name, 1) for name in losses.SURROGATES}
CONVEX = tuple(name for name, made in _MADE.items() if made.convex)
RAMPS = tuple(name for name, made in _MADE.items() if made.majorised)
EXACT = tuple(name for name in CONVEX if SURROGATES[name].formula)  # in fractions
WITH_SHARES = tuple(  # whose slopes are known, as bounds on stability need them
    name for name in CONVEX if _MADE[name].weight_shares(np.ones(1), np.ones(1)) is not None
)


@dataclass(frozen=True)
class SolverRow:
    """How tests make a solver of alpha and other settings, and what it can do.

    Attributes
    ----------
    make : callable
    surrogates : tuple of str
        Those that it solves.
    certifies : bool
        Whether its bound reaches the optimum.
    keeps_signs : bool
        Whether it takes ``positive``.
    limit : dict
        Settings with which it ends early; empty where its last iteration is its usual end.
    """

    make: Callable
    surrogates: tuple[str, ...] = CONVEX
    certifies: bool = True
    keeps_signs: bool = True
    limit: dict | None = None

    def solves(self, name, positive=False):
        """Whether it is for this surrogate, with such signs of weights."""
        return name in self.surrogates and (self.keeps_signs or positive is False)


_EVERY = tuple(SURROGATES)
SOLVERS = {
    "bundle": SolverRow(CuttingPlane),
    "few blocks": SolverRow(partial(CuttingPlane, n_blocks=5)),
    "one_slack": SolverRow(partial(CuttingPlane, method="one_slack")),
    **{
        name: SolverRow(partial(CuttingPlane, qp_solver=name))
        for name in ("piqp", "clarabel", "osqp")
    },
    "one_slack, clarabel": SolverRow(
        partial(CuttingPlane, method="one_slack", qp_solver="clarabel")
    ),
    "dual_ascent": SolverRow(DualAscent, ("avg",), keeps_signs=False),
    "cccp": SolverRow(CCCP, RAMPS, certifies=False),
    "global": SolverRow(GlobalRamp, RAMPS, keeps_signs=False),
    "subgradient": SolverRow(SubgradientDescent, _EVERY, certifies=False),
    "averaged": SolverRow(AveragedSubgradient, _EVERY, certifies=False),
    "stochastic": SolverRow(StochasticSubgradient, _EVERY, certifies=False),
}
CERTIFIED = tuple(name for name, row in SOLVERS.items() if row.certifies and row.solves("avg"))
DESCENTS = ("subgradient", "averaged", "stochastic")


# --- storages of columns --------------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows of lists, whose numbers have so few digits that no storage rounds them."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    user_weight: np.ndarray | None = None
    label_gain: str | None = None

    def lists(self, X=None):
        """In memory, with X in another storage."""
        return RankingData.from_groups(
            self.X if X is None else X,
            self.y,
            self.groups,
            self.user_weight,
            label_gain=self.label_gain,
        )

    def written_out(self, lists):
        """The same lists with every column of `lists` as a dense one, divided: a plain matrix."""
        X = lists.columns.toarray().astype(np.float64)
        return self.lists(X if lists.units.scale is None else X / lists.units.scale)


UNITS = np.array([2.0, 0.5, 32.0, 2.0**-10])
TURN = np.array([1.0, -1.0, -1.0, 1.0])


def _unsorted(X):
    """CSR whose rows are stored from the last column on."""
    stored = sparse.csr_array(X)
    for start, stop in pairwise(stored.indptr):
        stored.indices[start:stop] = stored.indices[start:stop][::-1].copy()
        stored.data[start:stop] = stored.data[start:stop][::-1].copy()
    stored.has_sorted_indices = False
    return stored


def _turned(store):
    return lambda rows: rows.lists(store(rows.X * UNITS)).in_units(Units(UNITS * TURN))


def _in_pieces(rows):
    lists = rows.lists()
    return lists.with_curves(knots_at_quantiles(lists.X, lists.rows, 3)).standardized()


STORAGES = {  # rows with four columns -> lists
    "rows": lambda rows: rows.lists(),
    "columns": lambda rows: rows.lists(np.asfortranarray(rows.X)),
    "float32": lambda rows: rows.lists(rows.X.astype(np.float32)),
    "csr": lambda rows: rows.lists(sparse.csr_array(rows.X)),
    "csr, unsorted": lambda rows: rows.lists(_unsorted(rows.X)),
    "divided": lambda rows: rows.lists(rows.X * UNITS).in_units(Units(UNITS)),
    "turned": _turned(np.asarray),
    "csr, turned": _turned(sparse.csr_array),
    "pieces": _in_pieces,
}
