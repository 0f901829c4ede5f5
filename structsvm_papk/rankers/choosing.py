"""What `PAPKRanker` decides by folds: lines or curves, pairs; of one list surrogate and alpha, too.

A candidate is a setting, and the training lists in its columns. Each is fitted to a gap of 1%, of
small objectives of .0003, on the lists (or the rows of one list) that a fold leaves in, warm from
the candidate before, and scored on those that the fold leaves out by average precision, lists
weighted as in training. (The AUC chooses better of a few hundred rows, and far worse at the top
where positives are rare.)

Of one list the largest mean wins. Of lists

* curves with pairs of columns have to gain a quarter of the standard error of the gain over lines,
  or curves alone two (of many lists 20 pairs may lose more than curves gain);
* then pairs have to gain one and a half over curves alone, so that a ranker does not have twenty
  maps that say nothing;
* of 16 columns and more, 300 pairs as much over 20 (of one list 150, one standard error);
* stiff curves, which are best of some features of web pages and worse of others, as much over the
  winner (`benchmarks/results/columns.md`).

After each fold those that will hardly win are left out, and on a fold a path of alphas ends where a
weaker penalty is as far behind the one before. Pairs are those that curves leave at the same alpha,
of one list at the mean variance of the columns, so that a path has the same ones. Where weights are
many and rows few, fits are in the span of the rows. Of one list each positive counts as a list
does: average precision is the mean of the precision at the places of the positives.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.checks import columns_of
from structsvm_papk.data.columns.knots import PIECES, check_curves
from structsvm_papk.data.columns.pairs import ColumnPair, PairCuts
from structsvm_papk.data.columns.units import ScaleRule
from structsvm_papk.data.content import Digests, digests_of, digests_of_lists, fingerprint_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import check_number, warn
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.rankers.candidates import (
    FAR,
    Candidate,
    Fold,
    Gain,
    TimeIsOverError,
    Training,
    folds_of_lists,
    folds_of_rows,
    mean_gain,
    values_on,
)
from structsvm_papk.rankers.in_columns import TrainingColumns
from structsvm_papk.rankers.settings import (
    MANY_OF_ONE_LIST,
    MANY_PAIRS,
    PAIRS,
    STIFF,
    STIFFNESS,
    SURROGATES_OF_ONE_LIST,
    Evidence,
    Setting,
    check_alpha,
)

_FOLDS = 5
_FEWEST_LISTS = 5  # with a positive and a negative
_MOST_VALUES_OF_LISTS = 2_000_000  # of more some of the lists are looked at
_FIRST = 2  # folds that try everything,
_FAR_AHEAD = 3.0  # unless one candidate is so many standard errors ahead of all others
_SURE = 2.0  # standard errors, and lines or curves are left out,
_OF_CURVES = 0.25  # that curves with pairs have to gain over lines,
_OF_OTHERS = 1.5  # and pairs, many pairs or stiff curves over the others
_MANY_COLUMNS = 16  # of fewer, 20 pairs are a good part of all
# of one list
_OF_MANY = 1.0  # that many pairs have to gain
MULTIPLES = 10.0 ** np.arange(3.0, -3.5, -1.0)  # alphas, times the mean variance of the columns
_MAX_ITER = 250
_MOST_VALUES = 5_000_000  # with more alpha hardly matters, and the fits take a while
_BLOCKS = 16  # cuts a pass: more save passes, but their restricted problems take longer
_DECIDED = ("surrogate", "alpha", "pieces", "stiffness", "n_pairs")  # fields of `Setting`
_STEPS = 2.0**20  # of a unit of the penalty
_FEWEST = 5  # positives or negatives, one for each fold


@dataclass(frozen=True)
class Left:
    """What is left to folds."""

    curves: bool
    surrogate: bool = False
    alpha: bool = False
    pairs: bool = False

    @property
    def anything(self) -> bool:
        """Whether there is something to decide."""
        return self.curves or self.surrogate or self.alpha or self.pairs


@dataclass
class Choice(ABC):
    """What folds say of candidates.

    Attributes
    ----------
    candidates : list of Candidate
        Those that no fold has ruled out.
    ended_by : str
        Why not all folds were tried: 'time_limit', 'Ctrl-C', or empty.
    """

    candidates: list[Candidate]
    ended_by: str = field(default="", init=False)
    _weights: list[Array] = field(default_factory=list, init=False)  # of the lists of each fold
    _values: dict[Candidate, list[Array]] = field(default_factory=dict, init=False)

    @property
    def n_folds(self) -> int:
        """How many folds were finished."""
        return len(self._weights)

    def add(self, values: Sequence[Array | None], weights: Array) -> None:
        """What another fold says of the candidates: the score of each list that it leaves out.

        After that, those that were not scored or will hardly win are left out.
        """
        self._weights.append(weights)
        scored = []
        for candidate, of_lists in zip(self.candidates, values, strict=True):
            if of_lists is not None:
                self._values.setdefault(candidate, []).append(of_lists)
                scored.append(candidate)
        self.candidates = scored
        self.candidates = self._which_may_win()

    @abstractmethod
    def _which_may_win(self) -> list[Candidate]:
        """The candidates without those that will hardly win."""

    @abstractmethod
    def _best(self) -> Candidate:
        """The winner of the finished folds."""

    @property
    def best(self) -> Candidate | None:
        """The candidate that wins; None where no fold was finished."""
        return self._best() if self.n_folds else None

    def mean(self, candidate: Candidate) -> float:
        """The mean score of a candidate, lists by their weights; 0 where it is known of no list."""
        return mean_gain(np.concatenate(self._values[candidate]), self._all_weights).mean

    def gain(self, candidate: Candidate, other: Candidate) -> Gain:
        """How much larger the mean score of a candidate is than that of another."""
        values, others = (np.concatenate(self._values[each]) for each in (candidate, other))
        return mean_gain(values - others, self._all_weights)

    @property
    def _all_weights(self) -> Array:
        return np.concatenate(self._weights)

    @property
    def summary(self) -> str:
        """A sentence of what was chosen, and what ended the choice before all folds were tried."""
        chosen = "No fold was finished: the usual surrogate and alpha and lines were taken"
        if self.best is not None:
            chosen = f"Folds chose {self.best}"
        if not self.ended_by:
            return f"{chosen}."
        return f"{chosen}; {self.ended_by} ended them early, and with more time it may be another."


class ChoiceOfOneList(Choice):
    """Surrogates with lines, with curves and with pairs, on a path of alphas.

    Parameters
    ----------
    candidates : list of Candidate
    many : collection of Candidate
        Those with many pairs.
    """

    def __init__(self, candidates: list[Candidate], many: Collection[Candidate] = ()) -> None:
        super().__init__(candidates)
        self._many = frozenset(many)

    def _which_may_win(self) -> list[Candidate]:
        best = self._best()
        return [each for each in self.candidates if not self.gain(best, each).exceeds(FAR)]

    def _best(self) -> Candidate:
        few = [each for each in self.candidates if each not in self._many]
        many = [each for each in self.candidates if each in self._many]
        best = max(few or many, key=self.mean)  # the first of equals
        if few and many:
            richest = max(many, key=self.mean)
            if self.gain(richest, best).exceeds(_OF_MANY):
                best = richest
        return best


class ChoiceOfLists(Choice):
    """Lines or curves, stiff or less so, with pairs of columns or without.

    Parameters
    ----------
    lines, curves : Candidate
        The same where no column bends.
    stiff : Candidate, optional
        Stiff curves.
    paired : sequence of Candidate
        Curves with pairs, with few of them first.
    """

    def __init__(
        self,
        lines: Candidate,
        curves: Candidate,
        stiff: Candidate | None = None,
        paired: Sequence[Candidate] = (),
    ) -> None:
        self._lines = lines
        self._curves = curves
        self._stiff = stiff
        self._paired = tuple(paired)
        in_order = (lines, stiff, curves, *paired)  # neighbours are close to each other
        super().__init__([each for each in dict.fromkeys(in_order) if each is not None])

    @property
    def _with_pairs(self) -> list[Candidate]:
        """Curves with pairs that may win."""
        return [each for each in self._paired if each in self.candidates]

    def _which_may_win(self) -> list[Candidate]:
        left = list(self.candidates)
        best = self._best()
        if all(self.gain(best, each).exceeds(_FAR_AHEAD) for each in left if each is not best):
            return [best]
        if self.n_folds < _FIRST:
            return left
        lines = self._lines
        if lines in left and lines is not self._curves:
            gains = [self.gain(each, lines) for each in (self._curves, *self._with_pairs)]
            if all(gain.mean < -_SURE * gain.error for gain in gains):
                return [lines]
            if any(gain.exceeds(_SURE) for gain in gains):
                left.remove(lines)
        if lines not in left or lines is self._curves:
            for each in (*self._paired, self._stiff):
                if each in left and not self.gain(each, self._curves).exceeds(0.0):
                    left.remove(each)
        return left

    def _best(self) -> Candidate:
        if len(self.candidates) == 1:
            return self.candidates[0]
        best = self._curves
        for paired in self._with_pairs:
            if self.gain(paired, best).exceeds(_OF_OTHERS):
                best = paired
        if self._lines in self.candidates and not self._curves_are_ahead_of_lines:
            best = self._lines
        stiff = self._stiff
        if stiff is None or stiff not in self.candidates:
            return best
        return stiff if self.gain(stiff, best).exceeds(_OF_OTHERS) else best

    @property
    def _curves_are_ahead_of_lines(self) -> bool:
        """With pairs; without them curves have to be sure of it."""
        richer = next(iter(self._with_pairs), self._curves)
        if self.gain(richer, self._lines).exceeds(_OF_CURVES):
            return True
        return self.gain(self._curves, self._lines).exceeds(_SURE)


def choose(
    columns: TrainingColumns,
    given: Setting,
    left: Left,
    *,
    n_threads: int = 1,
    deadline: float | None = None,
) -> Choice | None:
    """What folds say of the candidates for what is left to them.

    Parameters
    ----------
    columns : TrainingColumns
    given : Setting
        With what is not left to the folds.
    left : Left
    n_threads : int
    deadline : float, optional
        By `time.perf_counter`, until when to try.

    Returns
    -------
    Choice or None
        At the deadline and after Ctrl-C what the finished folds say. None where there are too few
        lists, or rows of one list, or too many, and where all columns are binary.
    """
    choice: Choice
    lists = columns.given
    if lists.n_users > 1:
        some = _some_lists(lists)
        if some.sum() < _FEWEST_LISTS:  # before columns are cut into pieces that nobody asked for
            return None
        columns, digests = _as_folds_see(columns, some)
        folds = folds_of_lists(_FOLDS, columns.given, digests)
        training = Training(n_threads=n_threads, deadline=deadline)
        choice = _lines_or_curves(columns, given, left)
        if len(choice.candidates) == 1:
            return None
    elif _can_be_cut(lists):
        columns, digests = _as_folds_see(columns, _some_lists(lists))
        folds = folds_of_rows(_FOLDS, columns.given, digests)
        n_blocks = None if columns.given.is_sparse else _BLOCKS
        training = Training(_MAX_ITER, n_blocks, n_threads, deadline)
        candidates = _of_one_list(columns, given, left)
        many = [each for each in candidates if each.setting.n_pairs == MANY_OF_ONE_LIST]
        choice = ChoiceOfOneList(candidates, many)
    else:
        return None
    if len(folds) < 2:
        return None
    _try_on_folds(choice, folds, columns, training)
    return choice


def _try_on_folds(
    choice: Choice, folds: Sequence[Fold], columns: TrainingColumns, training: Training
) -> None:
    """Let folds speak until one candidate is left, or the time is over."""
    try:
        for fold in folds:
            if choice.n_folds and len(choice.candidates) == 1:
                return
            choice.add(*values_on(fold, choice.candidates, columns, training))
    except TimeIsOverError:
        choice.ended_by = "time_limit"
    except KeyboardInterrupt:
        choice.ended_by = "Ctrl-C"


class Decided(NamedTuple):
    """What is minimised, with what has to be said of how it was chosen."""

    setting: Setting
    notes: tuple[str, ...] = ()
    seconds: float = 0.0  # that the choice has taken
    kept: KeptChoice | None = None  # for a checkpoint


def decide(
    columns: TrainingColumns,
    given: Setting,
    left: Left,
    checkpoint: Checkpoint | None,
    n_threads: int,
    time_limit: float | None,
) -> Decided:
    """What is minimised: as it was given, but for what folds decide, in half of the time.

    What a checkpoint holds of an earlier choice is not asked for again, see `KeptChoice`.
    """
    if not left.anything:
        return Decided(given)
    kept = None
    fingerprint = ""
    if checkpoint is not None:
        fingerprint = _fingerprint(columns, given, left)
        kept = KeptChoice.read(checkpoint, fingerprint, given)
    if kept is not None and kept.complete:
        return Decided(kept.setting, (kept.summary,), kept=kept)
    begun = time.perf_counter()
    deadline = None if time_limit is None else begun + time_limit / 2
    choice = choose(columns, given, left, n_threads=n_threads, deadline=deadline)
    if choice is None:
        return Decided(given)
    if choice.ended_by:
        from sklearn.exceptions import ConvergenceWarning  # commands begin without it

        warn(choice.summary, ConvergenceWarning)
    notes = [choice.summary]
    if kept is None or choice.n_folds > kept.n_folds or not choice.ended_by:
        setting = given if choice.best is None else choice.best.setting
        if kept is not None and kept.setting != setting:
            notes.append("With more time folds chose anew, and the fit began anew.")
        kept = KeptChoice(
            given=fingerprint,
            setting=setting,
            summary=choice.summary,
            n_folds=choice.n_folds,
            complete=not choice.ended_by,
        )
    return Decided(kept.setting, tuple(notes), time.perf_counter() - begun, kept)


def _fingerprint(columns: TrainingColumns, given: Setting, left: Left) -> str:
    """What tells apart all that folds may choose for."""
    signs = () if columns.signs is None else (columns.signs,)
    settings = repr(given), repr(left), columns.missing, columns.standardize, columns.positive
    surrogate = given.surrogate.settings()
    return fingerprint_of(*surrogate, *settings, columns.given.fingerprint(), *signs)


def pairs_left(columns: TrainingColumns, setting: Setting, training: Training) -> PairCuts | None:
    """The pairs that a fit without them leaves to be found; None where there are none.

    That fit is of the lists that folds see, in their order, so that it does not depend on the order
    of rows, lists and columns which pairs come last.
    """
    if setting.n_pairs is None:
        return None
    columns.of(setting)  # counts values
    cuts = {cut.column: cut for cut in columns.cuts_for_pairs}
    if len(cuts) < 2:
        return None
    some = _some_lists(columns.given)
    if not some.any():
        return None
    seen, digests = _as_folds_see(columns, some)
    order = np.argsort(digests.columns, kind="stable")
    asked = Candidate(setting, seen.of(setting)).for_pairs
    found = training.solved(asked).pairs_left(seen, setting.n_pairs)
    if not found:
        return None
    own = [sorted(order[list(pair.columns)].tolist()) for pair in found]
    return PairCuts.of_pairs([ColumnPair(cuts[i], cuts[j]) for i, j in own])


def _some_lists(lists: RankingData) -> Array:
    """Lists with a positive and a negative, a mask; of many values some lists by their content.

    One list is taken as it is.
    """
    if lists.n_users == 1:
        return np.ones(1, dtype=bool)
    every = -(-lists.n_entries // _MOST_VALUES_OF_LISTS)
    usable = (lists.n_pos > 0) & (lists.n_neg > 0)
    if every > 1:  # copies of a list stand together in this order, and so each counts as often
        in_order = np.argsort(digests_of_lists(lists), kind="stable")
        in_order = in_order[usable[in_order]]
        usable[:] = False
        usable[in_order[::every]] = True
    return usable


def _lines_or_curves(columns: TrainingColumns, given: Setting, left: Left) -> ChoiceOfLists:
    """The candidates of lists."""
    lines, stiff, curves = (
        Candidate(setting, columns.of(setting))
        for setting in (
            replace(given, pieces=None),
            replace(given, pieces=PIECES, stiffness=STIFF),
            replace(given, pieces=PIECES, stiffness=STIFFNESS),
        )
    )
    tried = _tried_pairs(columns, left)
    if lines.lists.n_features == curves.lists.n_features:  # binary columns are lines in any case
        return ChoiceOfLists(lines, lines, paired=[lines.with_pairs(n) for n in tried])
    return ChoiceOfLists(lines, curves, stiff, [curves.with_pairs(n) for n in tried])


def _tried_pairs(columns: TrainingColumns, left: Left) -> list[int]:
    """How many pairs folds try: few, and many of many columns."""
    n_columns = len(columns.cuts_for_pairs)
    if not left.pairs or n_columns < 2:
        return []
    if n_columns < _MANY_COLUMNS:
        return [PAIRS]
    return [PAIRS, MANY_OF_ONE_LIST if columns.given.n_users == 1 else MANY_PAIRS]


def _can_be_cut(lists: RankingData) -> bool:
    """Whether there is one list, with rows enough for folds and not too many to try."""
    if lists.n_users != 1 or min(int(lists.n_pos[0]), int(lists.n_neg[0])) < _FEWEST:
        return False
    return lists.n_entries <= _MOST_VALUES


def _of_one_list(columns: TrainingColumns, given: Setting, left: Left) -> list[Candidate]:
    """The candidates of one list.

    The strongest penalties are tried with the first setting only, and so is the weakest. Curves
    whose surrogate is not the first one do without the next as well: such fits take longest, and
    hardly ever win.
    """
    surrogates = [given]
    if left.surrogate:
        surrogates = [given.with_surrogate(name) for name in SURROGATES_OF_ONE_LIST]
    candidates = []
    for lines in surrogates:
        multiples = MULTIPLES if lines is surrogates[0] else MULTIPLES[2:-1]
        richest = lines
        if left.curves:
            curved = replace(lines, pieces=PIECES)
            if columns.of(curved).lists.n_features > columns.of(lines).lists.n_features:
                richest = curved
        if richest is not lines:
            candidates += _on_path(lines, multiples, columns, left)
            multiples = MULTIPLES[2:-1] if lines is surrogates[0] else MULTIPLES[2:-2]
        on_path = _on_path(richest, multiples, columns, left)
        candidates += on_path
        for n_pairs in _tried_pairs(columns, left):
            candidates += [each.with_pairs(n_pairs) for each in on_path]
    return candidates


def _on_path(
    setting: Setting, multiples: Array, columns: TrainingColumns, left: Left
) -> list[Candidate]:
    """A setting with each alpha, where that is left: multiples of the mean variance."""
    in_columns = columns.of(setting)
    alphas = [setting.alpha]
    if left.alpha:
        unit = Evidence.of(in_columns.lists, in_columns.lists).mean_variance
        alphas = [float(alpha) for alpha in unit * multiples]
    return [Candidate(replace(setting, alpha=alpha), in_columns) for alpha in alphas]


def _as_folds_see(columns: TrainingColumns, keep: Array) -> tuple[TrainingColumns, Digests]:
    """The lists that folds look at, `keep`, made once; see `_in_own_order`."""
    if columns.as_folds_see is None:
        columns.as_folds_see = _in_own_order(columns, keep)
    return columns.as_folds_see


def _in_own_order(columns: TrainingColumns, keep: Array) -> tuple[TrainingColumns, Digests]:
    """Some of the lists, in numbers that do not depend on how they came.

    Fits on folds stop early, and where depends on the last bits. So rows, lists and columns are in
    an order that follows from their content, and the columns are dense, where there is room for
    that, and in the units of the penalty.
    """
    given = columns.given.subset(keep)
    digests = digests_of(given)
    users = np.argsort(digests.lists, kind="stable")
    positions = given.positions_of(users, digests.rows)
    digests = Digests(digests.rows[positions], digests.lists[users], digests.columns)
    given = given.rearranged(users, positions)
    units = columns.like(given).lines_in_units.lists.units
    order = np.argsort(digests.columns, kind="stable")
    seen = given.X[:, order]
    if not given.is_sparse or given.rows.size * given.n_columns <= _MOST_VALUES:
        seen = given.columns.toarray()
        numbers = columns.plan.numbers
        if units.scale is not None:
            of_numbers = seen[:, numbers]
            there = np.maximum((~np.isnan(of_numbers)).sum(axis=0), 1)
            centre = np.nansum(of_numbers, axis=0) / there
            scale = units.scale[: numbers.size]
            seen[:, numbers] = _rounded((of_numbers - centre) / scale)
        seen = np.ascontiguousarray(seen[:, order])
    lists = given.with_columns(columns_of(seen))
    lists.levels = {i: given.levels[j] for i, j in enumerate(order.tolist()) if j in given.levels}
    signs = None if columns.signs is None else columns.signs[order]
    standardize = columns.standardize if units.rule != ScaleRule.COMMON else False
    return TrainingColumns(lists, columns.missing, standardize, signs, columns.positive), digests


def _rounded(values: Array) -> Array:
    """To a millionth of a unit: what differs by its rounding only is the same."""
    return np.asarray(np.rint(values * _STEPS) / _STEPS)


# --- what folds chose, in a checkpoint ------------------------------------------------------------


@dataclass(frozen=True)
class KeptChoice:
    """What folds chose, in the checkpoint of a fit: one that goes on does not ask them again.

    Folds that a time limit or Ctrl-C ended early are asked again. Where more of them choose another
    setting, the fit begins anew, as what the checkpoint holds is of another problem.

    Attributes
    ----------
    given : str
        Fingerprint of what they chose for: lists, settings, and what was left to them.
    setting : Setting
    summary : str
        A sentence that says so.
    n_folds : int
        How many were finished.
    complete : bool
        Whether all were.
    """

    given: str
    setting: Setting
    summary: str
    n_folds: int
    complete: bool

    @classmethod
    def read(cls, checkpoint: Checkpoint, given: str, setting: Setting) -> KeptChoice | None:
        """The choice that a checkpoint holds for what was given; None where it holds none."""
        content = checkpoint.kept_choice()
        if content is None or content.get("given") != given:
            return None
        try:
            decided = {name: content["setting"][name] for name in _DECIDED}
            chosen = decided.pop("surrogate")
            if chosen != setting.name:
                setting = setting.with_surrogate(chosen)
            check_alpha(decided["alpha"])
            check_curves(decided["pieces"])
            check_number("stiffness", decided["stiffness"], above=0)
            check_number("n_pairs", decided["n_pairs"], least=1, optional=True)
            return cls(
                given=given,
                setting=replace(setting, **decided),
                summary=str(content["summary"]),
                n_folds=int(content["n_folds"]),
                complete=bool(content["complete"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise checkpoint.damaged(f"no run writes such a choice ({error})") from None

    def content(self) -> dict[str, Any]:
        """What a checkpoint holds, as plain values."""
        setting = {name: getattr(self.setting, name) for name in _DECIDED}
        return {
            "given": self.given,
            "setting": setting | {"surrogate": self.setting.name},
            "summary": self.summary,
            "n_folds": self.n_folds,
            "complete": self.complete,
        }
