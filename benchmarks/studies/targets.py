"""Claims about targets: which orders minimise the expected loss of a list whose labels are random.

A law of the labels gives each way to label a few items a probability; labels are independent where
it is a product, conditioned on the number of relevant items. Scores are unrestricted, so that all
orders with ties of the items can be compared. Proofs: paper/proofs.md, "Targets".
"""

from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product

import numpy as np
import scipy  # its parts load when they are first used

from benchmarks.studies.claims import Claim, Drawn
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate, metrics

_METRICS = ("precision@{k}", "recall@{k}", "auc", "ap", "ndcg", "ndcg@{k}", "pauc@{k}")
_SOURCE = "this package (the page on targets)"
HINGES = ("avg", "pauc", "max", "ts")
_LEVELS = np.arange(1, 10) / 10  # probabilities that are tried


@cache
def weak_orders(n):
    """Every order of n items with ties, as ranks 0, 1, .. (larger is better)."""
    ranks = np.array(list(product(range(n), repeat=n)))
    top = ranks.max(axis=1)
    used = (ranks[:, None, :] == np.arange(n)[:, None]).any(axis=2).sum(axis=1)
    return ranks[used == top + 1]


@dataclass(frozen=True)
class Law:
    """Ways to label the items, each with a positive and a negative, and their probabilities."""

    labels: np.ndarray
    chances: np.ndarray
    marginals: np.ndarray
    k: int
    m: int

    @classmethod
    def drawn(cls, rng, dependent=False):
        """Four items; independent labels given that their sum is in some set, or any law."""
        eta = rng.choice(_LEVELS, 4)
        allowed = np.flatnonzero(rng.random(3) < 0.6) + 1
        law = cls.of(eta, 1, allowed if allowed.size else [1, 2])
        chances = law.chances
        if dependent:
            chances = rng.random(chances.size) ** 4
            chances /= chances.sum()
            eta = chances @ law.labels
        k = int(rng.integers(1, 3))
        return cls(law.labels, chances, eta, k, int(rng.integers(k, 4)))

    @classmethod
    def of(cls, eta, k, sums=None):
        """Independent labels of these probabilities, given their sum: all that have both kinds."""
        eta = np.asarray(eta)
        labels = np.array(list(product((False, True), repeat=eta.size)))
        labels = labels[np.isin(labels.sum(axis=1), range(1, eta.size) if sums is None else sums)]
        chances = np.prod(np.where(labels, eta, 1 - eta), axis=1)
        return cls(labels, chances / chances.sum(), eta, k, k)

    def _lists(self, orders):
        """Scores, labels and bounds of each order under each labelling."""
        scores = np.repeat(orders, len(self.labels), axis=0).astype(float)
        labels = np.tile(self.labels, (len(orders), 1))
        return scores, labels, np.arange(0, scores.size + 1, scores.shape[1])

    def _mean(self, values):
        return values.reshape(-1, len(self.labels)) @ self.chances

    def surrogate(self, name, orders, depth=None):
        """Expected surrogate of scores, shape (n,)."""
        scores, labels, indptr = self._lists(orders)
        first = np.argsort(~labels, axis=1, kind="stable")  # positives
        sorted_scores = np.take_along_axis(scores, first, axis=1).ravel()
        loss = make_surrogate(name, self.k, depth)
        return self._mean(loss.value_and_subgradient(sorted_scores, indptr, labels.sum(1))[0])

    def risk(self, orders, m=None):
        """Expected risk_{k,m} of ranks, whose wrong pairs ClippedRamp counts."""
        return self.surrogate("clipped_ramp", orders, m)

    def metric(self, name, orders):
        """Expected loss of a metric."""
        scores, labels, indptr = self._lists(orders)
        rules = {"few_negatives": "normalise", "ties": "loss"}
        table = metrics.evaluate(name, scores.ravel(), labels.ravel(), indptr=indptr, **rules)
        return 1 - self._mean(table.values[:, 0])

    def minimiser(self, name, depth=None):
        """Shortest scores that minimise an expected surrogate, rounded, and their excess."""
        n = self.labels.shape[1]
        data = RankingData(
            np.tile(np.eye(n), (len(self.labels), 1)), self.labels.ravel(),
            np.arange(0, self.labels.size + 1, n), user_weight=self.chances,
        )  # fmt: skip
        risk = EmpiricalRisk(make_surrogate(name, self.k, depth), data, "cap")
        result = CuttingPlane(alpha=1e-5, tol=1e-9).solve(risk)
        scores = np.round(result.w, 3)
        excess = self.surrogate(name, scores[None], depth)[0] - result.lower_bound
        return scores, float(excess)

    def described(self):
        """k, and the probabilities of the items."""
        values = {f"P(item {i} relevant)": float(p) for i, p in enumerate(self.marginals, 1)}
        return {"k": self.k} | values


