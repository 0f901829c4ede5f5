"""Which margin conditions do given scores realise, and does any linear score function?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Features
from structsvm_papk.data import validation
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, check_choice, check_number
from structsvm_papk.margins.proofs import (
    Proof,
    Weights,
    exact_margins,
    fractions,
)
from structsvm_papk.margins.separation import Outcome, Separator, largest_in_columns
from structsvm_papk.margins.subsets import NUMERICAL_ZERO, SubsetSearch

CONDITIONS = ("weak", "beta", "moderate", "strong")


@dataclass(frozen=True)
class MarginReport:
    """The margin conditions of Definitions 2-5 on one list, or on all lists together.

    Attributes
    ----------
    k : int
    delta : float
        The margin asked for.
    weak, beta, moderate, strong : bool
        Whether each condition holds with margin `delta`. Decided without rounding.
    delta_weak, delta_beta, delta_moderate, delta_strong : float
        The largest margin with which it holds; negative when none above zero, -inf when there is
        none at all (moderate, with a positive below a negative).
    """

    k: int
    delta: float
    weak: bool
    beta: bool
    moderate: bool
    strong: bool
    delta_weak: float
    delta_beta: float
    delta_moderate: float
    delta_strong: float

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values."""
        return asdict(self)


def check_scores(scores: ArrayLike, labels: ArrayLike, k: int, delta: float = 1.0) -> MarginReport:
    """Margin conditions of one list.

    With ``beta = min(n_pos, k)``, ``top = max q`` and the positives sorted decreasingly::

        weak      p_(beta) >= top + delta
        beta      mean of the beta smallest p >= top + delta
        moderate  p_(n_pos) >= top and p_(beta) >= top + delta
        strong    p_(n_pos) >= top + delta

    Parameters
    ----------
    scores : array of shape (n,)
    labels : array of shape (n,), 0/1, -1/1 or booleans
    k : int
    delta : float

    Raises
    ------
    InputError
        No positives, k > n_neg, NaN scores, labels that are not binary.

    Notes
    -----
    Definitions 2-5 of the paper. The comparisons are exact for the floats given.
    """
    return _report(*_checked(scores, labels), k, delta)


def _report(scores: Array, relevant: Array, k: int, delta: float) -> MarginReport:
    check_number("delta", delta)
    p = np.sort(scores[relevant])[::-1]
    q = scores[~relevant]
    if len(p) == 0:
        raise InputError("no positives: no margin condition is defined")
    check_number("k", k, least=1)
    if k > len(q):
        raise InputError(f"k = {k} with {len(q)} negatives: need 1 <= k <= n_neg")
    top = q.max()
    beta = min(len(p), k)
    bottom = p[len(p) - beta :]
    ordered = p[-1] >= top
    holds = {
        "weak": _at_least(p[beta - 1 : beta], top, delta),
        "beta": _at_least(bottom, top, delta),
        "strong": _at_least(p[-1:], top, delta),
    }
    delta_weak = float(p[beta - 1] - top)
    return MarginReport(
        k=int(k),
        delta=float(delta),
        moderate=bool(ordered and holds["weak"]),
        delta_weak=delta_weak,
        delta_beta=math.fsum([*bottom, *[-top] * beta]) / beta,
        delta_moderate=delta_weak if ordered else -math.inf,
        delta_strong=float(p[-1] - top),
        **holds,
    )


def check_users(
    scores: ArrayLike, labels: ArrayLike, groups: ArrayLike, k: int, delta: float = 1.0
) -> tuple[dict[Any, MarginReport], MarginReport]:
    """Margin conditions of every user, and of all users together.

    Parameters
    ----------
    scores, labels : array of shape (n,)
    groups : array of shape (n,)
        User of each row.
    k : int
    delta : float

    Returns
    -------
    users : dict of user -> MarginReport
    joint : MarginReport
        A condition holds jointly when it does for every user; its margin is the smallest one.
    """
    scores, relevant = _checked(scores, labels)
    names, codes = validation.encode(validation.check_ids(groups, scores.size))
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    users = {}
    for u, name in enumerate(names.tolist()):
        rows = order[bounds[u] : bounds[u + 1]]
        try:
            users[name] = _report(scores[rows], relevant[rows], k, delta)
        except InputError as problem:
            raise InputError(f"user {name!r}: {problem}") from None
    smallest = {}
    for each in fields(MarginReport):
        smallest[each.name] = min(getattr(report, each.name) for report in users.values())
    return users, MarginReport(**smallest)


