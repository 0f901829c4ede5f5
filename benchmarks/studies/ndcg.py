"""Claims about NDCG on a list that grows (Wang et al., COLT 2013), tested by drawing long lists.

An item is drawn as s, the share of all items that the scorer puts below it, uniform in [0, 1], and
its relevance with Pr[Y = 1 | s] = low + (high - low) s^power. NDCG's limits depend on no more.
"""

import warnings
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import scipy  # its parts load when they are first used

from benchmarks.studies.claims import Claim, Drawn
from benchmarks.studies.ndcg_limit import discounts_at, discounts_of, ndcg_limit
from structsvm_papk import metrics
from structsvm_papk.errors import InputError

_SOURCE = "Wang et al., COLT 2013"
_SCORERS = 12  # for each claim
_LISTS = 16  # drawn for each scorer
_STANDARD_ERRORS = 5.0  # that a mean over lists may be off
_SETTLED = 0.01  # standard deviation of NDCG over lists that have the same one


_EXAMPLES = {
    "good": lambda s: 0.02 + 0.98 * s**4,
    "fair": lambda s: 0.05 + 0.33 * s,
    "upside down": lambda s: 0.35 - 0.3 * s,
}
_SETTINGS = {
    "log (the usual one)": ("log", None),
    "log, a fifth of the list": ("log", 0.2),
    "r^-1/2": ("r^-0.5", None),
    "1/r": ("zipf", None),
    "log, places grow slowly": ("log", "slow"),
    "2^-r": ("exp", None),
    "log, ten places": ("log", 10),
}


def limits():
    """A row for each discount and cut-off: the limit of each of three scorers, or None."""
    return [
        {"setting": setting}
        | {name: _limit(*how, relevance) for name, relevance in _EXAMPLES.items()}
        for setting, how in _SETTINGS.items()
    ]


def _limit(discount, cutoff, relevance):
    try:
        return ndcg_limit(discount, cutoff, relevance)
    except InputError:
        return None


@dataclass(frozen=True)
class Scorer:
    """What the order of a scorer says about relevance."""

    low: float
    high: float
    power: float

    def relevance(self, s):
        """Pr[Y = 1 | s]."""
        return self.low + (self.high - self.low) * np.asarray(s) ** self.power

    @property
    def rate(self):
        """Pr[Y = 1]."""
        return self.low + (self.high - self.low) / (1 + self.power)

    @property
    def slowness(self):
        """The K of ``NDCG = 1 - K / ln n + ..`` under 1 / log(1 + r): 1 - ln p - a with
        ``p a = -int Pr[Y = 1 | 1 - x] ln x dx``.
        """
        harmonic = np.euler_gamma + scipy.special.digamma(self.power + 2)
        gain = self.low + (self.high - self.low) * harmonic / (1 + self.power)
        return 1 - np.log(self.rate) - float(gain) / self.rate


def _any(rng):
    """A good or bad scorer whose relevance at the top is not certain."""
    low, high = rng.uniform(0.1, 0.9, 2)
    return Scorer(low, high, float(rng.choice([0.5, 1.0, 2.0, 4.0])))


def _or_certain(rng):
    """The same, or a scorer whose items at the very top are relevant."""
    return _any(rng) if rng.random() < 0.5 else Scorer(rng.uniform(0.1, 0.9), 1.0, 0.5)


