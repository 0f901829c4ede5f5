"""The state of a cutting-plane solve, and the steps of its methods, which work on that state.

    w <- argmin_w alpha/2 ||w||^2 + model(w) + prox/2 ||w - best||^2,    model = max of the cuts

`OneSlack` takes prox = 0 and asks the oracle there (Joachims, Finley and Yu, 2009).
`ProximalBundle` adapts prox: looser where the model is right (Kiwiel, "Proximity control in bundle
methods for convex nondifferentiable minimization", Mathematical Programming 46, 1990).
`LineSearch` searches along the way to the proposal, `SampledBundle` begins on a sample.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.cut_model import ROUNDING, WIDE, CutModel
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, LineOracle, Oracle
from structsvm_papk.solvers.result import RISK_SCALE, SolverResult, Status, relative_gap
from structsvm_papk.solvers.solver import Run

_EPS = np.finfo(float).eps
_INNER = 0.3  # accuracy of the restricted problem, relative to the predicted decrease
_LEVEL_PROX = (1e-5, 1e-2)  # curvature of s: its scale is that of the risk, 1, not that of w
_FINAL = 0.1  # of the tolerance: more accuracy in the restricted problem is of no use
_SERIOUS = 0.1  # share of the predicted decrease that makes a step serious
_SMALLEST_PROX = 1e-3  # of alpha
_AHEAD = 0.1  # of the way from the best point to the proposal: where a line search cuts
_LINE_STEPS = 20
_ROUNDING = 1e-12  # a difference below this share of F is rounding
_FIRST = 1e-3  # gap of the sample's own optimum
_PAYS = 0.7  # of the gap may be left after a step of the sample, for another one
_CLOSER = 0.02  # of the gap: how exactly a tilted sample is solved
_PINNED = 1e-3  # share of the certified gap below which a predicted decrease is no progress


class BundleState(Run[SolverResult]):
    """The model with its bound, and the best point so far.

    The model's variables are z = (w, s), or z = w; see `Cuts`.
    """

    model: CutModel
    centre: Any = None  # z of the best point
    evaluation: Any = None  # the one that was accepted last
    at_zero: Any = None  # F(0) = R(0), where it was evaluated
    steeper = 1.0  # than the risk says that it is in the scores; of all cuts
    prox = 0.0  # curvature of the proximal term around the best point

    def objective(self, w: Array, risk: float) -> float:
        """``alpha/2 ||w||^2 + risk``."""
        return self.config.alpha / 2 * (w @ w) + risk

    def ask(self, w: Array, scores: Array | None = None) -> Cuts:
        """One evaluation of the oracle; of a `LineOracle` the scores may be known."""
        if scores is None or not isinstance(self.oracle, LineOracle):
            cuts = self.oracle.cuts(w)
        else:
            cuts = self.oracle.cuts_from_scores(w, scores)
        self.passes += 1
        self.steeper = max(self.steeper, cuts.steeper)
        if not (np.isfinite(cuts.value) and np.isfinite(cuts.slopes).all()):
            raise InputError(
                f"the risk is not finite at a point of norm {np.linalg.norm(w):.3g}; "
                "rescale the features"
            )
        if not w.any():
            self.at_zero = float(cuts.value)
        return cuts

    def add(self, cuts: Cuts) -> None:
        """Add the cuts of an evaluation to the model, lowered by what rounding may have added.

        The intercept ``R_j(w) - g . w`` is a difference: far out it has few digits left.
        """
        errors = cuts.errors
        if errors is None:
            product = np.abs(cuts.slopes) @ np.abs(cuts.point)
            errors = ROUNDING * (np.abs(cuts.intercepts) + 2.0 * product)
            errors += cuts.point.size * _EPS * product
        intercepts = cuts.intercepts - errors
        self.model.add(cuts.slopes, intercepts, np.arange(intercepts.size))

    def accept(self, cuts: Cuts, objective: float) -> None:
        """Take the point of an evaluation as the best one."""
        w, error = cuts.point[: self.oracle.n_features], self._error(cuts)
        # no call from here on, so that no interrupt comes between a point and its objective
        self.centre, self.evaluation = cuts.point, cuts
        self.best_w, self.best, self.best_error = w, objective, error

    def propose(self, predicted: float) -> tuple[Array, float]:
        """Minimise the model with its proximal term; w, and the decrease that is promised there.

        `predicted` is what the last proposal promised. The bound is updated.
        """
        alpha, d = self.config.alpha, self.best_w.size
        curvature = np.full(self.centre.size, alpha + self.prox, dtype=np.float64)
        loose = 0.1 * relative_gap(self.best, self.lower_bound)
        curvature[d:] = np.clip(loose, *_LEVEL_PROX)
        centre = self.centre.copy()
        centre[:d] *= self.prox / (alpha + self.prox)
        scale = max(abs(self.best), RISK_SCALE)
        wanted = min(self.best - self.lower_bound, predicted)
        target = np.clip(_INNER * 0.3 * wanted, _FINAL * self.config.tol * scale, 1e-2 * scale)
        z, value = self.model.minimise(centre, curvature, target)
        _, errors = self._rounding()
        bound = self.model.lower_bound(alpha, self.best + self.best_error, errors)
        self.lower_bound = max(self.lower_bound, bound)
        return z[:d], self.best - self.objective(z[:d], value)

    def lost_to_rounding(self) -> Array:
        """What rounding in each feature may amount to, as a share of the objective."""
        scores, slopes = self._rounding()
        sizes = np.maximum(np.abs(self.best_w), np.abs(self.model.dual_point(self.config.alpha)))
        return (scores + slopes) * sizes / max(self.best, RISK_SCALE)

    def _rounding(self):
        """`BlockOracle.rounding`, of a risk as steep as its cuts have shown it to be."""
        known = self.oracle.rounding()
        if known is None:
            return np.zeros((2, self.oracle.n_features))
        return self.steeper * known.scores, self.steeper * known.slopes

    def _error(self, cuts):
        """How far rounding may have put the objective of an evaluation off."""
        w = cuts.point[: self.oracle.n_features]
        error = (w.size + 2) * _EPS * self.config.alpha / 2 * (w @ w)
        if cuts.errors is None:  # what the sum over the blocks may have lost
            values = cuts.slopes @ cuts.point + cuts.intercepts
            error += (values.size + 2) * _EPS * np.abs(values).sum()
        elif self.oracle.rounding() is not None:
            error += cuts.errors.sum() + float(self._rounding()[0] @ np.abs(w))
        return float(error)


class OneSlack:
    """Ask the oracle at each proposal of the model; the other steps refine this one."""

    max_idle = 50  # iterations that a cut may be idle
    qp_solver = "piqp"  # the books leave the restricted problem to a general QP solver

    def start(self, state: BundleState) -> Array:
        """Where to begin without a start."""
        return np.zeros(state.oracle.n_features)

    def begin(self, state: BundleState) -> None:
        """Take note of the evaluation at the start."""

    def advance(self, state: BundleState, w: Array, predicted: float) -> None:
        """One iteration from the proposal w, where the model promises that decrease."""
        self.visit(state, w, predicted)

    def visit(self, state: BundleState, w: Array, predicted: float) -> float:
        """Ask the oracle at w, and go there if it is better; returns by how much it is."""
        cuts = state.ask(w)
        state.add(cuts)
        objective = state.objective(w, cuts.value)
        decrease = state.best - objective
        if decrease > 0.0:
            state.accept(cuts, objective)
        return decrease

    def settle(self, state: BundleState) -> None:
        """Evaluate the best point anew, where its objective is a sum of steps."""


class ProximalBundle(OneSlack):
    """Steps that are kept short as long as the model promises too much.

    `nulls` are the steps without a serious decrease since the proximal term last changed.
    """

    max_idle = 12
    qp_solver = "blocks"
    nulls = 0

    def begin(self, state: BundleState) -> None:
        """Curvature at which the first step is Polyak's for an optimum of zero."""
        alpha, w = state.config.alpha, state.best_w
        gradient = state.evaluation.slopes.sum(axis=0)[: w.size] + alpha * w
        if state.config.positive:  # no step makes a weight of zero smaller
            gradient = gradient[(w > 0.0) | (gradient < 0.0)]
        state.prox = max(10 * alpha, gradient @ gradient / max(abs(state.best), RISK_SCALE))

    def visit(self, state: BundleState, w: Array, predicted: float) -> float:
        """As `OneSlack.visit`; and a looser term after good steps, a tighter one after bad ones."""
        decrease = super().visit(state, w, predicted)
        smallest = _SMALLEST_PROX * state.config.alpha
        if decrease >= _SERIOUS * predicted:
            shrink = 0.25 if decrease >= 0.5 * predicted else 0.5
            state.prox, self.nulls = max(shrink * state.prox, smallest), 0
        elif predicted <= _PINNED * (state.best - state.lower_bound):
            # the proximal term, not the model, keeps w in place: no certificate would come of it
            state.prox = max(0.25 * state.prox, smallest)
        else:
            self.nulls += 1
            if -decrease > 3.0 * predicted or (self.nulls > 1 and -decrease > 0.5 * predicted):
                state.prox, self.nulls = 2.0 * state.prox, 0
        return decrease


