"""Lists beside all relevant pairs: what no list holds counts in ideals and recalls.

The lists are the top of something larger, so a relevant item that a list does not hold was missed:
it ranks below all that the list holds, and takes no place. Labels of the rows come from the pairs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Frame
from structsvm_papk.data import validation as _validation
from structsvm_papk.data.roles import RECOMMENDED, pair_columns
from structsvm_papk.data.validation import single
from structsvm_papk.errors import InputError, warn
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics.conventions import Conventions
from structsvm_papk.metrics.ranked_lists import RankedLists, named

ANY_GRADE = float(np.finfo(np.float64).tiny)  # the relevance threshold: every grade above 0
_FEW = 3
_MANY = 20  # lists without a hit are no accident


@dataclass(frozen=True)
class Relevance:
    """What is known of relevant items that no list holds.

    Attributes
    ----------
    n_pairs : int
        Relevant pairs of the users that count.
    n_missed : int
        Those among them that no list holds.
    n_without_list : int
        Users with relevant items and without a list, whether they count or not.
    n_unjudged : int
        Lists of users of whom no pair is known, whether they count or not.
    n_listed, n_met : int
        Items in the lists of users of whom pairs are known, and how many of these are such a pair,
        of whatever grade.
    population : str
        Who counts, see `Conventions`.
    used : str
        Which columns of the pairs were taken for what.
    """

    n_pairs: int
    n_missed: int
    n_without_list: int
    n_unjudged: int
    n_listed: int
    n_met: int
    population: str
    used: str = ""

    def __str__(self) -> str:
        return f"all {self.n_pairs:,} known, {self.n_missed:,} of them in no list"


@dataclass(frozen=True)
class Pairs:
    """All relevant pairs: a user, an item and a grade each; no pair twice.

    `used` says where they are from, and which columns were taken for what.
    """

    users: Array
    items: Array
    grades: Array
    used: str = ""
    is_judged: Array | None = None  # None: all; grades below 0 say "in the pool, not judged"

    @property
    def judged(self) -> Array:
        """Which pairs were judged."""
        return np.ones(self.grades.size, dtype=bool) if self.is_judged is None else self.is_judged


@dataclass(frozen=True)
class Matched:
    """Lists and relevant pairs in the same codes.

    `users` are the distinct ids; `listed_user` and `listed_item` are the codes of the rows of the
    lists, `pair_user` and `pair_item` those of the pairs; `grades` are the grades of the rows, 0
    where no pair is known; `pair_of_row` is the pair of each row, -1 for none, and `missed` marks
    the pairs that no list holds.
    """

    users: Array
    items: Array
    listed_user: Array
    listed_item: Array
    pair_user: Array
    pair_item: Array
    pair_of_row: Array
    grades: Array
    missed: Array

    @property
    def met(self) -> Array:
        """Rows of which a pair is known."""
        return self.pair_of_row >= 0

    @property
    def is_listed(self) -> Array:
        """Which users have a list."""
        return np.bincount(self.listed_user, minlength=self.users.size) > 0

    @property
    def is_judged(self) -> Array:
        """Which users have relevant pairs, of whatever grade."""
        return np.bincount(self.pair_user, minlength=self.users.size) > 0


def pairs_of(
    relevant: Frame | None,
    user: str | None = None,
    item: str | None = None,
    grade: str | None = None,
) -> Pairs:
    """The pairs of a frame; `user` and `item` may be called so there, `grade` has to be."""
    if isinstance(relevant, Pairs):
        return relevant
    names = [str(name) for name in lists.column_names(relevant)]
    columns = pair_columns(
        names, "the relevant pairs", RECOMMENDED, "grade", given=(user, item, grade)
    )
    users = ids(relevant, columns.lists)
    grades = np.ones(users.size)
    if columns.number is not None:
        given = lists.column(relevant, columns.number)
        grades = _validation.check_grades(given, users.size, name=f"column {columns.number!r}")
        grades = grades.astype(np.float64)
    return Pairs(
        users=users,
        items=ids(relevant, columns.members),
        grades=np.maximum(grades, 0.0),
        used=columns.used,
        is_judged=grades >= 0.0,
    )


def ids(frame: Frame, name: str) -> Array:
    """A column of ids, checked."""
    values = lists.column(frame, name)
    return _validation.check_ids(values, values.size, f"column {name!r}")


def users_of(groups: ArrayLike | None) -> Array:
    """The users of the rows, checked; one list of all rows has none."""
    groups = _validation.groups_or_none(groups)
    if groups is None:
        raise InputError("relevant pairs need groups=, the user of each row")
    groups = _validation.as_array(groups, "groups")
    return _validation.check_ids(groups, groups.size)


def match(users: Array, items: Array, pairs: Pairs) -> Matched:
    """Which row of the lists is which pair."""
    import pandas as pd

    known_users, whose = lists.grouped(_together("users", users, pairs.users))[:2]
    which, known_items = pd.factorize(_together("items", items, pairs.items))  # in any order
    n = users.size
    refuse_pairs_twice(known_users, whose[:n], known_items, which[:n])
    refuse_pairs_twice(known_users, whose[n:], known_items, which[n:], " of the relevant pairs")
    codes = whose * known_items.size + which
    pair_of_row = pd.Index(codes[n:]).get_indexer(codes[:n])
    is_judged = pair_of_row >= 0
    missed = np.ones(pairs.users.size, dtype=bool)
    missed[pair_of_row[is_judged]] = False
    grades = np.zeros(n)
    grades[is_judged] = pairs.grades[pair_of_row[is_judged]]
    return Matched(
        users=known_users,
        items=known_items,
        listed_user=whose[:n],
        listed_item=which[:n],
        pair_user=whose[n:],
        pair_item=which[n:],
        pair_of_row=pair_of_row,
        grades=grades,
        missed=missed,
    )


def _together(what: str, *columns: Array) -> Array:
    """Ids of several tables as one array."""
    if not sum(column.size for column in columns):
        raise InputError("there are no rows: the table is empty")
    if not _validation.same_kind(*columns):
        raise InputError(f"the {what} are numbers in one table and text in the other")
    return _validation.joined(*columns)


def refuse_pairs_twice(
    users: Array, whose: Array, items: Array, which: Array, where: str = ""
) -> None:
    """Raise where a user has an item twice."""
    second = _validation.second_of_a_pair(whose, which, items.size)
    if second is not None:
        first = int(np.argmax((whose == whose[second]) & (which == which[second])))
        raise InputError(
            f"item {items[which[second]]} of user {users[whose[second]]} occurs in row {first} and "
            f"in row {second}{where}; give every pair (user, item) once"
        )


def build(
    scores: ArrayLike,
    users: Array,
    items: ArrayLike,
    pairs: Pairs,
    rules: Conventions,
    *,
    relevance_threshold: float | None = None,
    list_length: ArrayLike | None = None,
    views: Collection[str] = (),
    **how: Any,
) -> tuple[RankedLists, Relevance]:
    """Lists of the users that count, each with the relevant items that it misses.

    `list_length` is as in `evaluate`, of the users with a list; `views` are those of `RankedLists`
    that are needed; `how` are `gains`, `need_binary` and `n_threads` of `ranked_lists.build`.
    """
    values = _validation.check_scores(scores, users)
    items = _validation.check_ids(items, values.size, "items")
    matched = match(users, items, pairs)
    _refuse_other_users(matched)
    _warn_of_other_items(matched)
    threshold = ANY_GRADE if relevance_threshold is None else relevance_threshold
    ordered = _above_what_is_missed(values)
    if rules.ties == "trec_eval":
        ordered = in_trec_eval_order(values, np.asarray(items))
    # the lists of users that count, and below each what it misses, as rows that nothing is under
    included, relevance = _who_counts(matched, pairs, rules)
    rows = included[matched.listed_user]
    extra = _missed_rows(matched, pairs.grades, included)
    shown = _shown_places(matched, list_length)

    def made(
        rows: Array,
        labels: Array,
        n_shown: Array,
        extra: Array,
        least: float = threshold,
    ) -> RankedLists:
        """Lists of some rows and, behind them, of some pairs."""
        user = np.concatenate([matched.listed_user[rows], matched.pair_user[extra]])
        built = lists.build(
            np.concatenate([ordered[rows], np.full(extra.size, -np.inf)]),
            np.concatenate([labels[rows], pairs.grades[extra]]),
            user,
            list_length=n_shown[np.unique(user)],
            relevance_threshold=least,
            **how,
        )
        return replace(built, users=matched.users[built.users])

    built = made(rows, matched.grades, shown, extra)
    made_views: dict[str, RankedLists] = {}
    is_shown = rows
    if views:
        place = _validation.places_in_lists(matched.listed_user, -ordered)
        is_shown = rows & (place < shown[matched.listed_user])
    if "judged" in views:
        in_pool = matched.met & pairs.judged[matched.pair_of_row]
        unseen = np.flatnonzero(matched.missed & included[matched.pair_user] & pairs.judged)
        of_shown = matched.listed_user[is_shown & in_pool]
        n_judged = np.bincount(of_shown, minlength=matched.users.size)
        made_views["judged"] = made(rows & in_pool, matched.grades, n_judged, unseen)
    if "known" in views:
        none = np.empty(0, dtype=np.int64)
        made_views["known"] = made(is_shown, matched.met.astype(float), shown, none, 0.5)
    tied = None
    if rules.ties == "trec_eval":  # it compares in single precision, where more scores tie
        coarse = np.concatenate([single(values[rows]), np.full(extra.size, np.nan)])
        tied = tied_users(built, coarse)
    return replace(built, tied=tied, views=made_views), relevance


def _shown_places(matched: Matched, list_length: ArrayLike | None) -> Array:
    """How many places of each user's list were shown."""
    shown = np.bincount(matched.listed_user, minlength=matched.users.size)
    with_list = np.flatnonzero(shown)
    users = matched.users[with_list]
    shown[with_list] = lists.lengths_of(list_length, users, shown[with_list])
    return shown


