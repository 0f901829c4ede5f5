"""Which dual blocks a risk has, and whether ascent on them pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from structsvm_papk.oracles.cut_blocks import CutBlocks
from structsvm_papk.oracles.user_blocks import AverageBlocks, UserBlocks, gram_bytes
from structsvm_papk.surrogates.list_terms import MeanThreshold

if TYPE_CHECKING:
    from structsvm_papk.oracles.list_risk import ListRisk

_FEATURES, _USERS = 1000, 20  # from which on the ascent was faster, see docs/benchmarks.md
_GRAM_BYTES = 1 << 29  # of Avg: where its matrices may need more, cuts take less


def blocks_of(risk: ListRisk, alpha: float, start: Any = None) -> UserBlocks | None:
    """The users of a risk as blocks of its dual; None where its surrogate knows no short lists."""
    is_avg = isinstance(risk.surrogate.list_terms(1, 1), MeanThreshold)
    if is_avg and gram_bytes(risk) <= _GRAM_BYTES:
        return AverageBlocks(risk, alpha, start)
    return CutBlocks(risk, alpha, start) if _restricts(risk) else None


def ascent_pays(risk: ListRisk, alpha: float) -> bool:
    """Whether the ascent is likely to be faster than cutting planes.

    It is for CSR data with a thousand features or more and twenty users or more. On dense data, or
    with few features, users share what they depend on, and cutting planes need few passes.
    """
    data = risk.data
    if not sparse.issparse(data.X) or data.n_features < _FEATURES or data.n_users < _USERS:
        return False
    return _restricts(risk)


def _restricts(risk):
    return risk.surrogate.restricted(np.arange(risk.data.sizes[0]), 1) is not None
