"""What an evaluation on sampled negatives estimates; proofs on `docs/math/sampled.md`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are first used

from structsvm_papk._types import Array
from structsvm_papk.bounds.checks import checked_sizes
from structsvm_papk.errors import InputError, whole_number


@dataclass(frozen=True)
class SampledTarget:
    """What the mean of risk_k over samples of the negatives is on the full list.

    It is ``(1/beta) sum_{i <= beta} sum_j weights[j-1] 1[p_(i) <= q_(j)]``: a soft risk at
    `effective_k` negatives, `off` away from the risk there at most, which occurs.
    """

    k: int
    n_neg: int
    n_sampled: int
    weights: Array

    @property
    def effective_k(self) -> int:
        """The cut-off ``k n_neg / n_sampled`` on the full list, rounded."""
        return max(1, round(self.k * self.n_neg / self.n_sampled))

    @property
    def off(self) -> float:
        """Total variation between the weights and 1/K each on the K = `effective_k` first."""
        hard = (np.arange(self.n_neg) < self.effective_k) / self.effective_k
        return float(np.abs(self.weights - hard).sum() / 2)

    @property
    def off_from_k(self) -> float:
        """The same for the risk at k itself, for which it is often taken."""
        hard = (np.arange(self.n_neg) < self.k) / self.k
        return float(np.abs(self.weights - hard).sum() / 2)

    def as_dict(self) -> dict[str, Any]:
        """As plain values; places by the share of weight that is above them."""
        above = np.cumsum(self.weights)
        places = {
            f"place_{share:.0%}": int(np.searchsorted(above, share - 1e-12)) + 1
            for share in (0.5, 0.95)
        }
        names = ("k", "n_neg", "n_sampled", "effective_k", "off", "off_from_k")
        return {name: getattr(self, name) for name in names} | places


def sampled_target(n_neg: int, n_sampled: int, k: int) -> SampledTarget:
    """The `SampledTarget` of risk_k on `n_sampled` of `n_neg` negatives and all positives.

    The samples are uniform, without replacement. The j-th best negative has the weight
    ``n_sampled / (k n_neg) P(H < k)``, H the number of the j - 1 better ones among the n_sampled -
    1 others that are drawn (hypergeometric).

    Raises
    ------
    InputError
        Sizes that are no whole numbers, ``k > n_sampled`` or ``n_sampled > n_neg``.
    """
    n_neg, n_sampled = whole_number("n_neg", n_neg), whole_number("n_sampled", n_sampled)
    _, _, k = checked_sizes(1, n_sampled, k)
    if n_sampled > n_neg:
        raise InputError(f"n_sampled = {n_sampled}, but there are {n_neg} negatives")
    better = np.arange(n_neg)
    few = scipy.stats.hypergeom.cdf(k - 1, n_neg - 1, better, n_sampled - 1)
    return SampledTarget(k, n_neg, n_sampled, n_sampled / (k * n_neg) * few)
