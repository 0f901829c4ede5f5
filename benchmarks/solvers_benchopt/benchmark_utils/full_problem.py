"""The whole training problem for cvxpy, which the tests hold the solvers against, and its size."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests"))  # benchopt does not know it

from helpers.full_problem import full_problem

__all__ = ["full_problem", "n_hinges"]


def n_hinges(risk):
    """Number of pairs (i, j), the size of the problem."""
    return int((risk.data.n_pos * risk.data.n_neg).sum())
