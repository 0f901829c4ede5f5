"""``fit``: train a ranker on a file and write a model file."""

from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli import console, options, progress, scale
from structsvm_papk.files.model import Model, certificate_of, save_model
from structsvm_papk.rankers.ranker import solver_name
from structsvm_papk.rankers.solver_race import solve
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import make_surrogate


def register(app):
    """Add the command."""
    app.command()(options.grouped(fit))


def fit(
    data: options.DataFile,
    reading: options.Reading,
    saving: options.Saving,
    where: scale.Scale,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Model file to write.", rich_help_panel="Output"
        ),
    ],
    k: options.K,
    surrogate: Annotated[
        str,
        typer.Option(
            help="avg, max, ts, pauc, ts_alg2, ramp or clipped_ramp.", rich_help_panel="Problem"
        ),
    ] = "avg",
    alpha: options.Alpha = 1e-2,
    solver: Annotated[
        str,
        typer.Option(help="auto, cutting_plane, cccp or subgradient.", rich_help_panel="Stopping"),
    ] = "auto",
    eta: Annotated[
        float | None,
        typer.Option(help="Step size of subgradient descent.", rich_help_panel="Stopping"),
    ] = None,
    tol: options.Tol = 1e-6,
    max_iter: options.MaxIter = None,
    time_limit: options.TimeLimit = None,
    threads: options.Threads = 1,
    policy: options.Policy = "exclude",
    as_json: options.Json = False,
):
    """Train a ranker and write a model file. Ctrl-C keeps the best model so far."""
    loss = make_surrogate(surrogate, k)
    solver = solver_name(solver, loss)
    options.check_outputs(output)
    settings = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    if eta is not None:
        settings["eta"] = eta
    with where.problem(data, reading, loss, policy, threads, saving.checkpoint) as problem:
        checkpoint = saving.open("fit", problem.lists)
        problem.remember(saving.checkpoint)
        with progress.live() as watch:
            callback = watch(solver, surrogate)
            run = solve(solver, problem.risk, alpha, None, callback, checkpoint, **settings)
    save_model(output, _model(run, problem.table, reading.relevance_threshold))
    options.say_columns(problem.table)
    _report(run, output, as_json)
    if run.result.status == Status.FAILED:
        console.note(_how_to_go_on(saving.checkpoint), style="yellow")
    if not run.result.converged:
        raise typer.Exit(1)


def _model(run, table, threshold):
    return Model(
        coef=run.result.w,
        k=run.k,
        surrogate=run.surrogate,
        alpha=run.alpha,
        solver=run.solver,
        certificate=certificate_of(run.result),
        feature_names=table.feature_names,
        first_index=table.first_index,
        relevance_threshold=threshold,
    )


def _how_to_go_on(folder):
    if folder is None:
        return "with --checkpoint DIR, the same command could go on from here"
    return f"the same command goes on from {folder} once the data can be reached again"


def _report(run, output, as_json):
    console.note(str(run.exclusions))
    console.explain(run)
    if as_json:
        console.print_json(run.as_dict() | {"model": str(output)})
        return
    console.print_runs([run], f"alpha = {run.alpha:g}")
    console.note(f"model written to {output}")
