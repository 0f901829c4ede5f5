"""The table users x metrics, from which means, intervals and plots are made.

`evaluate` makes it of scores and labels, `evaluate_by_grade` of lists that are laid out: with
grades, metrics of two labels are means over these, by what they count; `evaluate_frame` of long
tables of pandas or polars, whose columns it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Features, Frame
from structsvm_papk.data.grades import gains_of
from structsvm_papk.data.validation import required_groups, warn_of_other_order
from structsvm_papk.errors import InputError, is_one_of
from structsvm_papk.metrics import _kernels, conventions, definitions
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics import relevant as beside
from structsvm_papk.metrics.conventions import Conventions
from structsvm_papk.metrics.definitions import Asked
from structsvm_papk.metrics.ranked_lists import Gains, RankedLists, column
from structsvm_papk.metrics.relevant import Relevance, ids, pairs_of, refuse_pairs_twice
from structsvm_papk.metrics.values import Discount, values_of

if TYPE_CHECKING:
    import pandas as pd

    from structsvm_papk.data.ranking_data import RankingData

_RESPONSES = ("decision_function", "predict_proba", "predict")  # of estimators of scikit-learn


@dataclass(frozen=True)
class MetricSummary:
    """One metric's mean (NaN where no user is left), and the users that each rule concerned."""

    metric: str
    value: float
    n_users: int
    n_used: int
    by_rule: dict[str, int]
    conventions: Conventions

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        value = None if np.isnan(self.value) else self.value
        return asdict(self) | {"value": value}

    def rules_applied(self, space: str = " ") -> str:
        """How many lists have what a rule decides, for people; empty where none has."""
        counts = self.by_rule.items()
        return ", ".join(f"{n} with {rule.replace('_', space)}" for rule, n in counts if n)

    def __str__(self) -> str:
        rules = self.rules_applied("_")
        mean = f"{self.metric} {self.value:.6g} over {self.n_used} of {self.n_users} users"
        return f"{mean} ({rules})" if rules else mean


