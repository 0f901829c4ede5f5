"""Convex majorants of Ramp and ClippedRamp at a point, for the convex-concave procedure.

One user's list, with ``h^m_i = sum_{j<=m} (m - p_i + q_(j))_+``, the hinges of positive i at margin
m against the m best negatives. ``h^m_i`` is convex in the scores: it is the maximum over m-subsets
of negatives of a sum of hinges. It decreases in p_i, so the beta best positives are those with the
beta smallest ``h^m_i``, whatever m is. With sets Z of beta positives, ``G^m = max_Z sum_{i not in
Z} h^m_i``, and up to the factor 1/(beta m):

    Ramp        = min_Z sum_{i in Z} h^1_i = sum_i h^1_i - G^1
    ClippedRamp = min_Z max_J sum_{i in Z} sum_{j in J} c(p_i - q_j),   c(z) = min(1, (1 - z)_+)
                = min_Z sum_{i in Z} (h^1_i - h^0_i) = (sum_i h^1_i + G^0) - (sum_i h^0_i + G^1)

(c decreases, so the beta best positives and the m best negatives J solve the min and the max.)
``lin`` is a linear minorant of a convex function, tight at the point w_t; Z_t and J_t are the best
positives and negatives there. Each majorant is convex, nowhere below the surrogate, tight at w_t:

`latent`
    Ramp: ``sum_{i in Z_t} h^1_i``. A minimum is at most its value at Z_t.
    ClippedRamp: ``max_J sum_{j in J} sum_{i in Z_t} m_ij`` with ``m_ij = 1`` for the pairs that are
    clipped at w_t (p_i < q_j, all negatives j counted) and ``(1 - p_i + q_j)_+`` for the others.
    Each ``m_ij >= c(p_i - q_j)``, and the maximum over J keeps the order; ``m_ij = c`` at w_t.
`mixed`
    Ramp: the same. ClippedRamp: ``sum_{i in Z_t} h^1_i - lin(sum_{i in Z_t} h^0_i)``.
`linearised`
    Ramp: ``sum_i h^1_i - lin(G^1)``.
    ClippedRamp: ``sum_i h^1_i + G^0 - lin(sum_i h^0_i) - lin(G^1)``.

``mixed <= linearised`` everywhere, since ``h^m_i - lin(h^m_i) >= 0`` for the positives outside Z_t
and ``G^0 >= sum_{i not in Z_t} h^0_i``; ``latent`` and ``mixed`` are not ordered for ClippedRamp.
Where every user has n_pos <= k, Ramp is convex and all three are Ramp itself.

Sources: Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003);
Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006 (the clipped hinge);
Yu and Joachims, "Learning structural SVMs with latent variables", ICML 2009.
"""

import numpy as np

from structsvm_papk.errors import InputError
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.oracle import Rounding
from structsvm_papk.surrogates import _majorant_kernels as kernels
from structsvm_papk.surrogates.base import ClippedRamp, Ramp, Surrogate

KINDS = ("latent", "mixed", "linearised")


def majorant(risk, w, kind="latent"):
    """Return the majorant of a Ramp or ClippedRamp risk at w, tight there.

    Parameters
    ----------
    risk : EmpiricalRisk
    w : ndarray of shape (n_features,)
    kind : {'latent', 'mixed', 'linearised'}

    Returns
    -------
    Majorant

    Raises
    ------
    InputError
        Another surrogate, or an unknown kind.
    """
    check_majorant(risk.surrogate, kind)
    scores = risk.scores(w)
    if kind == "latent":
        return Majorant(latent(risk, scores), risk)
    frozen = _Frozen(risk, scores)
    make = _linearised if kind == "linearised" else _mixed
    return Majorant(make(frozen, isinstance(risk.surrogate, ClippedRamp)), risk)


