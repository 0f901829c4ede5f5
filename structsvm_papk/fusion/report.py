"""What is said of a fusion: every ranking, every weight, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk.files.model import certificate_of

if TYPE_CHECKING:
    from structsvm_papk.fusion.requests import EngineWeights
    from structsvm_papk.rankers import PAPKRanker

FUSED = "fused"
CHOSEN = "best of these"
NO_WEIGHTS = "equal weights"
_SHOWN = 6  # rankings beside the fused one, by `repr`


@dataclass(frozen=True)
class Ranking:
    """A ranking of the judged queries, and how far the fused one is ahead of it.

    Attributes
    ----------
    name : str
    mean, lower, upper : float
        nDCG@k and its interval over queries; NaN where fewer than 10 queries give none.
    ahead, ahead_lower, ahead_upper : float
        Fused less this one, paired by query; NaN for the fused one itself.
    p_value : float
        Paired permutation test, two-sided.
    judged : float
        Mean share of the first k documents that were judged (judged@k).
    """

    name: str
    mean: float
    lower: float
    upper: float
    ahead: float = np.nan
    ahead_lower: float = np.nan
    ahead_upper: float = np.nan
    p_value: float = np.nan
    judged: float = np.nan

    def compared(self) -> str:
        """How far the fused ranking is ahead of this one, or behind it, in words."""
        first = "ahead of" if self.ahead >= 0 else "behind"
        text = f"{abs(self.ahead):.4f} {first} {self.name}"
        if np.isnan(self.ahead_lower):
            return text
        worst = _side(self.ahead_lower)
        best = _side(self.ahead_upper)
        return f"{text} (at worst {worst}, at best {best})"


def _side(difference: float) -> str:
    return f"{abs(difference):.4f} {'ahead' if difference >= 0 else 'behind'}"


@dataclass(frozen=True)
class Recommendation:
    """What to use, by name, and what it gains.

    Attributes
    ----------
    name : str
        As "linear with learned weights", "rrf with equal weights", or a run.
    kind : {"learned", "equal", "alone"}
    engine_weights : EngineWeights or None
        What an engine needs for it; of a run alone the others have weight 0.
    over_equal, over_best_run : Ranking or None
        The same rule with equal weights, and the best run, with how far this is ahead of them;
        None where it is that itself.
    """

    name: str
    kind: str
    engine_weights: EngineWeights | None = None
    over_equal: Ranking | None = None
    over_best_run: Ranking | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "engine": self.engine_weights and self.engine_weights.as_dict(),
            "over_equal": self.over_equal and asdict(self.over_equal),
            "over_best_run": self.over_best_run and asdict(self.over_best_run),
        }


@dataclass(frozen=True)
class RunWeight:
    """What a run counts in the fused score, and what it did not retrieve.

    Attributes
    ----------
    name : str
    weight : float
        Of a point of the run's own score.
    share : float
        Of a standard deviation of the run's scores within a query, as a share of the sum of all
        such weights' sizes; of an engine the weight itself.
    not_there : float
        Added where the run did not retrieve a document, beside the lowest score of its list; in
        the unit of `share`.
    n_missed, n_relevant_missed : int
        Documents of other runs, and relevant ones among them, that the run does not have.
    share_lower, share_upper : float
        95% interval of `share` over resampled queries; NaN unless ablated, and of an engine.
    without : float
        Cross-validated nDCG@k without this run.
    gain, gain_lower, gain_upper : float
        What the run adds: with all runs less without it, paired by query.
    verdict : str
        keep, harms or no difference; empty unless ablated.
    """

    name: str
    weight: float
    share: float
    not_there: float
    n_missed: int
    n_relevant_missed: int
    share_lower: float = np.nan
    share_upper: float = np.nan
    without: float = np.nan
    gain: float = np.nan
    gain_lower: float = np.nan
    gain_upper: float = np.nan
    verdict: str = ""


@dataclass(frozen=True, repr=False)
class FusionReport:
    """Weights of runs, and what they are worth on held-out queries.

    Attributes
    ----------
    k : int
    nouns : tuple of str
        What lists and their members are called, as ``("queries", "documents")``.
    n_queries, n_documents, n_relevant : int
        Judged queries, documents that some run retrieved for them, relevant ones among these.
    n_relevant_missed : int
        Relevant documents that no run retrieved; they count in the ideal lists.
    n_folds : int
    level : float
        Coverage of the intervals.
    rankings : tuple of Ranking
        The fused one (learned weights), each run, what needs no judgments (RRF and CombSUM, or an
        engine's rules with equal weights), other rules of the engine with learned weights, and the
        best of these by the training folds.
    weights : tuple of RunWeight
        Learned ones.
    advice : str
        What to do, and what it rests on.
    recommended : Recommendation
        Learned weights only where their gain over equal weights of the same rule, and over the best
        run, is shown by both intervals.
    ranker : PAPKRanker
        Trained on all queries; its columns are the runs in their order.
    engine_weights : EngineWeights or None
        For an engine, the learned weights: the rule's name, weights, window; with `request()`.
        Rankings are then by its rule, and `ranker` is the certified fit that the weights are from.
        What to send is ``recommended.engine_weights``.
    basis : str
        What of the weights is certified, and what is only the best that was found.
    remarks : tuple of str
        Queries that are not in all inputs; what the fits warned of.
    """

    k: int
    nouns: tuple[str, str]
    n_queries: int
    n_documents: int
    n_relevant: int
    n_relevant_missed: int
    n_folds: int
    level: float
    rankings: tuple[Ranking, ...]
    weights: tuple[RunWeight, ...]
    advice: str
    recommended: Recommendation
    ranker: PAPKRanker
    engine_weights: EngineWeights | None
    basis: str
    remarks: tuple[str, ...]

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return f"nDCG@{self.k}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("k", "nouns", "n_queries", "n_documents", "n_relevant", "n_relevant_missed",
                 "n_folds", "level", "advice", "basis", "remarks")  # fmt: skip
        return {
            "metric": self.metric,
            **{name: getattr(self, name) for name in names},
            "rankings": [asdict(ranking) for ranking in self.rankings],
            "weights": [asdict(weight) for weight in self.weights],
            "engine": self.engine_weights and self.engine_weights.as_dict(),
            "recommended": self.recommended.as_dict(),
            "alpha": float(self.ranker.result_.alpha),
            "certificate": certificate_of(self.ranker.result_),
        }

    def __str__(self) -> str:
        lines = [f"{self.metric}, {self.n_folds} folds of {self.n_queries} judged {self.nouns[0]}"]
        lines += [f"{ranking.name:>20} {ranking.mean:.4f}" for ranking in self.rankings]
        return "\n".join([*lines, self.advice])

    def __repr__(self) -> str:
        fused, *others = self.rankings
        best = sorted(others, key=lambda ranking: -ranking.mean)[:_SHOWN]
        lines = [f"{self.metric}, {self.n_folds} folds of {self.n_queries} judged {self.nouns[0]}"]
        lines += [f"{ranking.name[:40]:>20} {ranking.mean:.4f}" for ranking in (fused, *best)]
        return "\n".join([*lines, f"recommended: {self.recommended.name}"])