@dataclass(frozen=True)
class Lists:
    """Lists of one scorer: NDCG of each, and by how much their mean may be off by chance."""

    scorer: Scorer
    rng: np.random.Generator
    n: int

    def ndcg(self, discount, k=None):
        """NDCG of freshly drawn lists."""
        s = self.rng.random(_LISTS * self.n)
        labels = self.rng.random(s.size) < self.scorer.relevance(s)
        return _ndcg(s, labels, np.arange(0, s.size + 1, self.n), discount, k)

    def noise(self, discount, k=None):
        """Several standard errors of the mean, at most: of the labels that count, and of the
        number of positives.
        """
        weights = discounts_of(discount, k or self.n)
        counted = self.scorer.rate * self.n
        best = weights[: max(1, int(counted))].sum()
        error = 0.5 * np.sqrt((weights**2).sum()) / best + 0.5 * np.sqrt(self.n) / counted
        return float(_STANDARD_ERRORS * error / np.sqrt(_LISTS))

    def limit(self, discount, cutoff=None):
        """What NDCG should tend to."""
        return ndcg_limit(discount, cutoff, self.scorer.relevance)

    def described(self):
        """The scorer; the lists are too long to show."""
        return {f"scorer: {name}": value for name, value in asdict(self.scorer).items()}