@dataclass(frozen=True, repr=False)
class MetricTable:
    """Values of every metric for every user.

    Attributes
    ----------
    users : ndarray, shape (n_users,)
        Sorted unique group labels.
    metrics : tuple of str
    values : ndarray, shape (n_users, n_metrics)
        NaN where a user is left out (or where the rule `nan` asks for it).
    left_out : ndarray of bool, shape (n_users, n_metrics)
        Users that do not enter the mean.
    n_pos, n_neg : ndarray of int, shape (n_users,)
    by_rule : dict of str to dict of str to ndarray of bool
        Per metric and rule, the users it concerned.
    conventions : Conventions
    pooled : dict of str to float
        The metrics of all rows as one list, when the mean is `pooled`; the rules for lists without
        positives and with few negatives hold for that one list as well.
    relevance : Relevance or None
        What is known of relevant items that no list holds; None: ideals and recalls are those of
        the candidates.
    relevance_threshold : float, optional
        From which label on a row was relevant.
    label_gain : str, sequence of float, or None
        What grades count, where values of metrics of two labels are means over grades.
    """

    users: np.ndarray
    metrics: tuple[str, ...]
    values: np.ndarray
    left_out: np.ndarray
    n_pos: np.ndarray
    n_neg: np.ndarray
    by_rule: dict[str, dict[str, Array]]
    conventions: Conventions
    pooled: dict[str, float] = field(default_factory=dict)
    relevance: Relevance | None = None
    relevance_threshold: float | None = None
    label_gain: str | Sequence[float] | None = None

    def _column(self, metric: str) -> int:
        if not is_one_of(metric, self.metrics):
            raise InputError(f"{metric!r} is not in this table; it has {', '.join(self.metrics)}")
        return self.metrics.index(metric)

    def __getitem__(self, metric: str) -> Array:
        """Per-user values of one metric."""
        return self.values[:, self._column(metric)]

    def used(self, metric: str) -> Array:
        """Mask of the users that enter the mean of a metric."""
        return ~self.left_out[:, self._column(metric)]

    def weights(self) -> Array:
        """Weight of each user in a mean: 1, n_pos or n_pos * n_neg."""
        if self.conventions.mean == "positives":
            return self.n_pos.astype(float)
        if self.conventions.mean == "pairs":
            return self.n_pos.astype(float) * self.n_neg
        return np.ones(self.users.size)

    def mean(self, metric: str) -> float:
        """Mean of a metric by the table's rule; NaN when no user is left."""
        used = self.used(metric)
        if self.is_pooled:
            return self.pooled[metric]
        weights = self.weights()[used]
        if not weights.sum() > 0:
            return float("nan")
        return float(np.dot(self[metric][used], weights) / weights.sum())

    @property
    def is_pooled(self) -> bool:
        """Whether the mean is the metric of all rows as one list, not a mean over users."""
        return self.conventions.mean == "pooled"

    def refuse_pooled(self, what: str) -> None:
        """Raise where the mean is pooled: `what` needs values of users that the mean is made of."""
        if self.is_pooled:
            raise InputError(
                f"a pooled mean is not made of users' values, which {what} needs; choose another"
            )

    @overload
    def summary(self, metric: None = None) -> list[MetricSummary]: ...

    @overload
    def summary(self, metric: str) -> MetricSummary: ...

    def summary(self, metric: str | None = None) -> MetricSummary | list[MetricSummary]:
        """The summary of a metric, or a list of all of them."""
        if metric is None:
            return [self.summary(name) for name in self.metrics]
        value = self.mean(metric)
        n_used = int(self.used(metric).sum())
        if self.is_pooled:  # every row takes part, or there is no value
            n_used = 0 if np.isnan(value) else self.users.size
        by_rule = {rule: int(mask.sum()) for rule, mask in self.by_rule[metric].items()}
        return MetricSummary(metric, value, self.users.size, n_used, by_rule, self.conventions)

    def take(self, mask: Array) -> MetricTable:
        """The table of some users; a pooled mean has to be computed afresh."""
        self.refuse_pooled("a table of some users")
        by_rule = {
            name: {rule: rows[mask] for rule, rows in rules.items()}
            for name, rules in self.by_rule.items()
        }
        of_users = ("users", "values", "left_out", "n_pos", "n_neg")
        kept = {name: getattr(self, name)[mask] for name in of_users}
        return replace(self, **kept, by_rule=by_rule)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame, one row per user: user, n_pos, n_neg and each metric."""
        import pandas as pd

        columns = {"user": self.users, "n_pos": self.n_pos, "n_neg": self.n_neg}
        return pd.DataFrame(columns | {name: self[name] for name in self.metrics})

    @property
    def relevant_items(self) -> str:
        """Which relevant items ideals and recalls count, in words."""
        return "of the candidates" if self.relevance is None else str(self.relevance)

    def __str__(self) -> str:
        rules = f"[{self.conventions}; relevant items: {self.relevant_items}]"
        return "\n".join([*map(str, self.summary()), rules])

    def __repr__(self) -> str:
        return f"MetricTable of {self.users.size} users\n{self}"


def evaluate(
    metrics: str | Sequence[str],
    scores: ArrayLike,
    labels: ArrayLike | None = None,
    groups: ArrayLike | str | None = None,
    *,
    indptr: Array | None = None,
    preset: str | Conventions | None = None,
    ties: str | None = None,
    few_negatives: str | None = None,
    no_positives: str | None = None,
    ideal: str | None = None,
    mean: str | None = None,
    list_length: ArrayLike | None = None,
    insufficient_handling: str | None = None,
    relevance_threshold: float | None = None,
    discount: Discount | None = None,
    gains: Gains | None = None,
    n_threads: int | None = None,
    items: ArrayLike | None = None,
    relevant: Any = None,
    population: str | None = None,
) -> MetricTable:
    """Every metric of every user in one pass.

    Parameters
    ----------
    metrics : str or sequence of str
        Names of the table of metrics (``print(structsvm_papk.metrics.__doc__)``), k a number.
    scores, labels, groups, indptr
        Rows. Infinite scores order as usual, NaN is refused; labels are 0/1, -1/1, bool, or graded;
        groups, of any dtype and order, are the users of the rows; indptr says instead where each
        user's rows begin, as in CSR. With neither, or with groups="one_list", there is one list.
    preset : str or Conventions, optional
        The set of rules: by default `icml2020`, the rules of the paper (ties count as errors, users
        that a metric is not defined for are left out); `icml2020-code`, `rectools`, `sklearn`,
        `trec_eval`, or `catalogue`, the default beside `relevant`. The following arguments
        override single ones.
    ties, few_negatives, no_positives, ideal, mean : str, optional
    insufficient_handling, population : str, optional
        See `Conventions`: `few_negatives` is for users that *have* fewer than k negatives,
        `insufficient_handling` for lists that were *cut* (`list_length`) before k of them.
    list_length : int or array of int, optional
        How many top items of each list were shown (truncated lists). Positives further down
        count 0; `auc` is refused, since it needs the whole list. With the rules `half` and
        `threshold` for ties, a cut between equal scores of different labels is refused, since what
        was shown is not known.
    relevance_threshold : float, optional
        Labels at least this large are relevant.
    discount : callable, optional
        What NDCG counts a gain at ranks 1, 2, .., a function of them; by default 1 / log2(1 + r).
    gains : {"linear", "exponential"} or callable, optional
        Gain of a graded label in NDCG.
    n_threads : int, optional
        Default: one per processor. Results do not depend on it.
    items : array, optional
        Item of each row; needed beside `relevant` and by ``ties="trec_eval"``.
    relevant : frame or dict of columns, optional
        All relevant pairs: the user (a column named user, query, .. as in files), the item (item,
        document, ..) and the grade (grade, relevance, label, rating, ..; 1 where no column could be
        it). What no list holds then counts in ideals and recalls;
        labels are the grades of the pairs, above 0 relevant; others are not read. Without it both
        are those of the candidates. There is a warning where no list holds any of the pairs.

    Raises
    ------
    InputError
        NaN scores, labels that are not binary, missing users, unknown names, k < 1, wrong shapes,
        and where a rule is `raise`.
    """
    parsed = [definitions.parse(name) for name in definitions.metric_names(metrics)]
    warn_of_other_order(scores=scores, labels=labels, groups=groups, items=items)
    rules = conventions.resolve(
        preset, relevant is not None, ties=ties, few_negatives=few_negatives,
        no_positives=no_positives, ideal=ideal, mean=mean, population=population,
        insufficient_handling=insufficient_handling, relevance_threshold=relevance_threshold,
    )  # fmt: skip
    relevance_threshold = rules.relevance_threshold
    # 1. the lists: of the rows alone, or of rows and of what relevant pairs know beside them
    making: dict[str, Any] = {
        "relevance_threshold": relevance_threshold,
        "gains": gains,
        "n_threads": n_threads,
        "need_binary": not all(request.metric.graded for request in parsed),
    }
    relevance = None
    if relevant is not None:
        if indptr is not None:
            raise InputError("relevant pairs need groups=, not indptr=")
        users = beside.users_of(groups)
        if items is None:
            raise InputError("relevant pairs need items=, the item of each row")
        pairs = beside.pairs_of(relevant)
        making["views"] = {request.metric.of for request in parsed} - {"all"}
        making["list_length"] = list_length
        rows, relevance = beside.build(scores, users, items, pairs, rules, **making)
    else:
        if labels is None:
            raise InputError("labels are missing: give the label of each row, or relevant=")
        rows = lists.build(scores, labels, groups, indptr=indptr, list_length=list_length, **making)
        if rules.ties == "trec_eval":
            rows = beside.ordered_by_item(rows, scores, items)
    # 2. every metric of every user
    return replace(
        evaluate_lists(parsed, rows, rules, discount, n_threads),
        relevance=relevance,
        relevance_threshold=relevance_threshold,
    )


def evaluate_lists(
    parsed: Sequence[Asked],
    rows: RankedLists,
    rules: Conventions,
    discount: Discount | None = None,
    n_threads: int | None = None,
) -> MetricTable:
    """`evaluate` for parsed metrics on checked rows."""
    made = values_of(parsed, rows, rules, discount, n_threads)
    pooled = {}
    if rules.mean == "pooled":
        whole = values_of(parsed, rows.pooled(), rules, discount, n_threads).values[0]
        pooled = dict(zip([m.name for m in parsed], whole.tolist(), strict=True))
    return MetricTable(
        users=rows.users,
        metrics=tuple(metric.name for metric in parsed),
        values=made.values,
        left_out=made.left_out,
        n_pos=made.counts[:, _kernels.N_POS],
        n_neg=made.counts[:, _kernels.N_NEG],
        by_rule=made.by_rule,
        conventions=rules,
        pooled=pooled,
    )


def evaluate_by_grade(
    metrics: str | Sequence[str],
    scores: Array,
    lists: RankingData,
    gains: Gains | None = None,
    **rules: Any,
) -> MetricTable:
    """`evaluate` of scores at the list positions; of binary lists nothing else.

    With grades, a metric of two labels is for each user the mean over the lists (u, t), see
    `data.grades`, by what they count, where it is defined for them; users without such a list are
    as those without a positive. Metrics of grades take the gains, by default those of the lists.
    """
    names = [definitions.parse(name).name for name in definitions.metric_names(metrics)]
    where: dict[str, Any] = {"indptr": lists.indptr, **rules}
    if lists.grades is None:
        table = evaluate(names, scores, lists.labels, gains=gains, **where)
        return replace(table, users=lists.users)
    of_grades = [name for name in names if definitions.parse(name).metric.graded]
    of_two_labels = [name for name in names if name not in of_grades]
    tables: dict[str, MetricTable] = {}
    if of_two_labels:
        table = _mean_over_grades(of_two_labels, scores, lists, where)
        tables |= dict.fromkeys(of_two_labels, table)
    if of_grades:
        label_gain: Any = lists.label_gain
        given = (lambda grades: gains_of(grades, label_gain)) if gains is None else gains
        table = evaluate(of_grades, scores, np.maximum(lists.grades, 0), gains=given, **where)
        tables |= dict.fromkeys(of_grades, table)
    return replace(
        table,
        users=lists.users,
        metrics=tuple(names),
        values=np.column_stack([tables[name][name] for name in names]),
        left_out=np.column_stack([~tables[name].used(name) for name in names]),
        n_pos=lists.n_pos,
        n_neg=lists.n_neg,
        by_rule={name: tables[name].by_rule[name] for name in names},
        label_gain=lists.label_gain,
    )


def _mean_over_grades(
    names: Sequence[str], scores: Array, lists: RankingData, rules: dict[str, Any]
) -> MetricTable:
    """The table of the users; values are means over their lists (u, t)."""
    # of all above the lowest grade, for users with one grade only
    of_users = evaluate(names, scores, lists.labels, **rules)
    of_users.refuse_pooled("a mean over grades")
    by_grade = lists.weighted("equal").by_grade()
    shared: Any = by_grade.shared
    weight: Any = by_grade.user_weight
    users = np.unique(shared.source)
    if not users.size:
        return of_users
    table = evaluate(
        names,
        shared.handed_out(scores[shared.order]),
        by_grade.labels,
        **rules | {"indptr": by_grade.indptr},
    )

    def sums(values: Array) -> Array:
        return np.bincount(shared.source, values, minlength=lists.n_users)[users]

    for m, name in enumerate(names):
        used = table.used(name)
        total = sums(np.where(used, weight * table[name], 0.0))
        counted = sums(np.where(used, weight, 0.0))
        mean = np.divide(total, counted, out=np.full(users.size, np.nan), where=counted > 0.0)
        of_users.values[users, m] = mean
        of_users.left_out[users, m] = counted == 0.0
        for rule, concerned in table.by_rule[name].items():
            of_users.by_rule[name][rule][users] = sums(concerned.astype(float)) > 0.0
    return of_users


def scorer(metric: str = "pap@10", **options: Any) -> Callable[..., float]:
    """A scorer of scikit-learn: the mean of a metric over users, larger is better.

    With metadata routing it requests `groups`, so that searches and cross-validation pass them on::

        sklearn.set_config(enable_metadata_routing=True)
        cross_val_score(ranker, X, y, scoring=scorer("ndcg@5"), params={"groups": users}, cv=cv)

    Parameters
    ----------
    metric : str
    **options
        Of `evaluate`, such as `preset`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, groups=users)``; it takes `decision_function`, `predict_proba` or
        `predict`, the first that the estimator has, and hands groups to it where it requests them,
        as a ranker with missing values does.
    """
    definitions.parse(metric)
    return _Scorer(metric, options)


@dataclass(frozen=True)
class _Scorer:
    """What scikit-learn calls; one of its own would not hand groups to the estimator."""

    metric: str
    options: dict[str, Any]

    def __call__(
        self, estimator: Any, X: Features, y: ArrayLike, groups: ArrayLike | None = None
    ) -> float:
        from sklearn import config_context
        from sklearn.utils.metadata_routing import get_routing_for_object

        users = required_groups(groups, scorer=True)
        name = next((name for name in _RESPONSES if hasattr(estimator, name)), _RESPONSES[-1])
        respond = getattr(estimator, name)
        if get_routing_for_object(estimator).consumes(name, ["groups"]):
            with config_context(enable_metadata_routing=True):  # for pipelines
                scores = np.asarray(respond(X, groups=groups))
        else:
            scores = np.asarray(respond(X))
        if name == "predict_proba" and scores.shape[1:] == (2,):
            scores = scores[:, 1]
        return evaluate([self.metric], scores, y, users, **self.options).mean(self.metric)

    def get_metadata_routing(self) -> Any:
        """That it wants groups."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        return request