def latent(risk, scores):
    """The surrogate of the latent majorant, frozen at these scores."""
    frozen = _Frozen(risk, scores)
    if isinstance(risk.surrogate, ClippedRamp):
        return FrozenPairs(frozen)
    return _mixed(frozen, clipped=False)


def check_majorant(surrogate, kind):
    """Refuse surrogates without majorants, and unknown kinds."""
    if kind not in KINDS:
        raise InputError(f"unknown majorant {kind!r}; choose from {', '.join(KINDS)}")
    if not isinstance(surrogate, Ramp | ClippedRamp):
        raise InputError(
            f"surrogate {surrogate.name!r} has no majorant here; CCCP is for 'ramp' and "
            "'clipped_ramp'" + (", CuttingPlane for convex ones" if surrogate.convex else "")
        )


class Majorant(EmpiricalRisk):
    """A convex risk that is nowhere below another one and tight at one point."""

    def __init__(self, surrogate, risk):
        super().__init__(surrogate, risk.data, "cap", risk.n_blocks, risk.n_threads)
        always = isinstance(risk.surrogate, Ramp) and (risk.data.n_pos <= risk.surrogate.k).all()
        self.exact = bool(always)  # the majorant is the risk itself
        self._n_reused = 0  # how often linear terms in cuts were changed

    def rounding(self):
        """As for the risk; cuts that were carried over had their linear terms changed as often."""
        bound = super().rounding()
        return Rounding(bound.scores, (1 + self._n_reused) * bound.slopes)

    def comparable(self, previous):
        """Whether another majorant is of the same kind, so that its cuts can be of use."""
        return type(self.surrogate) is type(previous.surrogate)

    def reuse(self, previous, cuts):
        """The cuts of an earlier majorant that are cuts of this one.

        A block keeps its cuts where what was frozen is the same in all its users; a linear term
        that differs is moved from one to the other. The other blocks get the cut 0: a majorant of a
        risk that is nowhere negative.

        Parameters
        ----------
        previous : Majorant
            Of the same risk and kind.
        cuts : tuple of ndarray
            ``(slopes, intercepts, blocks)``.

        Returns
        -------
        tuple of ndarray
            None where the other one is of another kind.
        """
        if not self.comparable(previous):
            return None
        slopes, intercepts, blocks = cuts
        changed = self.surrogate.changed_positions(previous.surrogate)
        per_block = np.add.reduceat(changed, self.data.indptr[self._user_bounds[:-1]])
        keep = per_block[blocks] == 0
        slopes, intercepts, blocks = slopes[keep], intercepts[keep], blocks[keep]
        if self.surrogate.linear is not None and keep.any():
            self._n_reused = previous._n_reused + 1
            shift, constants = self._linear_term()
            old_shift, old_constants = previous._linear_term()
            slopes = slopes + (shift - old_shift)[blocks]
            intercepts = intercepts + (constants - old_constants)[blocks]
        empty = np.flatnonzero(per_block)  # these get the cut 0, as the risk is nowhere negative
        return (
            np.concatenate([slopes, np.zeros((empty.size, slopes.shape[1]))]),
            np.concatenate([intercepts, np.zeros(empty.size)]),
            np.concatenate([blocks, empty]),
        )

    def _linear_term(self):
        """Slope and constant of each block's linear term."""
        term = EmpiricalRisk(
            _Linear(self.surrogate), self.data, "cap", self.n_blocks, self.n_threads
        )
        constants, slopes = term.blocks(np.zeros(self.n_features))
        return slopes, constants


