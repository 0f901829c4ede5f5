"""Steps of a cutting-plane method from a small sample of the risk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.solvers.bundle import SMALLEST_PROX, Bundle, Proximal, Step
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, Oracle
from structsvm_papk.solvers.result import relative_gap

_FIRST = 1e-3  # gap of the sample's own optimum
_PAYS = 0.7  # of the gap may be left after a step of the sample, for another one
_CLOSER = 0.02  # of the gap: how exactly a tilted sample is solved


class SampledSteps(Step):
    """Steps from a small sample of the risk as long as they close the gap fast, then the model's.

    Where a risk is a mean over many users and has few features, a sample R' of the users knows its
    curvature well. Then the minimiser of the sample that is tilted to the risk's slope g at the
    best point v,

        argmin_w  alpha/2 ||w||^2 + R'(w) + (g - R''s slope at v) . (w - v),

    is a Newton step but for what the sample does not know, and costs a fraction of one evaluation.
    Shamir, Srebro, Zhang, "Communication-efficient distributed optimization using an approximate
    Newton-type method", ICML 2014.
    """

    max_idle = Proximal.max_idle

    def __init__(self, sample: Oracle) -> None:
        self.sample: Any = sample
        self.pays = True  # as long as its steps close the gap fast
        self.gap = np.inf  # before the last of them
        self.proximal = Proximal()  # takes over

    def start(self, bundle: Bundle) -> Array:
        """The optimum of the sample."""
        return _minimum(self.sample, bundle, None, _FIRST)

    def begin(self, bundle: Bundle) -> None:
        """Hardly any curvature: at first the model is asked for its bound alone."""
        bundle.prox = SMALLEST_PROX * bundle.config.alpha

    def advance(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """One step of the sample, or from the proposal w of the model."""
        if self.pays:
            before = self.gap
            self.gap = relative_gap(bundle.best, bundle.lower_bound)
            self.pays = not self.gap > _PAYS * before
            if self.pays:
                bundle.try_point(self._newton_step(bundle))
                return
            self.proximal.begin(bundle)
        self.proximal.advance(bundle, w, predicted)

    def try_point(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """As the model's own steps do."""
        self.proximal.try_point(bundle, w, predicted)

    def _newton_step(self, bundle):
        """The step from the best point."""
        origin = bundle.best_w
        slope = bundle.evaluation.slopes.sum(axis=0)[: origin.size]
        tilted = Tilted(self.sample, slope - self.sample(origin)[1], origin)
        tol = min(max(_CLOSER * self.gap, 0.1 * bundle.config.tol), _FIRST)
        return _minimum(tilted, bundle, origin, tol)


def _minimum(oracle, bundle, start, tol):
    config = replace(bundle.config, tol=tol, n_blocks=None, time_limit=bundle.clock.left())
    return config.solve(oracle, start).w


class Tilted(BlockOracle):
    """A risk plus ``tilt . (w - origin)``."""

    def __init__(self, risk: Oracle, tilt: Array, origin: Array, n_blocks: int = 1) -> None:
        self.n_features = risk.n_features
        self._risk = risk.with_blocks(n_blocks)
        self._tilt = tilt
        self._origin = origin
        self.n_blocks = self._risk.n_blocks

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """The same in blocks, each with its share of the tilt."""
        return Tilted(self._risk, self._tilt, self._origin, n_blocks)

    def cuts(self, w: Array) -> Cuts:
        """The risk's cuts, tilted."""
        cuts = self._risk.cuts(w)
        share = self._tilt / self.n_blocks
        risen = float(self._tilt @ (w - self._origin))
        return replace(
            cuts,
            value=cuts.value + risen,
            slopes=cuts.slopes + share,
            intercepts=cuts.intercepts - share @ self._origin,
        )

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Values and slopes from the cuts."""
        cuts = self.cuts(w)
        return cuts.slopes @ w + cuts.intercepts, cuts.slopes