# --- tables as frames -----------------------------------------------------------------------------


def evaluate_frame(
    frame: Frame,
    metrics: str | Sequence[str],
    *,
    user: str | None = "user_id",
    item: str | None = None,
    score: str = "score",
    rank: str | None = None,
    label: str = "label",
    relevant: Frame | None = None,
    grade: str | None = None,
    **options: Any,
) -> MetricTable:
    """`metrics.evaluate` on a long frame, one row per user and item, in any order.

    Parameters
    ----------
    frame : pandas or polars frame, or dict of arrays
    metrics : str or sequence of str
    user : str or None
        User column; None: all rows are one list.
    item : str, optional
        Item column; a pair (user, item) that occurs twice is refused.
    score : str
        Score column; ignored when `rank` is given.
    rank : str, optional
        Column of ranks 1, 2, .. per user, without gaps or ties.
    label : str
        Beside relevant pairs none is read.
    relevant : frame, optional
        All relevant pairs, in the columns `user`, `item` and `grade`, so that what no list holds
        counts in ideals and recalls; see `evaluate`.
    grade : str, optional
        Column of grades in `relevant`; by default one of a usual name (grade, relevance, label,
        rating, score, ..). Without a column that could be the grade every pair has grade 1.
    **options
        Of `evaluate`.
    """
    scores = column(frame, score if rank is None else rank)
    groups = None if user is None else ids(frame, user)
    if item is not None:
        options["items"] = ids(frame, item)
        if relevant is None:  # else they are compared when they are matched
            refuse_pairs_twice(*_by_user(frame, user, scores.size), *codes_of(item, frame))
    if rank is not None:
        scores = -_checked_ranks(frame, rank, *_by_user(frame, user, scores.size))
    labels = None
    if relevant is None:
        labels = column(frame, label)
    else:
        if user is None or item is None:
            raise InputError("relevant pairs need the columns of users and items: user=, item=")
        options["relevant"] = pairs_of(relevant, user, item, grade)
    return evaluate(metrics, scores, labels, groups, **options)


