"""``fit``: train a ranker on a file and write a model file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli import scale
from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.cli._shared.runs import explain, print_runs
from structsvm_papk.files.model import Model, certificate_of, save_model
from structsvm_papk.rankers.settings import solver_name
from structsvm_papk.rankers.solver_race import solve
from structsvm_papk.solvers.result import Status


@dataclass(frozen=True)
class Problem:
    """What is minimised."""

    k: options.K
    surrogate: Annotated[
        str,
        typer.Option(
            help="avg, max, ts, pauc, ts_alg2, ramp or clipped_ramp.",
            rich_help_panel=options.PROBLEM,
        ),
    ] = "avg"
    alpha: options.Alpha = 1e-2


@dataclass(frozen=True)
class Solver:
    """What minimises it."""

    solver: Annotated[
        str,
        typer.Option(
            help="auto, cutting_plane, cccp or subgradient.", rich_help_panel=options.STOPPING
        ),
    ] = "auto"
    eta: Annotated[
        float | None,
        typer.Option(help="Step size of subgradient descent.", rich_help_panel=options.STOPPING),
    ] = None


def fit(
    data: options.DataFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Model file to write.",
            rich_help_panel=options.OUTPUT,
        ),
    ],
    problem: Problem,
    weighting: options.Weighting,
    reading: options.Reading,
    solver: Solver,
    stopping: options.Stopping,
    where: scale.Scale,
    saving: options.Saving,
    policy: options.Policy = "exclude",
    as_json: options.Json = False,
):  # fmt: skip
    """Train a ranker and write a model file. Ctrl-C keeps the best model so far."""
    loss = weighting.surrogate(problem.surrogate, problem.k)
    name = solver_name(solver.solver, loss)
    options.check_outputs(output)
    settings = stopping.limits() | ({} if solver.eta is None else {"eta": solver.eta})
    users = scale.Users(policy, weighting)
    with where.risk(data, reading, loss, users, stopping.threads, saving.checkpoint) as loaded:
        checkpoint = saving.open("fit", loaded.lists)
        loaded.remember(saving.checkpoint)
        with progress.live() as watch:
            callback = watch(name, problem.surrogate)
            run = solve(name, loaded.risk, problem.alpha, None, callback, checkpoint, **settings)
    save_model(output, _model(run, loaded, weighting.user_weight, reading.relevance_threshold))
    options.say_columns(loaded.table)
    _report(run, output, as_json)
    if run.result.status == Status.FAILED:
        console.note(_how_to_go_on(saving.checkpoint), style="yellow")
    if not run.result.converged:
        raise typer.Exit(1)


def _model(run, loaded, user_weight, threshold):
    return Model(
        coef=run.result.w,
        k=run.k,
        surrogate=run.surrogate,
        alpha=run.alpha,
        solver=run.solver,
        certificate=certificate_of(run.result),
        feature_names=loaded.table.feature_names,
        first_index=loaded.table.first_index,
        relevance_threshold=threshold,
        depth=loaded.risk.surrogate.depth,
        user_weight=user_weight,
    )


def _how_to_go_on(folder):
    if folder is None:
        return "with --checkpoint DIR, the same command could go on from here"
    return f"the same command goes on from {folder} once the data can be reached again"


def _report(run, output, as_json):
    console.note(str(run.exclusions))
    explain(run)
    if as_json:
        console.print_json(run.as_dict() | {"model": str(output)})
        return
    print_runs([run], f"alpha = {run.alpha:g}")
    console.note(f"model written to {output}")