def _on_laws(
    violation,
    law=Law.drawn,
    n_laws=None,  # where each is solved
):
    def draw(rng, effort):
        return (law(rng) for _ in range(n_laws or effort.n_laws))

    return Drawn(violation, draw)


_dependent = partial(Law.drawn, dependent=True)


def _excess_of_sorting(law):
    """By how much sorting by probability is above the best order, for any of the losses."""
    orders = weak_orders(law.marginals.size)
    best = np.argsort(np.argsort(law.marginals, kind="stable"), kind="stable")[None]
    orders = np.concatenate([best, orders])
    losses = [law.risk(orders, law.m), law.risk(orders)]
    losses += [law.metric(name.format(k=law.k), orders) for name in _METRICS]
    return max(float(loss[0] - loss.min()) for loss in losses)


def _deeper_optimum(law):
    """Excess of risk_k at the worst order that is optimal for risk_{k,m}."""
    orders = weak_orders(law.marginals.size)
    deep = law.risk(orders, law.m)
    risk = law.risk(orders)
    return float(risk[deep <= deep.min() + 1e-12].max() - risk.min())


def _uncalibrated(name, law):
    """Excess risk_k of scores that minimise the expected surrogate."""
    scores, excess = law.minimiser(name)
    if excess > 1e-3:
        return -np.inf  # rounding moved them too far
    ranks = np.unique(scores, return_inverse=True)[1]
    orders = weak_orders(scores.size)
    return float(law.risk(ranks[None])[0] - law.risk(orders).min())


def _logistic(law):
    """Distance of the minimiser of logistic on pairs from the log-odds, both centred."""
    pos = law.labels[:, :, None] & ~law.labels[:, None, :]
    weight = np.tensordot(law.chances / pos.sum(axis=(1, 2)), pos, axes=1)  # of s_i above s_j

    def value(s):
        apart = s[:, None] - s
        slope = -weight * scipy.special.expit(-apart)
        total = float((weight * np.logaddexp(0, -apart)).sum() + 0.5e-12 * s @ s)
        return total, slope.sum(axis=1) - slope.sum(axis=0) + 1e-12 * s

    found = scipy.optimize.minimize(
        value, np.zeros(law.marginals.size), jac=True, method="BFGS", options={"gtol": 1e-10}
    ).x
    odds = scipy.special.logit(law.marginals)
    return float(np.abs((found - found.mean()) - (odds - odds.mean())).max() - 1e-4)


def _sandwich(lower, law):
    """Violation of ``lower <= gain <= P + r - P r`` for one labelling in all orders."""
    worst = -np.inf
    names = [f"precision@{law.k}", f"recall@{law.k}", f"pap@{law.k}"]
    for labels in law.labels:
        beta = min(int(labels.sum()), law.k)
        if law.k > (~labels).sum():
            continue
        one = metrics.evaluate(names, -np.arange(labels.size), labels).values[0]
        # h/k and h/beta
        precision = one[0]
        recall = one[1] * labels.sum() / beta
        above = one[2] - (precision + recall - precision * recall)
        worst = max(worst, float(max(lower(precision, recall) - one[2], above)))
    return worst


def weights_of_sampled(n_neg, n_sampled, k):
    """Of the soft risk on all negatives that is the mean of risk_k over samples of them.

    The j-th best negative weighs ``n_sampled / (k n_neg) P(H < k)``, H the number of the j - 1
    better ones among the n_sampled - 1 others that are drawn (hypergeometric).
    """
    better = np.arange(n_neg)
    few = scipy.stats.hypergeom.cdf(k - 1, n_neg - 1, better, n_sampled - 1)
    return n_sampled / (k * n_neg) * few


def off_from(weights, k):
    """By how much the soft risk of these weights may be off risk_k: the total variation."""
    return float(np.abs(weights - (np.arange(weights.size) < k) / k).sum() / 2)


