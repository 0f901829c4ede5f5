"""The smallest training depth at which w = 0 is not the optimum.

With m_u <= m'_u negatives counted, a surrogate is nowhere below itself at m'_u, and 1 at w = 0 for
both: where zero is optimal at a depth it is so at every smaller one (docs/math/depth.md). So the
critical depth is found by bisection with the test at zero, without training.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from structsvm_papk._types import Array
from structsvm_papk.diagnosis.convex_test import Coordinates, Verdict
from structsvm_papk.diagnosis.zero_test import falls_along, test_at_zero
from structsvm_papk.errors import check_type
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk

_TOL = 1e-6  # of the distance of zero from the subdifferential


@dataclass(frozen=True)
class CriticalDepth:
    """Answer of `critical_depth`.

    Attributes
    ----------
    surrogate : str
    k : int
    degenerate_to : int
        Depth up to which w = 0 is optimal for every alpha, to the tolerance of the test; 0 if it is
        not even at depth k.
    informative_from : int or None
        Depth from which w = 0 is not optimal, proved by a direction; None where none was found.
    deepest : int
        Largest number of negatives of a user: all negatives count from there on.
    direction : ndarray or None
        Along which the surrogate falls from zero at depth `informative_from`.
    """

    surrogate: str
    k: int
    degenerate_to: int
    informative_from: int | None
    deepest: int
    direction: Array | None = field(default=None, repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether no depth is left undecided."""
        end = self.deepest + 1 if self.informative_from is None else self.informative_from
        return max(self.degenerate_to, min(self.k, self.deepest) - 1) >= end - 1

    def as_dict(self) -> dict[str, int | bool | str | None]:
        """Plain values for JSON."""
        names = ("surrogate", "k", "degenerate_to", "informative_from", "deepest")
        return {name: getattr(self, name) for name in names} | {"exact": self.is_exact}

    def __str__(self) -> str:
        if self.informative_from is None:
            proved = f"up to {self.degenerate_to}" if self.degenerate_to else "nowhere proved"
            return (
                f"{self.surrogate}: no depth was found at which w = 0 is not optimal "
                f"(optimal {proved}, all negatives are {self.deepest})"
            )
        if self.informative_from == self.k:
            return f"{self.surrogate}: w = 0 is not optimal at depth k={self.k} already"
        kind = "critical depth" if self.is_exact else "critical depth at most"
        return f"{self.surrogate}: {kind} {self.informative_from} (of {self.deepest})"


def critical_depth(risk: EmpiricalRisk) -> CriticalDepth:
    """Find the smallest depth m >= k at which w = 0 does not minimise a risk.

    Every user counts ``min(m, n_neg)`` negatives; the depth of the risk's own surrogate does not
    enter.

    Parameters
    ----------
    risk : EmpiricalRisk
        Of any surrogate but 'ts_alg2'.

    References
    ----------
    docs/math/depth.md, "Degeneracy is monotone in the depth".
    """
    check_type("risk", risk, EmpiricalRisk, "an EmpiricalRisk, which has all data in one place")
    k = risk.surrogate.k
    deepest = int(risk.data.n_neg.max())
    degenerate_to = 0
    informative_from = None
    direction = None
    coordinates = Coordinates(risk.data)
    # the answer is in low, .., high; high: none
    low = min(k, deepest)
    high = deepest + 1
    m = low  # the depth of the paper first
    while low < high:
        surrogate = replace(risk.surrogate, depth=max(m, k))
        at_m = EmpiricalRisk(surrogate, risk.data, "cap", n_threads=risk.n_threads)
        verdict = Verdict.INFORMATIVE
        if direction is None or not at_m.convex or not falls_along(at_m, direction):
            test = test_at_zero(at_m, _TOL, coordinates=coordinates)
            verdict = test.verdict
            if test.direction is not None:
                direction = test.direction
        if verdict is Verdict.INFORMATIVE:
            high = informative_from = m
        else:
            if verdict is Verdict.DEGENERATE:
                degenerate_to = m
            low = m + 1
        m = (low + high) // 2
    name = risk.surrogate.name
    return CriticalDepth(name, k, degenerate_to, informative_from, deepest, direction)