def _at_least(values: Array, top: float, delta: float) -> bool:
    """``mean(values) >= top + delta``, exact: fsum rounds once, so its sign is right."""
    n = len(values)
    return math.fsum(list(values) + [-top] * n + [-float(delta)] * n) >= 0


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """Finite scores, and relevance."""
    scores = validation.check_scores(scores)
    infinite = ~np.isfinite(scores)
    if infinite.any():
        raise InputError(f"scores are infinite in {validation.rows_of(infinite)}")
    return scores, validation.check_labels(labels, scores.size)


@dataclass(frozen=True)
class Existence:
    """The answer to: is there a linear w that realises the condition with a positive margin?

    Any positive margin can be scaled to any other, so the answer does not depend on delta.

    Attributes
    ----------
    condition : str
    k : int
    answer : {"yes", "no", "undecided"}
    w : ndarray or None
        A realising w, normalised in `norm`.
    margin : float
        Its margin, from exact arithmetic; 0 when there is none.
    margin_bound : float
        No w of norm 1 has a larger margin: proved for strong and beta; for weak and moderate by
        the integer solver, in floating point, so columns should not be a million times apart.
    norm : {"l2", "linf"}
        "l2" for strong and beta, "linf" for weak and moderate.
    exact : bool
        The answer was re-verified in rational arithmetic. False for "undecided", and for a "no"
        that rests on the integer solver's numerical bound.
    proof : HullProof, SubsetProof, CommonProof or None
        Proof of "no"; for a "yes" to strong or beta, of `margin_bound`.
    w_exact : tuple of Fraction or None
        A realising w, not normalised, for which the condition holds exactly.
    seconds : float
    note : str
    """

    condition: str
    k: int
    answer: str
    w: np.ndarray | None
    margin: float
    margin_bound: float
    norm: str
    exact: bool
    proof: Proof | None = field(repr=False)
    w_exact: tuple[Fraction, ...] | None = field(repr=False)
    seconds: float
    note: str = ""

    def verify(self, X: Features, y: ArrayLike, groups: ArrayLike | None = None) -> bool:
        """Check the certificate again, from the data alone, in rational arithmetic."""
        data = RankingData.from_groups(X, y, groups)
        if self.answer == "yes" and self.w_exact is not None:
            margins = exact_margins(data, self.w_exact, self.k, self.condition)
            return all(m is not None and m > 0 for m in margins)
        if self.answer == "undecided" or self.proof is None:
            return False
        beta = tuple(np.minimum(data.n_pos, self.k).tolist())
        return self.proof.refutes(data, self.condition, beta)

    def as_dict(self) -> dict[str, Any]:
        """Return a summary as plain Python values."""
        names = ("condition", "k", "answer", "margin", "margin_bound", "norm", "exact")
        return {name: getattr(self, name) for name in names} | {
            "proof": None if self.proof is None else type(self.proof).__name__,
            "w": None if self.w is None else self.w.tolist(),
            "seconds": round(self.seconds, 3),
            "note": self.note,
        }


def find_scorer(
    X: Features,
    y: ArrayLike,
    k: int,
    condition: str,
    groups: ArrayLike | None = None,
    time_limit: float = 60.0,
    largest_margin: bool = True,
) -> Existence:
    """Search for one w, shared by all users, that realises a margin condition.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    k : int
    condition : {"weak", "beta", "moderate", "strong"}
    groups : array of shape (n_rows,), optional
        Without it all rows are one list.
    time_limit : float
        Seconds; after that the answer may be "undecided".
    largest_margin : bool
        Also maximise the margin over the unit ball (l2 for strong and beta, linf for weak and
        moderate).

    Raises
    ------
    InputError
        Unknown condition, a user without positives or with fewer than k negatives, NaN features, a
        column whose values are all too small to divide by (below 2.3e-308).
    """
    check_choice("condition", condition, CONDITIONS)
    check_number("time_limit", time_limit, above=0)
    data = RankingData.from_groups(X, y, groups).usable(k, "raise")
    return find_in_data(data, k, condition, time_limit, largest_margin)


