"""The logistic loss, which starting points minimise."""

import numpy as np
from scipy.special import expit

from structsvm_papk._types import Array


def logistic_loss(margins: Array, weights: Array) -> tuple[float, Array]:
    """``sum_r v_r log(1 + exp(-m_r))`` and its derivatives in the margins m."""
    return float(weights @ np.logaddexp(0.0, -margins)), -weights * expit(-margins)
