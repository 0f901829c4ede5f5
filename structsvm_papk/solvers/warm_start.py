"""Whether the cuts of an earlier result are cuts of the risk that is minimised now."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, Oracle

_SAME = 1e-9  # subgradients at zero that differ by less are of one risk


def refuse_other(problem: tuple[Any, ...] | None, oracle: BlockOracle, given: Oracle) -> None:
    """Refuse cuts of another risk, or of other blocks, or of nobody knows which.

    `problem` is that of the earlier result; `oracle` is the risk now, in blocks, and `given` before
    it was cut into them.
    """
    if problem is None:
        raise InputError(
            "what the warm start's cuts are of is not known any more: start at its point, "
            "w_init=result.w"
        )
    n_blocks, layout, risk = problem
    same_blocks = (n_blocks, layout) == (oracle.n_blocks, oracle.layout)
    if not same_blocks or not (risk is given or _is_same(risk, oracle, given)):
        raise InputError(
            "the warm start's cuts are of another problem: the risk or its blocks differ"
        )


def _is_same(risk, oracle, given):
    """By the fingerprints; oracles without one show at zero what they can: their slopes there."""
    now = oracle.fingerprint()
    before = risk.fingerprint()
    if now is not None or before is not None:
        return now == before
    zero = np.zeros(oracle.n_features)
    slope_now = given(zero)[1]
    slope_before = risk(zero)[1]
    near = _SAME * np.abs(slope_before).max(initial=0.0)
    same_shape = slope_now.shape == slope_before.shape
    return same_shape and np.allclose(slope_now, slope_before, rtol=_SAME, atol=near)


def refuse_too_high(cuts: tuple[Array, Array, Array], here: Cuts) -> None:
    """Refuse cuts of another shape, or above the risk at the point of an evaluation."""
    slopes, intercepts, blocks = cuts
    n_blocks, n_variables = here.slopes.shape
    if slopes.shape[1] != n_variables or blocks.max(initial=0) >= n_blocks:
        raise InputError("the warm start's cuts are of another problem: shapes differ")
    values = (here.slopes @ here.point + here.intercepts)[blocks]
    if (slopes @ here.point + intercepts > values + 1e-9 * np.maximum(1.0, values)).any():
        raise InputError("the warm start's cuts are of another problem: they exceed this risk")