def find_in_data(
    data: RankingData,
    k: int,
    condition: str,
    time_limit: float = 60.0,
    largest_margin: bool = True,
) -> Existence:
    """`find_scorer` for `RankingData` whose users all have a positive and k negatives."""
    _refuse_subnormal_columns(data)
    question = _Question(data, int(k), condition, time_limit, largest_margin)
    if condition == "weak":
        return question.weak()
    if condition == "moderate":
        return question.moderate()
    return question.convex()


def find_each(
    data: RankingData, k: int, conditions: Sequence[str], time_limit: float = 60.0
) -> dict[str, Existence]:
    """`find_in_data` for several conditions, of which moderate implies weak.

    So a "no" to weak is one to moderate, by the same proof, and a w with the moderate margin has
    the weak one.
    """
    answers: dict[str, Existence] = {}
    for condition in sorted(conditions, key=CONDITIONS.index):
        weak = answers.get("weak")
        if condition == "moderate" and weak is not None and weak.answer == "no" and weak.exact:
            answers[condition] = replace(weak, condition=condition, seconds=0.0)
        else:
            answers[condition] = find_in_data(data, k, condition, time_limit)
    if {"weak", "moderate"} <= answers.keys():
        weak = answers["weak"]
        moderate = answers["moderate"]
        if weak.answer == "no" and moderate.answer == "undecided":
            answers["moderate"] = replace(weak, condition="moderate", seconds=moderate.seconds)
        if weak.answer == "undecided" and moderate.answer == "yes":
            bound = max(weak.margin_bound, moderate.margin)
            answers["weak"] = replace(moderate, condition="weak", margin_bound=bound)
    return answers


def _refuse_subnormal_columns(data: RankingData) -> None:
    """Columns are divided by their size, which overflows where the size is subnormal."""
    size = largest_in_columns(data.X)
    smallest = np.finfo(np.float64).smallest_normal
    columns = np.flatnonzero((size > 0) & (size < smallest))
    if columns.size:
        raise InputError(
            f"column {columns[0]} (from 0) has no value above {smallest:.2g} in size, so that it "
            "cannot be scaled: give it in other units, or remove it"
        )