def sampled():
    """What pAp@10 on sampled negatives estimates, for some sizes; where its weight lies."""
    rows = []
    for n_neg, n_sampled, k in ((1_000, 100, 10), (10_000, 100, 10), (10_000, 1_000, 10)):
        weights = weights_of_sampled(n_neg, n_sampled, k)
        full = round(k * n_neg / n_sampled)
        half, most = (int(np.searchsorted(np.cumsum(weights), share)) + 1 for share in (0.5, 0.95))
        rows.append(
            {
                "n_neg": n_neg,
                "n_sampled": n_sampled,
                "k": k,
                "effective_k": full,
                "off": off_from(weights, full),
                "off_from_k": off_from(weights, k),
                "place_50%": half,
                "place_95%": most,
            }
        )
    return rows


def _on_samples(soft, law):
    """Distance of the mean risk over all samples of the negatives from what it estimates."""
    rng = np.random.default_rng(int(1e9 * law.chances[0]))
    n_neg, n_sampled = rng.choice([(4, 2), (5, 3), (6, 3)])
    p = rng.integers(0, 5, 3)
    q = np.sort(rng.integers(0, 5, n_neg))[::-1]
    top = np.sort(p)[::-1][: law.k]

    def of(negatives):
        return (top[:, None] <= negatives).mean(axis=0)

    samples = [of(q[list(c)])[: law.k].mean() for c in combinations(range(n_neg), n_sampled)]
    weights = weights_of_sampled(n_neg, n_sampled, law.k)
    said = of(q) @ weights if soft else of(q)[: law.k].mean()
    return abs(float(np.mean(samples) - said))


def _unclear(rng):
    return Law.of(np.sort(rng.choice([0.4, 0.45, 0.5, 0.55, 0.6], 3, replace=False))[::-1], 1)


_INDEPENDENT = {
    "hypothesis": "labels independent, given their number",
    "control_words": "dependent labels",
}
_claim = partial(Claim, source=_SOURCE)
CLAIMS = (
    _claim(
        id="target-principle",
        claim="Sorting by the probability of relevance minimises the expectation of risk_{k,m} for "
        "all k and m, and of precision, recall, AUC, pAUC, AP and NDCG.",
        formula="eta_1 >= eta_2 >= .. => this order is optimal",
        statement=_on_laws(_excess_of_sorting),
        control=_on_laws(_excess_of_sorting, _dependent),
        **_INDEPENDENT,
    ),
    _claim(
        id="target-depth",
        claim="Every order that is optimal for risk_{k,m}, m >= k, is optimal for risk_k.",
        formula="argmin E risk_{k,m} is in argmin E risk_k",
        statement=_on_laws(_deeper_optimum),
        control=_on_laws(_deeper_optimum, _dependent),
        **_INDEPENDENT,
    ),
    _claim(
        id="target-logistic",
        claim="With weights that depend on the list's size only, logistic loss on pairs has the "
        "log-odds of relevance as its minimiser, up to a constant.",
        formula="s_i - s_j = logit eta_i - logit eta_j",
        statement=_on_laws(_logistic, lambda rng: Law.of(rng.choice(_LEVELS, 4), 1)),
        control=_on_laws(_logistic, _dependent),
        **_INDEPENDENT,
    ),
    *(
        _claim(
            id=f"target-{name}",
            claim=f"Scores that minimise the expectation of {name} minimise that of the risk.",
            formula="argmin E S is in argmin E risk_k",
            statement=_on_laws(partial(_uncalibrated, name), _unclear, 5),
            control=_on_laws(partial(_uncalibrated, name), lambda _: Law.of((0.9, 0.6, 0.1), 1), 1),
            control_words="probabilities .9, .6, .1",
        )
        for name in HINGES
    ),
    _claim(
        id="target-precision-recall",
        claim="With P = h/k and r = h/beta for h relevant items shown, the gain lies between P r "
        "and P + r - P r.",
        formula="P r <= 1 - risk <= P + r - P r",
        statement=_on_laws(partial(_sandwich, np.multiply)),
        control=_on_laws(partial(_sandwich, np.minimum)),
        control_words="min(P, r) as the lower bound",
    ),
    _claim(
        id="target-sampled",
        claim="Over all samples of n' of n negatives the mean of risk_k is a soft risk at k n/n'.",
        formula="E risk_k(sample) = mean_i sum_j omega_j 1[p_(i) <= q_(j)]",
        statement=_on_laws(partial(_on_samples, True)),
        control=_on_laws(partial(_on_samples, False)),
        control_words="risk_k of the full list",
    ),
)
