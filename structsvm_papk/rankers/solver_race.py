"""Solvers side by side on the same problem, each with its gap to the best certified bound."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.columns.knots import check_curves
from structsvm_papk.data.columns.missing import Filling
from structsvm_papk.data.lists import Exclusions
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import (
    AUTO,
    InputError,
    OracleFailure,
    as_names,
    check_callback,
    check_choice,
    check_number,
    check_type,
    is_auto,
)
from structsvm_papk.files.model import certificate_of
from structsvm_papk.metrics.table import evaluate_by_grade
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.choosing import Left, choose
from structsvm_papk.rankers.in_columns import InColumns, TrainingColumns
from structsvm_papk.rankers.settings import (
    ALPHA,
    Evidence,
    Setting,
    as_surrogate,
    automatic_alpha,
    check_alpha,
    k_of,
)
from structsvm_papk.rankers.solver_choice import make_solver
from structsvm_papk.solvers.solver import Progress, SolverResult, Status, check_signs, relative_gap
from structsvm_papk.surrogates import Surrogate

# the twelve step sizes of the paper, and larger ones, which many problems need
ETAS = tuple(m * 10.0**e for e in range(-4, 2) for m in (1, 2, 5))
PASSES = 200  # of solvers that would not stop by themselves, as in the paper
_CUTTING = ("cutting_plane", "one_slack")
_CERTIFIED = (*_CUTTING, "dual_ascent")
SOLVERS = (*_CERTIFIED, "subgradient", "averaged", "stochastic")
DEFAULT_SOLVERS = ("cutting_plane", "subgradient", "stochastic")
_FOREVER = 10**9


@dataclass(frozen=True)
class SolverRun:
    """One solver on one problem, with the users of the training data that were left out.

    `settings` are what else the solver was told; `pap_at_k` is the mean pAp@k gain (ties are
    errors) on 'train' and, where there is one, 'test'. `best_bound` is the best lower bound that
    any solver of this problem certified, -inf without one; `remark` what is special about the
    problem, if anything. `data_passes` and `seconds` are those of all step sizes that were tried,
    where `result` is the run of the best one.
    """

    solver: str
    surrogate: str
    k: int
    alpha: float
    result: SolverResult
    exclusions: Exclusions
    settings: dict[str, Any]
    pap_at_k: dict[str, float]
    data_passes: int
    seconds: float
    best_bound: float = -math.inf
    remark: str = ""

    @property
    def label(self) -> str:
        """The solver in words, with its step size or QP solver if it was told one."""
        if "qp_solver" in self.settings:
            return f"{self.solver.replace('_', ' ')} ({self.settings['qp_solver']})"
        if "eta" not in self.settings:
            return self.solver.replace("_", " ")
        tried = self.settings.get("etas_tried", 1)
        of = f" of {tried}" if tried > 1 else ""
        return f"descent (eta {self.settings['eta']:g}{of})"

    @property
    def gap(self) -> float:
        """Of the objective to the best bound, relative; infinite without one."""
        return relative_gap(self.result.objective, self.best_bound)

    def curve(self, name: str) -> Array:
        """A column of the history; of 'gap' the gap to the best bound, of every solver alike."""
        if name != "gap":
            return self.result.curve(name)
        objectives = self.result.curve("objective").tolist()
        return np.array([relative_gap(objective, self.best_bound) for objective in objectives])

    def __repr__(self) -> str:
        return (
            f"SolverRun({self.label}, {self.surrogate}, k={self.k}, alpha={self.alpha:g}: "
            f"objective={self.result.objective:.7g}, gap={self.gap:.1e}, {self.result.status}, "
            f"data_passes={self.data_passes}, seconds={self.seconds:.2f})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a bound that is not known is None."""
        known = math.isfinite(self.best_bound)
        return {
            "solver": self.solver,
            "surrogate": self.surrogate,
            "k": self.k,
            "alpha": self.alpha,
            **certificate_of(self.result),
            "best_bound": self.best_bound if known else None,
            "gap_to_best_bound": self.gap if known else None,
            "message": self.result.message,
            "remark": self.remark,
            "data_passes": self.result.data_passes,
            "data_passes_of_all_tried": self.data_passes,
            "seconds": self.result.seconds,
            "seconds_of_all_tried": self.seconds,
            "pap_at_k": self.pap_at_k,
            "settings": self.settings,
            "n_users": int(self.exclusions.n_used),
            "n_users_left_out": int(self.exclusions.n_excluded),
        }


