"""What settings score on held-out users, and which one a search takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from structsvm_papk._types import Array
from structsvm_papk.rankers.grid import Candidate
from structsvm_papk.rankers.settings import Setting

SELECTIONS = ("significant", "best")
_LEVEL = 0.05  # chance that some setting which is as good as the default is taken for better


class ScoreTable:
    """Score of every setting for every user of every fold that holds it out, seconds, weights.

    `users` says for each fold whom its scores belong to: standard errors take those of one user
    together, since they depend on each other.
    """

    def __init__(self, settings: Sequence[Setting], users: Sequence[Array]) -> None:
        self.settings = list(settings)
        self.users = np.concatenate(users)
        self.edges = np.cumsum([0, *map(len, users)])
        self.values = np.full((len(self.settings), self.users.size), np.nan)
        self.seconds = np.full((len(self.settings), len(users)), np.nan)
        self.weights: list[list[Array]] = [[] for _ in settings]  # of columns as they are

    def note(
        self, setting: Setting, fold: int, values: Array, seconds: float, weights: Array
    ) -> None:
        """A setting was trained and scored on a fold."""
        i = self.settings.index(setting)
        self.values[i, self.edges[fold] : self.edges[fold + 1]] = values
        self.seconds[i, fold] = seconds
        self.weights[i].append(weights)

    def forget_half_folds(self) -> None:
        """Only folds that every setting was tried on count, where there is one."""
        whole = np.isfinite(self.seconds).all(axis=0)
        if whole.any():
            self.seconds[:, ~whole] = np.nan
            self.values[:, np.repeat(~whole, np.diff(self.edges))] = np.nan

    @property
    def n_done(self) -> int:
        """Fits so far."""
        return int(np.isfinite(self.seconds).sum())

    @property
    def n_seen(self) -> Array:
        """On how many folds each setting was tried."""
        seen: Array = np.isfinite(self.seconds).sum(axis=1)
        return seen

    def finished(self) -> list[int]:
        """Indices of the settings that saw most folds."""
        seen = self.n_seen
        return np.flatnonzero(seen == seen.max()).tolist()

    def best(self) -> int:
        """Of these the one with the largest mean."""
        means = self.means()
        return max(self.finished(), key=lambda i: means[i])

    def means(self) -> Array:
        """Mean of each setting over all that it was scored on."""
        return _mean(self.values)

    def fold_means(self) -> Array:
        """Mean of each setting on each fold, NaN where it was not tried."""
        parts = np.split(self.values, self.edges[1:-1], axis=1)
        return np.stack([_mean(part) for part in parts], axis=1)

    def error(self, i: int) -> float:
        """The standard error of the mean of setting i, over users."""
        return self._paired(self.values[i]).error

    def lead(self, i: int, j: int) -> "Lead":
        """By how much setting i is ahead of setting j where both were scored."""
        return self._paired(self.values[i] - self.values[j])

    def _paired(self, values: Array) -> "Lead":
        known = np.isfinite(values)
        if not known.any():
            return Lead(np.nan, np.nan, 0)
        values = values[known]
        users = self.users[known]
        mean = float(values.mean())
        by_user = np.bincount(users, values - mean)  # summed over the folds of each
        n = np.unique(users).size
        if n == 1:
            return Lead(mean, np.nan, n)
        spread = np.sqrt(n / (n - 1) * np.square(by_user).sum())
        return Lead(mean, float(spread) / values.size, n)

    def results(self) -> dict[str, Any]:
        """`cv_results_` as scikit-learn has it."""
        params = [setting.as_dict() for setting in self.settings]
        folds = self.fold_means()
        mean = self.means()
        seen = self.n_seen
        order = np.lexsort([-mean, -seen])
        rank = np.empty(order.size, dtype=np.int32)
        rank[order] = np.arange(1, order.size + 1)
        columns = {
            f"param_{name}": np.array([p[name] for p in params], object) for name in params[0]
        }
        splits = {f"split{f}_test_score": scores for f, scores in enumerate(folds.T)}
        return {
            "params": params,
            **columns,
            **splits,
            "mean_test_score": mean,
            "std_test_score": np.ma.masked_invalid(folds).std(axis=1).filled(np.nan),
            "se_test_score": np.array([self.error(i) for i in range(len(params))]),
            "rank_test_score": rank,
            "mean_fit_time": np.ma.masked_invalid(self.seconds).mean(axis=1).filled(np.nan),
            "n_splits": seen,
        }


def _mean(values: Array) -> Array:
    """Mean of each row over what is known."""
    means: Array = np.ma.masked_invalid(values).mean(axis=1).filled(np.nan)
    return means


class Lead(NamedTuple):
    """A paired difference of two settings: its mean, standard error, and number of users."""

    mean: float
    error: float
    n_users: int

    def by_chance(self, n_compared: int) -> float:
        """Up to where chance explains the mean, one of so many that are looked at.

        The half width of the 95% interval by Student's t, each at a level of .05 / n_compared
        (Bonferroni): infinite where there are too few users to say.
        """
        if self.n_users < 2:
            return np.inf
        return float(stdtrit(self.n_users - 1, 1.0 - _LEVEL / 2 / n_compared) * self.error)


@dataclass(frozen=True)
class Choice:
    """What `PAPKRankerCV` chose, and by how much it is ahead of the default.

    `default` is the setting of those tried that is nearest to what `PAPKRanker` takes as it comes,
    `rival` the one that it is compared with: the chosen one, or where that is the default the best
    of the others (None where nothing else was tried). `score` is the mean of `scoring`, a metric or
    scorer, over held-out users; `lead` is by how much the rival is ahead of the default on the same
    users, with the standard error `error`, and `by_chance` up to where chance explains it. `gap`
    is that of the fit on all users, infinite for a critical point of a problem that is not convex.
    """

    setting: Setting
    default: Setting
    rival: Setting | None
    scoring: str
    score: float
    lead: float
    error: float
    by_chance: float
    gap: float

    @property
    def certified(self) -> bool:
        """Whether a bound says how far from the optimum the fit is."""
        return bool(np.isfinite(self.gap))

    def __str__(self) -> str:
        text = f"chosen: {self.setting}: {self.scoring} {self.score:.4f} on held-out users, "
        way = "ahead of" if self.lead >= 0 else "behind"
        if np.isfinite(self.error):
            lead = f"{abs(self.lead):.4f} ± {self.error:.4f} {way}"
            chance = f"chance explains up to {self.by_chance:.4f}"
        else:
            lead = f"{abs(self.lead):.4f} {way}"
            chance = "a single fold does not say what chance explains"
        if self.setting != self.default:
            text += f"{lead} the default ({self.default}), where {chance}"
        elif self.rival is None:
            text += "the default setting, nothing else was tried"
        else:
            text += (
                f"the default setting; the best other one ({self.rival}) is {lead} it, and {chance}"
            )
        return f"{text}; " + (
            f"certified, gap {self.gap:.1e}"
            if self.certified
            else "not certified: a critical point of a problem that is not convex"
        )


def choose(
    selection: str,
    candidates: Sequence[Candidate],
    table: ScoreTable,
    default: int,
    among: list[int],
) -> int:
    """The index of the chosen setting of some that were scored on the same folds.

    'best' has the largest mean. 'significant' is the default, unless others are ahead of it by more
    than chance explains, over all that are looked at: of these the one with the largest mean, of
    those with a certificate where there are such.
    """
    means = table.means()
    if selection == "best":
        return max(among, key=lambda i: means[i])
    ahead = []
    for i in among:
        lead = table.lead(i, default)
        if i != default and lead.mean > lead.by_chance(len(among) - 1):
            ahead.append(i)
    certified = [i for i in ahead if candidates[i].setting.kind.convex]
    return max(certified or ahead or [default], key=lambda i: means[i])


def nearest(default: Setting, candidates: Sequence[Candidate], among: list[int]) -> int:
    """The index of the setting of some that differs from the default in the fewest parts.

    Of several that with the nearest alpha, then the deepest.
    """
    return min(among, key=lambda i: candidates[i].distance(default))
