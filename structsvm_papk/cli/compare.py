"""``compare``: the cutting plane against subgradient descent on one file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import PROBLEM, READING, SOLVER
from structsvm_papk.cli._shared.runs import explain, print_runs
from structsvm_papk.data.user_scaling import scaled_lists
from structsvm_papk.plots import figures as plots
from structsvm_papk.rankers.settings import solver_name
from structsvm_papk.rankers.solver_race import ETAS
from structsvm_papk.rankers.solver_race import compare as run_all
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import CONVEX, make_surrogate

ETA = SOLVER(
    None,
    "Step size eta/sqrt(t+1) of subgradient descent; repeat for more runs. By default 0.01, 0.1 "
    "and 1.",
)


def compare(
    *,
    data: Path = options.DATA,
    k: int = options.K,
    surrogate: list[str] | None = PROBLEM(
        None, "avg, max, ts or pauc; repeat for more, or all. By default all."
    ),
    alpha: float = PROBLEM(1e-2, options.ALPHA),
    weighting: options.Weighting,
    reading: options.Reading,
    stopping: options.Stopping,
    saving: options.Saving,
    test: Path | None = READING(None, "Report pAp@k on this file as well.", "FILE"),
    eta: list[float] | None = ETA,
    plot: Path | None = options.PLOT,
    as_json: bool = options.JSON,
) -> None:
    """Cutting plane against subgradient descent with the same data passes.

    Prints objective, certified lower bound, gap, data passes, seconds and pAp@k of every run.
    """
    names = convex_names(surrogate or ["all"], k)
    any_surrogate = weighting.surrogate(names[0], k)
    options.check_plot(plot)
    table = reading.table(data)
    second = reading.second_table(test, table)
    train = weighting.lists(reading.lists(table), any_surrogate)
    held_out = None if second is None else scaled_lists(reading.lists(second), weighting.scaling)
    checkpoint = saving.place()
    with console.live() as watch:
        runs = run_all(
            train, names, k, alpha, depth=weighting.negatives, etas=eta or ETAS, test=held_out,
            watch=watch, n_threads=stopping.threads, checkpoint=checkpoint, **stopping.limits(),
        )  # fmt: skip
    for used in (table, second):
        if used is not None:
            options.say_columns(used)
    if held_out is not None:
        console.note(f"test: {held_out.exclusions(k)}")
    title = weighting.title(k=k, alpha=alpha)
    finish(runs, f"{data.name}: {title}", weighting.content, plot, as_json)


def convex_names(names: Sequence[str], k: int) -> list[str]:
    """The surrogates to run: ``all`` means every convex one."""
    chosen: list[str] = []
    for name in names:
        if name != "all":
            solver_name("cutting_plane", make_surrogate(name, k))  # refuses what is not convex
        chosen += CONVEX if name == "all" else [name]
    return list(dict.fromkeys(chosen))


def finish(
    runs: Sequence[Any], title: str, content: dict[str, Any], plot: Path | None, as_json: bool
) -> None:
    """Print and draw the runs; exit status 1 where a certificate was not reached."""
    console.note(f"training: {runs[0].exclusions}")
    for run in runs:
        explain(run)
    options.save_plot(plot, lambda: plots.convergence_figure(runs, title))
    content = {**content, "runs": [run.as_dict() for run in runs]}
    console.answer(as_json, content, print_runs, runs, title)
    if not all(run.result.converged or run.result.status == Status.FINISHED for run in runs):
        raise typer.Exit(1)
