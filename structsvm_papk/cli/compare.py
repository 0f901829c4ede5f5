"""``compare``: solvers side by side on one file, cutting plane and subgradient descent."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs, save_plot
from structsvm_papk.cli._shared.reading import Problem, TrainingReading, say_columns, surrogate_of
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all
from structsvm_papk.plots import figures as plots
from structsvm_papk.rankers.settings import ALPHA, DEPTH, as_depth
from structsvm_papk.rankers.solver_choice import solver_name
from structsvm_papk.rankers.solver_race import DEFAULT_SOLVERS, ETAS, PASSES, SOLVERS
from structsvm_papk.rankers.solver_race import compare as run_all
from structsvm_papk.solvers.solver import Status
from structsvm_papk.surrogates import CONVEX, Surrogate

TOL = 1e-6


@dataclass(frozen=True, kw_only=True)
class Problems:
    """What is minimised; the command has its fields as options."""

    surrogate: Annotated[
        list[str] | None,
        options.problem_option(
            help=f"{', '.join(CONVEX)}; or FILE.py:CLASS, a class of your own; repeat for more, or "
            "all. By default all."
        ),
    ] = None
    alpha: options.Alpha = ALPHA
    depth: options.Depth = DEPTH
    pieces: options.Pieces = None
    positive: options.Positive = False
    paper: Annotated[
        bool,
        options.problem_option(
            "--paper",
            help="The problem of the paper: depth k, columns not standardized, lists with fewer "
            "than k negatives left out.",
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.paper and (self.depth not in (DEPTH, None) or self.pieces is not None):
            raise InputError(
                "--paper is depth k and columns as they are: leave out --depth and --curves"
            )

    def surrogates(self, k: int) -> list[str | Surrogate]:
        """Names, and objects of own classes, each once."""
        names: list[str] = []
        for name in self.surrogate or ["all"]:
            names += CONVEX if name == "all" else [name]
        return [surrogate_of(name, k) for name in dict.fromkeys(names)]

    def problem(self, missing: str | None) -> Problem:
        """What is minimised, beside the surrogates and k."""
        return Problem(
            depth=None if self.paper else as_depth(self.depth, missing),
            pieces=self.pieces,
            standardized=not self.paper,
        )


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Who solves the problems, and until when; the command has its fields as options."""

    solver: Annotated[
        list[str] | None,
        options.solver_option(
            help=f"{', '.join(SOLVERS)}; repeat for more. By default {', '.join(DEFAULT_SOLVERS)}.",
            metavar="NAME",
        ),
    ] = None
    passes: Annotated[
        int | None,
        options.solver_option(
            min=1,
            help=f"Passes over the data of each run; by default {PASSES} for solvers without a "
            "certificate, and no limit for the others.",
        ),
    ] = None
    seconds: Annotated[float | None, options.solver_option(help="Seconds for each run.")] = None
    tol: options.Tol = TOL
    eta: Annotated[
        list[float] | None,
        options.solver_option(
            help="Step size eta/sqrt(t+1) of subgradient descent; repeat to try several and keep "
            "the best. By default eighteen from 1e-4 to 50.",
        ),
    ] = None
    qp_solver: Annotated[
        str | None,
        options.solver_option(
            "--qp-solver",
            help="Who solves the restricted problems of a cutting plane: interior_point, the "
            "package's own, or a QP solver that cvxpy finds (piqp, clarabel, osqp, ..).",
            metavar="NAME",
        ),
    ] = None

    def __post_init__(self) -> None:
        for name in self.solvers:
            check_choice("--solver", name, SOLVERS)

    @property
    def solvers(self) -> Sequence[str]:
        """Their names."""
        return self.solver or DEFAULT_SOLVERS

    @property
    def is_limited(self) -> bool:
        """Whether runs end before a certificate is reached."""
        return self.passes is not None or self.seconds is not None

    @property
    def settings(self) -> dict[str, Any]:
        """As `rankers.compare` takes them."""
        return {
            "solvers": self.solvers,
            "etas": self.eta or ETAS,
            "passes": self.passes,
            "seconds": self.seconds,
            "qp_solver": self.qp_solver,
            "tol": None if self.tol == TOL else self.tol,  # solvers without a certificate take none
        }