class LineSearch(OneSlack):
    """The step of OCAS: an exact line search from the best point towards each proposal.

        best <- argmin over t in [0, 1] of F(best + t (proposal - best)),    cut a little further on

    Scores are linear in w, so a search costs evaluations in score space but no look at X. Franc and
    Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization", JMLR 10
    (2009). The oracle is a `LineOracle`.
    """

    qp_solver = "blocks"
    settled: Array | None = None  # the best point that was last evaluated anew
    at: Array | None = None  # the point of `scores`

    def settle(self, state: BundleState) -> None:
        """Evaluate the best point anew: its scores are a sum of steps, and so was its objective."""
        if self.settled is not state.best_w:
            cuts, before = state.oracle.cuts(state.best_w), state.best
            current = self.at is state.best_w
            state.accept(cuts, state.objective(state.best_w, cuts.value))
            self.settled = state.best_w
            if current and abs(state.best - before) <= _ROUNDING * abs(state.best):
                self.at = state.best_w

    def advance(self, state: BundleState, w: Array, predicted: float) -> None:
        """Move the best point towards w, and add the cuts a little further on."""
        oracle: Any = state.oracle  # a `LineOracle`, as `CuttingPlane` has checked
        if self.at is not state.best_w:
            self._renew(state)
        proposed = oracle.scores(w)
        direction, rise = w - state.best_w, proposed - self.scores
        t, objective = self._minimise(state, direction, oracle.along(self.scores, rise))
        if objective < state.best:
            state.best_w, state.best = state.best_w + t * direction, objective
            self._move(state, self.scores + t * rise)
        state.centre = state.best_w
        if state.clock.late():
            return
        scores = self.scores + _AHEAD * (proposed - self.scores)
        cuts = state.ask(state.best_w + _AHEAD * (w - state.best_w), scores)
        state.add(cuts)
        value = state.objective(cuts.point, cuts.value)
        if value < state.best:
            state.accept(cuts, value)
            self._move(state, scores)

    def _renew(self, state):
        """Scores of the best point from the data; sums of older ones keep the errors of larger."""
        self.at = state.best_w
        self.scores = state.oracle.scores(self.at)
        self.size = np.abs(self.scores).max()

    def _move(self, state, scores):
        """Take the scores of a new best point."""
        self.scores, self.at = scores, state.best_w
        if np.abs(scores).max() < 0.5 * self.size:
            self._renew(state)
            line = state.oracle.along(self.scores, self.scores)
            state.best = state.objective(state.best_w, line(0.0)[0])

    def _minimise(self, state, direction, line):
        """Bisect on the sign of the derivative; return t and the objective there."""
        low, high, best = 0.0, 1.0, (0.0, state.best)
        for _ in range(_LINE_STEPS):
            if state.clock.late():
                break
            t = (low + high) / 2
            risk, slope = line(t)
            point = state.best_w + t * direction
            value = state.objective(point, risk)
            if value < best[1]:
                best = (t, value)
            rises = slope + state.config.alpha * (point @ direction) >= 0.0
            low, high = (low, t) if rises else (t, high)
        return best


