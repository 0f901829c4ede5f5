"""The settings that `PAPKRankerCV` tries."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk.data.ranking_data import Exclusions, RankingData
from structsvm_papk.data.user_scaling import check_user_scaling
from structsvm_papk.errors import InputError, as_floats, as_names
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all, users_needed
from structsvm_papk.rankers.settings import Setting, make_solver
from structsvm_papk.surrogates import SURROGATES, Surrogate

ALPHAS = (1e-2, 1e-3, 1e-4)  # of features that vary by 1 within users
_DEPTHS = (0.0, 0.5, 0.75, 0.95)  # between k and all negatives, on a logarithmic scale
_MANY_ROWS = 10_000  # from which 'auto' tries surrogates that are not convex at one point only


def grid(
    k: int,
    surrogates: Sequence[str | Surrogate],
    depths: str | Sequence[int | float | None],
    user_weights: Sequence[str],
    alphas: str | ArrayLike,
    data: RankingData,
    user_scaling: str | None,
) -> list[Setting]:
    """Every combination once, of lists that are scaled already.

    The parameters are those of `PAPKRankerCV`.

    Raises
    ------
    InputError
        Names, depths or strengths that cannot be, or nothing to try.
    """
    surrogates, weights = as_names("surrogates", surrogates), as_names("user_weights", user_weights)
    most = int(data.n_neg.max())
    if k > most:
        raise InputError(
            f"k={k} is larger than the number of negatives of every user (at most {most}); choose "
            f"k <= {most}"
        )
    weights = ("equal",) if data.user_weight is not None else weights
    auto, (depths, few_depths) = _is_auto(depths), _depths(k, depths, data)
    strengths, few_strengths = _alphas(alphas, data)
    lists = {"surrogates": surrogates, "depths": depths, "user_weights": weights}
    for name, values in {**lists, "alphas": strengths}.items():
        _refuse_empty(name, values)
    settings = []
    for given, weight in product(surrogates, weights):
        kind = SURROGATES.get(given) if isinstance(given, str) else given
        convex = getattr(kind, "convex", True)
        tried = depths if convex else few_depths
        if auto and getattr(kind, "depth", None) is not None:
            tried = ["auto"]  # that of the object
        for depth, alpha in product(tried, strengths if convex else few_strengths):
            settings.append(Setting.of(given, depth, weight, float(alpha), user_scaling))
    for setting in settings:
        surrogate = setting.make(k)
        make_solver("auto", surrogate, setting.alpha)
        data.weighted(setting.user_weight)
        refuse_deeper_than_all(surrogate, data.most_negatives)
    unique = list(dict.fromkeys(settings))
    kinds = {setting.surrogate: setting.name for setting in unique}
    for kind, name in kinds.items():
        if list(kinds.values()).count(name) > 1:
            own = type(kind).__name__
            raise InputError(f"surrogates of two classes are called {name!r}: rename {own}")
    return unique


def scalings(user_scaling: Any) -> list[str | None]:
    """The scalings to try, each once: those of a sequence, or the one that is given."""
    one = isinstance(user_scaling, str) or not isinstance(user_scaling, Iterable)
    names = (user_scaling,) if one else as_names("user_scaling", user_scaling)
    _refuse_empty("user_scaling", names)
    for name in names:
        check_user_scaling(name)
    return list(dict.fromkeys(names))


def _refuse_empty(name: str, values: Any) -> None:
    if isinstance(values, str) or not len(np.atleast_1d(np.asarray(values, object))):
        raise InputError(f"{name} must be a sequence with something in it, got {values!r}")


def users_without_use(
    settings: Sequence[Setting], k: int, policy: str, data: RankingData
) -> Exclusions:
    """Users whom no setting can use; refused where some setting is left without users."""
    needs = {users_needed(setting.make(k), policy) for setting in settings}
    found = [data.checked_exclusions(needed, how, name) for needed, name, how in sorted(needs)]
    return min(found, key=lambda exclusions: exclusions.n_excluded)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _depths(k: int, depths: Any, data: RankingData) -> tuple[Any, Any]:
    """Depths of the convex surrogates, and of the others.

    'auto': k and three larger numbers, on a logarithmic scale up to most negatives of a usual user;
    for the others the lower half, or k where the data are large.
    """
    if not _is_auto(depths):
        return (as_names("depths", depths),) * 2
    learnable = data.n_pos > 0
    usual = float(np.median(data.n_neg[learnable])) if learnable.any() else k
    ratio = max(usual / k, 1.0)
    depths = list(dict.fromkeys(round(k * ratio**power) for power in _DEPTHS))
    return depths, depths[:1] if data.rows.size >= _MANY_ROWS else depths[:2]


def _alphas(alphas: Any, data: RankingData) -> tuple[Any, Any]:
    """Strengths for the convex surrogates, and for the others, from the strongest on.

    'auto': in proportion to the mean variance of a feature within users, constant ones left out;
    of standardized columns that is 1.
    """
    if not _is_auto(alphas):
        alphas = np.unique(as_floats("alphas", alphas))[::-1]
        return alphas, alphas
    spread = data.deviation() if data.column_scale is None else np.ones(1)
    unit = float(np.mean(np.square(spread[spread > 0.0]))) if (spread > 0.0).any() else 1.0
    alphas = np.array([float(f"{alpha * unit:.3g}") for alpha in ALPHAS])
    return alphas, alphas[1:2] if data.rows.size >= _MANY_ROWS else alphas
