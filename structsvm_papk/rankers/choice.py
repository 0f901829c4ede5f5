"""Which setting a search takes, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structsvm_papk.rankers.held_out import HeldOut
from structsvm_papk.rankers.settings import DEFAULT, Setting, order_of_depth

SELECTIONS = ("1se", "best")


@dataclass(frozen=True)
class Choice:
    """What `PAPKRankerCV` chose, and by how much it is ahead of the default.

    Attributes
    ----------
    setting, default : Setting
        The chosen one; the one of those tried that is nearest to what `PAPKRanker` takes as it
        comes.
    scoring : str
        The metric or scorer.
    score : float
        Mean over held-out users.
    lead, error : float
        By how much it is ahead of the default on the same users, and the standard error of that.
    gap : float
        Certified relative gap of the fit on all users; infinite for a critical point of a problem
        that is not convex.
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
