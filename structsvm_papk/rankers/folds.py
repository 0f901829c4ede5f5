"""Folds of `PAPKRankerCV`, users or the rows of one list, and how weights are scored on them."""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import Exclusions, RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.metrics.by_grade import evaluate_by_grade

Scores = Callable[[Array], Array]  # of weights: a value for each user, or one of the fold


class Fold(NamedTuple):
    """List positions to train and to score on, as masks."""

    train: Array
    test: Array


def make_folds(cv: Any, data: RankingData, without_use: Exclusions) -> list[Fold]:
    """Folds of users who can be used, or what a splitter of scikit-learn's says.

    One list is cut into folds of its rows with the same share of positives. Refused: a splitter
    whose training and validation share a row, or a user.
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if data.n_users == 1:
            folds = _of_rows(int(cv), data)
        else:
            folds = list(_of_users(int(cv), data, without_use))
    elif isinstance(cv, str | bytes) or not hasattr(cv, "split"):
        raise InputError(f"cv must be a number of folds or have split(X, y, groups): {cv!r}")
    else:
        folds = list(_of_splitter(cv, data))
    if not folds:
        raise InputError(f"the splitter {type(cv).__name__} gives no folds")
    return folds


def shown(k: int, folds: Sequence[Fold], data: RankingData) -> int:
    """How many items of a held-out list stand for k of a whole one: k, or a share of one list."""
    if data.n_users > 1:
        return k
    return max(1, round(k * float(np.mean([fold.test.mean() for fold in folds]))))


def rule_for_short_lists(k: int, data: RankingData) -> str:
    """How pAp@k treats lists of fewer than k negatives: left out, unless all lists are such."""
    if ((data.n_neg >= k) & (data.n_pos > 0)).any():
        return "exclude"
    return "normalise"


def _of_users(n_folds: int, data: RankingData, without_use: Exclusions) -> Iterator[Fold]:
    from sklearn.model_selection import KFold  # who only scores lists waits for no scikit-learn

    without = np.concatenate([without_use.no_positive, without_use.few_negatives])
    users = np.setdiff1d(np.arange(data.n_users), without)
    _check_number(n_folds, users.size, "users that can be used", "users")
    for _, part in KFold(n_folds, shuffle=True, random_state=0).split(users):
        test = np.isin(data.user_of_position, users[part])
        yield Fold(~test, test)


def _of_rows(n_folds: int, data: RankingData) -> list[Fold]:
    fewest = int(min(data.n_pos[0], data.n_neg[0]))
    _check_number(n_folds, fewest, "rows of the rarer label", "rows of the one list")
    return folds_by_content(n_folds, data)


def folds_by_content(n_folds: int, data: RankingData) -> list[Fold]:
    """Folds of the rows of one list that do not depend on their order; copies of a row together.

    Within each class the distinct rows are dealt out in the order of digests of their values. Of
    many copies of few rows a fold may have none of a class: it is left out.
    """
    digests = digests_of_rows(data)
    labels = data.labels
    fold = np.empty(data.rows.size, dtype=int)
    for label in (False, True):
        of_class = labels == label
        _, place = np.unique(digests[of_class], return_inverse=True)
        fold[of_class] = place % n_folds
    folds = [Fold(fold != number, fold == number) for number in range(n_folds)]
    return [
        part
        for part in folds
        if all(labels[mask].any() and not labels[mask].all() for mask in part)
    ]


def digests_of_rows(data: RankingData) -> Array:
    """A digest of the values of each row, at the list positions."""
    return np.array([_digest(data.X, row) for row in data.rows.tolist()])


def _digest(X: Any, row: int) -> bytes:
    """A digest of the values of a row, as text, whatever their type."""
    if sparse.issparse(X):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        parts = [X.indices[stored].astype(np.int64), X.data[stored].astype(np.float64)]
    else:
        parts = [X[row].astype(np.float64) + 0.0]  # -0 is 0
    content = hashlib.blake2b(digest_size=8)
    for part in parts:
        content.update(part.tobytes())
    return content.hexdigest().encode()


def _check_number(n_folds: int, most: int, what: str, made_of: str) -> None:
    if not 2 <= n_folds <= most:
        raise InputError(
            f"cv={n_folds} must be between 2 and the number of {what} ({most}): the folds are made "
            f"of {made_of}"
        )


def _of_splitter(cv: Any, data: RankingData) -> Iterator[Fold]:
    user = np.empty(data.rows.size, dtype=np.int64)
    user[data.rows] = data.user_of_position
    labels = np.empty(data.rows.size, dtype=bool)
    labels[data.rows] = data.labels
    name = type(cv).__name__
    groups = None if data.n_users == 1 else user
    for number, parts in enumerate(cv.split(user[:, None], labels, groups)):
        train, test = np.zeros((2, data.rows.size), dtype=bool)
        try:
            train[parts[0]] = True
            test[parts[1]] = True
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"fold {number} of the splitter {name} names no rows: {error}"
            ) from None
        _refuse_leak(name, data, user, train, test)
        for mask, purpose in ((train, "training"), (test, "validation")):
            if not mask.any():
                raise InputError(f"fold {number} of the splitter {name} has no rows for {purpose}")
        yield Fold(train[data.rows], test[data.rows])


def _refuse_leak(name: str, data: RankingData, user: Array, train: Array, test: Array) -> None:
    """Rows of one list are shared out; of several lists each is on one side, whole or in part."""
    if data.n_users == 1:
        both = np.flatnonzero(train & test)
        what = f"row {both[0]}" if both.size else ""
        advice = "StratifiedKFold"
    else:
        both = np.intersect1d(user[train], user[test])
        what = f"rows of user {data.users[both[:1]].tolist()[0]!r}" if both.size else ""
        advice = "a splitter by groups, such as GroupKFold"
    if both.size:
        raise InputError(
            f"the splitter {name} puts {what} both in training and in validation; use {advice}"
        )


# --- scores on a fold -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ByMetric:
    """A metric of the package: one value for each user.

    `few_negatives` is the rule for lists shorter than pAp@k needs, see `metrics.evaluate`.
    """

    name: str
    few_negatives: str = "exclude"
    by_user = True

    def on(self, test: RankingData) -> Scores:
        """The function that scores weights on these lists."""

        def scores(w: Array) -> Array:
            rules = {"few_negatives": self.few_negatives}
            return evaluate_by_grade(self.name, test.scores(w), test, **rules).values[:, 0]

        return scores


@dataclass(frozen=True)
class ByScorer:
    """A scorer as scikit-learn has it, ``scorer(estimator, X, y)``: one value for each fold.

    Where it has a parameter `groups`, or requests them by metadata routing, it gets them. `ranker`
    gives the fitted estimator of weights; `classes` are the labels of rows, not relevant and
    relevant.
    """

    scorer: Any
    ranker: Callable[[Array], Any]
    classes: Array
    by_user = False

    @property
    def name(self) -> str:
        """What the scorer is called."""
        return name_of_scorer(self.scorer)

    def on(self, test: RankingData) -> Scores:
        """The function that scores weights on the rows of these lists, in their own order."""
        order = np.argsort(test.rows)
        X = test.X[test.rows[order]]
        y = test.labels if test.grades is None else test.grades
        y = self.classes[y[order].astype(int)] if test.grades is None else y[order]
        users = test.users[test.user_of_position[order]]

        def scores(w: Array) -> Array:
            return np.array([value_of(self.scorer, self.ranker(w), X, y, users)])

        return scores


def value_of(scorer: Any, ranker: Any, X: Any, y: Any, groups: Any) -> float:
    """What a scorer says of a ranker on some rows; it gets the groups where it takes them."""
    if _takes_groups(scorer):
        from sklearn import config_context

        with config_context(enable_metadata_routing=hasattr(scorer, "get_metadata_routing")):
            value = scorer(ranker, X, y, groups=groups)
    else:
        value = scorer(ranker, X, y)
    if not isinstance(value, Real):
        raise InputError(f"scoring {name_of_scorer(scorer)} must give a number, got {value!r}")
    return float(value)


def name_of_scorer(scorer: Any) -> str:
    """What a scorer is called."""
    return getattr(scorer, "__name__", None) or str(scorer)


def _takes_groups(scorer: Any) -> bool:
    if hasattr(scorer, "get_metadata_routing"):
        return "groups" in scorer.get_metadata_routing().consumes("score", ["groups"])
    try:
        return "groups" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):
        return False
