"""The textbook step: cut where the model has its minimiser (Joachims, Finley and Yu, 2009)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

import numpy as np

if TYPE_CHECKING:
    from structsvm_papk._types import Array
    from structsvm_papk.solvers.cutting_plane_run import CuttingPlaneRun
    from structsvm_papk.solvers.oracle import Cuts


class OneSlack:
    """Ask the oracle at each proposal of the model; the other steps refine this one.

    `prox` is the curvature of the proximal term around the best point, `nulls` the steps without a
    serious decrease since it last changed.
    """

    max_idle = 50  # iterations that a cut may be idle
    qp_solver = "piqp"  # the books leave the restricted problem to a general QP solver

    def __init__(self, run: CuttingPlaneRun) -> None:
        self.run: CuttingPlaneRun = proxy(run)  # a cycle would keep the risk's data for a while
        self.prox, self.nulls = 0.0, 0

    def start(self) -> Array:
        """Where to begin without a start."""
        return np.zeros(self.run.oracle.n_features)

    def begin(self, cuts: Cuts) -> None:
        """Take note of the evaluation at the start."""

    def advance(self, w: Array, predicted: float) -> None:
        """One iteration from the proposal w, where the model promises that decrease."""
        self.visit(w, predicted)

    def visit(self, w: Array, predicted: float) -> float:
        """Ask the oracle at w, and go there if it is better; returns by how much it is."""
        run = self.run
        cuts = run.ask(w)
        run.add(cuts)
        objective = run.objective(w, cuts.value)
        decrease = run.best - objective
        if decrease > 0.0:
            run.accept(cuts, objective)
        return decrease

    def settle(self) -> None:
        """Evaluate the best point anew, where its objective is a sum of steps."""