def _refuse_other_users(matched: Matched) -> None:
    """Lists and pairs that have no user in common are of other data, whatever the population."""
    listed = matched.is_listed
    judged = matched.is_judged
    if not (listed & judged).any():
        raise InputError(
            f"no user counts: the lists are of {named(matched.users, listed)}, the relevant "
            f"pairs of {named(matched.users, judged)}; are they of the same users or queries, and "
            "the ids of the same kind?"
        )


def _warn_of_other_items(matched: Matched) -> None:
    """Warn where ids of items, or of users, seem to be others in the lists than in the pairs.

    That is where no pair is in a list, and no item is in both, or there are many lists.
    """
    if matched.met.any():
        return
    judged = matched.is_judged[matched.listed_user]
    is_common = np.isin(matched.listed_item, matched.pair_item).any()
    if is_common and np.unique(matched.listed_user[judged]).size < _MANY:
        return
    listed_item = matched.items[matched.listed_item[judged]]
    in_pair = matched.items[matched.pair_item]
    warn(
        f"none of the {np.count_nonzero(judged)} items in the lists is among the relevant pairs of "
        f"the same users: the lists have {_spelled(listed_item)}, the pairs {_spelled(in_pair)}; "
        "are they spelled alike, and in the columns that were meant?"
    )


