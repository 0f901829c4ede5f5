"""Whether a surrogate is what its class declares, tried on random lists."""

from dataclasses import fields, replace
from functools import lru_cache

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_type
from structsvm_papk.surrogates.base import Surrogate
from structsvm_papk.surrogates.losses import ClippedRamp, Ramp

_N_LISTS = 100
_N_LONG = 20
_SHORT = 7
_LONGEST = 60  # both: rows of each class in a list
_SETTINGS: tuple[tuple[int, int | float | None], ...] = ((1, None), (2, 3), (3, 0.5))  # k, depth
_ROUNDING, _CURVED = 1e-9, 1e-3  # relative; of difference quotients


def check_surrogate(surrogate: Surrogate) -> None:
    """Try on random lists what the class of a surrogate declares; certificates rest on it.

    The lists have ties, scores of all sizes, and equal scores as at w = 0; most are short, of three
    small k, and some longer, of the surrogate's own k and depth.
    `PAPKRanker` tries every surrogate that it is given as an object, once in a process.

    Parameters
    ----------
    surrogate : Surrogate

    Raises
    ------
    InputError
        What is false, with the scores of a list that shows it and the two numbers to compare.

    Examples
    --------
    >>> from structsvm_papk.surrogates import check_surrogate, make_surrogate
    >>> check_surrogate(make_surrogate("ts", k=5))  # all is as declared
    """
    check_type("surrogate", surrogate, Surrogate, "an object of a class derived from Surrogate")
    _check_settings(surrogate)
    _try(surrogate)


