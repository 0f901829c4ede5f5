"""Whether the cuts of an earlier result are cuts of the risk that is minimised now."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, Oracle


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
    if (n_blocks, layout) == (oracle.n_blocks, oracle.layout) and given.is_same(risk):
        return
    advice = ""
    if given.fingerprint() is None:
        advice = "; without a fingerprint() it is known by its object only: give w_init=result.w"
    raise InputError(
        f"the warm start's cuts are of another problem: the risk or its blocks differ{advice}"
    )


def refuse_too_high(cuts: tuple[Array, Array, Array], here: Cuts) -> None:
    """Refuse cuts of another shape, or above the risk at the point of an evaluation."""
    slopes, intercepts, blocks = cuts
    n_blocks, n_variables = here.slopes.shape
    if slopes.shape[1] != n_variables or blocks.max(initial=0) >= n_blocks:
        raise InputError("the warm start's cuts are of another problem: shapes differ")
    values = (here.slopes @ here.point + here.intercepts)[blocks]
    if (slopes @ here.point + intercepts > values + 1e-9 * np.maximum(1.0, values)).any():
        raise InputError("the warm start's cuts are of another problem: they exceed this risk")
