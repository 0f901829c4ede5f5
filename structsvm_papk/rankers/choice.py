"""The settings that a search tries, what they score on held-out users, and which one it takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from structsvm_papk._types import Array
from structsvm_papk.data.column_scale import check_standardize
from structsvm_papk.data.ranking_data import Exclusions, RankingData
from structsvm_papk.data.user_scaling import check_user_scaling
from structsvm_papk.errors import InputError, as_floats, as_names, check_choice
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all, users_needed
from structsvm_papk.rankers.settings import (
    DEFAULT,
    USER_WEIGHTS,
    OfLists,
    Setting,
    as_depth,
    make_solver,
    order_of_depth,
)
from structsvm_papk.surrogates import SURROGATES, Surrogate

# Alphas that 'auto' tries, in multiples of what PAPKRanker takes. Of .01 the fits take as long as
# all others together, and on none of the three sets where it was tried it was best.
ALPHAS = (100.0, 10.0, 1.0, 0.1)
ALPHAS_OF_OTHERS = (1.0,)  # other scalings of columns, other surrogates than the first
_ONE_UNIT = 30.0  # ratio of usual large to small divisors up to which columns may share a unit
_SAME = 1.5  # and from which on their own units differ from what they are divided by
SELECTIONS = ("1se", "best")
_LOSING = 1e-3  # chance that a race drops a setting that is as good as the best
_FEWEST = 50  # users on whom that is judged: with fewer a t-test of skewed differences fails


class Columns(NamedTuple):
    """How columns are scaled: inside each list, and by one number each."""

    user_scaling: str | None
    standardize: bool | str


def grid(
    k: int,
    data: RankingData,
    rule: Mapping[OfLists, float],
    *,
    surrogates: Sequence[str | Surrogate],
    depths: str | Sequence[int | float | None],
    user_weights: Sequence[str],
    alphas: str | ArrayLike,
    columns: Columns,
    usual_columns: bool = True,
    missing: str | None = None,
) -> list[Setting]:
    """Every combination once, of lists whose columns are scaled already.

    The parameters are those of `PAPKRankerCV`; `rule` has the alpha that `PAPKRanker` takes, and
    `usual_columns` says whether these lists are scaled as its are.

    Raises
    ------
    InputError
        Names, depths or strengths that cannot be, or nothing to try.
    """
    surrogates = as_names("surrogates", surrogates)
    weights = as_names("user_weights", user_weights)
    for weight in weights:
        check_choice("user_weights", weight, USER_WEIGHTS)
    weights = ("equal",) if data.user_weight is not None else weights
    auto = _is_auto(depths)
    depths, few_depths = _depths(depths, missing)
    lists = {"surrogates": surrogates, "depths": depths, "user_weights": weights}
    for name, values in lists.items():
        _refuse_empty(name, values)
    settings = []
    for given, weight in product(surrogates, weights):
        kind = SURROGATES.get(given) if isinstance(given, str) else given
        convex = getattr(kind, "convex", True)
        tried = depths if convex else few_depths
        if auto and getattr(kind, "depth", None) is not None:
            tried = ["auto"]  # that of the object
        of_lists = OfLists(*columns, weight)
        is_usual = usual_columns and given is surrogates[0]
        multiples = ALPHAS if is_usual else ALPHAS_OF_OTHERS
        strengths = _alphas(alphas, rule[of_lists], multiples)
        _refuse_empty("alphas", strengths)
        for depth, alpha in product(tried, strengths):
            parts = depth, weight, float(alpha), *columns
            settings.append(Setting.of(given, *parts, missing=missing))
    for setting in settings:
        surrogate = setting.make(k)
        make_solver("auto", surrogate, setting.strength)
        data.weighted(setting.user_weight)
        refuse_deeper_than_all(surrogate, data.most_negatives)
    unique = list(dict.fromkeys(settings))
    kinds = {setting.surrogate: setting.name for setting in unique}
    for kind, name in kinds.items():
        if list(kinds.values()).count(name) > 1:
            raise InputError(
                f"surrogates of two classes are called {name!r}: rename {type(kind).__name__}"
            )
    return unique


def column_choices(user_scaling: Any, standardize: Any, data: RankingData) -> list[Columns]:
    """The scalings of columns to try, each once, the default first.

    None: the columns as they are and, where `standardize` is 'auto' and they may share a unit, in
    that unit; of one list also its ranks, since `predict` is then called as without. 'auto': ranks
    within lists, too. A sparse X is tried as it is.
    """
    check_standardize(standardize)
    if user_scaling is not None and not _is_auto(user_scaling):
        return [Columns(scaling, standardize) for scaling in scalings(user_scaling)]
    choices = [Columns(None, standardize)]
    if data.is_sparse:
        return choices
    if data.one_list or _is_auto(user_scaling):
        choices.append(Columns("rank", standardize))
    if isinstance(standardize, str) and _may_share_a_unit(data):
        choices.append(Columns(None, False))
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


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _depths(depths: Any, missing: str | None) -> tuple[Any, Any]:
    """Depths of the convex surrogates, and of the others.

    'auto': that of `PAPKRanker`, and k for the others, whose fits take ten times as long.
    """
    if not _is_auto(depths):
        return (as_names("depths", depths),) * 2
    return (as_depth("auto", missing),), (None,)


def _alphas(alphas: Any, usual: float, multiples: Sequence[float]) -> Array:
    """Strengths from the strongest on; 'auto': multiples of the usual one."""
    if not _is_auto(alphas):
        return np.unique(as_floats("alphas", alphas))[::-1]
    return usual * np.array(multiples)


@dataclass(frozen=True)
class Candidates:
    """What a search tries.

    Attributes
    ----------
    data : dict of RankingData
        The same lists with each user scaling that is tried.
    settings : list of Setting
    rule : dict of float
        The alpha that `PAPKRanker` takes, by what tells lists that are trained on apart.
    default : Setting
        What else it takes.
    """

    data: dict[str | None, RankingData]
    settings: list[Setting]
    rule: dict[OfLists, float]
    default: Setting = DEFAULT


class HeldOut:
    """Score of every setting for every user of every split that holds it out.

    `users` says for each split whom its scores belong to: standard errors take those of one user
    together, since they depend on each other.
    """

    def __init__(self, n_settings: int, users: Sequence[Array]) -> None:
        self.users = np.concatenate(users)
        self.edges = np.cumsum([0, *map(len, users)])
        self.values = np.full((n_settings, self.users.size), np.nan)

    def note(self, i: int, fold: int, values: Array) -> None:
        """The scores of setting i on a fold."""
        self.values[i, self.edges[fold] : self.edges[fold + 1]] = values

    def forget(self, fold: int) -> None:
        """Drop the scores of a fold."""
        self.values[:, self.edges[fold] : self.edges[fold + 1]] = np.nan

    def fold_means(self) -> Array:
        """Mean of each setting on each fold, NaN where it was not tried."""
        parts = np.split(self.values, self.edges[1:-1], axis=1)
        return np.stack([_mean(part) for part in parts], axis=1)

    def means(self) -> Array:
        """Mean of each setting over all that it was scored on."""
        return _mean(self.values)

    def lead(self, i: int, j: int) -> tuple[float, float]:
        """By how much setting i is ahead of setting j where both were scored; its error."""
        return self.mean_and_error(self.values[i] - self.values[j])

    def mean_and_error(self, values: Array) -> tuple[float, float]:
        """Mean of the values that are known, and its standard error over users."""
        known = np.isfinite(values)
        if not known.any():
            return np.nan, np.nan
        values = values[known]
        users = self.users[known]
        mean = float(values.mean())
        by_user = np.bincount(users, values - mean)  # summed over the splits of each
        n = np.unique(users).size
        if n == 1:
            return mean, np.nan
        spread = np.sqrt(n / (n - 1) * np.square(by_user).sum())
        return mean, float(spread) / values.size

    def beaten(self, alive: Array, n_looks: int) -> Array:
        """Which settings that are alive fall behind the best of them; a mask.

        A one-sided paired t-test over users, at a level shared among all leaders and looks: a
        setting that is as good as the best on these folds' models is dropped with a probability of
        at most 0.001.
        """
        n_settings = len(self.values)
        out = np.zeros(alive.size, dtype=bool)
        leader = int(np.argmax(np.where(alive, np.nan_to_num(self.means()), -np.inf)))
        n = np.unique(self.users[np.isfinite(self.values[leader])]).size
        if n < _FEWEST:
            return out
        border = stdtrit(n - 1, 1.0 - _LOSING / (n_settings * n_looks))
        for i in np.flatnonzero(alive).tolist():
            behind, error = self.lead(leader, i)
            out[i] = behind > border * error
        return out


def _mean(values: Array) -> Array:
    """Mean of each row over what is known."""
    means: Array = np.ma.masked_invalid(values).mean(axis=1).filled(np.nan)
    return means


@dataclass(frozen=True)
class Choice:
    """What `PAPKRankerCV` chose, and by how much it is ahead of the default.

    `default` is the setting of those tried that is nearest to what `PAPKRanker` takes as it comes.
    `score` is the mean of `scoring`, a metric or scorer, over held-out users; `lead` is by how much
    it is ahead of the default on the same users, with the standard error `error`. `gap` is that of
    the fit on all users, infinite for a critical point of a problem that is not convex.
    """

    setting: Setting
    default: Setting
    scoring: str
    score: float
    lead: float
    error: float
    gap: float

    @property
    def certified(self) -> bool:
        """Whether a bound says how far from the optimum the fit is."""
        return bool(np.isfinite(self.gap))

    def __str__(self) -> str:
        text = f"chosen: {self.setting}: {self.scoring} {self.score:.4f} on held-out users, "
        if self.setting == self.default:
            text += "the default setting"
        else:
            way = "ahead of" if self.lead >= 0 else "behind"
            text += f"{abs(self.lead):.4f} ± {self.error:.4f} {way} the default ({self.default})"
        return f"{text}; " + (
            f"certified, gap {self.gap:.1e}"
            if self.certified
            else "not certified: a critical point of a problem that is not convex"
        )


def nearest_default(
    settings: Sequence[Setting], rule: Mapping[OfLists, float], default: Setting = DEFAULT
) -> int:
    """The setting that differs from `PAPKRanker`'s default in the fewest parts.

    Of several that with the nearest alpha, then the deepest. `rule` has the default's alpha.
    """

    def distance(i: int) -> tuple[float, ...]:
        setting = settings[i]
        alpha = abs(float(np.log(setting.strength / rule[setting.of_lists])))
        parts = n_differing(setting, rule, default)
        return parts, alpha, *(-x for x in order_of_depth(setting.depth))

    return min(range(len(settings)), key=distance)


def choose(
    selection: str,
    settings: Sequence[Setting],
    scores: HeldOut,
    among: list[int],
    rule: Mapping[OfLists, float],
    default: Setting = DEFAULT,
) -> int:
    """The index of the chosen setting of some that were scored on the same folds.

    'best' has the largest mean. '1se' takes, of those that are behind it by at most one standard
    error of the paired difference, one with a certificate, and of these the nearest to the default;
    of several as near one whose penalty is no weaker than the default's.
    """
    means = scores.means()
    best = max(among, key=lambda i: means[i])
    if selection == "best":
        return best
    leads = {i: scores.lead(best, i) for i in among}
    tied = [i for i, (lead, error) in leads.items() if i == best or lead <= error]
    certified = [i for i in tied if settings[i].kind.convex]

    def preference(i: int) -> tuple[float, ...]:
        weaker = settings[i].strength < rule[settings[i].of_lists]
        return n_differing(settings[i], rule, default), weaker, -means[i]

    return min(certified or tied, key=preference)


def n_differing(setting: Setting, rule: Mapping[OfLists, float], default: Setting = DEFAULT) -> int:
    """In how many parts a setting differs from the default, whose alpha is that of the rule."""
    parts = setting.as_dict()
    usual = default.as_dict() | {"alpha": rule[setting.of_lists]}
    return sum(parts[name] != usual[name] for name in parts)