def mean_pap_at_k(scores: Array, data: RankingData, k: int) -> float:
    """Mean pAp@k gain of scores over the users that have k negatives and a positive."""
    return evaluate_by_grade(f"pap@{k}", scores, data).mean(f"pap@{k}")


def train_gain(risk: Any, w: Array) -> float:
    """Mean pAp@k gain on the users of a risk; NaN where its data cannot be reached any more."""
    if not hasattr(risk, "gain"):
        return mean_pap_at_k(risk.of_users.scores(w), risk.of_users, risk.surrogate.k)
    try:
        return float(risk.gain(w))  # of data in partitions
    except OracleFailure:
        return math.nan


@dataclass(frozen=True)
class _Race:
    """The solvers of a comparison, and what all of them are told.

    `passes` and `seconds` limit every run; `tol` is of the certified solvers.
    """

    solvers: Sequence[str]
    etas: Sequence[float]
    passes: int | None
    seconds: float | None
    positive: bool
    qp_solver: str | None
    tol: float | None

    def check(self) -> None:
        """Refuse solvers that are none, numbers out of bounds, and what no solver would be told."""
        check_number("passes", self.passes, least=1, optional=True)
        check_number("seconds", self.seconds, above=0, optional=True)
        check_signs(self.positive)
        for name in self.solvers:
            check_choice("solvers", name, SOLVERS)
        for eta in self.etas:
            check_number("etas", eta, above=0)
        if not self.solvers or ("subgradient" in self.solvers and not self.etas):
            raise InputError(
                "solvers must not be empty, nor etas where 'subgradient' is one of them"
            )
        for name, able in (("qp_solver", _CUTTING), ("tol", _CERTIFIED)):
            value = getattr(self, name)
            if value is not None and not set(self.solvers) & set(able):
                raise InputError(
                    f"{name}={value!r} is for {', '.join(able)}, and solvers has none of them"
                )
        if self.etas != ETAS and "subgradient" not in self.solvers:
            raise InputError(
                "etas are the step sizes of 'subgradient', which solvers does not have"
            )

    def settings(self, name: str, risk: Any, alpha: float) -> list[dict[str, Any]]:
        """The settings of a solver; several of which the best run counts."""
        budget: dict[str, Any] = {}
        passes = self.passes or PASSES
        if self.seconds is not None:
            budget["time_limit"] = self.seconds
            passes = self.passes or _FOREVER
        if self.positive:
            budget["positive"] = True
        if name in _CUTTING:
            budget["qp_solver"] = self.qp_solver
        if name in _CERTIFIED:
            return [{"tol": self.tol, **budget}]
        budget["max_iter"] = passes
        if name != "subgradient":
            return [budget]
        return [{"eta": eta, "radius": _radius(risk, alpha), **budget} for eta in self.etas]

    def run(
        self,
        name: str,
        risk: Any,
        alpha: float,
        test: Callback | None,
        callback: Callback | None,
    ) -> SolverRun:
        """The best run of a solver; `test` gives the metric on what is held out."""
        tried = self.settings(name, risk, alpha)
        best: SolverResult | None = None
        told: dict[str, Any] = {}
        data_passes = 0
        seconds = 0.0
        for settings in tried:
            solver = make_solver(name, risk.surrogate, alpha, **settings)
            result = solver.solve(risk, callback=self._within_passes(name, callback))
            data_passes += result.data_passes
            seconds += result.seconds
            if best is None or result.objective < best.objective:
                best = result
                told = settings
            if result.status is Status.INTERRUPTED:
                best = replace(best, status=Status.INTERRUPTED)
                break
        assert best is not None
        if len(tried) > 1:
            told = told | {"etas_tried": len(tried)}
        surrogate = risk.surrogate
        gains = {"train": train_gain(risk, best.w)}
        if test is not None:
            gains["test"] = test(best.w)
        told = {key: value for key, value in told.items() if value is not None}
        users = risk.exclusions
        return SolverRun(
            solver=name,
            surrogate=surrogate.label,
            k=surrogate.k,
            alpha=alpha,
            result=best,
            exclusions=users,
            settings=told,
            pap_at_k=gains,
            data_passes=data_passes,
            seconds=seconds,
        )

    def _within_passes(self, name: str, callback: Callback | None) -> Callback | None:
        """A callback that ends a certified run after the passes that it is given."""
        if self.passes is None or name not in _CERTIFIED:
            return callback
        passes = self.passes

        def watch(progress: Progress) -> bool:
            stop = callback is not None and bool(callback(progress))
            return stop or progress.data_passes >= passes

        return watch


