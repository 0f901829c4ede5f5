"""The convex questions for many users: few variables, one inequality per user and round.

For user u and any w, ``g.w >= f_u(w)`` where g is the mean of the r positives that are lowest at
some point minus the negative that is highest there. So ``max m: g_c.w >= m`` over the cuts found
so far bounds the largest margin from above; w is asked for new cuts until there are none. Weights
lambda_c >= 0 with sum 1 prove ``f(w) <= v.w``, ``v = sum lambda_c g_c``.
"""

from fractions import Fraction

import numpy as np

from structsvm_papk.margins.proofs import HullProof, dense_rows, fractions, solve_near
from structsvm_papk.margins.separation import Separator, linear_programme

MANY_USERS = 20
IDLE = 15  # rounds that a cut may be slack before it leaves


class CutSeparator(Separator):
    """As `Separator`, on cuts instead of rows; for data with many users."""

    def _start(self):
        self._cuts = {}  # (positives, negative) -> row
        self._rows = np.empty((0, self.data.n_features))
        self._keys, self._idle = [], np.empty(0, dtype=int)
        usable = np.zeros(len(self.data.rows), dtype=bool)
        usable[np.concatenate(self._pos)] = True
        weights = usable / usable.sum() - ~self.data.labels / (~self.data.labels).sum()
        self._grow(np.asarray(self.data.rmatvec(weights) * self.scale**2))  # between the means

    def _grow(self, w, batch=1):
        """Add the cut of every user at w that is violated there; False when there are none."""
        scores = self.data.scores(w)
        level = (self._rows @ (w / self.scale)).min(initial=np.inf)
        level -= 1e-10 * (1 + abs(level)) if np.isfinite(level) else 0.0
        found = []
        for pos, neg, r in zip(self._pos, self._neg, self.n_lowest, strict=True):
            lowest = pos[np.argpartition(scores[pos], r - 1)[:r]] if r < len(pos) else pos
            highest = neg[np.argmax(scores[neg])]
            value = scores[lowest].mean() - scores[highest]
            key = (tuple(sorted(lowest.tolist())), int(highest))
            if value < level and key not in self._cuts:
                found.append(key)
        rows = []  # g of each cut, in scaled features
        for positives, negative in found:
            values = dense_rows(self.data.X, self.data.rows[[*positives, negative]]) * self.scale
            rows.append(values[:-1].mean(axis=0) - values[-1])
        self._cuts.update(dict.fromkeys(found))
        self._keys += found
        self._rows = np.vstack([self._rows, *rows])
        self._idle = np.concatenate([self._idle, np.zeros(len(found), dtype=int)])
        return bool(found)

    def _drop_idle(self, duals):
        self._idle = np.where(duals > 1e-12, 0, self._idle + 1)
        keep = self._idle <= IDLE
        if keep.all():
            return duals
        self._keys = [key for key, kept in zip(self._keys, keep, strict=True) if kept]
        self._cuts = dict.fromkeys(self._keys)
        self._rows, self._idle = self._rows[keep], self._idle[keep]
        return duals[keep]

    def _linear_programme(self):
        d = self.data.n_features
        cost, matrix = -np.eye(d + 1)[d], np.hstack([-self._rows, np.ones((len(self._rows), 1))])
        bounds = [(-1, 1)] * d + [(0, None)]
        x, duals = linear_programme(cost, matrix, bounds, self.deadline)
        if x is None:
            return None, None, None
        duals = self._drop_idle(duals)
        return x[:d] * self.scale, x[d], (list(self._keys), duals)

    def _quadratic_programme(self, target):
        import cvxpy as cp

        x = cp.Variable(self.data.n_features)
        rule = self._rows @ x >= target
        size = cp.sum_squares(cp.multiply(self.scale, x)) / 2
        problem = cp.Problem(cp.Minimize(size), [rule])
        if not self.solved(problem):
            return None, None
        duals = self._drop_idle(np.maximum(rule.dual_value, 0.0))
        return x.value * self.scale, (list(self._keys), duals)

    def exact_proof(self, keys, duals):
        """Weights of the cuts with v = 0 exactly; None when that fails."""
        live = np.flatnonzero(duals > 1e-10 * duals.max(initial=0.0))
        if not len(live):
            return None
        columns = [[*self._exact_difference(keys[c]), Fraction(1)] for c in live]
        target = [Fraction(0)] * self.data.n_features + [Fraction(1)]
        weights = solve_near(columns, target, duals[live] / duals[live].sum())
        if weights is None or min(weights) < 0:
            return None
        return self._proof([keys[c] for c in live], weights)

    def _exact_difference(self, key):
        pos, neg = key
        values = dense_rows(self.data.X, self.data.rows[[*pos, neg]])
        columns = map(fractions, values.T)
        return [sum(column[:-1], Fraction(0)) / len(pos) - column[-1] for column in columns]

    def _rounded_proof(self, duals):
        if duals is None:
            return None
        keys, values = duals
        live = np.flatnonzero(values > 1e-13 * values.max(initial=0.0))
        if not len(live):
            return None
        weights = fractions(values[live])
        total = sum(weights)
        return self._proof([keys[c] for c in live], [v / total for v in weights])

    def _proof(self, keys, weights):
        """Spread the weight of each cut over its rows."""
        pos, neg = {}, {}
        for (positives, negative), weight in zip(keys, weights, strict=True):
            for position in positives:
                row = int(self.data.rows[position])
                pos[row] = pos.get(row, Fraction(0)) + weight / len(positives)
            row = int(self.data.rows[negative])
            neg[row] = neg.get(row, Fraction(0)) + weight
        return HullProof(pos, neg, tuple(int(r) for r in self.n_lowest))

    def _interior_weights(self):
        return [], np.empty(0)  # no second chance


def separator_for(data, n_lowest, chosen=None, deadline=np.inf):
    """Return the separator that suits the number of users."""
    kind = Separator if data.n_users <= MANY_USERS else CutSeparator
    return kind(data, n_lowest, chosen, deadline)
