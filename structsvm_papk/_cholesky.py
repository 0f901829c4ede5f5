"""Vectors with given inner products, by pivoted Cholesky."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from structsvm_papk._types import Array


class Factor(NamedTuple):
    """``rows @ rows.T`` is the matrix that was factored; ``rows[pivots]`` is lower triangular."""

    rows: Array
    pivots: Array

    def coordinates(self, products: Array) -> Array:
        """The vector that has these products with the rows, where there is one."""
        return solve_triangular(self.rows[self.pivots], products[self.pivots], lower=True)


def factor_of(gram: Array, smallest: float = -1.0) -> Factor:
    """Rows with these inner products, a positive semidefinite matrix; of its rank in columns.

    Products may be off by `smallest`; by default by what n of them may have lost by rounding, n
    times as much as one of the largest.
    """
    factor, pivots, rank, _ = lapack.dpstrf(gram, lower=1, tol=smallest)
    lower = np.tril(factor)[:, :rank]
    rows = np.empty_like(lower, order="C")
    rows[pivots - 1] = lower
    return Factor(rows, pivots[:rank] - 1)