def _ndcg(scores, labels, indptr, discount, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fast discounts have no limit: that is what is tested
        name = "ndcg" if k is None else f"ndcg@{k}"
        at = partial(discounts_at, discount=discount)
        table = metrics.evaluate(name, scores, labels, indptr=indptr, discount=at)
    return table.values[:, 0]


def _on_long_lists(
    violation,
    scorer=_any,
):
    def draw(rng, effort):
        return (Lists(scorer(rng), rng, effort.n_items) for _ in range(_SCORERS))

    return Drawn(violation, draw)


def _tends_to_one(discount, lists):
    """Violation of ``1 - NDCG <= (K + 4 / ln n) / ln n``."""
    log_n = np.log(lists.n)
    below = 1 - lists.ndcg(discount).mean() - lists.noise(discount)
    return float(below - (lists.scorer.slowness + 4 / log_n) / log_n)


def _power_limit(upside_down, lists):
    """Violation of ``|NDCG - limit| <= (p n)^-(1 - b)`` for r^-b."""
    worst = -np.inf
    scorer = lists.scorer
    if upside_down:
        scorer = Scorer(scorer.high, scorer.low, scorer.power)
    for b in (0.25, 0.5):
        discount = f"r^-{b}"
        off = lists.ndcg(discount).mean() - replace(lists, scorer=scorer).limit(discount)
        allowed = lists.noise(discount) + (lists.scorer.rate * lists.n) ** -(1 - b)
        worst = max(worst, float(abs(off) - allowed))
    return worst


def _share_limit(with_cutoff, lists):
    """Violation of ``|NDCG@cn - limit| <= 1/2 / ln n``, and for r^-1/2 of (min(p, c) n)^-1/2."""
    worst = -np.inf
    n = lists.n
    share = float(lists.rng.choice([0.1, 0.3, 0.6]))
    k = round(share * n)
    counted = min(lists.scorer.rate, share) * n
    for discount, bias in (("log", 0.5 / np.log(n)), ("r^-0.5", counted**-0.5)):
        limit = lists.limit(discount, share if with_cutoff else None)
        off = abs(lists.ndcg(discount, k).mean() - limit)
        worst = max(worst, float(off - bias - lists.noise(discount, k)))
    return worst


def _top_limit(grows, lists):
    """Violation of: every list's NDCG at sqrt(n) places is near the relevance at the top."""
    k = round(lists.n**0.5)
    off = np.abs(lists.ndcg("log", k if grows else 5) - lists.limit("log", "slow"))
    return float(off.max() - lists.noise("log", k) * np.sqrt(_LISTS) - 4 * k / lists.n)


def _moves(lists):
    """Violation of: NDCG differs between long lists, under 2^-r and at five places."""
    return float(_SETTLED - min(lists.ndcg("exp").std(), lists.ndcg("log", 5).std()))


def _ahead(discount, lists):
    """Violation of: on the first n items, n from some N on, the better of two scorers is ahead.

    The other one scores four of five items at random.
    """
    longest = _LISTS * lists.n
    s, other = lists.rng.random((2, longest))
    labels = lists.rng.random(longest) < lists.scorer.relevance(s)
    other = np.where(lists.rng.random(longest) < 0.8, other, s)
    sizes = np.geomspace(longest / 2, longest, 8).astype(int)
    lead = [
        _ndcg(s[:n], labels[:n], np.array([0, n]), discount, None)[0]
        - _ndcg(other[:n], labels[:n], np.array([0, n]), discount, None)[0]
        for n in sizes
    ]
    return float(-min(lead))


def _good(rng):
    return Scorer(rng.uniform(0.02, 0.1), rng.uniform(0.5, 0.9), float(rng.choice([1.0, 2.0])))


_FIXED = _on_long_lists(_moves)
_EITHER = _on_long_lists(_moves, _or_certain)
CLAIMS = (
    Claim(
        id="ndcg-log",
        claim="With the discount 1 / log(1 + r) NDCG of a growing list tends to 1 for every "
        "scorer, as slowly as 1 / ln n.",
        formula="1 - NDCG ~ K / ln n -> 0",
        source=f"{_SOURCE}, Theorem 1; the rate: this package",
        statement=_on_long_lists(partial(_tends_to_one, "log")),
        control=_on_long_lists(partial(_tends_to_one, "r^-0.5")),
        control_words="the discount r^-1/2",
    ),
    Claim(
        id="ndcg-power",
        claim="With the discount r^-b, 0 < b < 1, the limit depends on the scorer.",
        formula="NDCG -> (1-b) int Pr[Y=1|s] (1-s)^-b ds / Pr[Y=1]^(1-b)",
        source=f"{_SOURCE}, Theorem 3",
        statement=_on_long_lists(partial(_power_limit, False)),
        control=_on_long_lists(partial(_power_limit, True)),
        control_words="the limit of the scorer upside down",
    ),
    Claim(
        id="ndcg-share",
        claim="At k = c n places the limit depends on the scorer, for the usual discount too.",
        formula="NDCG@cn -> int_{1-c}^1 Pr[Y=1|s] ds / min(c, Pr[Y=1]) (log)",
        source=f"{_SOURCE}, Theorems 8 and 9",
        statement=_on_long_lists(partial(_share_limit, True)),
        control=_on_long_lists(partial(_share_limit, False)),
        control_words="the limit without a cut-off",
    ),
    Claim(
        id="ndcg-top",
        claim="At places that grow without bound, but more slowly than the list, the relevance at "
        "the top is the limit.",
        formula="k -> inf, k/n -> 0 => NDCG@k -> Pr[Y=1|s=1]",
        source=f"{_SOURCE}, Theorem 7",
        hypothesis="k = sqrt(n)",
        statement=_on_long_lists(partial(_top_limit, True)),
        control=_on_long_lists(partial(_top_limit, False)),
        control_words="k = 5 whatever n",
    ),
    Claim(
        id="ndcg-no-limit",
        claim="With discounts whose sum is finite, or at a fixed cut-off, NDCG has no limit where "
        "the relevance of the items at the very top is not certain.",
        formula="sum D(r) < inf, 0 < Pr[Y=1|s=1] < 1 => NDCG does not converge",
        source=f"{_SOURCE}, Theorem 6, which asks for more: for one delta > 0, Pr[Y=y|x] >= "
        "delta Pr[Y=y*|x] for all x and y",
        hypothesis="Pr[Y=1|s=1] is neither 0 nor 1",
        statement=_FIXED,
        control=_EITHER,
        control_words="relevance at the top may be certain",
    ),
    *(
        Claim(
            id=f"ndcg-ahead-{name}",
            claim=f"With the discount {discount} the better of two scorers is ahead for all lists "
            "from some length on, though under log both tend to 1.",
            formula="NDCG_n(f) > NDCG_n(f') for all n >= N",
            source=f"{_SOURCE}, Theorem {theorem} (consistent distinguishability)",
            statement=_on_long_lists(partial(_ahead, discount), _good),
            control=_on_long_lists(partial(_ahead, "exp"), _good),
            control_words="the discount 2^-r",
        )
        for name, discount, theorem in (("log", "log", 2), ("power", "r^-0.5", 4))
    ),
)