def _spelled(ids: Array) -> str:
    """Some ids as they are written, with blanks that belong to them."""
    different = list(dict.fromkeys(map(str, ids)))
    more = ", .." if len(different) > _FEW else ""
    return ", ".join(map(repr, different[:_FEW])) + more


def _above_what_is_missed(scores: Array) -> Array:
    """The same order without minus infinity, which is the score of what a list misses."""
    if not np.isneginf(scores).any():
        return scores
    return np.unique(scores, return_inverse=True)[1].astype(np.float64)


def _who_counts(matched: Matched, pairs: Pairs, rules: Conventions) -> tuple[Array, Relevance]:
    """Mask of the users that count, and what is said of the others."""
    grades = pairs.grades
    listed = matched.is_listed
    judged = matched.is_judged
    wanting = np.bincount(matched.pair_user[grades > 0], minlength=matched.users.size) > 0
    lost = wanting & ~listed
    if rules.population == "raise" and lost.any():
        raise InputError(
            f"{named(matched.users, lost)} {'have' if lost.sum() > 1 else 'has'} relevant items "
            "but no list; population='either' counts them as 0, population='listed' leaves them "
            "out"
        )
    included = {
        "raise": listed,
        "listed": listed,
        "judged": judged,
        "both": listed & judged,
        "either": listed | judged,
    }[rules.population]
    of_included = included[matched.pair_user] & (grades > 0)
    return included, Relevance(
        n_pairs=int(of_included.sum()),
        n_missed=int((of_included & matched.missed).sum()),
        n_without_list=int(lost.sum()),
        n_unjudged=int((listed & ~judged).sum()),
        n_listed=int(judged[matched.listed_user].sum()),
        n_met=int(matched.met.sum()),
        population=rules.population,
        used=pairs.used,
    )