class SampledBundle(ProximalBundle):
    """Steps from a small sample of the risk as long as they close the gap fast, then the model's.

    Where a risk is a mean over many users and has few features, a sample R' of the users knows its
    curvature well. Then the minimiser of the sample that is tilted to the risk's slope g at the
    best point v,

        argmin_w  alpha/2 ||w||^2 + R'(w) + (g - R''s slope at v) . (w - v),

    is a Newton step but for what the sample does not know, and costs a fraction of one evaluation.
    Shamir, Srebro, Zhang, "Communication-efficient distributed optimization using an approximate
    Newton-type method", ICML 2014.
    """

    def __init__(self, sample: Oracle) -> None:
        self.sample: Any = sample
        self._gap = np.inf

    def start(self, state: BundleState) -> Array:
        """The optimum of the sample."""
        return _minimum(self.sample, state, None, _FIRST)

    def begin(self, state: BundleState) -> None:
        """Hardly any curvature: at first the model is asked for its bound alone."""
        state.prox = _SMALLEST_PROX * state.config.alpha

    def advance(self, state: BundleState, w: Array, predicted: float) -> None:
        """One step of the sample, or from the proposal w of the model."""
        if self.sample is not None:
            gap, before = relative_gap(state.best, state.lower_bound), self._gap
            self._gap = gap
            if not gap > _PAYS * before:
                # no step of the proximal bundle: its term is not adapted to these
                super(ProximalBundle, self).visit(state, self._newton_step(state, gap), predicted)
                return
            self.sample = None
            super().begin(state)
        self.visit(state, w, predicted)

    def _newton_step(self, state, gap):
        """The step from the best point."""
        origin = state.best_w
        slope = state.evaluation.slopes.sum(axis=0)[: origin.size]
        tilted = _Tilted(self.sample, slope - self.sample(origin)[1], origin)
        return _minimum(
            tilted, state, origin, min(max(_CLOSER * gap, 0.1 * state.config.tol), _FIRST)
        )