def _radius(risk: Any, alpha: float) -> float | None:
    """Of W in the paper's Algorithm 1, a ball that holds the optimum; None: one is not known.

    ``alpha/2 ||w||^2 <= F(w) <= F(0)`` at the optimum of a risk that is nowhere negative.
    """
    surrogate = risk.surrogate
    if not surrogate.is_custom:
        return math.sqrt(2.0 / alpha)  # F(0) = 1
    if not surrogate.nonnegative:
        return None
    return math.sqrt(2.0 * risk(np.zeros(risk.n_features))[0] / alpha)


def compare(
    data: RankingData,
    surrogates: Sequence[str | Surrogate],
    k: int | None,
    alpha: Any = ALPHA,
    *,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
    etas: Sequence[float] = ETAS,
    passes: int | None = None,
    seconds: float | None = None,
    paper: bool = False,
    qp_solver: str | None = None,
    test: RankingData | None = None,
    watch: Callable[[str, str], Callback] | None = None,
    n_threads: int = 1,
    depth: int | float | None = None,
    standardize: bool | str = "auto",
    positive: bool = False,
    missing: str | None = None,
    curves: int | None = None,
    tol: float | None = None,
) -> list[SolverRun]:
    """Solvers side by side, surrogate by surrogate, each with its gap to the best certified bound.

    Two rankers are compared by `metrics.compare`.

    Parameters
    ----------
    data : RankingData
        Users without a positive or a negative are left out; fewer negatives than k count as they
        are.
    surrogates : sequence of str or Surrogate
        Convex ones: names, or objects, such as of a class of your own.
    k : int or None
        None where a surrogate is an object, which has its own.
    alpha : float or 'auto'
        As for `PAPKRanker`.
    solvers : sequence of str
        'cutting_plane' (bundle), 'one_slack' (its restricted problems by cvxpy), 'dual_ascent'
        (of Avg); without certificates 'subgradient' (the paper's Algorithm 1 with steps
        eta/sqrt(t+1), on the ball that holds the optimum), 'averaged' and 'stochastic' (steps
        1/(alpha t), all users or one at a time, with weighted averages).
    etas : sequence of float
        Step sizes of 'subgradient', of which the best one counts: by default the paper's twelve
        and six larger ones, each with the whole budget.
    passes : int, optional
        Limit on the passes over the data of every run; by default 200 for solvers without a
        certificate, and none for the others.
    seconds : float, optional
        Limit on the time of every run.
    paper : bool
        The paper's own problem: depth k, columns as they are, users with fewer than k negatives
        left out; goes with no `depth`, `standardize` or `curves` of your own.
    qp_solver : str, optional
        Of the cutting planes, of which `solvers` must have one.
    test : RankingData, optional
    watch : callable, optional
        ``watch(solver, surrogate)`` returns the callback of one run.
    n_threads : int
    depth : int, float, optional
        Training depth, see `Surrogate`.
    standardize : {'auto', True, False}
        As for `PAPKRanker`.
    positive : bool
        Whether all of them minimise over w >= 0 only.
    missing : {None, 'lowest'}
        As for `PAPKRanker`; columns with holes are those of `data`.
    curves : int, optional
        Pieces of a curve for each column, between quantiles of `data`; by default lines.
    tol : float, optional
        Relative gap at which certified solvers stop; by default their own.

    Returns
    -------
    list of SolverRun
        On Ctrl-C the runs so far.
    """
    check_type("data", data, RankingData, "a RankingData")
    check_type("test", test, RankingData, "a RankingData", optional=True)
    check_callback(watch, "watch")
    solvers = as_names("solvers", solvers)
    race = _Race(solvers, as_names("etas", etas), passes, seconds, positive, qp_solver, tol)
    race.check()
    if test is not None and test.n_features != data.n_features:
        raise InputError(
            f"the test data has {test.n_features} features, the training data {data.n_features}"
        )
    check_type("paper", paper, bool | np.bool_, "True or False")
    check_number("curves", curves, least=1, optional=True)  # folds decide nothing here
    pieces = check_curves(curves)
    of_another = depth is not None or standardize not in ("auto", False) or pieces is not None
    surrogates = as_names("surrogates", surrogates)
    if not surrogates:
        raise InputError("surrogates must not be empty")
    k = k_of(k, surrogates)
    units = False if paper else standardize
    settings = [_setting(each, k, depth, pieces) for each in surrogates]
    of_another |= any(setting.surrogate.depth for setting in settings)
    if paper and of_another:
        raise InputError(
            "paper=True is depth k and columns as they are: no depth, standardize or curves"
        )
    check_alpha(alpha)
    columns = TrainingColumns(data, missing, units, positive=positive)
    in_columns = columns.of(settings[0])
    lists = in_columns.lists
    gain_on_test = None
    if test is not None:
        gain_on_test = partial(_gain, columns=in_columns, lists=test, k=k, filling=columns.filling)

    policy = "exclude" if paper else "cap"
    _warm_up(lists, [setting.surrogate for setting in settings], race)
    runs: list[SolverRun] = []
    known_alpha = None if is_auto(alpha) else alpha  # 'auto' is that of the first surrogate
    for setting in settings:
        loss = setting.surrogate
        risk = EmpiricalRisk(loss, lists, policy, n_threads=n_threads)
        if known_alpha is None:
            known_alpha = _automatic_alpha(columns, setting, risk)
        of_problem: list[SolverRun] = []
        for name in solvers:
            callback = watch(name, loss.label) if watch else None
            of_problem.append(race.run(name, risk, known_alpha, gain_on_test, callback))
            if of_problem[-1].result.status is Status.INTERRUPTED:
                return runs + _with_bound(of_problem, "")
        runs += _with_bound(of_problem, _remark(of_problem, runs, risk.data, paper))
    return runs


