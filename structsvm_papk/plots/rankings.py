"""Plots of a ranking, in the style of scikit-learn's displays.

Every display has `from_predictions(y_true=.., y_score=.., groups=..)` and `plot(ax)`; the axes
drawn on stay in `ax_`, their figure in `figure_`. matplotlib (the extra `plot`) is imported when
something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk import metrics
from structsvm_papk.data.validation import as_array, check_ids, same_kind
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics.significance import ends_of
from structsvm_papk.plots.figures import NEEDS_MATPLOTLIB, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE = "#1b7837"
NEGATIVE = "#b8b8b8"


def new_axes(ax: Axes | None = None, size: tuple[float, float] = (6.0, 4.2)) -> Axes:
    """The given axes, or new ones on a figure of this size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InputError(NEEDS_MATPLOTLIB) from None
    return plt.subplots(figsize=size, layout="constrained")[1]


@dataclass
class PAPDisplay:
    """Mean pAp@k against k with a band from resampled users.

    Attributes
    ----------
    ks : ndarray of int
    mean, lower, upper : ndarray of float
    n_used : ndarray of int
        Users behind each point: the rule for few negatives changes them with k.
    name : str or None
        Label in the legend.
    """

    ks: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_used: np.ndarray
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        *,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike | None = None,
        ks: Sequence[int] | None = None,
        level: float = 0.95,
        n_resamples: int = 500,
        seed: int = 0,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Display of scores; `ks` default 1..20, `options` those of `metrics.evaluate`."""
        if ks is None:
            ks = range(1, 21)
        cutoffs = np.atleast_1d(as_array(ks, "ks"))
        names = [f"pap@{k}" for k in cutoffs]
        table = metrics.evaluate(names, y_score, y_true, groups, **options)
        how = {"level": level, "n_resamples": n_resamples, "seed": seed}
        ends = np.array([ends_of(table, metric, **how) for metric in names])
        display = cls(
            ks=cutoffs,
            mean=np.array([table.mean(metric) for metric in names]),
            lower=ends[:, 0],
            upper=ends[:, 1],
            n_used=np.array([table.used(metric).sum() for metric in names]),
            name=name,
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes; returns the display."""
        ax = new_axes(ax)
        label = None if self.name is None else literal(self.name)
        line = ax.plot(self.ks, self.mean, marker="o", markersize=3.5, label=label)[0]
        ax.fill_between(self.ks, self.lower, self.upper, color=line.get_color(), alpha=0.18, lw=0)
        ax.set(xlabel="k", ylabel="mean pAp@k")
        locator: Any = ax.xaxis.get_major_locator()
        locator.set_params(integer=True)
        if np.ptp(self.n_used):
            ax.set_title(
                f"users: {self.n_used.max()} at k = {self.ks[np.argmax(self.n_used)]}, "
                f"{self.n_used.min()} at k = {self.ks[np.argmin(self.n_used)]}",
                fontsize=9,
            )
        if self.name is not None:
            ax.legend(frameon=False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


@dataclass
class RankStripDisplay:
    """Who was shown what: each user's list from rank 1 on, positives dark, negatives pale.

    Attributes
    ----------
    users : list
    strips : ndarray, shape (n_users, depth)
        1 positive, 0 negative, NaN behind the end of the list.
    k : int
        Items shown; a line is drawn behind rank k.
    papk : ndarray
        pAp@k of each user.
    """

    users: list[Any]
    strips: np.ndarray
    k: int
    papk: np.ndarray

    @classmethod
    def from_predictions(
        cls,
        *,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike | None = None,
        k: int = 10,
        users: Sequence[Any] | None = None,
        depth: int = 40,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Display of scores; `users` picks some (default: the first 20), `depth` ranks each."""
        check_number("depth", depth, least=1)
        table = metrics.evaluate([f"pap@{k}"], y_score, y_true, groups, **options)
        rows = lists.build(
            y_score, y_true, groups, relevance_threshold=options.get("relevance_threshold")
        )
        wanted = table.users[:20]
        if users is not None:
            wanted = np.atleast_1d(as_array(users, "users"))
        wanted = check_ids(wanted, wanted.size, "users")
        if not wanted.size or not same_kind(table.users, wanted):
            raise InputError(f"users={users!r} must be some of the users of these rows")
        missing = ~np.isin(wanted, table.users)
        if missing.any():
            raise InputError(f"there is no user {wanted[missing][0]} in these rows")
        chosen = np.searchsorted(table.users, wanted)
        depth = min(depth, int(np.diff(rows.indptr)[chosen].max()))
        strips = np.full((chosen.size, depth), np.nan)
        for strip, u in zip(strips, chosen, strict=True):
            part = slice(rows.indptr[u], rows.indptr[u + 1])
            order = np.lexsort((rows.relevant[part], -rows.scores[part]))  # negatives first in ties
            strip[: order.size] = rows.relevant[part][order][:depth]
        display = cls(users=wanted.tolist(), strips=strips, k=k, papk=table.values[chosen, 0])
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes; returns the display."""
        n_users, depth = self.strips.shape
        ax = new_axes(ax, (8.0, 1.1 + 0.24 * n_users))
        from matplotlib.colors import ListedColormap

        colors = ListedColormap([NEGATIVE, POSITIVE]).with_extremes(bad="white")
        ax.pcolormesh(
            np.arange(depth + 1) + 0.5,  # ranks count from 1
            np.arange(n_users + 1) - 0.5,
            np.ma.masked_invalid(self.strips),
            cmap=colors,
            vmin=0,
            vmax=1,
            edgecolors="white",
            lw=0.8,
        )
        ax.axvline(self.k + 0.5, color="#a83250", lw=1.4)
        ax.set_ylim(n_users - 0.5, -0.5)
        ax.set_yticks(range(n_users), [literal(user) for user in self.users], fontsize=8)
        ax.set_xlabel(f"rank (line: k = {self.k}; dark: positives)")
        right = ax.secondary_yaxis("right")
        values = ["left out" if np.isnan(value) else f"{value:.2f}" for value in self.papk]
        right.set_yticks(range(n_users), values, fontsize=8)
        right.set_ylabel(f"pAp@{self.k}")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
