"""What is minimised: what a setting says, and what stands for 'auto'.

How strong the penalty is where nobody says, the rule behind ``alpha="auto"``, is

    alpha = 12 m (d / p)^1.5        d = (sum_f var_f)^2 / sum_f var_f^2,    m = mean of var_f

over the columns f that vary within lists, by their variances var_f there as the penalty sees them;
p is the number of positives of the lists that train. Where each column is divided by its deviation
m = 1 and d is their number: columns against labels that say something. A list of eighty positives
says more than one of three, so lists do not count. Where the columns are not of one size, as those
of a sparse X and rare indicators beside numbers, d is their effective number (the participation
ratio), and with m their unit does not matter.

Power and factor are measured (`benchmarks/results/penalty.md`): loss to the best alpha in hindsight
on seven sets, 2 to 1,000 lists. The default C of SVM^light (Joachims, Making
large-scale SVM learning practical, 1999) has the sum of the variances in it, too.

One list says nothing about other lists, and how clean its labels are decides: there alpha is chosen
by folds of its rows (`one_list`), and is .1 m where they are too few or too many for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.checks import LOWEST
from structsvm_papk.errors import AUTO, InputError, check_number, is_auto, whole_number
from structsvm_papk.surrogates import Surrogate, check_surrogate, make_surrogate
from structsvm_papk.surrogates.losses import SURROGATES

AUTO_DEPTH = 0.9  # share of the negatives that depth='auto' counts
# The same with missing="lowest": the last negatives are those that hardly any source returned,
# and what puts these still further down is no help at the top (docs/howto/missing.md).
AUTO_DEPTH_OF_HOLES = 0.5
# What a fit without further settings takes, in Python and on the command line: docs/howto/tune.md.
SURROGATE = AUTO  # Avg, and for one list what its folds choose: `rankers.choosing`
DEPTH = "auto"
ALPHA = AUTO
SURROGATE_OF_LISTS = "avg"
SURROGATES_OF_ONE_LIST = ("avg", "pauc")

# How many times stronger the penalty is on the pieces of a curve than on its straight part
STIFFNESS = 3.0  # benchmarks/results/columns.md
STIFF = 30.0  # what folds try besides

PAIRS = 20  # what `pairs="auto"` tries,
MANY_PAIRS = 300  # and this of many columns,
MANY_OF_ONE_LIST = 150  # of one list this, whose fits take longer

FACTOR = 12.0
POWER = 1.5
OF_ONE_LIST = 0.1
_LEAST = 1e-150
_MOST = 1e150
_OVERFLOWS = 1e300  # as the variance of a column that is not divided by its own deviation


def as_depth(depth: Any, missing: str | None = None) -> int | float | None:
    """The training depth that surrogates take, of one that may be 'auto'."""
    if not is_auto(depth):
        if isinstance(depth, str):
            raise InputError(
                f"depth={depth!r} must be a whole number of at least k, a share between 0 and 1, "
                "None for k, or 'auto'"
            )
        return depth
    return AUTO_DEPTH_OF_HOLES if missing == LOWEST else AUTO_DEPTH


def k_of(k: Any, surrogates: Iterable[Any]) -> int:
    """k as given, or that of the surrogates that are objects, or 1; they must not disagree."""
    known: dict[int, str] = {}
    if k is not None:
        known[whole_number("k", k)] = "the k that was given"
    objects = [surrogate for surrogate in surrogates if isinstance(surrogate, Surrogate)]
    for surrogate in objects:
        known.setdefault(surrogate.k, f"that of surrogate {surrogate.label}")
    if len(known) > 1:
        values = ", ".join(f"{number} ({what})" for number, what in known.items())
        raise InputError(f"k is {values}: give one of them, k or {type(objects[0]).__name__}(k=..)")
    return next(iter(known), 1)


def as_surrogate(given: Any, k: int, depth: Any, missing: str | None = None) -> Surrogate:
    """The surrogate of a name, or an object, whose own depth has to agree with the given one.

    'auto' is Avg here.
    """
    if not isinstance(given, Surrogate):
        name = SURROGATE_OF_LISTS if is_auto(given) else given
        return make_surrogate(name, k, as_depth(depth, missing))
    check_surrogate(given)
    if given.name in SURROGATES and given.is_custom:
        raise InputError(
            f"{type(given).__name__} is called {given.name!r}, as a surrogate of the package is: "
            "give the class a `name` of its own"
        )
    if given.depth is None:
        return replace(given, depth=as_depth(depth, missing))
    if not is_auto(depth) and depth != given.depth:
        raise InputError(
            f"depth={depth!r}, but surrogate {given.label} has depth={given.depth!r}: give one of "
            "them"
        )
    return given


@dataclass(frozen=True)
class Setting:
    """What is minimised, beside the data."""

    surrogate: Surrogate
    user_weight: str
    alpha: float | str  # 'auto' until the data are known
    pieces: int | None = None  # of a curve; None: the columns are lines
    stiffness: float = STIFFNESS  # how many times stronger the penalty is on pieces and cells
    n_pairs: int | None = None  # of columns

    def with_surrogate(self, name: str) -> Setting:
        """The same with a surrogate of the package at the same k and depth."""
        surrogate = self.surrogate
        return replace(self, surrogate=make_surrogate(name, surrogate.k, surrogate.depth))

    @property
    def known_alpha(self) -> float:
        """`alpha`, once the data have made it a number."""
        assert not is_auto(self.alpha)
        return float(self.alpha)

    @property
    def name(self) -> str:
        """What the surrogate is called."""
        return self.surrogate.label


# --- the rule behind alpha="auto" -----------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What the rule knows of a problem.

    Attributes
    ----------
    variances : ndarray of shape (n_features,)
        Of the columns within lists, in the units in which the penalty sees them.
    n_lists : float
        Lists that train; with weights v of users ``(sum v)^2 / sum v^2``, their effective number.
    n_pos : float
        Positives of these lists: their mean number times `n_lists`; of grades as
        `RankingData.total_positives` counts.
    """

    variances: Array
    n_lists: float
    n_pos: float

    @classmethod
    def of(cls, given: Any, trained: Any) -> Evidence:
        """Of what `fit` was given, and of the lists of it that train: lists, or a risk of both."""
        deviation = given.units.deviation(given.deviation())
        n_lists = trained.effective_users
        with np.errstate(over="ignore"):  # of columns that are left out below
            variances = np.square(deviation)
        return cls(
            variances=variances,
            n_lists=n_lists,
            n_pos=n_lists * (trained.total_positives / trained.n_users),
        )

    @property
    def n_columns(self) -> float:
        """Effective number of columns, ``(sum var)^2 / sum var^2``; 1 where none varies."""
        varying = self._varying
        if not varying.size:
            return 1.0
        shares = varying / varying.max()  # so that their squares are numbers
        return float(shares.sum() ** 2 / np.square(shares).sum())

    @property
    def mean_variance(self) -> float:
        """Of the columns that vary; 1 where none does."""
        varying = self._varying
        if not varying.size:
            return 1.0
        mean = varying.max() * np.mean(varying / varying.max())
        return float(np.clip(mean, _LEAST, _MOST))

    @property
    def _varying(self) -> Array:
        """Variances above zero.

        One that overflows would make the penalty so strong that the other columns had no weight,
        so it counts, as the largest number there is room for, only where all overflow.
        """
        varying = self.variances[self.variances > 0.0]
        usual = varying[varying < _OVERFLOWS]
        return usual if usual.size else np.minimum(varying, _OVERFLOWS)


def automatic_alpha(evidence: Evidence) -> float:
    """What ``alpha="auto"`` stands for."""
    if evidence.n_lists <= 1.0:
        return OF_ONE_LIST * evidence.mean_variance
    return FACTOR * evidence.mean_variance * (evidence.n_columns / evidence.n_pos) ** POWER


def check_alpha(alpha: Any) -> None:
    """Refuse what is neither 'auto' nor a number above zero."""
    if not is_auto(alpha):
        check_number("alpha", alpha, above=0)
