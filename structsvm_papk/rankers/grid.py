"""The settings that a search tries: every combination once, its neighbours by default."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data.column_scale import check_standardize
from structsvm_papk.data.ranking_data import Exclusions, RankingData
from structsvm_papk.data.user_scaling import check_user_scaling
from structsvm_papk.errors import InputError, as_floats, as_names, check_choice
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all, users_needed
from structsvm_papk.rankers.settings import (
    USER_WEIGHTS,
    Setting,
    as_depth,
    is_auto,
    make_solver,
    order_of_depth,
)
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates.losses import SURROGATES

# Alphas that 'auto' tries, in multiples of what PAPKRanker takes. Of .01 the fits take as long as
# all others together, and on none of the three sets where it was tried it was best.
ALPHAS = (100.0, 10.0, 1.0, 0.1)
ALPHAS_OF_OTHERS = (1.0,)  # other scalings of columns, other surrogates than the first
_ONE_UNIT = 30.0  # ratio of usual large to small divisors up to which columns may share a unit
_SAME = 1.5  # and from which on their own units differ from what they are divided by


class ColumnScaling(NamedTuple):
    """How columns are scaled: inside each list, and by one number each."""

    user_scaling: str | None
    standardize: bool | str


@dataclass(frozen=True)
class Candidate:
    """A setting that is tried, and the alpha that `PAPKRanker` takes on the same lists."""

    setting: Setting
    usual_alpha: float

    def n_differing(self, default: Setting) -> int:
        """In how many parts the setting differs from a default, whose alpha is the usual one."""
        parts = self.setting.as_dict()
        usual = default.as_dict() | {"alpha": self.usual_alpha}
        return sum(parts[name] != usual[name] for name in parts)

    def distance(self, default: Setting) -> tuple[float, ...]:
        """How far from a default: differing parts, then the alpha, then how much less deep."""
        alpha = abs(float(np.log(self.setting.known_alpha / self.usual_alpha)))
        depth = [-x for x in order_of_depth(self.setting.depth)]
        return self.n_differing(default), alpha, *depth


def grid(
    k: int,
    data: RankingData,
    usual_alpha: Mapping[str, float],
    *,
    surrogates: Sequence[str | Surrogate],
    depths: str | Sequence[int | float | None],
    user_weights: Sequence[str],
    alphas: str | ArrayLike,
    columns: ColumnScaling,
    usual_columns: bool = True,
    missing: str | None = None,
) -> list[Candidate]:
    """Every combination once, of lists whose columns are scaled already.

    The parameters are those of `PAPKRankerCV`; `usual_alpha` has what `PAPKRanker` takes with each
    weighting of users, and `usual_columns` says whether these lists are scaled as its are.

    Raises
    ------
    InputError
        Names, depths or alphas that cannot be, or nothing to try.
    """
    weights = as_names("user_weights", user_weights)
    for weight in weights:
        check_choice("user_weights", weight, USER_WEIGHTS)
    weights = ("equal",) if data.user_weight is not None else weights
    auto = is_auto(depths)
    depths, few_depths = _depths(depths, missing)
    for name, values in (("surrogates", surrogates), ("depths", depths), ("user_weights", weights)):
        _refuse_empty(name, values)
    candidates = []
    for given, weight in product(surrogates, weights):
        kind = SURROGATES.get(given) if isinstance(given, str) else given
        tried = depths if getattr(kind, "convex", True) else few_depths
        if auto and getattr(kind, "depth", None) is not None:
            tried = ["auto"]  # that of the object
        is_usual = usual_columns and given is surrogates[0]
        tried_alphas = _alphas(
            alphas, usual_alpha[weight], ALPHAS if is_usual else ALPHAS_OF_OTHERS
        )
        _refuse_empty("alphas", tried_alphas)
        for depth, alpha in product(tried, tried_alphas):
            parts = depth, weight, float(alpha), *columns
            setting = Setting.of(given, *parts, missing=missing)
            candidates.append(Candidate(setting, usual_alpha[weight]))
    for candidate in candidates:
        made = candidate.setting.make(k)
        make_solver("auto", made, candidate.setting.known_alpha)
        refuse_deeper_than_all(made, data.most_negatives)
    unique = list(dict.fromkeys(candidates))
    names = {candidate.setting.surrogate: candidate.setting.name for candidate in unique}
    for surrogate, name in names.items():
        if list(names.values()).count(name) > 1:
            raise InputError(
                f"surrogates of two classes are called {name!r}: rename {type(surrogate).__name__}"
            )
    return unique


def column_choices(user_scaling: Any, standardize: Any, data: RankingData) -> list[ColumnScaling]:
    """The scalings of columns to try, each once, the default first.

    None: the columns as they are and, where `standardize` is 'auto' and they may share a unit, in
    that unit; of one list also its ranks, since `predict` is then called as without. 'auto': ranks
    within lists, too. A sparse X is tried as it is.
    """
    check_standardize(standardize)
    if user_scaling is not None and not is_auto(user_scaling):
        return [ColumnScaling(scaling, standardize) for scaling in scalings(user_scaling)]
    choices = [ColumnScaling(None, standardize)]
    if data.is_sparse:
        return choices
    if data.one_list or is_auto(user_scaling):
        choices.append(ColumnScaling("rank", standardize))
    if isinstance(standardize, str) and _may_share_a_unit(data):
        choices.append(ColumnScaling(None, False))
    return choices


def _may_share_a_unit(data: RankingData) -> bool:
    """Whether what columns are divided by is neither all alike nor of different kinds."""
    if data.with_holes.any():
        return False
    variation = data.variation()
    scale = variation.scale(variation.rule("auto"))[variation.deviation > 0.0]
    if not scale.size:
        return False
    small, large = np.quantile(scale, [0.1, 0.9])
    return bool(_SAME * small < large < _ONE_UNIT * small)


def scalings(user_scaling: Any) -> list[str | None]:
    """The scalings to try, each once: those of a sequence, or the one that is given."""
    is_name = isinstance(user_scaling, str) or not isinstance(user_scaling, Iterable)
    names = (user_scaling,) if is_name else as_names("user_scaling", user_scaling)
    _refuse_empty("user_scaling", names)
    return list(dict.fromkeys(check_user_scaling(name) for name in names))


def _refuse_empty(name: str, values: Any) -> None:
    if isinstance(values, str) or not len(np.atleast_1d(np.asarray(values, object))):
        raise InputError(f"{name} must be a sequence with something in it, got {values!r}")


def users_without_use(
    settings: Sequence[Setting], k: int, policy: str, data: RankingData
) -> Exclusions:
    """Users whom no setting can use; refused where some setting is left without users."""
    needs = {users_needed(setting.make(k), policy) for setting in settings}
    exclusions = [
        data.checked_exclusions(need.negatives, need.policy, need.setting) for need in sorted(needs)
    ]
    return min(exclusions, key=lambda of_setting: of_setting.n_excluded)


def _depths(depths: Any, missing: str | None) -> tuple[Any, Any]:
    """Depths of the convex surrogates, and of the others.

    'auto': that of `PAPKRanker`, and k for the others, whose fits take ten times as long.
    """
    if not is_auto(depths):
        return (as_names("depths", depths),) * 2
    return (as_depth("auto", missing),), (None,)


def _alphas(alphas: Any, usual: float, multiples: Sequence[float]) -> Array:
    """Alphas from the largest on; 'auto': multiples of the usual one."""
    if not is_auto(alphas):
        return np.unique(as_floats("alphas", alphas))[::-1]
    return usual * np.array(multiples)
