"""The search of `PAPKRankerCV`: settings on folds of users, losers dropped after each fold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from structsvm_papk._types import Array, Callback
from structsvm_papk._version import __version__
from structsvm_papk.data.fingerprint import fingerprint_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, warn
from structsvm_papk.files.atomic import check_writable, write_atomically
from structsvm_papk.files.tensors import TensorFile
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.choice import Candidates, HeldOut, choose, nearest_default
from structsvm_papk.rankers.folds import ByMetric, ByScorer, Fold
from structsvm_papk.rankers.settings import (
    Lines,
    OfLists,
    Setting,
    make_solver,
    order_of_depth,
    weighted,
)
from structsvm_papk.solvers.result import SolverResult, Status

_FILE = TensorFile("fits", version=1)


@dataclass(frozen=True)
class Trial:
    """One setting on one fold, counted from 0, for the callback of `PAPKRankerCV`.

    `score` is the mean over the held-out users, `seconds` are of the fit; `n_done` fits so far of
    `n_planned`.
    """

    setting: Setting
    fold: int
    score: float
    seconds: float
    n_done: int
    n_planned: int


@dataclass(frozen=True)
class Training:
    """How settings are trained: by the parameters of a `PAPKRankerCV`; fits may be `kept`."""

    ranker: Any
    solver_options: dict[str, Any]
    kept: KeptFits | None

    def identity(self) -> tuple[Any, ...]:
        """What of it determines a fit on a fold."""
        ranker = self.ranker
        options = sorted(self.solver_options.items())
        settings = ranker.n_shown, ranker.policy, ranker.max_iter, ranker.positive, options
        return repr(settings), ranker.cv_tol

    def risk(self, setting: Setting, lists: RankingData) -> EmpiricalRisk:
        """What a setting minimises on lists, beside the penalty."""
        made = setting.make(self.ranker.n_shown)
        return EmpiricalRisk(made, lists, self.ranker.policy, n_threads=self.ranker.n_threads)

    def solve(
        self,
        setting: Setting,
        risk: EmpiricalRisk,
        tol: float,
        *,
        w_init: Array | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
        warm_start: SolverResult | None = None,
    ) -> SolverResult:
        """Solve a setting on its risk."""
        surrogate = risk.surrogate
        limits = {"tol": tol, "max_iter": self.ranker.max_iter, "time_limit": time_limit}
        limits["positive"] = self.ranker.positive
        limits |= self.solver_options
        solver = make_solver("auto", surrogate, setting.strength, **limits)
        warm_start = warm_start if surrogate.convex else None
        w_init = w_init if warm_start is None else None  # cuts bring their point along
        result: SolverResult = solver.suited_to(risk).solve(risk, w_init, callback, warm_start)
        return result


class Search:
    """The settings of one search, and what each of them has scored so far."""

    def __init__(
        self,
        candidates: Candidates,
        folds: Sequence[Fold],
        scoring: ByMetric | ByScorer,
        training: Training,
        lines: Lines,
        callback: Callable[[Trial], object] | None = None,
    ) -> None:
        self.data = candidates.data
        self.settings = candidates.settings
        self.rule = candidates.rule  # alpha of PAPKRanker's default
        self.folds = folds
        self.scoring = scoring
        self.training = training
        self.callback = callback
        lists = next(iter(self.data.values()))
        user = lists.user_of_position
        one_list = lists.n_users == 1
        whose = [
            np.unique(user[fold.test]) if scoring.by_user and not one_list else np.array([number])
            for number, fold in enumerate(folds)
        ]
        self.scores = HeldOut(len(self.settings), whose)
        self.usual = candidates.default
        self.default = nearest_default(self.settings, self.rule, self.usual)
        self.lines = lines
        self.started = time.perf_counter()
        self.seconds = np.full((len(self.settings), len(folds)), np.nan)
        self.alive = np.ones(len(self.settings), dtype=bool)
        self.weights: dict[int, list[Array]] = {}  # of columns as they are, on each fold

    def run(self, deadline: float | None) -> None:
        """Score the settings fold by fold, until the callback or the clock ends it."""
        last = len(self.folds) - 1
        for number in range(len(self.folds)):
            stop = self._one_fold(number, deadline)
            if number == last and np.isnan(self.scores.values).all():
                raise InputError(f"no held-out list has a value of {self.scoring.name}")
            late = deadline is not None and time.perf_counter() > deadline
            if late and number and np.isnan(self.seconds[self.alive, number]).any():
                self.seconds[:, number] = np.nan  # of settings that were tried first alone
                self.scores.forget(number)
            if stop or late or number == last:
                break
            self.alive &= ~self.scores.beaten(self.alive, last)
            self.alive[self.default] = True  # the chosen setting is compared with it

    def _one_fold(self, number: int, deadline: float | None) -> bool:
        """Train and score what is alive; returns whether the callback ends the search.

        After the deadline, and at least one fit, no further one is begun.

        Surrogates that are not convex come last and start from the optima of those that are.
        """
        stop = False
        fold = self.folds[number]
        lists = self._training_lists(fold)
        scores = {}
        for scaling in {of.user_scaling for of in lists}:
            scores[scaling] = self.scoring.on(self.data[scaling].at_positions(fold.test))
        starts: dict[OfLists, dict[float, Array]] = {}
        for convex in (True, False):
            chains = [
                _Chain(
                    self.training,
                    run,
                    lists[of],
                    starts.get(of, {}),
                    self._key(fold, of.user_scaling),
                    deadline,
                )
                for of, run in self._runs(convex)
            ]
            with closing(_solved(chains, self.training.ranker.n_jobs)) as solved:
                for setting, w, seconds in solved:
                    coef = lists[setting.of_lists].divided(w)
                    values = scores[setting.user_scaling](coef)
                    stop |= self._note(setting, number, values, coef, seconds)
                    if w.any():
                        starts.setdefault(setting.of_lists, {})[setting.strength] = w
                    if deadline is not None and time.perf_counter() > deadline:
                        return stop
        return stop

    def _key(self, fold: Fold, scaling: str | None) -> tuple[Any, ...]:
        """What tells the training data of a fold from others."""
        return () if self.training.kept is None else (self.data[scaling].fingerprint(), fold.train)

    def _training_lists(self, fold: Fold) -> dict[OfLists, RankingData]:
        """The lists of a fold, of each scaling and weighting that is alive."""
        alive = [setting for setting, on in zip(self.settings, self.alive, strict=True) if on]
        parts: dict[str | None, RankingData] = {}
        out: dict[OfLists, RankingData] = {}
        for setting in alive:
            scaling = setting.user_scaling
            if scaling not in parts:
                parts[scaling] = self.data[scaling].at_positions(fold.train)
                parts[scaling].spread()  # once, for all that is made of them
            if setting.of_lists not in out:
                train = parts[scaling].standardized(setting.standardize)
                out[setting.of_lists] = weighted(setting, train)
        return out

    def _note(
        self, setting: Setting, number: int, values: Array, coef: Array, seconds: float
    ) -> bool:
        i = self.settings.index(setting)
        self.scores.note(i, number, values)
        self.seconds[i, number] = seconds
        self.weights.setdefault(i, []).append(coef)
        done = int(np.isfinite(self.seconds).sum())
        planned = done + int(np.isnan(self.seconds[self.alive]).sum())
        if self.lines.due() or done == planned:
            self._say(done, planned)
        if self.callback is None:
            return False
        known = values[np.isfinite(values)]
        score = float(known.mean()) if known.size else float("nan")
        trial = Trial(setting, number, score, seconds, done, planned)
        return bool(self.callback(trial))

    def _say(self, done: int, planned: int) -> None:
        """A line: what is done, how long the rest will take, the best so far."""
        spent = time.perf_counter() - self.started
        best = self.chosen("best")
        self.lines.say(
            f"{done} of {planned} fits, {spent:.0f} s, about {spent / done * (planned - done):.0f} "
            f"s left; best so far: {self.settings[best]}, "
            f"{self.scoring.name} {self.scores.means()[best]:.4f}"
        )

    def _runs(self, convex: bool) -> Iterator[tuple[OfLists, list[Setting]]]:
        """Settings that are alive, in runs that share warm starts: from deep and strong on."""
        alive = [
            setting
            for setting, alive in zip(self.settings, self.alive, strict=True)
            if alive and setting.kind.convex == convex
        ]
        alive.sort(key=_path_key)
        for _, group in groupby(alive, key=lambda setting: _path_key(setting)[:4]):
            run = list(group)
            yield run[0].of_lists, run

    def results(self) -> dict[str, Any]:
        """`cv_results_` as scikit-learn has it."""
        params = [setting.as_dict() for setting in self.settings]
        folds = self.scores.fold_means()
        mean = self.scores.means()
        seen = self.n_seen()
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
            "se_test_score": np.array(
                [self.scores.mean_and_error(v)[1] for v in self.scores.values]
            ),
            "rank_test_score": rank,
            "mean_fit_time": np.ma.masked_invalid(self.seconds).mean(axis=1).filled(np.nan),
            "n_splits": seen,
        }

    def chosen(self, selection: str) -> int:
        """The index of the setting that a rule takes, of those that saw most folds."""
        among = self.finished()
        return choose(selection, self.settings, self.scores, among, self.rule, self.usual)

    def n_seen(self) -> Array:
        """On how many folds each setting was tried."""
        seen: Array = np.isfinite(self.seconds).sum(axis=1)
        return seen

    def finished(self) -> list[int]:
        """Indices of the settings that saw most folds."""
        seen = self.n_seen()
        return np.flatnonzero(seen == seen.max()).tolist()


# --- solves that start where others ended -------------------------------------------------------


@dataclass
class _Chain:
    """Settings that are solved one after the other on one fold, each from what the last ones left.

    The solutions may be kept, under the digest of all that determines them.
    """

    training: Training
    settings: list[Setting]
    lists: RankingData
    starts: dict[float, Array]  # solutions that are not zero, by alpha
    of_data: tuple[Any, ...]
    deadline: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def solve(self) -> Iterator[tuple[Setting, Array, float]]:
        """Setting, solution and seconds of each; they are kept when all are there."""
        kept = self.training.kept
        if kept is None:
            yield from self._fresh()
            return
        starts = chain.from_iterable(self.starts.items())
        k = self.training.ranker.n_shown
        tried = chain.from_iterable(setting.identity(k) for setting in self.settings)
        key = kept.key(*self.training.identity(), *tried, *self.of_data, *starts)
        old = kept.read(key, (len(self.settings), self.lists.n_features))
        if old is not None:
            yield from zip(self.settings, *old, strict=True)
            return
        solved = []
        for step in self._fresh():
            solved.append(step)
            yield step
        _, w, seconds = zip(*solved, strict=True)
        kept.write(key, np.array(w), np.array(seconds))

    def _fresh(self) -> Iterator[tuple[Setting, Array, float]]:
        starts = dict(self.starts)
        last: dict[Any, SolverResult] = {}  # by depth, for its cuts
        risks: dict[Any, EmpiricalRisk] = {}  # by depth: cuts are taken by the risk they are of
        zero: list[Setting] = []  # whose optimum is zero
        for setting in self.settings:
            began = time.perf_counter()
            w = np.zeros(self.lists.n_features)
            if not any(_not_deeper(setting, other) for other in zero):
                if setting.depth not in risks:
                    risks[setting.depth] = self.training.risk(setting, self.lists)
                result = self.training.solve(
                    setting,
                    risks[setting.depth],
                    self.training.ranker.cv_tol,
                    w_init=starts.get(setting.strength, next(iter(starts.values()), None)),
                    warm_start=last.get(setting.depth),
                    time_limit=self._seconds_left(),
                    callback=lambda _: self.stop.is_set(),
                )
                if result.status in (Status.INTERRUPTED, Status.STOPPED):
                    raise KeyboardInterrupt
                w = result.w
                last[setting.depth] = result
                if result.status is Status.DEGENERATE:
                    zero.append(setting)
            if w.any():
                starts[setting.strength] = w
            yield setting, w, time.perf_counter() - began

    def _seconds_left(self) -> float | None:
        """What the next fit may take; a little for the first one, however late it is."""
        if self.deadline is None:
            return None
        return max(self.deadline - time.perf_counter(), 1e-2)


def _solved(
    chains: Sequence[_Chain], n_jobs: int | None
) -> Generator[tuple[Setting, Array, float], None, None]:
    """The fits of all chains in order; in this thread, or on several."""
    n_threads = min(effective_n_jobs(n_jobs), len(chains))
    if n_threads <= 1:
        for fits in chains:
            yield from fits.solve()
        return
    stop = threading.Event()
    with ThreadPoolExecutor(n_threads) as pool:
        for fits in chains:
            fits.stop = stop
        try:
            for future in [pool.submit(list, fits.solve()) for fits in chains]:
                yield from future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _not_deeper(setting: Setting, other: Setting) -> bool:
    """Whether a setting counts no more negatives of any user than another, all else the same.

    Then its surrogate is nowhere below, and where the other's optimum is zero so is its own.
    """
    if (setting.surrogate, setting.alpha) != (other.surrogate, other.alpha):
        return False
    if not setting.kind.above_slope_at_zero:
        return False  # what its depth does is not known
    shallow = setting.depth
    deep = other.depth
    if shallow is None or deep is None:
        return shallow is None
    return (shallow < 1) == (deep < 1) and shallow <= deep


def _path_key(setting: Setting) -> tuple[str, str, str, str, float, float, float]:
    """Deep before shallow, strong regularisation before weak."""
    kind, depth = order_of_depth(setting.depth)
    scaling, units, weight = setting.of_lists
    return scaling or "", str(units), weight, setting.name, -kind, -depth, -setting.strength


# --- fits that are kept in a folder for the next search -------------------------------------------


class KeptFits:
    """Solutions of fits by the digest of all that determines them.

    A search takes those that a fresh one would compute, whatever else was changed; a file that is
    damaged counts as none. Several searches may use one folder at once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        with suppress(OSError):  # what is wrong with the folder is said of files in it
            folder.mkdir(parents=True, exist_ok=True)
        check_writable(self._path("any"))

    def key(self, *parts: Any) -> str:
        """The digest of texts, numbers and arrays, and of the version of this package."""
        return fingerprint_of(__version__, *parts)[:32]

    def read(self, key: str, shape: tuple[int, int]) -> tuple[Array, Array] | None:
        """Solutions of that shape and their seconds, or None."""
        if not self._path(key).exists():
            return None
        try:
            _, arrays = _FILE.read(self._path(key))
        except InputError:
            return None
        w, seconds = (arrays.get(name, np.empty(0)) for name in ("w", "seconds"))
        fit = (w.shape, seconds.shape) == (shape, shape[:1]) and np.isfinite(w).all()
        return (w, seconds) if fit else None

    def write(self, key: str, w: Array, seconds: Array) -> None:
        """Keep solutions; a disk that is full costs them, and not the search."""
        with self._lock:
            try:
                write_atomically(self._path(key), _FILE.encoded({}, {"w": w, "seconds": seconds}))
            except InputError as error:
                warn(f"No checkpoint: {error}. The run goes on.")

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.fits"