def _minimum(oracle, state, start, tol):
    config = replace(state.config, tol=tol, n_blocks=None, time_limit=state.clock.left())
    result = config.solve(oracle, start)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result.w


class _Tilted(BlockOracle):
    """A risk plus ``tilt . (w - origin)``."""

    def __init__(self, risk: Oracle, tilt: Array, origin: Array, n_blocks: int = 1) -> None:
        self._risk, self._tilt, self._origin = risk.with_blocks(n_blocks), tilt, origin
        self.n_features, self.n_blocks = risk.n_features, self._risk.n_blocks

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        return _Tilted(self._risk, self._tilt, self._origin, n_blocks)

    def cuts(self, w: Array) -> Cuts:
        cuts, share = self._risk.cuts(w), self._tilt / self.n_blocks
        risen = float(self._tilt @ (w - self._origin))
        intercepts = cuts.intercepts - share @ self._origin
        return replace(
            cuts, value=cuts.value + risen, slopes=cuts.slopes + share, intercepts=intercepts
        )

    def blocks(self, w: Array) -> tuple[Array, Array]:
        cuts = self.cuts(w)
        return cuts.slopes @ w + cuts.intercepts, cuts.slopes


def default_blocks(oracle: Oracle) -> int:
    """About two cuts a feature and iteration, as long as they stay small beside the data.

    More where steps come from a sample: these are few, and their cuts alone have to make the bound.
    """
    if oracle.n_features > WIDE:  # the restricted problem grows with the cuts, not the features
        affordable = max(1, (8 << 20) // (8 * oracle.n_features))
        return int(min(20, affordable))
    sampled = isinstance(oracle, BlockOracle) and oracle.sample is not None
    least = 400 if sampled else 32
    return int(min(max(2 * oracle.n_features, least), 400))
