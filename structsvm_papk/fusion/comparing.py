"""What learned weights are worth on queries that they were not learned from.

The fused ranking is cross-validated by query and stands beside each run alone, RRF and CombSUM, by
nDCG@k with the ideal list of all judgments. The best of those is chosen on the training folds too,
so that the choice gives it no advantage.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.bounds import required_users
from structsvm_papk.errors import (
    DegenerateOptimumWarning,
    InputError,
    check_number,
    check_type,
)
from structsvm_papk.files.model import certificate_of
from structsvm_papk.fusion.joining import Joined, join
from structsvm_papk.fusion.yardsticks import combsum, from_lowest, places, rrf
from structsvm_papk.metrics.significance import no_interval
from structsvm_papk.metrics.table import MetricTable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from structsvm_papk.rankers import PAPKRanker

FUSED = "fused"
CHOSEN = "best of these"
YARDSTICKS: dict[str, Callable[..., Array]] = {"RRF": rrf, "CombSUM": combsum}
_FOLD_TOL = 1e-3  # relative gap of the fits on folds: far below what queries differ by
_FEW_TIMES = 20  # more queries than this many times those at hand are not asked for
_NOTHING_LEARNED = (
    "Nothing was learned: all weights are 0, as by the judgments no run ranks relevant documents "
    "above others."
)
Progress: TypeAlias = Callable[[str], None]


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
    """

    name: str
    mean: float
    lower: float
    upper: float
    ahead: float = np.nan
    ahead_lower: float = np.nan
    ahead_upper: float = np.nan
    p_value: float = np.nan


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
        such weights' sizes; with `for_engine` the weight itself.
    not_there : float
        Added where the run did not retrieve a document, beside the lowest score of its list; in
        the unit of `share`.
    n_missed, n_relevant_missed : int
        Documents of other runs, and relevant ones among them, that the run does not have.
    share_lower, share_upper : float
        95% interval of `share` over resampled queries; NaN unless ablated.
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
    n_queries, n_documents, n_relevant : int
        Judged queries, documents that some run retrieved for them, relevant ones among these.
    n_relevant_missed : int
        Relevant documents that no run retrieved; they count in the ideal lists.
    n_folds : int
    level : float
        Coverage of the intervals.
    rankings : tuple of Ranking
        The fused one, each run, RRF and CombSUM, and the best of these by the training folds.
    weights : tuple of RunWeight
    advice : str
        One sentence: what to do.
    ranker : PAPKRanker
        Trained on all queries; its columns are the runs in their order.
    for_engine : bool
        Whether the weights are those of scores between 0 and 1, at least 0, with the sum 1.
    remarks : tuple of str
        Queries that are not in all inputs; what the fits warned of.
    """

    k: int
    n_queries: int
    n_documents: int
    n_relevant: int
    n_relevant_missed: int
    n_folds: int
    level: float
    rankings: tuple[Ranking, ...]
    weights: tuple[RunWeight, ...]
    advice: str
    ranker: PAPKRanker
    for_engine: bool
    remarks: tuple[str, ...]

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return f"nDCG@{self.k}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("k", "n_queries", "n_documents", "n_relevant", "n_relevant_missed", "n_folds",
                 "level", "advice", "for_engine", "remarks")  # fmt: skip
        return {
            "metric": self.metric,
            **{name: getattr(self, name) for name in names},
            "rankings": [asdict(each) for each in self.rankings],
            "weights": [asdict(each) for each in self.weights],
            "alpha": float(self.ranker.result_.alpha),
            "certificate": certificate_of(self.ranker.result_),
        }

    def plot(self) -> Figure:
        """Draw the rankings with their intervals, and how far the fused one is ahead."""
        from structsvm_papk.plots.fusion import comparison_figure

        return comparison_figure(self)

    def __str__(self) -> str:
        lines = [f"{self.metric}, {self.n_folds} folds of {self.n_queries} judged queries"]
        lines += [f"{each.name:>20} {each.mean:.4f}" for each in self.rankings]
        return "\n".join([*lines, self.advice])

    __repr__ = __str__


def cross_validate(
    runs: Mapping[str, Any],
    judgments: Any,
    k: int = 10,
    *,
    relevance_threshold: float = 1.0,
    on: tuple[str, str] = ("query", "document"),
    for_engine: bool = False,
    ablate: bool = False,
    cv: int = 5,
    level: float = 0.95,
    n_resamples: int = 2000,
    n_refits: int = 200,
    random_state: int = 0,
) -> FusionReport:
    """Learn weights of runs, and say what they are worth on queries they were not learned from.

    The judged queries are cut into `cv` folds; each is ranked by weights that `PAPKRanker` learned
    from the others. nDCG@k is that of trec_eval: gains are grades, the ideal list is of all
    judgments, whether a run retrieved them or not, and ties are broken by document id.

    Parameters
    ----------
    runs, judgments, on
        As for `join_lists`.
    k : int
        Places that count, in training and in nDCG@k.
    relevance_threshold : float
        Documents with at least this grade are relevant in training.
    for_engine : bool
        Weights for a search engine: of scores between 0 (lowest of the list) and 1, at least 0,
        with the sum 1, and none for "not retrieved".
    ablate : bool
        Say of each run what it adds: cross-validation without it, and intervals of the weights
        over `n_refits` fits with random weights of the queries (Bayesian bootstrap).
    cv : int
        Folds; fewer where fewer queries can be used.
    level : float
        Coverage of the intervals, of which none is made of fewer than 10 queries.
    n_resamples, n_refits, random_state : int

    Returns
    -------
    FusionReport
        `rankings`, `weights`, `advice`, and `ranker`, trained on all queries: its `predict` scores
        the run columns of another frame of `join_lists`, with ``groups=frame["query"]``.

    Raises
    ------
    InputError
        As `join_lists`; fewer than two queries with a relevant and another document.
    """
    check_type("ablate", ablate, bool | np.bool_, "True or False")
    if judgments is None:
        raise TypeError("judgments must be a file, a frame or a dictionary: weights need some")
    how = Settings(
        k=k,
        threshold=relevance_threshold,
        for_engine=for_engine,
        n_folds=cv,
        level=level,
        n_resamples=n_resamples,
        n_refits=n_refits,
        seed=random_state,
    )
    return validated(join(runs, judgments, on), how, ablate)


@dataclass(frozen=True)
class Settings:
    """What is trained and how it is judged; as the arguments of `cross_validate`."""

    k: int
    threshold: float
    for_engine: bool
    n_folds: int
    level: float
    n_resamples: int
    n_refits: int
    seed: int

    def __post_init__(self) -> None:
        check_number("k", self.k, least=1)
        check_number("relevance_threshold", self.threshold)
        check_type("for_engine", self.for_engine, bool | np.bool_, "True or False")
        check_number("cv", self.n_folds, least=2)
        check_number("level", self.level, above=0, below=1)
        check_number("n_resamples", self.n_resamples, least=10)
        check_number("n_refits", self.n_refits, least=2)
        check_number("random_state", self.seed, least=0)

    def ranker(self, **more: Any) -> PAPKRanker:
        """The estimator that learns weights."""
        from structsvm_papk.rankers import PAPKRanker

        return PAPKRanker(
            int(self.k),
            relevance_threshold=self.threshold,
            policy="cap",
            missing="lowest",
            user_scaling="minmax" if self.for_engine else None,
            positive=self.for_engine,
            **more,
        )


def validated(
    joined: Joined, how: Settings, ablate: bool = False, say: Progress = lambda text: None
) -> FusionReport:
    """The report on joined runs and judgments; `say` is told what is being done."""
    problem = _Problem.of(joined, how)
    say("cross-validation")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        fused = problem.table(problem.held_out(joined.names))
        tables = problem.alone()
        tables |= {CHOSEN: problem.best_of(tables)}
        say("fit on all queries")
        ranker = how.ranker()
        problem.fit(ranker)
        rankings = [_ranking(FUSED, fused, how)]
        rankings += [_ranking(name, table, how, fused) for name, table in tables.items()]
        weights = problem.weights(ranker)
        if ablate:
            weights = _ablated(problem, fused, ranker, weights, say)
    said = dict.fromkeys(
        str(warning.message)
        for warning in raised
        if not issubclass(warning.category, DegenerateOptimumWarning)  # the advice says so
    )
    return FusionReport(
        k=int(how.k),
        n_queries=joined.n_queries,
        n_documents=len(joined.frame),
        n_relevant=int(problem.relevant.sum()),
        n_relevant_missed=int((joined.missed_grade >= how.threshold).sum()),
        n_folds=int(problem.fold.max()) + 1,
        level=how.level,
        rankings=tuple(rankings),
        weights=tuple(weights),
        advice=_advice(fused, tables, rankings, how) if ranker.coef_.any() else _NOTHING_LEARNED,
        ranker=ranker,
        for_engine=how.for_engine,
        remarks=(*joined.remarks, *said),
    )


@dataclass(frozen=True)
class _Problem:
    """Joined rows to train on and to judge, and the fold of each query."""

    joined: Joined
    how: Settings
    columns: pd.DataFrame  # of the runs, as they are trained on
    relevant: Array
    fold: Array

    @classmethod
    def of(cls, joined: Joined, how: Settings) -> _Problem:
        relevant = joined.grades >= how.threshold
        n_relevant = np.bincount(joined.query[relevant], minlength=joined.n_queries)
        usable = (n_relevant > 0) & (n_relevant < np.bincount(joined.query))
        if np.count_nonzero(usable) < 2:
            raise InputError(
                f"{np.count_nonzero(usable)} of {joined.n_queries} judged queries have both a "
                f"relevant (grade >= {how.threshold:g}) and another document that some run "
                "retrieved; weights and their test need at least two"
            )
        columns = filled(joined.scores, joined.query) if how.for_engine else joined.scores
        return cls(joined, how, columns, relevant, _folds(usable, how))

    def fit(self, ranker: Any, **more: Any) -> None:
        """Train a ranker on all queries."""
        everything = np.ones(self.relevant.size, dtype=bool)
        self._fit(ranker, list(self.joined.names), everything, **more)

    def _fit(self, ranker: Any, names: list[str], rows: Array, **more: Any) -> None:
        """Train a ranker on some runs and rows; no list can be wrong in more places than it has."""
        query = self.joined.query[rows]
        n_negatives = np.bincount(query[~self.relevant[rows]])
        ranker.k = min(int(self.how.k), int(n_negatives.max(initial=1)))
        ranker.fit(self.columns[names][rows], self.joined.grades[rows], groups=query, **more)

    def _is_trainable(self, rows: Array) -> bool:
        """Whether some query has both a relevant and another document among some rows."""
        query = self.joined.query[rows]
        relevant = self.relevant[rows]
        return bool(np.isin(query[relevant], query[~relevant]).any())

    def held_out(self, names: Sequence[str]) -> Array:
        """Score of each row by these runs, with weights of the other folds.

        Minus infinity where none of the runs retrieved the document.
        """
        names = list(names)
        query = self.joined.query
        there = self.joined.scores[names].notna().to_numpy().any(axis=1)
        scores = np.full(there.size, -np.inf)
        for fold in range(self.fold.max() + 1):
            in_fold = (self.fold == fold)[query]
            test = there & in_fold
            train = there & ~in_fold
            if not (test.any() and self._is_trainable(train)):  # nothing learned or ranked
                scores[test] = 0.0
                continue
            ranker = self.how.ranker(tol=_FOLD_TOL)
            self._fit(ranker, names, train)
            predicted = ranker.predict(self.columns[names][test], groups=query[test])
            scores[test] = from_lowest(predicted, query[test])
        return scores

    def table(self, scores: Array) -> MetricTable:
        """nDCG@k of each query, with the ideal of all judgments; minus infinity: not retrieved."""
        joined = self.joined
        with np.errstate(over="ignore"):  # trec_eval compares scores in single precision
            place = places(joined.query, scores.astype(np.float32), joined.place)
        n_shown = np.bincount(joined.query[scores > -np.inf], minlength=joined.n_queries)
        last = np.full(joined.missed_query.size, np.inf)
        grades = np.concatenate([joined.grades, joined.missed_grade])
        return metrics.evaluate(
            f"ndcg@{int(self.how.k)}",
            -np.concatenate([place, last]),
            np.maximum(grades, 0),
            np.concatenate([joined.query, joined.missed_query]),
            list_length=n_shown,
            no_positives="zero",
        )

    def alone(self) -> dict[str, MetricTable]:
        """Each run, and what joins runs without judgments."""
        frame = self.joined.frame
        tables = {
            name: self.table(frame[name].fillna(-np.inf).to_numpy()) for name in self.joined.names
        }
        yardsticks = {name: self.table(score(frame)) for name, score in YARDSTICKS.items()}
        return tables | yardsticks

    def best_of(self, tables: Mapping[str, MetricTable]) -> MetricTable:
        """In each fold the ranking that is the best on the other folds."""
        values = np.stack([table.values[:, 0] for table in tables.values()])
        chosen = np.empty(self.fold.size)
        for fold in range(self.fold.max() + 1):
            test = self.fold == fold
            best = int(np.argmax(values[:, ~test].mean(axis=1)))
            chosen[test] = values[best, test]
        return replace(next(iter(tables.values())), values=chosen[:, None])

    def weights(self, ranker: Any) -> list[RunWeight]:
        """What each run counts, by a ranker that was trained on all columns."""
        missed = self.joined.scores.isna().to_numpy()
        share = shares(ranker, self.how.for_engine)
        not_there = ranker.missing_coef_ / _total(ranker, self.how.for_engine)
        return [
            RunWeight(
                name=name,
                weight=float(ranker.coef_[column]),
                share=float(share[column]),
                not_there=float(not_there[column]),
                n_missed=int(missed[:, column].sum()),
                n_relevant_missed=int((missed[:, column] & self.relevant).sum()),
            )
            for column, name in enumerate(self.joined.names)
        ]


def shares(ranker: Any, for_engine: bool) -> Array:
    """Weights of the runs that can be held beside each other; their sizes have the sum 1."""
    weight = ranker.coef_ if for_engine else ranker.coef_ * ranker.scale_
    share: Array = weight / _total(ranker, for_engine)
    return share


def _total(ranker: Any, for_engine: bool) -> float:
    """What a share is a share of; 1 where all weights are 0."""
    weight = ranker.coef_ if for_engine else ranker.coef_ * ranker.scale_
    return float(np.abs(weight).sum()) or 1.0


def filled(scores: pd.DataFrame, query: Array) -> pd.DataFrame:
    """Holes take the lowest of their column in the query's list, 0 where there is none.

    By min-max they become 0, as in search engines, and nothing is left that a weight of "not
    there" could be learned from.
    """
    lowest = scores.groupby(query).transform("min").fillna(0.0)
    return scores.fillna(lowest)


def _folds(usable: Array, how: Settings) -> Array:
    """Fold of each query: as many queries that can be trained on in each as in the others."""
    order = np.random.default_rng(how.seed).permutation(usable.size)
    order = np.concatenate([order[usable[order]], order[~usable[order]]])
    fold = np.empty(usable.size, dtype=np.int64)
    fold[order] = np.arange(usable.size) % min(int(how.n_folds), int(np.count_nonzero(usable)))
    return fold


def _ranking(
    name: str, table: MetricTable, how: Settings, fused: MetricTable | None = None
) -> Ranking:
    metric = table.metrics[0]
    drawn: dict[str, Any] = {"level": how.level, "n_resamples": how.n_resamples, "seed": how.seed}
    lower = upper = np.nan
    if no_interval(table, metric) is None:
        made = metrics.interval(table, metric, **drawn)
        lower, upper = made.lower, made.upper
    ranking = Ranking(name, table.mean(metric), lower, upper)
    if fused is None:
        return ranking
    (paired,) = metrics.compare(fused, table, **drawn)
    return replace(
        ranking,
        ahead=paired.difference,
        ahead_lower=paired.lower,
        ahead_upper=paired.upper,
        p_value=paired.p_value,
    )


# --- which run earns its place --------------------------------------------------------------------


def _ablated(
    problem: _Problem, fused: MetricTable, ranker: Any, weights: list[RunWeight], say: Progress
) -> list[RunWeight]:
    how = problem.how
    if len(weights) < 2:
        raise InputError("ablate needs at least two runs: without the only one there is no list")
    say("weights of resampled queries")
    drawn = _resampled_shares(problem, ranker)
    ends = np.quantile(drawn, [(1 - how.level) / 2, (1 + how.level) / 2], axis=0)
    out = []
    for column, weight in enumerate(weights):
        say(f"without {weight.name}")
        others = [name for name in problem.joined.names if name != weight.name]
        without = _ranking(weight.name, problem.table(problem.held_out(others)), how, fused)
        out.append(
            replace(
                weight,
                share_lower=float(ends[0, column]),
                share_upper=float(ends[1, column]),
                without=without.mean,
                gain=without.ahead,
                gain_lower=without.ahead_lower,
                gain_upper=without.ahead_upper,
                verdict=_verdict(without),
            )
        )
    return out


def _verdict(without: Ranking) -> str:
    if without.ahead_lower > 0:
        return "keep"
    return "harms" if without.ahead_upper < 0 else "no difference"


def _resampled_shares(problem: _Problem, ranker: Any) -> Array:
    """Shares of the weights under random weights of the queries, each fit begun at the last."""
    how = problem.how
    rng = np.random.default_rng(how.seed)
    again = how.ranker(tol=_FOLD_TOL, alpha=float(ranker.result_.alpha), warm_start=True)
    drawn = []
    for _ in range(how.n_refits):
        weight = rng.exponential(size=problem.joined.n_queries)
        weight = np.maximum(weight, 1e-9)
        problem.fit(again, sample_weight=weight[problem.joined.query])
        drawn.append(shares(again, how.for_engine))
    return np.array(drawn)


# --- what to do -----------------------------------------------------------------------------------


def _advice(
    fused: MetricTable,
    tables: Mapping[str, MetricTable],
    rankings: Sequence[Ranking],
    how: Settings,
) -> str:
    """Use it, equal weights are as good, or how many more judged queries would tell."""
    by_name = {each.name: each for each in rankings}
    best = by_name[CHOSEN]
    n_queries = fused.users.size
    if np.isnan(best.ahead_lower):
        return (
            f"{n_queries} judged queries are too few to tell: with fewer than 10 there is no "
            "interval. RRF and equal weights need no judgments."
        )
    ends = f"{best.ahead:+.4f}, {best.ahead_lower:+.4f} to {best.ahead_upper:+.4f}"
    single = max(tables.keys() - {CHOSEN}, key=lambda name: by_name[name].mean)
    if best.ahead_lower > 0 and by_name[FUSED].mean >= by_name[single].mean:
        text = f"Use the fused ranking: it is ahead of the best of the others ({ends})"
        hindsight = by_name[single]
        if hindsight.ahead_lower > 0:
            return f"{text}."
        return (
            f"{text}; of {single}, the best in hindsight, by {hindsight.ahead:+.4f}, "
            f"{hindsight.ahead_lower:+.4f} to {hindsight.ahead_upper:+.4f}."
        )
    if best.ahead_upper < 0:
        return f"Do not use these weights: {single} is better ({ends}); the runs may add nothing."
    apart = (fused.values - tables[CHOSEN].values)[:, 0]
    more = _more_queries(apart, best.ahead, how.level)
    if more is not None:
        return (
            f"No difference to the best of the others yet ({ends}): at least {more} more judged "
            "queries would tell, if the difference is as measured."
        )
    equal = by_name["CombSUM"]
    if equal.ahead_lower > 0:
        return f"{single} alone is as good here ({ends})."
    return f"Equal weights are as good here: CombSUM ({ends} to the best of the others)."


def _more_queries(apart: Array, difference: float, level: float) -> int | None:
    """How many further queries make an interval that excludes 0; None where too many."""
    if difference <= 0 or not apart.std() > 0:
        return None
    needed = required_users(
        min(difference, 1 - 1e-9), 1 - level, method="bootstrap", std=float(apart.std(ddof=1))
    )
    more = needed - apart.size
    return max(more, 1) if more <= _FEW_TIMES * apart.size else None
