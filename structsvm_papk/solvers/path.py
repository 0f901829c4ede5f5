"""Regularisation paths: one problem at many alphas, each solved from what the last one left."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, as_floats, check_type
from structsvm_papk.solvers.checkpoints import CheckpointStore, check_store
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import Oracle
from structsvm_papk.solvers.result import SolverResult


def alpha_path(
    oracle: Oracle,
    alphas: ArrayLike,
    solver: CuttingPlane,
    w_init: Array | None = None,
    callback: Callback | None = None,
    checkpoint: CheckpointStore | None = None,
) -> list[SolverResult | None]:
    """Solve ``alpha/2 ||w||^2 + R(w)`` for every alpha, from the largest to the smallest.

    Cuts are lower bounds of R, so they hold for every alpha: each solve starts with those that
    the one before kept, and at its point.

    Parameters
    ----------
    oracle : EmpiricalRisk or any convex oracle of `CuttingPlane`
    alphas : array-like of float
        Regularisation strengths, in any order.
    solver : CuttingPlane
        Its alpha is replaced.
    w_init : ndarray of shape (n_features,), optional
        Start at the largest alpha.
    callback : callable, optional
        Called with a `Progress` after every iteration of every solve.
    checkpoint : Checkpoint, optional
        Each solve saves its result in a part of it, and starts warm from there.

    Returns
    -------
    list of SolverResult
        In the order of `alphas`. The path ends early where it is interrupted or stopped; the
        results of the alphas that were not reached are None.

    Raises
    ------
    InputError
        No alphas, or one that is not positive.
    """
    alphas = as_floats("alphas", alphas).ravel()
    check_type("solver", solver, CuttingPlane, "a CuttingPlane")
    check_store(checkpoint)
    if not alphas.size:
        raise InputError("alpha_path needs at least one alpha")
    solvers = [replace(solver, alpha=float(alpha)) for alpha in alphas]
    results: list[SolverResult | None] = [None] * alphas.size
    last: SolverResult | None = None
    for i in np.argsort(-alphas, kind="stable"):
        start = w_init if last is None else None
        part = checkpoint and checkpoint.part(f"alpha-{solvers[i].alpha!r}")
        last = results[i] = solvers[i].solve(oracle, start, callback, last, part)
        if last.status in ("interrupted", "stopped"):
            break
    return results