def compare(
    *,
    data: options.Data,
    k: options.K,
    problems: Problems,
    test: Annotated[
        Path | None,
        options.reading_option(help="Report pAp@k on this file as well.", metavar="FILE"),
    ] = None,
    reading: TrainingReading,
    plot: options.Plot = None,
    as_json: options.Json = False,
    limits: Runs,
) -> None:
    """Compare solvers: cutting plane and subgradient descent, same data passes.

    Prints objective, certified lower bound, gap to the best bound, data passes, seconds and pAp@k
    of every run. To compare two rankers, use evaluate --compare.
    """
    check_outputs([data, test], plot=plot)
    missing = reading.missing
    problem = problems.problem(missing)
    losses = problems.surrogates(k)
    for loss, solver in product(losses, limits.solvers):
        solver_name(solver, problem.surrogate(loss, k))  # refuses what this solver cannot do
    dense = problems.pieces is not None
    table = reading.table(data, dense=dense)
    second = None if test is None else reading.table(test, table, dense=dense)
    lists = reading.lists(table, "linear")
    refuse_deeper_than_all(problem.surrogate(losses[-1], k), lists.most_negatives)
    held_out = None if second is None else reading.lists(second, "linear")
    with console.live() as watch:
        runs = run_all(
            lists,
            losses,
            k,
            problems.alpha,
            depth=problem.depth,
            paper=problems.paper,
            test=held_out,
            positive=problems.positive,
            missing=missing,
            curves=problems.pieces,
            watch=watch,
            **limits.settings,
        )
    say_columns(table, lists)
    if second is not None:
        say_columns(second)
    if held_out is not None:
        console.note(f"test: {held_out.exclusions(k)}")
    title = problem.title(problems.positive, missing, k=k, alpha=runs[0].alpha)
    content = problem.content | {
        "positive": problems.positive,
        "missing": missing,
        "paper": problems.paper,
    }
    finish(runs, f"{data.name}: {title}", content, plot, as_json, limits.is_limited)


def finish(
    runs: Sequence[Any],
    title: str,
    content: dict[str, Any],
    plot: Path | None,
    as_json: bool,
    limited: bool = False,
) -> None:
    """Print and draw the runs; exit status 1 where a certificate was not reached.

    Not where the runs were `limited`, in passes or seconds.
    """
    console.note(f"training: {runs[0].exclusions}")
    for run in runs:
        if not (limited and run.result.status in (Status.STOPPED, Status.TIME_LIMIT)):
            explain(run)
    for problem, remark in {run.surrogate: run.remark for run in runs}.items():
        if remark:
            console.note(f"{problem}: {remark}")
    save_plot(plot, lambda: plots.convergence_figure(runs, title))
    content = {**content, "runs": [run.as_dict() for run in runs]}
    console.answer(as_json, content, print_runs, runs, title)
    budget_spent = (Status.FINISHED, Status.STOPPED, Status.TIME_LIMIT)
    fine = (Status.FINISHED,) if not limited else budget_spent
    if not all(run.result.converged or run.result.status in fine for run in runs):
        raise typer.Exit(1)


def explain(run: Any) -> None:
    """Say on standard error what a status means, where it needs saying."""
    if run.result.status not in (Status.CONVERGED, Status.FINISHED):
        console.warn(f"{run.surrogate}, {run.solver}: {run.result.message}")
    elif run.result.notes:
        console.note(f"{run.surrogate}, {run.solver}: {' '.join(run.result.notes)}")


def print_runs(runs: Sequence[Any], title: str) -> None:
    """Print objective, bound, gap, effort and pAp@k of each run, in 80 columns."""
    places = [place for place in ("train", "test") if place in runs[0].pap_at_k]
    rows = [
        (
            run.surrogate,
            run.label,
            f"{run.result.objective:.7f}",
            console.known(run.result.lower_bound, ".7f"),
            console.known(run.gap, ".0e"),
            f"{run.data_passes:g}",
            f"{run.seconds:.2f}",
            *(console.known(run.pap_at_k[place], ".3f") for place in places),
        )
        for run in runs
    ]
    numbers = [f">{name}" for name in ("objective", "bound", "gap", "passes", "s", *places)]
    title += f"; pAp@{runs[0].k} on {' and '.join(places)}; gap to the surrogate's best bound"
    if any("etas_tried" in run.settings for run in runs):
        title += "; passes and seconds of a descent are those of all its step sizes"
    console.print_table(
        title, ["surrogate", "solver", *numbers], rows, box=None, padding=(0, 1, 0, 0)
    )