def codes_of(name: str, frame: Frame) -> tuple[Array, Array]:
    """The sorted distinct values of a column, and the code of each row's."""
    values = ids(frame, name)
    if not values.size:
        raise InputError("there are no rows: the table is empty")
    return lists.grouped(values)[:2]


def _by_user(frame: Frame, user: str | None, n_rows: int) -> tuple[Array, Array]:
    if user is None:
        return np.array(["the only user"]), np.zeros(n_rows, dtype=np.int64)
    return codes_of(user, frame)


def _checked_ranks(frame: Frame, name: str, users: Array, whose: Array) -> Array:
    """Ranks as float64, which have to be 1, 2, .. for every user."""
    import pandas as pd

    ranks = column(frame, name)
    if ranks.dtype.kind not in "iuf":
        raise InputError(f"column {name!r} must hold whole numbers, not {ranks.dtype}")
    lengths = np.bincount(whose, minlength=users.size)
    places = (np.cumsum(lengths) - lengths)[whose] + ranks
    good = (ranks >= 1) & (ranks <= lengths[whose]) & (ranks == np.floor(ranks))
    bad = ~good | pd.Series(places).duplicated().to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"column {name!r} of user {users[whose[row]]} has the rank {ranks[row]} in row {row}: "
            "ranks must be 1, 2, .. without gaps or ties"
        )
    return ranks.astype(np.float64)