class _Question:
    """A condition on some data, and the time that its answer may take."""

    def __init__(
        self, data: RankingData, k: int, condition: str, time_limit: float, largest_margin: bool
    ) -> None:
        self.data = data
        self.k = k
        self.condition = condition
        self.time_limit = time_limit
        self.largest_margin = largest_margin
        self.start = time.monotonic()
        self.deadline = self._after(1.0)
        self._ones = np.ones(data.n_users, dtype=int)

    def _after(self, share: float) -> float:
        """When a share of the time is over."""
        return self.start + share * self.time_limit

    def convex(self) -> Existence:
        """Strong and beta: the margin is a concave function of w."""
        n_lowest = np.minimum(self.data.n_pos, self.k)
        if self.condition == "strong":
            n_lowest = self._ones
        separation = self._separated(
            n_lowest, deadline=self.deadline, largest_margin=self.largest_margin
        )
        bound = separation.proof.bound(self.data) if separation.proof else np.inf
        return self._result(separation.answer, separation.w, bound, separation.proof)

    def moderate(self) -> Existence:
        """The strong direction will do; where it is affordable, the whole question is asked."""
        search = SubsetSearch(self.data, self.k, self.deadline)
        outcome = _yes_if_found(self._strong_direction())
        if outcome.answer == "undecided":
            outcome = self._no_of_one_user(SubsetSearch.moderate, 0.3)
        if outcome.answer != "no" and (outcome.w is None or search.is_small):
            outcome = search.moderate()
        w = outcome.w
        bound = 0.0 if outcome.answer == "no" else np.inf
        if outcome.answer == "yes" and self.largest_margin and search.is_small:
            largest, bound = search.largest_margin("moderate", self.deadline)
            w = self._better(w, search.moved_inside(largest, inside=w))
        return self._result(outcome.answer, w, bound, outcome.proof)

    def weak(self) -> Existence:
        """A yes to moderate is one to weak, a no to one user is one to all; then the search."""
        search = SubsetSearch(self.data, self.k, self.deadline)
        outcome = search.moderate() if search.is_small else _yes_if_found(self._strong_direction())
        if outcome.answer != "yes":
            outcome = Outcome("undecided")
        if outcome.answer == "undecided" and not search.is_small:
            outcome = self._no_of_one_user(SubsetSearch.weak_conflicts, 0.3)
        if outcome.answer == "undecided" and not (self.largest_margin and search.is_small):
            outcome = search.weak_conflicts(self._after(0.4))
        w = self._direction(outcome)
        bound = np.inf
        if outcome.answer != "no" and search.is_small and (self.largest_margin or w is None):
            largest, bound = search.largest_margin("weak", self._after(0.7))
            w = self._better(w, largest)
            bound = max(0.0, bound)
        if outcome.answer == "undecided" and w is None:
            if search.is_small:
                outcome = self._no_of_one_user(SubsetSearch.weak_conflicts, 0.8)
            if outcome.answer == "undecided":
                outcome = search.weak_conflicts(self.deadline)
            w = self._direction(outcome)
        if outcome.answer == "no":
            return self._result("no", None, 0.0, outcome.proof)
        if w is not None:
            return self._result("yes", w, bound)
        if bound <= NUMERICAL_ZERO * search.unit:
            note = f"numerical, by the integer solver: no w with |w_j| <= 1 exceeds {bound:.1e}"
            return self._result("no", None, bound, note=note)
        return self._result("undecided", None, bound, note="time limit reached")

    def _no_of_one_user(self, ask: Callable[[SubsetSearch], Outcome], share: float) -> Outcome:
        """A no to one user alone is one to all together: its proof holds for these as well."""
        if self.data.n_users == 1:
            return Outcome("undecided")
        deadline = self._after(share)
        users = np.arange(self.data.n_users)
        for u in users:
            if time.monotonic() > deadline:
                break
            outcome = ask(SubsetSearch(self.data.subset(users == u), self.k, deadline))
            if outcome.answer == "no" and outcome.proof is not None:
                needed = tuple(np.minimum(self.data.n_pos, self.k).tolist())
                return Outcome("no", proof=outcome.proof.of_all_users(needed))
        return Outcome("undecided")

    def _direction(self, outcome: Outcome) -> Weights | None:
        """The w of an outcome, which may hold positives that some w lifts instead."""
        if outcome.choice is None:
            return outcome.w
        return self._separated(
            self._ones, outcome.choice, deadline=self.deadline, largest_margin=False
        ).w

    def _separated(
        self, n_lowest: Array, chosen: Array | None = None, *, deadline: float, largest_margin: bool
    ) -> Outcome:
        return Separator(self.data, n_lowest, chosen, deadline).solve(largest_margin)

    def _strong_direction(self) -> Array | None:
        """A w with the strong margin, which realises every condition; None: not found soon."""
        return self._separated(self._ones, deadline=self._after(0.5), largest_margin=False).w

    def _better(self, w: Weights | None, candidate: Weights | None) -> Weights | None:
        """The one of two directions with the larger exact normalised margin; None if neither."""
        best = None
        best_margin = Fraction(0)
        for direction in (w, candidate):
            if direction is None or not any(direction):
                continue
            margins = exact_margins(self.data, direction, self.k, self.condition)
            if None in margins:
                continue
            margin = min(margins) / max(abs(weight) for weight in fractions(direction))
            if margin > best_margin:
                best = direction
                best_margin = margin
        return best

    def _result(
        self,
        answer: str,
        w: Weights | None,
        bound: float,
        proof: Proof | None = None,
        note: str = "no certificate within the limits",
    ) -> Existence:
        """Assemble the answer; the margin of w is computed exactly and rounded down."""
        margin = 0.0
        direction = None
        exact_w = None
        norm = "l2" if self.condition in ("strong", "beta") else "linf"
        if answer == "yes" and w is not None:
            rounded = np.array([float(v) for v in w])
            size = np.linalg.norm(rounded) if norm == "l2" else np.abs(rounded).max()
            exact = min(exact_margins(self.data, w, self.k, self.condition))
            margin = float(exact) / float(size) * (1 - 1e-15)  # no more than the exact one
            direction = rounded / size
            exact_w = tuple(fractions(w))
        is_exact = answer == "yes" or (answer == "no" and proof is not None)
        return Existence(
            condition=self.condition,
            k=self.k,
            answer=answer,
            w=direction,
            margin=margin,
            margin_bound=max(float(bound), margin),
            norm=norm,
            exact=is_exact,
            proof=proof,
            w_exact=exact_w,
            seconds=time.monotonic() - self.start,
            note="" if is_exact else note,
        )


def _yes_if_found(w: Weights | None) -> Outcome:
    """What a direction says, or that there is none yet."""
    if w is None:
        return Outcome("undecided")
    return Outcome("yes", w)