def _with_bound(runs: Sequence[SolverRun], remark: str) -> list[SolverRun]:
    """The runs of one problem with its best bound, also in the history of those without one."""
    bound = max(run.result.lower_bound for run in runs)
    with_bound = []
    for run in runs:
        result = run.result
        if not math.isfinite(result.lower_bound):
            history = tuple(replace(entry, lower_bound=bound) for entry in result.history)
            result = replace(result, history=history)
        with_bound.append(replace(run, result=result, best_bound=bound, remark=remark))
    return with_bound


def _remark(
    runs: Sequence[SolverRun], earlier: Sequence[SolverRun], data: RankingData, paper: bool
) -> str:
    """What is special about a problem, in a sentence; empty where nothing is."""
    if not any(math.isfinite(run.result.lower_bound) for run in runs):
        return "no gap is known, as none of these solvers certified a bound: add cutting_plane"
    certified = [run for run in runs if run.result.converged]
    if any(run.result.status is Status.DEGENERATE for run in certified):
        at_zero = "the optimum is w = 0, where every solver begins"
        return at_zero if paper else f"{at_zero}: count more negatives"
    few = int(data.n_pos.max()) <= runs[0].k
    for other in earlier:
        for run in certified:
            near = abs(run.result.objective - other.result.objective) <= 1e-5
            if few and other.result.converged and near:
                return f"as {other.surrogate}: no list has more than k = {run.k} positives"
    return ""


def _gain(
    w: Array, columns: InColumns[RankingData], lists: RankingData, k: int, filling: Filling
) -> float:
    """Mean pAp@k gain of a solver's weights on other lists."""
    return mean_pap_at_k(filling.scores(columns.function(w), lists), lists, k)


def _setting(surrogate: Any, k: int, depth: int | float | None, pieces: int | None) -> Setting:
    """What is minimised; an object's own depth counts where no other is given."""
    if depth is None:
        depth = getattr(surrogate, "depth", None)
    return Setting(as_surrogate(surrogate, k, depth), "equal", AUTO, pieces)


def _automatic_alpha(columns: TrainingColumns, setting: Setting, risk: EmpiricalRisk) -> float:
    """What `PAPKRanker` takes for the setting of a risk."""
    if columns.given.n_users == 1:
        left = Left(curves=False, alpha=True)
        choice = choose(columns, setting, left)
        if choice is not None and choice.best is not None:
            return choice.best.setting.known_alpha
    return automatic_alpha(Evidence.of(columns.of(setting).lists, risk.of_users))


def _warm_up(data: RankingData, losses: Sequence[Surrogate], race: _Race) -> None:
    """Load compiled code and libraries on two users, so that their time is counted for no run."""
    race = replace(race, etas=(0.1,), passes=2, seconds=None, positive=False, tol=None)
    usable = data.usable(1)
    few = usable.subset(np.arange(usable.n_users) < 2)
    for loss in losses:
        risk = EmpiricalRisk(loss, few, "cap")
        for name in race.solvers:
            race.run(name, risk, 1.0, None, None)
