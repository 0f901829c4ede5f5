"""Sign-flip sums for the paired permutation test.

scipy's `permutation_test` gives the same test, but shuffles whole arrays: minutes for 100,000
users where this takes seconds.
"""

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array

_BATCH_WORDS = 1 << 20


@kernel
def flipped_sums(differences: Array, bits: Array, out: Array) -> None:
    """out[r] = sum_i +-differences[i], minus where bit i of bits[r] is set."""
    n = differences.size
    for r in range(out.size):
        total = 0.0
        for word in range(bits.shape[1]):
            left = bits[r, word]
            start = 64 * word
            for i in range(start, min(start + 64, n)):
                sign = 1.0 - 2.0 * np.float64(left & np.uint64(1))
                total += sign * differences[i]
                left >>= np.uint64(1)
        out[r] = total


def null_sums(differences: Array, n_resamples: int, seed: int) -> tuple[Array, bool]:
    """Sums under random signs; every sign pattern once where there are not more than asked for.

    Also returns whether all patterns were enumerated.
    """
    n = differences.size
    if n < 63 and 2**n <= n_resamples:
        bits = np.arange(2**n, dtype=np.uint64)[:, None]
        sums = np.empty(2**n)
        flipped_sums(differences, bits, sums)
        return sums, True
    rng = np.random.default_rng(seed)
    words = -(-n // 64)
    sums = np.empty(n_resamples)
    batch = max(1, _BATCH_WORDS // words)
    for start in range(0, n_resamples, batch):
        part = sums[start : start + batch]
        bits = rng.integers(0, 2**64, (part.size, words), dtype=np.uint64)
        flipped_sums(differences, bits, part)
    return sums, False


def sign_flip_p_value(differences: Array, n_resamples: int, seed: int) -> float:
    """Two-sided p-value of sum(differences) when each sign is a fair coin.

    Twice the smaller tail, at most 1; random signs count the observed ones as one more draw, so
    that the test is valid (Phipson and Smyth 2010).
    """
    differences = np.ascontiguousarray(differences[differences != 0])
    if not differences.size:
        return 1.0
    observed = differences.sum()
    sums, exact = null_sums(differences, n_resamples, seed)
    slack = 1e-12 * np.abs(differences).sum()
    extra = 0 if exact else 1
    above = np.count_nonzero(sums >= observed - slack) + extra
    below = np.count_nonzero(sums <= observed + slack) + extra
    return float(min(1.0, 2 * min(above, below) / (sums.size + extra)))
