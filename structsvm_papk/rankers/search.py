"""The search of `PAPKRankerCV`: settings trained on folds of users, and what they score there.

A chain is what is trained on the same lists of one fold; chains do not depend on each other, so
`joblib` runs several at once. Within a chain every solve starts where the one before ended.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from structsvm_papk._types import Array
from structsvm_papk._version import __version__
from structsvm_papk.data.fingerprint import fingerprint_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, warn
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.choice import ScoreTable
from structsvm_papk.rankers.folds import ByMetric, ByScorer, Fold
from structsvm_papk.rankers.log import Log
from structsvm_papk.rankers.settings import Setting, make_solver, order_of_depth, weighted
from structsvm_papk.solvers.solver import SolverResult, Status


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
    """How settings are trained, by what all of them share."""

    k: int
    policy: str
    positive: bool
    tol: float
    max_iter: int | None = None
    n_blocks: int | None = None
    n_threads: int = 1

    def risk(self, setting: Setting, lists: RankingData) -> EmpiricalRisk:
        """What a setting minimises on lists, beside the penalty."""
        surrogate = setting.make(self.k)
        return EmpiricalRisk(surrogate, lists, self.policy, n_threads=self.n_threads)

    def identity(self) -> str:
        """What of it determines a fit."""
        return repr((self.k, self.policy, self.positive, self.tol, self.max_iter, self.n_blocks))

    def solve(
        self,
        risk: EmpiricalRisk,
        alpha: float,
        *,
        start: Array | None = None,
        last: SolverResult | None = None,
        stop: Callable[[object], bool] | None = None,
        time_limit: float | None = None,
    ) -> SolverResult:
        """Solve with a penalty, from a start, or from the last result on the same risk."""
        limits = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "n_blocks": self.n_blocks,
            "time_limit": time_limit,
            "positive": self.positive,
        }
        solver = make_solver("auto", risk.surrogate, alpha, **limits).suited_to(risk)
        if last is not None and risk.surrogate.convex:
            result: SolverResult = solver.solve(risk, callback=stop, warm_start=last)
        else:
            result = solver.solve(risk, start, callback=stop)
        return result


@dataclass(frozen=True)
class FoldFit:
    """A setting on a fold: weights of the columns as they are, scores of the held-out users."""

    setting: Setting
    fold: int
    coef: Array
    values: Array
    seconds: float


@dataclass(frozen=True)
class Plan:
    """How a search goes: what all its chains share."""

    folds: Sequence[Fold]
    scoring: ByMetric | ByScorer
    training: Training
    kept: KeptFits | None = None
    deadline: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def is_over(self) -> bool:
        """Whether no further fit is to begin."""
        if self.stop.is_set():
            return True
        return self.deadline is not None and time.perf_counter() > self.deadline

    def seconds_left(self) -> float | None:
        """What the next fit may take; a little for the first one, however late it is."""
        if self.deadline is None:
            return None
        return max(self.deadline - time.perf_counter(), 1e-2)


@dataclass(frozen=True)
class Chain:
    """Settings that are trained on the same lists of one fold, one after the other."""

    plan: Plan
    settings: Sequence[Setting]
    data: RankingData
    fold: int
    is_first: bool

    def fits(self) -> list[FoldFit]:
        """Train and score every setting, or as many as there is time for.

        A solve starts from the weights that the last one with the same alpha found, else from the
        last ones; where only alpha has changed it has their cuts, too.
        """
        plan = self.plan
        if plan.is_over() and not self.is_first:
            return []
        first = self.settings[0]
        fold = plan.folds[self.fold]
        train = self.data.at_positions(fold.train).standardized(first.standardize)
        lists = weighted(first, train)
        scores = plan.scoring.on(self.data.at_positions(fold.test))
        starts: dict[float, Array] = {}
        fits: list[FoldFit] = []
        for _, path in groupby(self.settings, key=_path_of):
            risk: EmpiricalRisk | None = None
            last: SolverResult | None = None
            for setting in path:
                if fits and plan.is_over():
                    return fits
                start = starts.get(setting.known_alpha, next(reversed(starts.values()), None))
                fit = self._kept(setting, start)
                if fit is None:
                    began = time.perf_counter()
                    risk = risk or plan.training.risk(setting, lists)
                    last = plan.training.solve(
                        risk,
                        setting.known_alpha,
                        start=start,
                        last=last,
                        stop=lambda _: plan.stop.is_set(),
                        time_limit=plan.seconds_left(),
                    )
                    if last.status is Status.INTERRUPTED:
                        raise KeyboardInterrupt
                    if last.status is Status.STOPPED:
                        return fits
                    fit = KeptFit(last.w, time.perf_counter() - began)
                    if last.status is not Status.TIME_LIMIT:
                        self._keep(setting, start, fit)
                if fit.w.any():
                    starts[setting.known_alpha] = fit.w
                coef = lists.divided(fit.w)
                fits.append(FoldFit(setting, self.fold, coef, scores(coef), fit.seconds))
        return fits

    def _kept(self, setting: Setting, start: Array | None) -> KeptFit | None:
        return None if self.plan.kept is None else self.plan.kept.get(self._key(setting, start))

    def _keep(self, setting: Setting, start: Array | None, fit: KeptFit) -> None:
        if self.plan.kept is not None:
            self.plan.kept.add(self._key(setting, start), fit)

    def _key(self, setting: Setting, start: Array | None) -> str:
        """The digest of all that determines a fit, and of the version of this package.

        The start does only where the problem is not convex; else it is the same fit to `cv_tol`.
        """
        training = self.plan.training
        return fingerprint_of(
            __version__,
            training.identity(),
            *setting.identity(training.k),
            self.data.fingerprint(),
            self.plan.folds[self.fold].train,
            None if setting.kind.convex else start,
        )


def _path_of(setting: Setting) -> tuple[Any, ...]:
    """What settings share that have the same risk."""
    return setting.surrogate, setting.depth


def chains_of(
    plan: Plan, settings: Sequence[Setting], data: Mapping[str | None, RankingData]
) -> list[Chain]:
    """All chains, fold by fold.

    Within a chain surrogates that are not convex come last, and start from the optima of those that
    are; deep comes before shallow, a strong penalty before a weak one.
    """

    def order(setting: Setting) -> tuple[Any, ...]:
        kind, depth = order_of_depth(setting.depth)
        return not setting.kind.convex, setting.name, -kind, -depth, -setting.known_alpha

    on_same_lists: dict[Any, list[Setting]] = {}
    for setting in settings:
        lists = setting.user_scaling, setting.standardize, setting.user_weight
        on_same_lists.setdefault(lists, []).append(setting)
    chains: list[Chain] = []
    for fold in range(len(plan.folds)):
        for same in on_same_lists.values():
            of_fold = data[same[0].user_scaling]
            chains.append(Chain(plan, sorted(same, key=order), of_fold, fold, not chains))
    return chains


def search(
    plan: Plan,
    settings: Sequence[Setting],
    data: Mapping[str | None, RankingData],
    n_jobs: int | None,
    log: Log,
    callback: Callable[[Trial], object] | None = None,
) -> ScoreTable:
    """Train and score all settings on all folds, until the callback or the clock ends it.

    Parameters
    ----------
    plan : Plan
    settings : sequence of Setting
    data : dict of RankingData
        The lists with each user scaling that is tried.
    n_jobs : int, optional
        Threads that share the chains.
    log : Log
        Told how far the search is.
    callback : callable, optional
        See `PAPKRankerCV`.
    """
    table = ScoreTable(settings, _whose_scores(plan, next(iter(data.values()))))
    chains = chains_of(plan, settings, data)
    parallel = Parallel(n_jobs, prefer="threads", return_as="generator")
    solved = parallel(delayed(Chain.fits)(chain) for chain in chains)
    report = Report(table, plan, log, callback)
    try:
        for fits in solved:
            for fit in fits:
                table.note(fit.setting, fit.fold, fit.values, fit.seconds, fit.coef)
                if not plan.stop.is_set() and report.on(fit):
                    plan.stop.set()
    except BaseException:
        plan.stop.set()
        for _ in solved:  # those that have begun come to an end
            pass
        raise
    table.forget_half_folds()
    if np.isnan(table.values).all():
        raise InputError(f"no held-out list has a value of {plan.scoring.name}")
    return table


def _whose_scores(plan: Plan, data: RankingData) -> list[Array]:
    """Of each fold the users that its scores belong to; the fold itself, where it has one score."""
    by_user = plan.scoring.by_user and data.n_users > 1
    users = data.user_of_position
    return [
        np.unique(users[fold.test]) if by_user else np.array([number])
        for number, fold in enumerate(plan.folds)
    ]


class Report:
    """What is said of a search while it runs: a line, and the callback."""

    def __init__(
        self, table: ScoreTable, plan: Plan, log: Log, callback: Callable[[Trial], object] | None
    ) -> None:
        self.table = table
        self.metric = plan.scoring.name
        self.log = log
        self.callback = callback
        self.started = time.perf_counter()

    def on(self, fit: FoldFit) -> bool:
        """Tell of a fit; whether the callback ends the search."""
        done = self.table.n_done
        planned = self.table.seconds.size
        if self.log.due() or done == planned:
            best = self.table.best()
            spent = time.perf_counter() - self.started
            self.log.say(
                f"{done} of {planned} fits, {spent:.0f} s, about "
                f"{spent / done * (planned - done):.0f} s left; best so far: "
                f"{self.table.settings[best]}, {self.metric} {self.table.means()[best]:.4f}"
            )
        if self.callback is None:
            return False
        known = fit.values[np.isfinite(fit.values)]
        score = float(known.mean()) if known.size else float("nan")
        trial = Trial(fit.setting, fit.fold, score, fit.seconds, done, planned)
        return bool(self.callback(trial))


# --- fits that are kept for the next search -------------------------------------------------------

_WRITING = threading.Lock()


class KeptFit(NamedTuple):
    """The weights that a fit found, of the columns as they were trained on, and its seconds."""

    w: Array
    seconds: float


class KeptFits:
    """Finished fits by the digest of all that determines them: in memory, or in a file.

    A search takes those that it would compute itself, whatever else was changed. A file has a line
    of JSON for each. Lines that are damaged count for nothing. Several searches may use one file at
    once: each adds whole lines.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._fits: dict[str, KeptFit] = {}
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None
        self._fits.update(_kept_in(path))

    def get(self, key: str) -> KeptFit | None:
        """The fit with this key, or None."""
        return self._fits.get(key)

    def add(self, key: str, fit: KeptFit) -> None:
        """Keep a fit; a disk that is full costs it, and not the search."""
        if self.path is None:
            self._fits[key] = fit
            return
        line = json.dumps({"key": key, "w": fit.w.tolist(), "seconds": fit.seconds})
        try:
            with _WRITING, self.path.open("a", encoding="utf-8") as file:
                # begins with the end of the line before, of which a kill may have left a part
                file.write(f"\n{line}")
        except OSError as error:
            warn(f"a fit is not kept in {self.path}: {error.strerror}; the search goes on")


def _kept_in(path: Path) -> Iterator[tuple[str, KeptFit]]:
    """The fits in a file, with their keys."""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            fit = json.loads(line)
            yield fit["key"], KeptFit(np.array(fit["w"], dtype=float), float(fit["seconds"]))
        except (ValueError, TypeError, KeyError):
            continue
