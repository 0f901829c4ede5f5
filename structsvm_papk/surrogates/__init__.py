"""Losses of a user's scores that stand in for the pAp@k risk, and their convex majorants.

They see scores only, never features: kernels over list positions, classes that declare what may be
relied on. May import `errors`, `_types` and `_sorting`.
"""

from difflib import get_close_matches

from structsvm_papk.errors import InputError
from structsvm_papk.surrogates.base import Surrogate
from structsvm_papk.surrogates.checking import check_surrogate
from structsvm_papk.surrogates.convex import PAUC, TS, Avg, Max
from structsvm_papk.surrogates.ramp import ClippedRamp, Ramp, TSAlg2

__all__ = [
    "SURROGATES",
    "Surrogate",
    "check_surrogate",
    "make_surrogate",
]

SURROGATES = {cls.name: cls for cls in (Avg, Max, TS, TSAlg2, PAUC, Ramp, ClippedRamp)}
CONVEX = tuple(name for name, cls in SURROGATES.items() if cls.convex)


def make_surrogate(name: str, k: int, depth: int | float | None = None) -> Surrogate:
    """Return the surrogate called `name` at `k` and a training depth.

    Parameters
    ----------
    name : {'avg', 'max', 'ts', 'ts_alg2', 'pauc', 'ramp', 'clipped_ramp'}
    k : int
        Number of recommended items.
    depth : int, float or None
        Negatives that count, see `Surrogate`.

    Raises
    ------
    InputError
        Unknown name, k that is not a whole number of at least 1, or a depth that is neither a
        whole number of at least k nor a share between 0 and 1.
    """
    if not isinstance(name, str) or name not in SURROGATES:
        close = get_close_matches(str(name), SURROGATES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        if isinstance(name, type) and issubclass(name, Surrogate):
            hint = f", or give an object: {name.__name__}(k=..)"
        raise InputError(f"unknown surrogate {name!r}: choose from {', '.join(SURROGATES)}{hint}")
    return SURROGATES[name](k, depth=depth)
