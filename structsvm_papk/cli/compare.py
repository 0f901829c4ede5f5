"""``compare``: the cutting plane against subgradient descent on one file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.cli._shared.runs import explain, print_runs
from structsvm_papk.errors import InputError
from structsvm_papk.plots import convergence as plots
from structsvm_papk.rankers.solver_race import ETAS
from structsvm_papk.rankers.solver_race import compare as run_all
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import CONVEX, make_surrogate

Eta = Annotated[
    list[float] | None,
    typer.Option(
        "--eta",
        help="Step size eta/sqrt(t+1) of subgradient descent; repeat for more runs. "
        "By default 0.01, 0.1 and 1.",
        rich_help_panel=options.STOPPING,
    ),
]


@dataclass(frozen=True)
class Problem:
    """What is minimised."""

    k: options.K
    surrogate: Annotated[
        list[str] | None,
        typer.Option(
            help="avg, max, ts or pauc; repeat for more, or all. By default all.",
            rich_help_panel=options.PROBLEM,
        ),
    ] = None
    alpha: options.Alpha = 1e-2


def compare(
    data: options.DataFile,
    problem: Problem,
    weighting: options.Weighting,
    reading: options.Reading,
    stopping: options.Stopping,
    saving: options.Saving,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Report pAp@k on this file as well.",
            rich_help_panel=options.READING,
        ),
    ] = None,
    eta: Eta = None,
    plot: options.Plot = None,
    as_json: options.Json = False,
):
    """Cutting plane against subgradient descent with the same data passes.

    Prints objective, certified lower bound, gap, data passes, seconds and pAp@k of every run.
    """
    k, alpha = problem.k, problem.alpha
    names = convex_names(problem.surrogate or ["all"], k)
    any_surrogate = weighting.surrogate(names[0], k)
    options.check_plot(plot)
    table = reading.table(data)
    second = reading.second_table(test, table)
    train, held_out = (None if t is None else reading.lists(t) for t in (table, second))
    train = weighting.lists(train, any_surrogate)
    with progress.live() as watch:
        runs = run_all(
            train,
            names,
            k,
            alpha,
            depth=weighting.depth,
            etas=eta or ETAS,
            test=held_out,
            watch=watch,
            n_threads=stopping.threads,
            checkpoint=saving.open("compare", train),
            **stopping.limits(),
        )
    for used in (table, second):
        if used is not None:
            options.say_columns(used)
    if held_out is not None:
        console.note(f"test: {held_out.exclusions(k)}")
    finish(runs, f"{data.name}: k = {k}, alpha = {alpha:g}", plot, as_json)


def convex_names(names, k):
    """The surrogates to run: ``all`` stands for every convex one."""
    chosen = []
    for name in names:
        if name == "all":
            chosen += CONVEX
        elif make_surrogate(name, k).convex:
            chosen.append(name)
        else:
            raise InputError(
                f"surrogate {name!r} is not convex, so no solver certifies it: compare takes "
                f"{', '.join(CONVEX)}"
            )
    return list(dict.fromkeys(chosen))


def finish(runs, title, plot, as_json):
    """Print and draw the runs; exit status 1 where a certificate was not reached."""
    console.note(f"training: {runs[0].exclusions}")
    for run in runs:
        explain(run)
    if not as_json:
        print_runs(runs, title)
    if plot is not None:
        plots.save_figure(plots.convergence_figure(runs, title), plot)
        console.note(f"plot written to {plot}")
    if as_json:
        console.print_json({"runs": [run.as_dict() for run in runs]})
    if not all(run.result.converged or run.result.status == Status.FINISHED for run in runs):
        raise typer.Exit(1)