def _missed_rows(matched: Matched, grades: Array, included: Array) -> Array:
    """Pairs that become rows below the lists: the missed relevant ones of users that count.

    Of a user without a list and without a relevant item, one pair that was judged stands for the
    list, which has to have a row.
    """
    wanted = matched.missed & included[matched.pair_user]
    extra = np.flatnonzero(wanted & (grades > 0))
    has_row = matched.is_listed
    has_row[matched.pair_user[extra]] = True
    empty = np.flatnonzero(wanted & ~has_row[matched.pair_user])
    _, first = np.unique(matched.pair_user[empty], return_index=True)
    return np.concatenate([extra, empty[first]])


# --- the order of trec_eval -----------------------------------------------------------------------


def in_trec_eval_order(scores: Array, items: Array) -> Array:
    """Scores without ties: by score in single precision, then by the item's text, both descending.

    trec_eval holds scores in single precision and compares names byte by byte.
    """
    import pandas as pd

    codes, known = pd.factorize(items)
    order = np.lexsort((_validation.places_of(known)[codes], single(scores)))
    ordered = np.empty(scores.size)
    ordered[order] = np.arange(scores.size)
    return ordered


def ordered_by_item(rows: RankedLists, scores: ArrayLike, items: ArrayLike | None) -> RankedLists:
    """Complete lists in the order of trec_eval; scores and items are as they were given."""
    if items is None:
        raise InputError("ties='trec_eval' needs items=, the item of each row")
    values = _validation.check_scores(scores)
    strict = in_trec_eval_order(values, _validation.check_ids(items, values.size, "items"))
    tied = tied_users(rows, single(values))
    if rows.codes is not None:
        strict = strict[np.argsort(rows.codes, kind="stable")]
    return replace(rows, scores=strict, tied=tied)


def tied_users(rows: RankedLists, scores: Array) -> Array:
    """Mask of the users with a relevant and another item of the same score, which is not NaN.

    `scores` are those of the rows as they were given.
    """
    if rows.codes is not None:
        scores = scores[np.argsort(rows.codes, kind="stable")]
    user = rows.user_of_row
    order = np.lexsort((rows.relevant, scores, user))
    same = (user[order][1:] == user[order][:-1]) & (scores[order][1:] == scores[order][:-1])
    differ = same & (rows.relevant[order][1:] != rows.relevant[order][:-1])
    return np.bincount(user[order][1:][differ], minlength=rows.n_users) > 0
