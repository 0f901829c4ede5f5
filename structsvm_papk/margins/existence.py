"""Does any linear score function realise a margin condition? Answers with certificates."""

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import check_choice, check_number
from structsvm_papk.margins.proofs import (
    CommonProof,
    HullProof,
    SubsetProof,
    exact_margins,
    fractions,
)
from structsvm_papk.margins.scores import CONDITIONS
from structsvm_papk.margins.separation import Separator
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
        names = ("condition", "k", "answer", "margin", "margin_bound", "norm", "exact")
        return {name: getattr(self, name) for name in names} | {
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
    question = _Question(data, int(k), condition, time_limit, largest_margin)
    return {"weak": question.weak, "moderate": question.moderate}.get(condition, question.convex)()


class _Question:
    """A condition on some data, and the time that its answer may take."""

    def __init__(self, data, k, condition, time_limit, largest_margin):
        self.data, self.k, self.condition = data, k, condition
        self.time_limit, self.largest_margin = time_limit, largest_margin
        self.start = time.monotonic()
        self.deadline = self._after(1.0)

    def _after(self, share):
        """When a share of the time is over."""
        return self.start + share * self.time_limit

    def convex(self):
        beta = np.minimum(self.data.n_pos, self.k)
        found = self._separated(np.ones_like(beta) if self.condition == "strong" else beta)
        bound = found.proof.bound(self.data) if found.proof else np.inf
        return self._result(found.answer, found.w, bound, found.proof)

    def moderate(self):
        search = SubsetSearch(self.data, self.k, self.deadline)
        w, proof = self._strong_direction(), None
        answer = "yes" if w is not None else "undecided"
        if w is None or search.is_small:
            answer, w, proof = search.moderate()
        bound = 0.0 if answer == "no" else np.inf
        if answer == "yes" and self.largest_margin and search.is_small:
            better, bound = search.largest_margin("moderate", self.deadline)
            w = self._better(w, search.with_exact_ties(better))
        return self._result(answer, w, bound, proof)

    def weak(self):
        """Integer programme first when the largest margin is wanted, else the cheap questions."""
        search = SubsetSearch(self.data, self.k, self.deadline)
        found, bound = None, np.inf
        if not search.is_small:
            found = self._strong_direction()
        elif not self.largest_margin:
            answer, w, _ = search.moderate()
            found = w if answer == "yes" else search.weak_conflicts(self._after(0.4))
        if found is None and search.is_small:
            w, bound = search.largest_margin("weak", self._after(0.7))
            found, bound = self._better(None, w), max(0.0, bound)
        found = search.weak_conflicts(self.deadline) if found is None else found
        if isinstance(found, SubsetProof):
            return self._result("no", None, 0.0, found)
        if isinstance(found, np.ndarray) and found.dtype == bool:  # positives that can be lifted
            ones = np.ones(self.data.n_users, dtype=int)
            found = self._separated(ones, found, largest_margin=False).w
        if found is not None:
            return self._result("yes", found, bound)
        if bound <= NUMERICAL_ZERO:
            note = f"numerical, by the integer solver: no w with |w_j| <= 1 exceeds {bound:.1e}"
            return self._result("no", None, bound, note=note)
        return self._result("undecided", None, bound, note="time limit reached")

    def _separated(self, n_lowest, chosen=None, deadline=None, largest_margin=None):
        separator = Separator(self.data, n_lowest, chosen, deadline or self.deadline)
        return separator.solve(self.largest_margin if largest_margin is None else largest_margin)

    def _strong_direction(self):
        """A w with the strong margin, which realises every condition; None: not found soon."""
        ones = np.ones(self.data.n_users, dtype=int)
        return self._separated(ones, None, self._after(0.5), False).w

    def _better(self, w, candidate):
        """The one of two directions with the larger exact normalised margin; None if neither."""
        best, best_margin = None, Fraction(0)
        for direction in (w, candidate):
            if direction is None or not any(direction):
                continue
            margins = exact_margins(self.data, direction, self.k, self.condition)
            margin = 0 if None in margins else min(margins) / max(map(abs, fractions(direction)))
            if margin > best_margin:
                best, best_margin = direction, margin
        return best

    def _result(self, answer, w, bound, proof=None, note="no certificate within the limits"):
        """Assemble the answer; the margin of w is computed exactly and rounded down."""
        margin, direction, exact_w = 0.0, None, None
        norm = "l2" if self.condition in ("strong", "beta") else "linf"
        if answer == "yes":
            rounded = np.array([float(v) for v in w])
            size = np.linalg.norm(rounded) if norm == "l2" else np.abs(rounded).max()
            exact = min(exact_margins(self.data, w, self.k, self.condition))
            margin = float(exact) / float(size) * (1 - 1e-15)
            direction = rounded / size
            exact_w = tuple(fractions(w))
        is_exact = answer == "yes" or (answer == "no" and proof is not None)
        note = "" if is_exact else note
        seconds = time.monotonic() - self.start
        found = self.condition, self.k, answer, direction, margin, max(float(bound), margin), norm
        return Existence(*found, is_exact, proof, exact_w, seconds, note)
