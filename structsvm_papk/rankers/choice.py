"""What settings score on held-out users, which one a search takes, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from structsvm_papk._types import Array
from structsvm_papk.rankers.settings import DEFAULT, Setting, order_of_depth

SELECTIONS = ("1se", "best")
_LOSING = 1e-3  # chance that a race drops a setting that is as good as the best
_FEWEST = 50  # users on whom that is judged: with fewer a t-test of skewed differences fails


class HeldOut:
    """Score of every setting for every user of every split that holds it out.

    `users` says for each split whom its scores belong to. Scores of one user in several splits
    depend on each other: standard errors take them together.
    """

    def __init__(self, n_settings: int, users: Sequence[Array]) -> None:
        self.users = np.concatenate(users)
        self.edges = np.cumsum([0, *map(len, users)])
        self.values = np.full((n_settings, self.users.size), np.nan)

    def note(self, i: int, fold: int, values: Array) -> None:
        """The scores of setting i on a fold."""
        self.values[i, self.edges[fold] : self.edges[fold + 1]] = values

    def fold_means(self) -> Array:
        """Mean of each setting on each fold, NaN where it was not tried."""
        parts = np.split(self.values, self.edges[1:-1], axis=1)
        return np.stack([_mean(part) for part in parts], axis=1)

    def means(self) -> Array:
        """Mean of each setting over all that it was scored on."""
        return _mean(self.values)

    def errors(self) -> Array:
        """Standard error of each mean over users."""
        return np.array([self.mean_and_error(values)[1] for values in self.values])

    def lead(self, i: int, j: int) -> tuple[float, float]:
        """By how much setting i is ahead of setting j where both were scored; its error."""
        return self.mean_and_error(self.values[i] - self.values[j])

    def mean_and_error(self, values: Array) -> tuple[float, float]:
        """Mean of the values that are known, and its standard error over users."""
        known = np.isfinite(values)
        if not known.any():
            return np.nan, np.nan
        values, users = values[known], self.users[known]
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
        n_settings, out = len(self.values), np.zeros(alive.size, dtype=bool)
        leader = int(np.argmax(np.where(alive, self.means(), -np.inf)))
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
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means: Array = np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1)
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


def nearest_default(settings: Sequence[Setting]) -> int:
    """The setting that differs from `PAPKRanker`'s default in the fewest parts.

    Of several that with the nearest alpha, then the deepest.
    """

    def distance(i: int) -> tuple[float, ...]:
        alpha = abs(float(np.log(settings[i].alpha / DEFAULT.alpha)))
        return n_differing(settings[i]), alpha, *(-x for x in order_of_depth(settings[i].depth))

    return min(range(len(settings)), key=distance)


def choose(selection: str, settings: Sequence[Setting], scores: HeldOut, among: list[int]) -> int:
    """The index of the chosen setting of some that were scored on the same folds.

    'best' has the largest mean. '1se' takes, of those that are behind it by at most one standard
    error of the paired difference, one with a certificate, and of these the nearest to the default.
    """
    means = scores.means()
    best = max(among, key=lambda i: means[i])
    if selection == "best":
        return best
    leads = {i: scores.lead(best, i) for i in among}
    tied = [i for i, (lead, error) in leads.items() if i == best or lead <= error]
    certified = [i for i in tied if settings[i].kind.convex]
    return min(certified or tied, key=lambda i: (n_differing(settings[i]), -means[i]))


def n_differing(setting: Setting) -> int:
    """In how many parts a setting differs from the default."""
    own, default = setting.as_dict(), DEFAULT.as_dict()
    return sum(own[name] != default[name] for name in own)