class _Frozen:
    """What a majorant may freeze, at given scores."""

    def __init__(self, risk, scores):
        data = risk.data
        self.k, self.depth = risk.surrogate.k, risk.surrogate.depth
        self.data, self.scores = data, scores
        self.chosen = np.zeros(scores.size, dtype=bool)
        self.order = np.zeros(scores.size, dtype=np.int64)
        self.rank = np.zeros(scores.size, dtype=np.int64)
        self.n_free = np.zeros(scores.size, dtype=np.int64)
        self.linear, self.constants = np.zeros(scores.size), np.zeros(data.n_users)
        kernels.freeze(
            scores,
            data.indptr,
            data.n_pos,
            self.k,
            risk.surrogate.counted,
            self.chosen,
            self.order,
            self.rank,
            self.n_free,
        )

    def subtract(self, margin, rest):
        """Take off the linear minorant of the hinges of the chosen positives or of the rest."""
        data = self.data
        kernels.hinge_slopes(
            self.scores,
            data.indptr,
            data.n_pos,
            self.k,
            self.chosen,
            float(margin),
            rest,
            self.linear,
            self.constants,
            -1.0,
        )


def _mixed(frozen, clipped):
    if clipped:
        frozen.subtract(0, rest=False)
    return FrozenHinges(frozen, frozen.chosen & frozen.data.labels, rest_at_zero=False)


def _linearised(frozen, clipped):
    frozen.subtract(1, rest=True)
    if clipped:
        frozen.subtract(0, rest=False)
        frozen.subtract(0, rest=True)
    return FrozenHinges(frozen, frozen.data.labels, rest_at_zero=clipped)


class FrozenHinges(Surrogate):
    """Hinges of marked positives against the top-k negatives, plus a linear term. Convex."""

    name = "frozen_hinges"
    shift_invariant = True

    def __init__(self, frozen, rows, rest_at_zero):
        vars(self).update(k=frozen.k, depth=frozen.depth)
        vars(self).update(rows=rows, rest_at_zero=rest_at_zero)
        vars(self).update(linear=frozen.linear, constants=frozen.constants)

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        """Value of each user's majorant, and a subgradient."""
        kernels.frozen_hinges(
            scores,
            indptr,
            n_pos,
            self.k,
            self.counted,
            self.rows,
            self.rest_at_zero,
            self.linear,
            self.constants,
            first,
            last,
            values,
            coef,
        )

    def selection(self):
        """What was selected, by position."""
        return self.rows

    def steepness(self, n_pos):
        """Of two sums of hinges and of two linear terms."""
        return 4.0 * super().steepness(n_pos)

    def changed_positions(self, other):
        """Positions where the convex part differs."""
        return (self.rows != other.rows).astype(np.int64)


class FrozenPairs(Surrogate):
    """ClippedRamp with its best positives and its clipped pairs frozen. Convex."""

    name = "frozen_pairs"
    shift_invariant = True
    linear = None

    def __init__(self, frozen):
        vars(self).update(k=frozen.k, depth=frozen.depth)
        vars(self).update(order=frozen.order, rank=frozen.rank, n_free=frozen.n_free)

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        """Value of each user's majorant, and a subgradient."""
        kernels.frozen_pairs(
            scores,
            indptr,
            n_pos,
            self.k,
            self.counted,
            self.order,
            self.n_free,
            first,
            last,
            values,
            coef,
        )

    def selection(self):
        """What was selected, by position: ranks of positives, counts of unclipped pairs."""
        return np.concatenate([self.rank, self.n_free])

    def changed_positions(self, other):
        """Positions where what is frozen differs."""
        return ((self.n_free != other.n_free) | (self.rank != other.rank)).astype(np.int64)


class _Linear(Surrogate):
    """The linear term of a majorant as a surrogate of its own."""

    name = "linear"
    shift_invariant = True

    def __init__(self, frozen):
        vars(self).update(k=frozen.k, depth=frozen.depth)
        vars(self).update(linear=frozen.linear, constants=frozen.constants)

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        """The linear term of each user, and its coefficients."""
        rows = slice(indptr[first], indptr[last])
        products = self.linear[rows] * scores[rows]
        values[first:last] = self.constants[first:last]
        values[first:last] += np.add.reduceat(products, indptr[first:last] - indptr[first])
        coef[rows] = self.linear[rows]
