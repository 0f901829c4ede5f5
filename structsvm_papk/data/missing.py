"""Shim until the merge."""

from structsvm_papk.data import user_scaling as _old
from structsvm_papk.data.user_scaling import Completed, OneListColumns


class LowestInTraining(OneListColumns):
    @classmethod
    def of(cls, lists, missing):
        return OneListColumns.of(lists, None, missing)


def completed_rows(X, groups, missing=None, one_list=None):
    return _old.completed_rows(X, groups, None, missing, one_list)


def filled_lists(lists, missing=None, columns=None, one_list=None):
    return _old.scaled_lists(lists, None, missing, columns, one_list)


def _columns_and_weights(self, w, missing_coef, knots):
    import numpy as np

    from structsvm_papk.data.piecewise import PiecewiseColumns

    X = self.X
    if self.holes is None:
        return (X if knots is None else PiecewiseColumns(X, knots)), w
    X = np.hstack([X, self.holes])
    n = missing_coef.size
    w = np.concatenate([w[:n], missing_coef, w[n:]])
    return (X if knots is None else PiecewiseColumns(X, knots.with_lines(n))), w


Completed.columns_and_weights = _columns_and_weights
