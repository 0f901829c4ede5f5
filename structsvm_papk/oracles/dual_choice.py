"""Which dual blocks a risk has, and whether ascent on them pays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from structsvm_papk.oracles.cut_blocks import CutBlocks, restricted
from structsvm_papk.oracles.user_blocks import AverageBlocks, UserBlocks, gram_bytes
from structsvm_papk.surrogates.convex import PAUC, TS, Avg, Max

if TYPE_CHECKING:
    from structsvm_papk.oracles.list_risk import ListRisk
    from structsvm_papk.surrogates import Surrogate

_FEATURES, _USERS = 1000, 20  # from which on the ascent was faster, see docs/benchmarks.md
_TYPICAL = 8  # negatives that come to be active for each that counts
_GRAM_BYTES = 1 << 29  # of Avg: where its matrices may need more, cuts take less


def blocks_of(
    risk: ListRisk, alpha: float, start: Any = None, room: float = np.inf
) -> UserBlocks | None:
    """The users of a risk as blocks of its dual; None where the surrogate is not one of ours.

    `room` limits the bytes of Gram matrices, down to a few cuts a user.
    """
    if type(risk.surrogate) is Avg and gram_bytes(risk) <= min(_GRAM_BYTES, room):
        return AverageBlocks(risk, alpha, start)
    if restricted(risk.surrogate, 0, np.arange(risk.data.sizes[0]), 1) is None:
        return None
    return CutBlocks(risk, alpha, start, room)


def ascent_pays(risk: ListRisk, alpha: float) -> bool:
    """Whether the ascent is likely to be faster than cutting planes.

    It is for CSR data with a thousand features or more and twenty users or more. On dense data, or
    with few features, users share what they depend on, and cutting planes need few passes.
    """
    data = risk.data
    if not sparse.issparse(data.X) or data.n_features < _FEATURES or data.n_users < _USERS:
        return False
    return restricted(risk.surrogate, 0, np.arange(data.sizes[0]), 1) is not None


def known(surrogate: Surrogate) -> bool:
    """Whether a surrogate of whole lists has dual blocks; majorants are of their own rows."""
    return type(surrogate) in (Avg, Max, PAUC, TS)


def ascent_pays_in_parts(surrogate: Surrogate, summaries: Sequence[Any]) -> bool:
    """The same for data in partitions, of which the active rows come to this process.

    So they must be fewer than half of the rows: a user's positives and some negatives for each that
    counts.
    """
    n_users, n_rows = (
        sum(getattr(each, name) for each in summaries) for name in ("n_used", "n_rows")
    )
    if not (known(surrogate) and all(each.sparse for each in summaries)):
        return False
    if summaries[0].n_features < _FEATURES or n_users < _USERS:
        return False
    n_pos = sum(np.prod(each.positives, axis=0).sum() for each in summaries)
    n_pos *= n_users / sum(each.weight for each in summaries)
    n_neg = (n_rows - n_pos) / n_users
    return bool(n_pos + _TYPICAL * n_users * surrogate.depth_of_list(int(n_neg)) <= n_rows / 2)