@lru_cache(maxsize=1000)  # equal surrogates are of one class and have the same settings
def _try(surrogate: Surrogate, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    short = [replace(surrogate, k=k, depth=depth) for k, depth in _SETTINGS]
    drawn = [_Lists(variant, rng, _N_LISTS, _SHORT) for variant in short]
    usual = min(max(surrogate.k, surrogate.kernel_depth), _LONGEST)  # of its own k and depth
    longest = int(np.clip(1.5 * usual, 3 * _SHORT, _LONGEST))
    deep = replace(surrogate, depth=0.9)
    drawn += [_Lists(variant, rng, _N_LONG, longest) for variant in (surrogate, deep)]
    for lists in drawn:
        for check in (_evaluation, _slopes, _what_counts, _at_zero, _bounds, _majorant, _terms):
            check(lists, lists.draw())


def _check_settings(surrogate: Surrogate) -> None:
    kind = type(surrogate).__name__
    name = getattr(surrogate, "name", None)
    if not isinstance(name, str):
        raise InputError(f"{kind} needs a `name`, by which messages and files call it")
    try:
        known = set(vars(surrogate)) == {field.name for field in fields(surrogate)}
        fine = known and replace(surrogate) == surrogate and hash(surrogate) is not None
    except TypeError:
        fine = False
    if not fine:
        raise InputError(
            f"the settings of {kind} must be fields, of values that can be compared and hashed: "
            "decorate the class with @dataclass(frozen=True) and write `exponent: float = 2.0`"
        )


class _Lists:
    """Random lists, positives first, and a surrogate's values on them."""

    def __init__(
        self, surrogate: Surrogate, rng: np.random.Generator, n_lists: int, longest: int
    ) -> None:
        self.surrogate = surrogate
        self.rng = rng
        self.n_lists = n_lists
        self.n_pos, self.n_neg = rng.integers(1, longest + 1, (2, n_lists))
        self.indptr = np.append(0, np.cumsum(self.n_pos + self.n_neg))
        self.user = np.repeat(np.arange(n_lists), self.n_pos + self.n_neg)
        place = np.arange(self.user.size) - self.indptr[self.user]
        self.negative = place >= self.n_pos[self.user]
        self.rank = place - self.negative * self.n_pos[self.user]  # where scores are `sorted`

    def draw(self) -> Array:
        """Scores of all sizes; a third with ties and pairs at the margin, a tenth all 0."""
        scores = self.rng.normal(size=self.user.size)
        tied = self.user % 3 == 0
        scale = 10.0 ** self.rng.uniform(-2, 1.7, self.n_lists)[self.user]
        at_zero = (self.rng.random(self.n_lists) < 0.1)[self.user]
        return np.where(tied, np.round(2 * scores) / 2, scale * scores) * ~at_zero

    def sorted(self, scores: Array) -> Array:
        """Each user's positives in decreasing order, and negatives."""
        return scores[np.lexsort((-scores, self.negative, self.user))]

    def evaluate(
        self,
        scores: Array,
        surrogate: Surrogate | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> tuple[Array, Array]:
        """Values and subgradients of some users; NaN where nothing was written."""
        values = np.full(self.n_lists, np.nan)
        coef = np.full(scores.size, np.nan)
        given = scores.copy()
        if last is None:
            last = self.n_lists
        evaluate = (surrogate or self.surrogate).evaluate
        evaluate(given, self.indptr, self.n_pos, first, last, values, coef)
        if not np.array_equal(given, scores):
            raise InputError(
                f"{type(self.surrogate).__name__}.evaluate changes the scores that it is given; "
                "solvers use them afterwards: it has to work on a copy"
            )
        return values, coef

    def turned(self, scores: Array) -> tuple[Array, Array]:
        """`evaluate` of all users but the first, in reverse order; NaN for that one."""
        users = np.arange(self.n_lists - 1, 0, -1)
        sizes = np.diff(self.indptr)[users]
        rows = np.argsort(-self.user, kind="stable")[: sizes.sum()]
        values = np.full(users.size, np.nan)
        coef = np.full(rows.size, np.nan)
        indptr = np.append(0, np.cumsum(sizes))
        lists = scores[rows], indptr, self.n_pos[users], 0, users.size
        self.surrogate.evaluate(*lists, values, coef)
        all_values = np.full(self.n_lists, np.nan)
        all_coef = np.full(scores.size, np.nan)
        all_values[users] = values
        all_coef[rows] = coef
        return all_values, all_coef

    def sums(self, coef: Array, where: Array | float = 1.0) -> Array:
        """Sums over each list."""
        return np.add.reduceat(coef * where, self.indptr[:-1])

    def refuse(
        self,
        claim: str,
        wrong: Array,
        scores: Array,
        left: Array,
        right: Array,
        fault: str = " declares what it is not",
    ) -> None:
        """Raise with the first list on which a claim is wrong."""
        for u in np.flatnonzero(wrong)[:1]:
            user = np.round(scores[self.indptr[u] : self.indptr[u + 1]], 6) + 0.0  # not -0.0
            p, q = (part.tolist() for part in np.split(user, self.n_pos[u : u + 1]))
            where = f"k={self.surrogate.k}, depth={self.surrogate.depth}, positives {p}, "
            raise InputError(
                f"{type(self.surrogate).__name__}{fault}: {claim}"
                f"{self._inherited(claim)}. At {where}negatives {q} these are {left[u]:.8g} and "
                f"{right[u]:.8g}"
            )

    def _inherited(self, claim: str) -> str:
        """Where the author of the class did not write what is wrong: which parent did."""
        kind = type(self.surrogate)
        name = claim.split(":")[0].split(",")[0]
        owner = next((each for each in kind.__mro__ if name in vars(each)), kind)
        if owner in (kind, Surrogate):
            return ""
        return f" (inherited from {owner.__name__})"

    def at_least(
        self, claim: str, scores: Array, left: Array, right: Array, size: Array | float = 0
    ) -> None:
        """Expect ``left >= right``, to the rounding of numbers of a size."""
        near = _ROUNDING * (1 + np.abs(left) + np.abs(right) + size)
        self.refuse(claim, ~(left >= right - near), scores, left, right)

    def same(
        self, claim: str, scores: Array, left: Array, right: Array, size: Array | float = 0
    ) -> None:
        """Expect ``left == right``, to the rounding of numbers of a size."""
        near = _ROUNDING * (1 + np.abs(left) + np.abs(right) + size)
        self.refuse(claim, ~(np.abs(left - right) <= near), scores, left, right)


def _evaluation(lists: _Lists, scores: Array) -> None:
    values, coef = lists.evaluate(scores)
    wrong = ~np.isfinite(values + lists.sums(coef))
    lists.refuse("value and sum of slopes are finite", wrong, scores, values, lists.sums(coef))
    order = np.lexsort((lists.rng.random(scores.size), lists.negative, lists.user))
    claim = "values do not depend on the order of positives, and of negatives"
    lists.same(claim, scores, values, lists.evaluate(scores[order])[0])
    claim = "evaluate(first, last) writes users first <= u < last, whoever else there is"
    first = lists.n_lists // 4
    last = lists.n_lists // 2
    asked = (first <= np.arange(lists.n_lists)) & (np.arange(lists.n_lists) < last)
    _written(lists, claim, scores, lists.evaluate(scores, first=first, last=last), asked)
    claim = "a user's value and slope do not depend on the user's place or on other users"
    _written(lists, claim, scores, lists.turned(scores), np.arange(lists.n_lists) > 0)


def _written(
    lists: _Lists, claim: str, scores: Array, answer: tuple[Array, Array], asked: Array
) -> None:
    """Values, and slopes where they are unique, of the users that were asked for, and no others."""
    (values, coef) = lists.evaluate(scores)
    (some, slopes) = answer
    elsewhere = np.isnan(np.where(asked, 0.0, some)) == ~asked
    untouched = np.isnan(slopes) | asked[lists.user]
    right = elsewhere & (lists.sums(~untouched) == 0)
    wrong = ~right | (asked & ~_near(some, values))
    lists.refuse(claim, wrong, scores, values, some)
    sums = lists.sums(np.abs(np.where(asked[lists.user], slopes - coef, 0.0)))
    size = lists.sums(np.abs(coef))
    lists.at_least(claim, scores, np.zeros(lists.n_lists), sums, size)


def _near(left: Array, right: Array) -> Array:
    return np.abs(left - right) <= _ROUNDING * (1 + np.abs(left) + np.abs(right))


def _slopes(lists: _Lists, scores: Array) -> None:
    _quotients(lists, scores)
    if lists.surrogate.convex:
        claim = "convex, with coef a subgradient: a value is at least the cut from other scores"
        _cuts(lists, claim, lists.surrogate)


def _quotients(lists: _Lists, scores: Array) -> None:
    """Slopes beside difference quotients, which say of a loss that is convex what is wrong."""
    way, noise = lists.rng.normal(size=(2, scores.size))
    scores = scores + 0.01 * noise  # ties have several slopes
    values, coef = lists.evaluate(scores)
    ahead, behind = ((lists.evaluate(scores + s * way)[0] - values) / s for s in (1e-6, -1e-6))
    near = _CURVED * (1 + np.abs(ahead))
    slope = lists.sums(coef, way)
    wrong = (np.abs(ahead - behind) <= near) & (np.abs(slope - ahead) > 2 * near)
    claim = "along some direction, coef and the difference quotient of the values"
    fault = ".evaluate writes a wrong slope"
    lists.refuse(claim, wrong, scores, slope, ahead, fault)


def _cuts(lists: _Lists, claim: str, surrogate: Surrogate) -> None:
    start = lists.draw()
    values, coef = lists.evaluate(start, surrogate)
    for other in (lists.draw(), start + 0.1 * lists.draw(), -start):
        size = lists.sums(np.abs(coef), np.abs(other) + np.abs(start))
        cut = values + lists.sums(coef, other - start)
        lists.at_least(claim, other, lists.evaluate(other, surrogate)[0], cut, size)


def _what_counts(lists: _Lists, scores: Array) -> None:
    surrogate = lists.surrogate
    scores = lists.sorted(scores)
    m = surrogate.negatives_counted(lists.n_neg)
    values = lists.evaluate(scores)[0]
    move = lists.rng.exponential(size=scores.size)
    low = lists.negative & (lists.rank >= m[lists.user])
    for declared, moved in (
        ("top_negatives_only: lower negatives may fall", scores - low * move),
        ("shift_invariant: scores may all rise by 8", scores + 8.0),
    ):
        if getattr(surrogate, declared.partition(":")[0]):
            size = np.maximum.reduceat(np.abs(scores), lists.indptr[:-1])
            lists.same(declared, scores, values, lists.evaluate(moved)[0], size)


def _at_zero(lists: _Lists, scores: Array) -> None:
    if not lists.surrogate.above_slope_at_zero:
        return
    values = lists.evaluate(scores)[0]
    largest = np.maximum.reduceat(np.abs(scores), lists.indptr[:-1])
    scale = 0.1 / (lists.n_pos * np.maximum(largest, 0.01))
    near = scale[lists.user] * scores
    full = lists.evaluate(near)[0]
    half = lists.evaluate(near / 2)[0]
    claim = "above_slope_at_zero: 1 at 0, linear near it (half way, the mean of both ends)"
    lists.same(claim, near, half, (1 + full) / 2)
    line = 1 + (full - 1) / scale
    lists.at_least("above_slope_at_zero: at least that line", scores, values, line, 1 / scale)
    all_negatives = max(int(lists.n_neg.max()), lists.surrogate.k)
    deeper = lists.evaluate(scores, replace(lists.surrogate, depth=all_negatives))[0]
    lists.at_least("above_slope_at_zero: no larger at more depth", scores, values, deeper)


def _bounds(lists: _Lists, scores: Array) -> None:
    surrogate = lists.surrogate
    (values, coef) = lists.evaluate(scores)
    largest = np.maximum.reduceat(np.abs(scores), lists.indptr[:-1])[lists.user]
    close = scores / np.maximum(2 * largest, 1)  # at most 1 apart
    bound = surrogate.l1_bound(lists.n_pos)
    steep = lists.sums(np.abs(lists.evaluate(close)[1]))
    lists.at_least("l1_bound, of scores at most 1 apart, and the slopes' sum", close, bound, steep)
    shares = surrogate.weight_shares(lists.n_pos, lists.n_neg) or ()
    for side, share in zip((~lists.negative, lists.negative), shares, strict=False):
        most = bound / 2 / (np.minimum(share, 1.0) * lists.sums(side))
        heaviest = np.maximum.reduceat(np.abs(coef * side), lists.indptr[:-1])
        lists.at_least("weight_shares: a slope's bound, and a slope", scores, most, heaviest)
    if surrogate.nonnegative or surrogate.majorised:
        lists.at_least("nonnegative: at least 0", scores, values, np.zeros(lists.n_lists))
    if surrogate.clipped:
        lists.at_least("clipped: at most 1", scores, np.ones(lists.n_lists), values)
    if surrogate.boxed:
        ramp = (ClippedRamp if surrogate.clipped else Ramp)(surrogate.k, depth=surrogate.depth)
        of_ramp = lists.evaluate(scores, ramp)[0]
        lists.same("boxed: the value is that of Ramp or ClippedRamp", scores, values, of_ramp)


def _majorant(lists: _Lists, scores: Array) -> None:
    surrogate = lists.surrogate
    if not surrogate.majorised:
        return
    majorant = surrogate.majorant(scores, lists.indptr, lists.n_pos)
    other = lists.draw()
    here = lists.evaluate(scores)[0]
    there = lists.evaluate(other)[0]
    lists.same(
        "majorant: tight where it is made", scores, lists.evaluate(scores, majorant)[0], here
    )
    lists.at_least("majorant: nowhere below", other, lists.evaluate(other, majorant)[0], there)
    _cuts(lists, "majorant: convex", majorant)
    exact = np.array([surrogate.is_convex_on(lists.n_pos[u : u + 1]) for u in range(lists.n_lists)])
    above = np.where(exact, lists.evaluate(other, majorant)[0], there)
    lists.same("is_convex_on: the majorant is the surrogate", other, there, above)


def _terms(lists: _Lists, scores: Array) -> None:
    values = lists.evaluate(scores)[0].copy()
    sums = lists.evaluate(scores)[0]
    for u, (n_pos, n_neg) in enumerate(zip(lists.n_pos, lists.n_neg, strict=True)):
        terms = lists.surrogate.list_terms(n_pos, n_neg)
        if terms is not None:
            ends = n_pos * terms.over_negatives + np.array([0, terms.n_terms])
            user = scores[lists.indptr[u] : lists.indptr[u + 1]]
            sums[u] = terms.blocks(user, n_pos, ends).values.sum()
    lists.same("list_terms: their mean is the value", scores, values, sums)
