"""Does any linear score function realise a margin condition? Answers with certificates."""

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import check_choice, check_number
from structsvm_papk.margins.exact import exact_linf, exact_margins, fractions
from structsvm_papk.margins.many_users import separator_for
from structsvm_papk.margins.proofs import CommonProof, HullProof, SubsetProof
from structsvm_papk.margins.scores import CONDITIONS
from structsvm_papk.margins.subsets import NUMERICAL_ZERO, SubsetSearch


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
        No w of norm 1 has a larger margin.
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
    proof: HullProof | SubsetProof | CommonProof | None
    w_exact: tuple[Fraction, ...] | None
    seconds: float
    note: str = ""

    def verify(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> bool:
        """Check the certificate again, from the data alone, in rational arithmetic."""
        data = RankingData.from_groups(X, y, groups)
        if self.answer == "yes":
            margins = exact_margins(data, self.w_exact, self.k, self.condition)
            return all(m is not None and m > 0 for m in margins)
        if self.answer == "undecided" or self.proof is None:
            return False
        beta = tuple(np.minimum(data.n_pos, self.k).tolist())
        if not isinstance(self.proof, HullProof):
            return self.proof.needed == beta and self.proof.is_valid(data)
        asked = beta if self.condition == "beta" else (1,) * data.n_users
        about_this = self.proof.n_lowest == asked
        return about_this and self.proof.is_valid(data) and not any(self.proof.vector(data))

    def as_dict(self) -> dict[str, Any]:
        """Return a summary as plain Python values."""
        return {
            "condition": self.condition,
            "k": self.k,
            "answer": self.answer,
            "margin": self.margin,
            "margin_bound": self.margin_bound,
            "norm": self.norm,
            "exact": self.exact,
            "proof": None if self.proof is None else type(self.proof).__name__,
            "w": None if self.w is None else self.w.tolist(),
            "seconds": round(self.seconds, 3),
            "note": self.note,
        }


def find_scorer(
    X: Any,
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

    Returns
    -------
    Existence

    Raises
    ------
    InputError
        Unknown condition, a user without positives or with fewer than k negatives, NaN features.
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
    k, start = int(k), time.monotonic()
    deadline = start + time_limit
    if condition in ("strong", "beta"):
        return _convex(data, k, condition, start, deadline, largest_margin)
    if condition == "moderate":
        return _moderate(data, k, start, deadline, largest_margin)
    return _weak(data, k, start, deadline, largest_margin)


def _convex(data, k, condition, start, deadline, largest_margin):
    beta = np.minimum(data.n_pos, k)
    n_lowest = np.ones_like(beta) if condition == "strong" else beta
    found = separator_for(data, n_lowest, deadline=deadline).solve(largest_margin)
    bound = found.proof.bound(data, "l2") if found.proof else np.inf
    note = "" if found.answer != "undecided" else "no certificate within the limits"
    return _result(data, k, condition, found.answer, found.w, bound, "l2", found.proof, start, note)


def _moderate(data, k, start, deadline, largest_margin):
    search = SubsetSearch(data, k, deadline)
    w, proof = _strong_direction(data, start, deadline), None
    answer = "yes" if w is not None else "undecided"
    if w is None or search.is_small:
        answer, w, proof = search.moderate()
    bound = 0.0 if answer == "no" else np.inf
    if answer == "yes" and largest_margin and search.is_small:
        better, bound = search.largest_margin("moderate", deadline)
        w = _better(data, k, "moderate", w, search.with_exact_ties(better))
    note = "" if answer != "undecided" else "no certificate within the limits"
    return _result(data, k, "moderate", answer, w, bound, "linf", proof, start, note)


def _weak(data, k, start, deadline, largest_margin):
    """Integer programme first when the largest margin is wanted, else the cheap questions first."""
    search = SubsetSearch(data, k, deadline)
    if not search.is_small:
        w = _strong_direction(data, start, deadline)
        found = search.weak_conflicts(deadline) if w is None else w
        return _weak_result(data, k, start, deadline, found, np.inf)
    if not largest_margin:
        answer, w, _ = search.moderate()
        found = w if answer == "yes" else search.weak_conflicts(_share(start, deadline, 0.4))
        if found is not None:
            return _weak_result(data, k, start, deadline, found, np.inf)
    w, bound = search.largest_margin("weak", _share(start, deadline, 0.7))
    bound = max(0.0, bound)
    found = _better(data, k, "weak", None, w)
    found = search.weak_conflicts(deadline) if found is None else found
    return _weak_result(data, k, start, deadline, found, bound)


def _strong_direction(data, start, deadline):
    """A w with the strong margin, which realises every condition; None when none is found soon."""
    ones = np.ones(data.n_users, dtype=int)
    return separator_for(data, ones, deadline=_share(start, deadline, 0.5)).solve(False).w


def _share(start, deadline, share):
    return start + share * (deadline - start)


def _weak_result(data, k, start, deadline, found, bound):
    """From a direction, a proof, a choice of positives that can be lifted, or nothing."""
    if isinstance(found, SubsetProof):
        return _result(data, k, "weak", "no", None, 0.0, "linf", found, start)
    if isinstance(found, np.ndarray) and found.dtype == bool:
        ones = np.ones(data.n_users, dtype=int)
        found = separator_for(data, ones, found, deadline).solve(largest_margin=False).w
    if found is not None:
        return _result(data, k, "weak", "yes", found, bound, "linf", None, start)
    if bound <= NUMERICAL_ZERO:
        note = f"numerical, by the integer solver: no w with |w_j| <= 1 exceeds {bound:.1e}"
        return _result(data, k, "weak", "no", None, bound, "linf", None, start, note)
    return _result(
        data, k, "weak", "undecided", None, bound, "linf", None, start, "time limit reached"
    )


def _better(data, k, condition, w, candidate):
    """Return the one of two directions with the larger exact normalised margin; None if neither."""
    best, best_margin = None, Fraction(0)
    for direction in (w, candidate):
        if direction is None or not any(direction):
            continue
        margins = exact_margins(data, direction, k, condition)
        if any(m is None for m in margins):
            continue
        margin = min(margins) / exact_linf(direction)
        if margin > best_margin:
            best, best_margin = direction, margin
    return best


def _result(data, k, condition, answer, w, bound, norm, proof, start, note=""):
    """Assemble the answer; the margin of w is computed exactly and rounded down."""
    margin, direction, exact_w = 0.0, None, None
    if answer == "yes":
        rounded = np.array([float(v) for v in w])
        size = np.linalg.norm(rounded) if norm == "l2" else np.abs(rounded).max()
        exact = min(exact_margins(data, w, k, condition))
        margin = float(exact) / float(size) * (1 - 1e-15)
        direction = rounded / size
        exact_w = tuple(fractions(w))
    exact_answer = answer == "yes" or (answer == "no" and proof is not None)
    return Existence(
        condition=condition,
        k=k,
        answer=answer,
        w=direction,
        margin=margin,
        margin_bound=max(float(bound), margin),
        norm=norm,
        exact=exact_answer,
        proof=proof,
        w_exact=exact_w,
        seconds=time.monotonic() - start,
        note=note,
    )
